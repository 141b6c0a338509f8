//! Detached mounts, which become parts of the sandbox's root.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags};

use crate::failure::{Attempt, Failure};
use crate::sys;

/// Not NOEXEC for the host's files, because the guest's kernel asks the host whether a program is
/// executable (access(2)). Landlock forbids the execution of all of them.
pub const NO_DEVICES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// The attributes of every other mount.
pub const ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
/// The attributes of mounts that the guest cannot write to.
pub const READ_ONLY: MountAttrFlags = ATTRIBUTES.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// Return a detached copy of the mounts at `path`, with `attributes`.
pub fn subtree(path: &str, recursive: bool, attributes: MountAttrFlags) -> Result<OwnedFd, Failure> {
    let deep = if recursive { OpenTreeFlags::AT_RECURSIVE } else { OpenTreeFlags::empty() };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | deep;
    let tree =
        rustix::mount::open_tree(CWD, path, flags).attempt(|| format!("copying the mount of {path}"))?;
    sys::set_mount_attributes(tree.as_fd(), attributes, recursive)
        .attempt(|| format!("setting the attributes of the mount of {path}"))?;
    Ok(tree)
}

/// Return a detached file system in memory that holds `size` bytes, and at most `files` files and folders.
pub fn memory(size: &str, files: Option<u64>) -> Result<OwnedFd, Failure> {
    let context = || "creating a file system in memory";
    let tmpfs = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).attempt(context)?;
    rustix::mount::fsconfig_set_string(tmpfs.as_fd(), "size", size).attempt(context)?;
    rustix::mount::fsconfig_set_string(tmpfs.as_fd(), "mode", "0755").attempt(context)?;
    if let Some(files) = files {
        rustix::mount::fsconfig_set_string(tmpfs.as_fd(), "nr_inodes", files.to_string()).attempt(context)?;
    }
    rustix::mount::fsconfig_create(tmpfs.as_fd()).attempt(context)?;
    rustix::mount::fsmount(tmpfs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES).attempt(context)
}
