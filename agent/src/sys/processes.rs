//! Processes and their namespaces: where they start, and their ends.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Result;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::calls::check;

/// How many open files a program may have unless it asks for more: what programs are used to. Some close every
/// number that they may have.
const FILES: Rlimit = Rlimit { current: Some(1024), maximum: Some(1 << 20) };

/// Makes a command run with the root and the mounts of `mounts`, in `directory`, as a member of the control group
/// whose `cgroup.procs` is `group`; with `terminal` it leads a session on the terminal that is its standard input.
///
/// All that is borrowed must stay until the command has been spawned, and does: the command is spawned by the caller.
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

/// Gives this thread mounts, a root and a working directory of its own.
pub fn unshare_mounts() -> Result<()> {
    // SAFETY: neither shares memory or descriptors with other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }
}

/// Writes to the disk's host what the guest keeps of a file in memory, without asking the host to do more.
pub fn write_back(file: impl AsFd) -> Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes no pointers.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, flags) })
}

/// Takes note of the deaths of processes whose parents died before them. Those that this process itself has started
/// are left to the threads that started them.
pub fn bury_orphans() {
    // SAFETY: takes no pointers but a null one, which is allowed.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WNOTHREAD) } > 0 {}
}

/// Kills every process but this one.
pub fn kill_everything() {
    // SAFETY: takes no pointers.
    let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Moves this thread into a new network namespace.
pub fn unshare_network() -> Result<()> {
    // SAFETY: a network namespace shares no memory and no descriptors; open sockets stay where they were made.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
}

/// Keeps all threads on one heap: a heap of its own costs each new thread several system calls.
pub fn share_one_heap() {
    // SAFETY: sets a parameter of the allocator; called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Makes a command run with `root` as its root directory, in `directory` below it, and in the control group that
/// `door` leads to.
pub fn run_confined(command: &mut Command, root: &'static str, directory: &'static str, door: OwnedFd) {
    let enter = move || {
        rustix::io::write(&door, b"0")?;
        rustix::process::chroot(root)?;
        Ok(rustix::process::chdir(directory)?)
    };
    // SAFETY: between fork and exec the closure makes three system calls; paths of ordinary length are put on the
    // stack, so that nothing is allocated.
    unsafe {
        command.pre_exec(enter);
    }
}

/// Sends a signal; to nobody, if the process is gone.
pub fn signal(pid: i32, number: i32) {
    if pid > 1 {
        // SAFETY: a signal to another process touches no memory of this one.
        unsafe {
            libc::kill(pid, number);
        }
    }
}
