//! Many datagrams per system call, with the times at which the kernel received them.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Result;

use super::calls::{last_errno, setsockopt, size32};

/// The size of the control message `SCM_TIMESTAMPNS`, which holds a `timespec`.
const CONTROL_BYTES: usize = 64;
/// The bytes kept of each datagram: its number, or the headers of IPv4 and ICMP.
pub const HEAD_BYTES: usize = 32;

/// One datagram.
#[derive(Debug, Clone, Copy)]
pub struct Datagram {
    /// Its first bytes; zeros where it is shorter.
    pub head: [u8; HEAD_BYTES],
    /// The length of the whole datagram; 0 if there was none because the socket is shut down.
    pub length: u64,
    /// `CLOCK_REALTIME` when the kernel received it; 0 if the kernel did not report it.
    pub realtime_ns: i64,
}

impl Datagram {
    /// Return its first eight bytes, little-endian.
    pub fn number(&self) -> u64 {
        self.head.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Buffers for a batch of datagrams.
pub struct Datagrams {
    heads: Box<[[u8; HEAD_BYTES]]>,
    controls: Box<[[u64; CONTROL_BYTES / 8]]>,
    /// The datagrams of the latest call.
    pub received: Vec<Datagram>,
}

/// Let the kernel time-stamp what this socket receives.
pub fn stamp_arrivals(fd: impl AsFd) -> Result<()> {
    setsockopt(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_u32)
}

impl Datagrams {
    /// Allocate buffers for `batch` datagrams.
    pub fn new(batch: usize) -> Self {
        Self {
            heads: vec![[0; HEAD_BYTES]; batch].into(),
            controls: vec![[0; CONTROL_BYTES / 8]; batch].into(),
            received: Vec::with_capacity(batch),
        }
    }

    /// Wait until `ask` datagrams have arrived (at most a batch), or the socket is shut down.
    pub fn receive(&mut self, fd: impl AsFd, ask: usize) -> Result<()> {
        self.receive_as(fd, ask, libc::MSG_TRUNC)
    }

    /// Receive the pending datagrams, at most a batch, without waiting.
    pub fn take(&mut self, fd: impl AsFd) -> Result<()> {
        match self.receive_as(fd, usize::MAX, libc::MSG_TRUNC | libc::MSG_DONTWAIT) {
            Err(rustix::io::Errno::AGAIN) => Ok(()),
            done => done,
        }
    }

    fn receive_as(&mut self, fd: impl AsFd, ask: usize, flags: libc::c_int) -> Result<()> {
        self.received.clear();
        let ask = ask.min(self.heads.len());
        let mut parts: Vec<libc::iovec> = self
            .heads
            .iter_mut()
            .map(|head| {
                *head = [0; HEAD_BYTES];
                libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: HEAD_BYTES }
            })
            .collect();
        let mut headers: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .zip(self.controls.iter_mut())
            .map(|(part, control)| {
                // SAFETY: the structure is plain data, for which zeros are valid; musl pads it, so it has no literal.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_iov = part;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL_BYTES;
                header
            })
            .collect();
        // SAFETY: the kernel writes through the pointers of the first `ask` headers, each of which
        // leads to a buffer of the given size; `parts`, `headers` and `self` live until it returns.
        // It keeps no pointer.
        let got = unsafe {
            libc::recvmmsg(
                fd.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                size32(ask),
                flags,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(got).map_err(|_| last_errno())?;
        let filled = headers.iter().zip(&self.heads).zip(&self.controls).take(count);
        self.received.extend(filled.map(|((header, head), control)| Datagram {
            head: *head,
            length: header.msg_len.into(),
            realtime_ns: stamp(control, header.msg_hdr.msg_controllen),
        }));
        Ok(())
    }
}

/// Decode the time in a control message `SCM_TIMESTAMPNS`: a header of 16 bytes (length, level,
/// type), then a `timespec`.
fn stamp(control: &[u64; CONTROL_BYTES / 8], length: usize) -> i64 {
    let kind =
        u64::from(libc::SOL_SOCKET.cast_unsigned()) | u64::from(libc::SCM_TIMESTAMPNS.cast_unsigned()) << 32;
    if length < 16 + size_of::<libc::timespec>() || control[1] != kind {
        return 0;
    }
    control[2].cast_signed() * 1_000_000_000 + control[3].cast_signed()
}
