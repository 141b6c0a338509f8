//! Processes: how programs start, and how they end.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Result;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::calls::check;

/// Limit on the open files of a program unless the program raises it: the usual value, because some
/// programs close every descriptor up to the limit.
const FILES: Rlimit = Rlimit { current: Some(1024), maximum: Some(1 << 20) };

/// Make a command run with the root and the mounts of `mounts`, in `directory`, in the control
/// group whose `cgroup.procs` is `group`. With `terminal`, the command leads a session on the
/// terminal that is its standard input.
///
/// The borrowed descriptors must outlive the spawn; the caller spawns the command while it holds
/// them.
pub fn run_in_place(command: &mut Command, mounts: &OwnedFd, group: &File, directory: &str, terminal: bool) {
    let (mounts, group) = (mounts.as_raw_fd(), group.as_raw_fd());
    let directory = std::ffi::CString::new(directory).unwrap_or_default();
    let enter = move || {
        // SAFETY: both belong to the session, which outlives every command that it spawns.
        let (mounts, group) = unsafe { (BorrowedFd::borrow_raw(mounts), BorrowedFd::borrow_raw(group)) };
        rustix::io::write(group, b"0")?;
        move_into_link_name_space(mounts, Some(LinkNameSpaceType::Mount))?;
        if terminal {
            rustix::process::setsid()?;
            // SAFETY: standard input is open in the new process.
            rustix::process::ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
        }
        setrlimit(Resource::Nofile, FILES)?;
        Ok(rustix::process::chdir(directory.as_c_str())?)
    };
    // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(enter);
    }
}

/// Move this thread into new namespaces, or this process if it has one thread.
pub fn unshare(flags: UnshareFlags) -> Result<()> {
    // SAFETY: without FILES, no two threads lose the table of descriptors that they share.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Write a file's dirty pages to the host, without a sync on the host.
pub fn write_back(file: impl AsFd) -> Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes no pointers.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, flags) })
}

/// Reap orphans that have ended. Threads reap the processes that they started themselves.
pub fn bury_orphans() {
    // SAFETY: takes no pointers but a null one, which is allowed.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WNOTHREAD) } > 0 {}
}

/// Kill every process but this one.
pub fn kill_everything() {
    // SAFETY: takes no pointers.
    let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Keep all threads on one heap, because a heap per thread costs each new thread several system
/// calls.
pub fn share_one_heap() {
    // SAFETY: sets a parameter of the allocator; called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Make a command run with `root` as its root directory, in `directory` below it, in the control
/// group of `door`.
pub fn run_confined(command: &mut Command, root: &'static str, directory: &'static str, door: OwnedFd) {
    let enter = move || {
        rustix::io::write(&door, b"0")?;
        rustix::process::chroot(root)?;
        Ok(rustix::process::chdir(directory)?)
    };
    // SAFETY: between fork and exec the closure makes three system calls; paths of ordinary length
    // go on the stack, so nothing is allocated.
    unsafe {
        command.pre_exec(enter);
    }
}
