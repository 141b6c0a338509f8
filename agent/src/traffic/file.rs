//! Transfers of real files. Both sides hash all of the data.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send as send_to};
use sha2::{Digest, Sha256};

use crate::clock;
use crate::error::{Attempt, Error, Result, describe};
use crate::job::input_path;
use crate::plan;

const CHUNK_BYTES: usize = 4 << 20;

/// Check before the trial that the file exists and has the planned size.
pub fn check(file: &plan::File) -> Result<()> {
    let path = input_path(file)?;
    let size = path.metadata().attempt(|| format!("looking for input/{}", file.name))?.len();
    if size == file.bytes {
        Ok(())
    } else {
        Err(Error::new(format!("input/{} has {size} bytes; the plan has {}", file.name, file.bytes)))
    }
}

/// Send the file, count the bytes, and return the SHA-256 of the sent data.
pub fn send(file: &plan::File, socket: &OwnedFd, sent: &mut u64) -> std::result::Result<String, String> {
    let name = &file.name;
    let mut source = input_path(file)
        .and_then(|path| File::open(path).attempt(|| format!("opening input/{name}")))
        .map_err(|error| error.to_string())?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut hash = Sha256::new();
    loop {
        let count = source.read(&mut chunk).map_err(|error| format!("reading input/{name}: {error}"))?;
        if count == 0 {
            break;
        }
        hash.update(&chunk[..count]);
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            match send_to(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    *sent += count as u64;
                    rest = &rest[count..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(describe(errno)),
            }
        }
    }
    let sha256 = hex(&hash.finalize());
    if sha256 == file.sha256 {
        Ok(sha256)
    } else {
        Err(format!("input/{name} has SHA-256 {sha256}; the plan has {}", file.sha256))
    }
}

/// Receive until the stream ends, and count the bytes. Return the SHA-256, and when the last
/// expected byte arrived.
pub fn receive(
    file: &plan::File,
    socket: &OwnedFd,
    received: &mut u64,
    first_byte: impl FnOnce(),
) -> std::result::Result<(String, Option<i64>), String> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut hash = Sha256::new();
    let mut first_byte = Some(first_byte);
    let mut last_us = None;
    loop {
        // Never ask for more than the rest, so that the read of the last byte returns when it
        // arrives.
        let rest = usize::try_from(file.bytes.saturating_sub(*received)).unwrap_or(usize::MAX);
        let ask = if first_byte.is_some() { 1 } else { rest.clamp(1, CHUNK_BYTES) };
        let count = match recv(socket, &mut chunk[..ask], RecvFlags::WAITALL) {
            Ok((_, 0)) => return Ok((hex(&hash.finalize()), last_us)),
            Ok((_, count)) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(describe(errno)),
        };
        if let Some(first_byte) = first_byte.take() {
            first_byte();
        }
        *received += count as u64;
        if *received == file.bytes {
            last_us = Some(clock::trial_us());
        }
        hash.update(&chunk[..count]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_as_python_writes_it() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&Sha256::new().finalize()), empty);
    }
}
