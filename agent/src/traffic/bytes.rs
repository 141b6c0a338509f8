//! Send and receive synthetic data, in as few system calls as the kernel allows.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::error::describe;
use crate::sys;

/// The data of a synthetic sender: a repeated block, small enough for the cache.
static PATTERN: [u8; 64 * 1024] = [0; 64 * 1024];
/// How many blocks one system call sends (the kernel's limit is 1024).
const REPEATS: usize = 1024;

/// Send `bytes` bytes, and count them in `sent` on the way.
pub fn send(socket: &OwnedFd, bytes: u64, sent: &mut u64) -> Result<(), String> {
    let mut rest = bytes;
    while rest > 0 {
        let count = send_some(socket, rest).map_err(describe)?;
        *sent += count;
        rest -= count;
    }
    Ok(())
}

/// Send up to `bytes` bytes in one system call, and return how many the kernel took. With a send
/// timeout on the socket, this can be 0.
pub fn send_some(socket: &OwnedFd, bytes: u64) -> Result<u64, Errno> {
    let now = usize::try_from(bytes).unwrap_or(usize::MAX).min(REPEATS * PATTERN.len());
    let count = if now <= PATTERN.len() {
        retried(|| rustix::net::send(socket, &PATTERN[..now], SendFlags::NOSIGNAL))
    } else {
        let mut slices = vec![IoSlice::new(&PATTERN); now / PATTERN.len()];
        if now % PATTERN.len() > 0 {
            slices.push(IoSlice::new(&PATTERN[..now % PATTERN.len()]));
        }
        slices.truncate(REPEATS);
        retried(|| sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL))
    };
    match count {
        Err(Errno::AGAIN) => Ok(0),
        count => count.map(|count| count as u64),
    }
}

/// Receive and discard `bytes` bytes; fewer only at the end of the stream.
pub fn receive(socket: &OwnedFd, bytes: u64) -> Result<u64, String> {
    if bytes == 0 {
        return Ok(0); // the kernel would wait for a byte to arrive
    }
    let ask = usize::try_from(bytes).unwrap_or(usize::MAX);
    retried(|| sys::receive_discarding(socket.as_fd(), ask)).map(|count| count as u64).map_err(describe)
}

/// Repeat a call that a signal interrupts.
pub fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
