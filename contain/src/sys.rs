//! System calls that need `unsafe` or that no library offers.
#![allow(unsafe_code)] // the one place for it

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, Signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Move this process, which has one thread, into a new namespace.
pub fn unshare(flag: UnshareFlags) -> Result<()> {
    // SAFETY: `flag` does not unshare descriptors.
    unsafe { unshare_unsafe(flag) }
}

/// Run `body` in a child, which then exits. This process must have one thread.
pub fn fork(body: impl FnOnce()) -> Result<Pid> {
    // SAFETY: with one thread, the child may do everything that its parent may.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        0 => {
            body();
            // SAFETY: ends this process; it runs and flushes nothing of the parent.
            unsafe { libc::_exit(3) }
        }
        pid => Pid::from_raw(pid).ok_or(Errno::CHILD),
    }
}

/// A child outside a future user namespace, which may map other users into it.
pub struct MapWriter {
    child: Pid,
    go: OwnedFd,
}

/// Start the child that writes the user and group maps of this process.
pub fn fork_map_writer(user: &str, group: &str) -> Result<MapWriter> {
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let target = std::process::id();
    let child = fork(|| {
        close_in_child(&go);
        let mut byte = [0];
        let is_wanted = rustix::io::read(&wait, &mut byte) == Ok(1);
        let write = |name: &str, map: &str| std::fs::write(format!("/proc/{target}/{name}"), map);
        let done = !is_wanted || (write("uid_map", user).is_ok() && write("gid_map", group).is_ok());
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!done)) }
    })?;
    Ok(MapWriter { child, go })
}

impl MapWriter {
    /// Let the child write the maps if the namespace `exists`, and wait for its end.
    pub fn finish(self, exists: bool) -> Result<()> {
        if exists {
            rustix::io::write(&self.go, b"x")?;
        }
        drop(self.go);
        let ended = rustix::process::waitpid(Some(self.child), rustix::process::WaitOptions::empty())?;
        let is_done = ended.is_some_and(|(_, status)| status.exit_status() == Some(0));
        if is_done { Ok(()) } else { Err(Errno::PERM) }
    }
}

/// Close a descriptor of the parent in a child that continues.
pub fn close_in_child(descriptor: &OwnedFd) {
    // SAFETY: the child exits by `_exit` and never drops the descriptor.
    unsafe {
        libc::close(descriptor.as_raw_fd());
    }
}

/// Let the kernel reap children.
pub fn ignore_children() {
    // SAFETY: no handler is involved.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
}

/// Send a byte with a descriptor to a socket that plait passed.
pub fn send_descriptor(socket: i32, byte: u8, descriptor: BorrowedFd<'_>) -> Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    // SAFETY: plait passed the descriptor, and it stays open.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[io::IoSlice::new(&[byte])], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Write bytes to a socket that plait passed, and close it.
pub fn write_and_close(socket: i32, bytes: &[u8]) {
    // SAFETY: this is one end of a pair of sockets; nothing else in this process uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let _ = rustix::io::write(socket, bytes); // Rust ignores SIGPIPE
}

/// Close a descriptor when this process executes another program.
pub fn close_on_exec(descriptor: i32) -> Result<()> {
    // SAFETY: plait passed the descriptor, and it stays open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)
}

/// Read until the other ends are closed, at most 4 KiB.
pub fn read_to_end(descriptor: impl AsFd) -> Result<Vec<u8>> {
    let mut buffer = [0; 4096];
    let mut length = 0;
    while length < buffer.len() {
        match rustix::io::read(descriptor.as_fd(), &mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer[..length].to_vec())
}

/// SIGCHLD and SIGTERM, which stay pending until this process waits for them.
pub struct Signals {
    awaited: libc::sigset_t,
    before: libc::sigset_t,
}

impl Signals {
    /// Block both signals.
    pub fn block() -> Result<Self> {
        let (mut awaited, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call that receives a set initialises it.
        unsafe {
            libc::sigemptyset(awaited.as_mut_ptr());
            libc::sigaddset(awaited.as_mut_ptr(), libc::SIGCHLD);
            libc::sigaddset(awaited.as_mut_ptr(), libc::SIGTERM);
            check(libc::sigprocmask(libc::SIG_BLOCK, awaited.as_ptr(), before.as_mut_ptr()))?;
            Ok(Self { awaited: awaited.assume_init(), before: before.assume_init() })
        }
    }

    /// Restore the previous signal mask.
    pub fn restore(&self) -> Result<()> {
        // SAFETY: the set is initialised.
        check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) })
    }

    /// Wait for the next signal.
    pub fn next(&self) -> Result<Signal> {
        let mut number = 0;
        // SAFETY: both are initialised.
        let error = unsafe { libc::sigwait(&raw const self.awaited, &raw mut number) };
        if error != 0 {
            return Err(Errno::from_raw_os_error(error));
        }
        Signal::from_named_raw(number).ok_or(Errno::INVAL)
    }
}

/// Execute a program, and return the error if this fails.
pub fn execute(program: &CString, line: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (line, environment) = (pointers(line), pointers(environment));
    // SAFETY: both lists end with a null pointer, and their texts live until the call returns.
    unsafe { libc::execve(program.as_ptr(), line.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Turn off address-space randomisation for this process and the programs that it executes.
pub fn fix_addresses() -> Result<()> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: takes no pointers.
    unsafe {
        let present = libc::personality(ASK);
        check(present)?;
        let wanted = libc::c_ulong::try_from(present | libc::ADDR_NO_RANDOMIZE).map_err(|_| Errno::INVAL)?;
        check(libc::personality(wanted))
    }
}

/// Add `attributes` to a detached mount, or to its whole tree, and clear none.
pub fn set_mount_attributes(tree: BorrowedFd<'_>, attributes: MountAttrFlags, recursive: bool) -> Result<()> {
    let change =
        libc::mount_attr { attr_set: attributes.bits().into(), attr_clr: 0, propagation: 0, userns_fd: 0 };
    let deep = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the kernel reads a whole `mount_attr` and an empty path.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | deep,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn check(result: i32) -> Result<()> {
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
