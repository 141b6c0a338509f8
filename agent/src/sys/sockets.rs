//! Options and calls of sockets.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Result;

use super::calls::{getsockopt, last_errno, setsockopt};

/// `SO_NETNS_COOKIE` of asm-generic/socket.h.
const SO_NETNS_COOKIE: i32 = 71;
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

/// Return the number of the socket's network namespace, which the kernel gives to no other until a reboot (Linux 5.14).
pub fn namespace_number(fd: impl AsFd) -> Result<u64> {
    let mut number = [0; 8];
    getsockopt(fd.as_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut number)?;
    Ok(u64::from_ne_bytes(number))
}

/// Set an option to a number, as `setsockopt` takes it.
pub fn set_option(fd: impl AsFd, level: i32, name: i32, value: u32) -> Result<()> {
    setsockopt(fd.as_fd(), level, name, &value)
}
