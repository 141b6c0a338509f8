//! The host's files in the sandbox: a root of their own with what the guest's programs see, each part
//! at its own path, read-only, and without what exposes the host's kernel.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::mounts::{NO_DEVICES, READ_ONLY, memory, subtree};
use crate::failure::{Attempt, Failure};
use crate::spec::Spec;
use crate::sys;

/// The place of the host's files in the sandbox.
pub const HOST: &str = "plait/host";
/// Folders that every guest with programs has, with their modes; the agent mounts file systems on them.
const FOLDERS: [(&str, u32); 10] = [
    ("proc", 0o755),
    ("sys", 0o755),
    ("run", 0o755),
    ("dev", 0o755),
    ("etc", 0o755),
    ("mnt", 0o755),
    ("root", 0o755),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/tmp", 0o1777),
];
/// File systems that expose the host's kernel or its devices, wherever they are mounted.
const OF_THE_KERNEL: [&str; 21] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "functionfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Return the host's files as trees with their mount points, the root of them first, and with the
/// writable folders on top.
pub fn root(visible: &[String], spec: &Spec) -> Result<Vec<(OwnedFd, String)>, Failure> {
    let root = memory("1m", None)?;
    for (name, mode) in FOLDERS {
        make_folders(&root, Path::new(name))?;
        rustix::fs::chmodat(&root, name, Mode::from_raw_mode(mode), rustix::fs::AtFlags::empty())
            .attempt(|| format!("creating {HOST}/{name}"))?;
    }
    for (target, name) in [("/run", "var/run"), ("/run/lock", "var/lock")] {
        rustix::fs::symlinkat(target, &root, name).attempt(|| format!("creating the link /{name}"))?;
    }
    let mut trees = Vec::new();
    let mut shown: Vec<PathBuf> = Vec::new();
    let is_shown = |shown: &[PathBuf], path: &Path| shown.iter().any(|above| path.starts_with(above));
    for path in visible.iter().map(Path::new).filter(|path| path.is_absolute()) {
        if is_shown(&shown, path) {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(path) else { continue }; // it was removed meanwhile
        let inside = path.strip_prefix("/").unwrap_or(path);
        make_folders(&root, inside.parent().unwrap_or(Path::new("")))?;
        if metadata.is_symlink() {
            let context = || format!("creating the link {}", path.display());
            let target = fs::read_link(path).attempt(context)?;
            match rustix::fs::symlinkat(target, &root, inside) {
                Ok(()) | Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno).attempt(context),
            }
        }
        make_mount_point(&root, inside, metadata.is_dir())?;
        let attributes = NO_DEVICES | MountAttrFlags::MOUNT_ATTR_RDONLY;
        trees.push((subtree(&path.to_string_lossy(), true, attributes)?, place(path)));
        shown.push(path.to_owned());
    }
    trees.extend(covers(&shown)?);
    for folder in spec.empty.iter().chain(&spec.writable).map(Path::new) {
        if !is_shown(&shown, folder) {
            make_folders(&root, folder.strip_prefix("/").unwrap_or(folder))?;
        }
    }
    for folder in &spec.writable {
        trees.push((subtree(folder, true, NO_DEVICES)?, place(Path::new(folder))));
    }
    sys::set_mount_attributes(root.as_fd(), READ_ONLY, false)
        .attempt(|| "making the host's root read-only")?;
    trees.insert(0, (root, HOST.to_owned()));
    Ok(trees)
}

/// Return covers for the file systems of the host's kernel below what is shown.
fn covers(shown: &[PathBuf]) -> Result<Vec<(OwnedFd, String)>, Failure> {
    let mut covers = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").attempt(|| "reading /proc/self/mountinfo")?;
    for (mounted, kind) in mounts.lines().filter_map(place_and_kind) {
        let is_below = shown.iter().any(|folder| Path::new(&mounted).starts_with(folder));
        if !is_below || !OF_THE_KERNEL.contains(&kind) {
            continue;
        }
        let cover = match fs::symlink_metadata(&mounted) {
            Ok(metadata) if metadata.is_dir() => memory("4k", None)?,
            Ok(metadata) if metadata.is_file() => subtree("/dev/null", false, READ_ONLY)?, // an open fails: the mount forbids devices
            _ => continue,
        };
        sys::set_mount_attributes(cover.as_fd(), READ_ONLY, false)
            .attempt(|| format!("covering {mounted}"))?;
        covers.push((cover, place(Path::new(&mounted))));
    }
    Ok(covers)
}

fn place(path: &Path) -> String {
    format!("{HOST}{}", path.display())
}

fn make_folders(root: &OwnedFd, inside: &Path) -> Result<(), Failure> {
    let mut path = PathBuf::new();
    for name in inside {
        path.push(name);
        match rustix::fs::mkdirat(root, &path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).attempt(|| format!("creating /{}", path.display())),
        }
    }
    Ok(())
}

fn make_mount_point(root: &OwnedFd, inside: &Path, is_folder: bool) -> Result<(), Failure> {
    if is_folder {
        return make_folders(root, inside);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    rustix::fs::openat(root, inside, flags, Mode::RUSR)
        .attempt(|| format!("creating /{}", inside.display()))
        .map(drop)
}

/// Parse a line of mountinfo into the mount point and the kind of a file system
/// (`proc_pid_mountinfo(5)`).
fn place_and_kind(line: &str) -> Option<(String, &str)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let place = mount.split(' ').nth(4)?;
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let place = escapes.iter().fold(place.to_owned(), |text, (code, meaning)| text.replace(code, meaning));
    Some((place, file_system.split(' ').next()?))
}
