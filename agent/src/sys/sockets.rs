//! Options and calls of sockets.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Result;

use super::calls::{check, getsockopt, last_errno, set_integer, size32};

/// Bytes of `struct tcp_info` that the agent requests; an older kernel returns fewer.
pub const TCP_INFO_BYTES: usize = 256;

/// Read `TCP_INFO`: the bytes of `struct tcp_info`, as many as this kernel supports.
pub fn tcp_info(fd: BorrowedFd<'_>, info: &mut [u8; TCP_INFO_BYTES]) -> Result<usize> {
    getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info)
}

/// Read `SO_MEMINFO`: the socket's memory counters, indexed by `SK_MEMINFO_*`.
pub fn memory_info(fd: BorrowedFd<'_>) -> Result<[u32; 9]> {
    let mut bytes = [0; 36];
    getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes)?;
    let mut values = [0; 9];
    for (value, chunk) in values.iter_mut().zip(bytes.chunks_exact(4)) {
        *value = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    }
    Ok(values)
}

/// Receive and discard up to `length` bytes; return early only at the end of the stream or on an
/// error.
///
/// One system call suffices, however many segments arrive: with `MSG_TRUNC` TCP and MPTCP advance
/// without copying, and with `MSG_WAITALL` they return when `length` bytes have arrived.
pub fn receive_discarding(fd: impl AsFd, length: usize) -> Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_WAITALL;
    // SAFETY: stream sockets do not touch the buffer under MSG_TRUNC; if one did, it would hit the
    // null page and the call would fail with EFAULT.
    let got = unsafe { libc::recv(fd.as_fd().as_raw_fd(), std::ptr::null_mut(), length, flags) };
    usize::try_from(got).map_err(|_| last_errno())
}

/// Set `SO_MARK`.
pub fn set_mark(fd: impl AsFd, mark: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, mark)
}

/// Set `TCP_NOTSENT_LOWAT`, in bytes.
pub fn set_notsent_lowat(fd: impl AsFd, bytes: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Set `TCP_MAXSEG`, in bytes.
pub fn set_maximum_segment(fd: impl AsFd, bytes: u32) -> Result<()> {
    set_integer(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Enable extended acks, in which the kernel explains errors, on a netlink socket.
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

/// Join a multicast group with a netlink socket.
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
