//! Unpacks the archives that plait makes for the kernel's initramfs and for a machine that has booted: "newc" cpio
//! (Documentation/driver-api/early-userspace/buffer-format.rst), one after another, with zeros in between.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::{Attempt, Error, Result};

const MAGIC: &[u8] = b"070701";
const HEADER_BYTES: usize = 110;
const FIELD_BYTES: usize = 8;
/// The places of fields in a header.
const MODE: usize = 1;
const MTIME: usize = 5;
const SIZE: usize = 6;
const NAME_SIZE: usize = 11;
const LAST: &[u8] = b"TRAILER!!!";

/// Make the files, folders and symbolic links of `archives` below the root.
pub fn unpack(archives: &[u8]) -> Result<()> {
    let mut rest = archives;
    loop {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
        if rest.is_empty() {
            return Ok(());
        }
        let broken = || Error::new("unpacking the trial's folder: its archive is damaged");
        let header =
            rest.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC)).ok_or_else(broken)?;
        let field = |place: usize| {
            let start = MAGIC.len() + place * FIELD_BYTES;
            let digits = std::str::from_utf8(&header[start..start + FIELD_BYTES]).ok();
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(broken)
        };
        let name_end = HEADER_BYTES + field(NAME_SIZE)? as usize;
        let start = name_end.next_multiple_of(4);
        let end = start + field(SIZE)? as usize;
        let name = rest.get(HEADER_BYTES..name_end.saturating_sub(1)).ok_or_else(broken)?;
        let content = rest.get(start..end).ok_or_else(broken)?;
        if name != LAST {
            let path = Path::new("/").join(Path::new(OsStr::from_bytes(name)));
            make(&path, field(MODE)?, field(MTIME)?, content)
                .attempt(|| format!("unpacking {}", path.display()))?;
        }
        rest = &rest[end.next_multiple_of(4).min(rest.len())..];
    }
}

fn make(path: &Path, mode: u32, mtime: u32, content: &[u8]) -> std::io::Result<()> {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => match std::fs::create_dir(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        },
        libc::S_IFLNK => return symlink(OsStr::from_bytes(content), path),
        libc::S_IFREG => File::create(path)?.write_all(content)?,
        _ => return Err(ErrorKind::Unsupported.into()),
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))?;
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(mtime.into());
    File::open(path)?.set_modified(modified)
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn a_damaged_archive_is_refused() {
        for archive in [b"070702".as_slice(), &[b'x'; 200], b"07070100"] {
            assert!(unpack(archive).is_err());
        }
    }

    #[test]
    fn zeros_are_an_empty_archive() {
        assert!(unpack(&[0; 512]).is_ok());
    }
}
