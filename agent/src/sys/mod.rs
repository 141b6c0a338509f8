//! The only unsafe code of the agent: system calls for which no safe wrapper exists.
//!
//! Every function here is safe to call with any argument; the reason stands beside each `unsafe`.
#![allow(unsafe_code)]

mod datagrams;
mod packets;
mod processes;

pub use packets::{Packet, PacketRing};

use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, Result};

pub use datagrams::{Datagrams, stamp_arrivals};
pub use processes::{bury_orphans, kill_everything, run_in_place, unshare_mounts, write_back};

/// `SOL_MPTCP` and its option (`linux/mptcp.h`), which libc does not name.
const SOL_MPTCP: i32 = 284;
const MPTCP_FULL_INFO: i32 = 4;

/// Bytes of `struct tcp_info` that the agent asks for; a kernel that knows fewer returns fewer.
pub const TCP_INFO_BYTES: usize = 256;
/// Bytes of `struct mptcp_info` that the agent asks for.
pub const MPTCP_INFO_BYTES: usize = 96;
/// Bytes of `struct mptcp_subflow_info`: a 32-bit id, padding to 8, and two socket addresses of 128 bytes.
pub const SUBFLOW_INFO_BYTES: usize = 264;
/// The kernel allows 8 subflows in addition to the initial one; closing ones may linger beside them.
pub const SUBFLOWS_MAX: usize = 32;

/// A size as the kernel takes it.
#[allow(clippy::cast_possible_truncation)] // sizes of a few structures, known when this is compiled
const fn size32(bytes: usize) -> u32 {
    bytes as u32
}

fn check(result: i32) -> Result<()> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// `getsockopt` of plain data. Returns how many bytes of `value` the kernel filled.
fn getsockopt(fd: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> Result<usize> {
    let mut length = size32(value.len());
    // SAFETY: the kernel writes at most `length` bytes, the size of `value`; options of plain data hold no pointers.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    })?;
    Ok(length as usize)
}

/// `TCP_INFO`: the bytes of `struct tcp_info`, as many as this kernel knows.
pub fn tcp_info(fd: BorrowedFd<'_>, info: &mut [u8; TCP_INFO_BYTES]) -> Result<usize> {
    getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info)
}

/// `SO_MEMINFO`: the socket's memory counters, indexed as `SK_MEMINFO_*`.
pub fn memory_info(fd: BorrowedFd<'_>) -> Result<[u32; 9]> {
    let mut bytes = [0; 36];
    getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes)?;
    let mut values = [0; 9];
    for (value, chunk) in values.iter_mut().zip(bytes.chunks_exact(4)) {
        *value = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    }
    Ok(values)
}

/// `struct mptcp_full_info` of `linux/mptcp.h`.
#[repr(C)]
struct FullInfoHeader {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    mptcp_info: [u8; MPTCP_INFO_BYTES],
}

/// What one `MPTCP_FULL_INFO` call tells: the connection, and each subflow's identity and `tcp_info`.
pub struct FullInfo {
    mptcp: [u8; MPTCP_INFO_BYTES],
    mptcp_length: usize,
    identities: Box<[u8; SUBFLOW_INFO_BYTES * SUBFLOWS_MAX]>,
    identity_length: usize,
    tcp: Box<[u8; TCP_INFO_BYTES * SUBFLOWS_MAX]>,
    tcp_length: usize,
    count: usize,
}

impl FullInfo {
    /// Room for one answer, to be used again for the next one.
    pub fn new() -> Self {
        Self {
            mptcp: [0; MPTCP_INFO_BYTES],
            mptcp_length: 0,
            identities: Box::new([0; SUBFLOW_INFO_BYTES * SUBFLOWS_MAX]),
            identity_length: SUBFLOW_INFO_BYTES,
            tcp: Box::new([0; TCP_INFO_BYTES * SUBFLOWS_MAX]),
            tcp_length: TCP_INFO_BYTES,
            count: 0,
        }
    }

