//! One side of a flow with its socket: send and receive synthetic data, in as few system calls as
//! the kernel allows.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::flow::FlowState;
use super::state::Traffic;
use crate::clock;
use crate::error::describe;
use crate::sys;

/// The data of a synthetic sender: a repeated block, small enough for the cache.
static PATTERN: [u8; 64 * 1024] = [0; 64 * 1024];
/// How many blocks one system call sends (the kernel's limit is 1024).
const REPEATS: usize = 1024;
/// The size of one receive call of a receiver that discards the data.
const RECEIVE_BYTES: usize = 1 << 30;

/// The sender or the receiver of a flow.
pub struct FlowSide<'a> {
    pub traffic: &'a Arc<Traffic>,
    pub flow: &'a FlowState,
    pub socket: &'a OwnedFd,
    /// How many bytes it has sent or received so far.
    pub bytes: u64,
}

impl<'a> FlowSide<'a> {
    /// Create a side that has sent or received nothing.
    pub fn new(traffic: &'a Arc<Traffic>, flow: &'a FlowState, socket: &'a OwnedFd) -> Self {
        Self { traffic, flow, socket, bytes: 0 }
    }

    /// Send `bytes` bytes.
    pub fn send(&mut self, bytes: u64) -> Result<(), String> {
        transmit(self.socket, bytes, &mut self.bytes)
    }

    /// Send up to `bytes` bytes in one system call.
    pub fn send_some(&mut self, bytes: u64) -> Result<(), String> {
        self.bytes += transmit_some(self.socket, bytes).map_err(describe)?;
        Ok(())
    }

    /// Wait until a message of `size` bytes is due; record the time in the table of messages, and
    /// send it.
    pub fn send_when_due(&mut self, due_ns: i64, size: u64) -> Result<(), String> {
        clock::sleep_until_ns(due_ns);
        self.flow.messages().sent(due_ns.div_euclid(1000), size)?;
        self.send(size)
    }

    /// Count received bytes, and record the time of the first one.
    pub fn add_received(&mut self, count: u64) {
        if self.bytes == 0 && count > 0 {
            self.flow.first_byte();
        }
        self.bytes += count;
    }

    /// Count the received bytes until the stream ends, without reading them. Return when the last of
    /// `expected` bytes arrived.
    pub fn receive_anything(&mut self, expected: Option<u64>) -> Result<Option<i64>, String> {
        let mut last_us = None;
        loop {
            // Receive the first byte alone, to know its time; then receive all the rest.
            let rest = expected.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.bytes));
            let ask = match (self.bytes, rest) {
                (0, _) | (_, 0) => 1,
                (_, rest) => rest.min(RECEIVE_BYTES as u64),
            };
            let count = discard(self.socket, ask)?;
            if count == 0 {
                return Ok(last_us);
            }
            self.add_received(count);
            if Some(self.bytes) == expected {
                last_us = Some(clock::trial_us());
            }
        }
    }

    /// Receive messages of one size until the stream ends, and record when the last byte of each
    /// arrived. Return that time of the last message. A sender on another machine knows when it was
    /// due.
    pub fn receive_messages(&mut self, size: u64) -> Result<Option<i64>, String> {
        let mut last_us = None;
        for number in 0.. {
            if self.receive_message(size)? < size {
                break;
            }
            let now_us = clock::trial_us();
            let mut messages = self.flow.messages();
            if !messages.received(number, now_us) {
                messages.add(None, Some(now_us), size)?;
            }
            drop(messages);
            last_us = Some(now_us);
        }
        Ok(last_us)
    }

    /// Receive one message of `size` bytes; fewer at the end of the stream.
    pub fn receive_message(&mut self, size: u64) -> Result<u64, String> {
        let mut got = 0;
        if self.bytes == 0 {
            got = discard(self.socket, 1)?;
            self.add_received(got);
        }
        if got < size && self.bytes > 0 {
            let rest = discard(self.socket, size - got)?;
            self.add_received(rest);
            got += rest;
        }
        Ok(got)
    }
}

/// Send `bytes` bytes, and count them in `sent` on the way.
pub fn transmit(socket: &OwnedFd, bytes: u64, sent: &mut u64) -> Result<(), String> {
    let mut rest = bytes;
    while rest > 0 {
        let count = transmit_some(socket, rest).map_err(describe)?;
        *sent += count;
        rest -= count;
    }
    Ok(())
}

/// Send up to `bytes` bytes in one system call, and return how many the kernel took. With a send
/// timeout on the socket, this can be 0.
fn transmit_some(socket: &OwnedFd, bytes: u64) -> Result<u64, Errno> {
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
pub fn discard(socket: &OwnedFd, bytes: u64) -> Result<u64, String> {
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