    /// Asks the kernel (one system call, which takes the socket's lock).
    pub fn read(&mut self, fd: BorrowedFd<'_>) -> Result<()> {
        let mut header = FullInfoHeader {
            size_tcpinfo_kernel: 0,
            size_tcpinfo_user: size32(TCP_INFO_BYTES),
            size_sfinfo_kernel: 0,
            size_sfinfo_user: size32(SUBFLOW_INFO_BYTES),
            num_subflows: 0,
            size_arrays_user: size32(SUBFLOWS_MAX),
            subflow_info: self.identities.as_mut_ptr().expose_provenance() as u64,
            tcp_info: self.tcp.as_mut_ptr().expose_provenance() as u64,
            mptcp_info: [0; MPTCP_INFO_BYTES],
        };
        let mut length = size32(size_of::<FullInfoHeader>());
        // SAFETY: the kernel writes at most `length` bytes of `header`, and through its two pointers at most
        // `size_arrays_user` elements of at most `size_sfinfo_user` and `size_tcpinfo_user` bytes, which is what
        // the two boxes hold; it keeps none of the pointers.
        check(unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                SOL_MPTCP,
                MPTCP_FULL_INFO,
                (&raw mut header).cast(),
                &raw mut length,
            )
        })?;
        self.mptcp = header.mptcp_info;
        self.mptcp_length = (length as usize).saturating_sub(offset_of!(FullInfoHeader, mptcp_info));
        // The kernel packs the elements as closely as the shorter of its structure and ours.
        self.identity_length = (header.size_sfinfo_user as usize).clamp(1, SUBFLOW_INFO_BYTES);
        self.tcp_length = (header.size_tcpinfo_user as usize).clamp(1, TCP_INFO_BYTES);
        self.count = (header.num_subflows as usize).min(SUBFLOWS_MAX);
        Ok(())
    }

    /// The bytes of `struct mptcp_info`.
    pub fn mptcp(&self) -> &[u8] {
        &self.mptcp[..self.mptcp_length.min(MPTCP_INFO_BYTES)]
    }

    /// For each live subflow the bytes of `struct mptcp_subflow_info` and of `struct tcp_info`.
    pub fn subflows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let identities = self.identities.chunks_exact(self.identity_length);
        identities.zip(self.tcp.chunks_exact(self.tcp_length)).take(self.count)
    }
}

/// Receives and discards up to `length` bytes; returns early only at the end of the stream or an error.
///
/// The whole call is one system call however many segments arrive: with `MSG_TRUNC` TCP and MPTCP advance without
/// copying, with `MSG_WAITALL` they return when `length` is there.
pub fn receive_discarding(fd: impl AsFd, length: usize) -> Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_WAITALL;
    // SAFETY: stream sockets do not touch the buffer under MSG_TRUNC; were one to try, it would meet the null
    // page and the call would fail with EFAULT.
    let got = unsafe { libc::recv(fd.as_fd().as_raw_fd(), std::ptr::null_mut(), length, flags) };
    usize::try_from(got).map_err(|_| last_errno())
}

/// Sets an option whose value is a plain integer.
fn set_integer(fd: BorrowedFd<'_>, level: i32, name: i32, value: u32) -> Result<()> {
    // SAFETY: the kernel reads the four bytes of `value`.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size32(size_of::<u32>()))
    })
}

/// `SO_MARK`.
pub fn set_mark(fd: impl AsFd, mark: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, mark)
}

/// `TCP_NOTSENT_LOWAT`, in bytes.
pub fn set_notsent_lowat(fd: impl AsFd, bytes: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// `TCP_MAXSEG`, in bytes.
pub fn set_maximum_segment(fd: impl AsFd, bytes: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Turns on the kernel's explanations (extended acks) in the errors of a netlink socket.
pub fn enable_extended_acks(fd: impl AsFd) -> Result<()> {
    let on: u32 = 1;
    // SAFETY: the kernel reads the four bytes of `on`.
    check(unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_EXT_ACK,
            (&raw const on).cast(),
            size32(size_of::<u32>()),
        )
    })
}

/// Joins a multicast group of a netlink socket.
pub fn join_netlink_group(fd: impl AsFd, group: u32) -> Result<()> {
    // SAFETY: the kernel reads the four bytes of `group`.
    check(unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_ADD_MEMBERSHIP,
            (&raw const group).cast(),
            size32(size_of::<u32>()),
        )
    })
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
