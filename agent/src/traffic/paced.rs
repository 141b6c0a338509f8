//! Streams and on-off sources: messages that are due at given times, and their receiver.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::bytes;
use super::draw::Draw;
use super::flow::FlowState;
use crate::clock;
use crate::error::describe;
use crate::plan::{OnOff, Stream};

/// Send each message when it is due, or when the previous ones have left.
pub fn send_stream(flow: &FlowState, job: &Stream, socket: &OwnedFd, sent: &mut u64) -> Result<(), String> {
    let mut due_ns = clock::trial_ns();
    for _ in 0..job.count {
        send_when_due(flow, due_ns, job.message_bytes, socket, sent)?;
        due_ns += job.interval_ns;
    }
    Ok(())
}

/// Wait until a message of `size` bytes is due; record the time in the table of messages, and send it.
fn send_when_due(
    flow: &FlowState,
    due_ns: i64,
    size: u64,
    socket: &OwnedFd,
    sent: &mut u64,
) -> Result<(), String> {
    clock::sleep_until_ns(due_ns);
    flow.messages().sent(due_ns.div_euclid(1000), size)?;
    bytes::send(socket, size, sent)
}

/// Send and pause alternately.
pub fn send_on_off(flow: &FlowState, job: &OnOff, socket: &OwnedFd, sent: &mut u64) -> Result<(), String> {
    let mut draw = Draw::new(job.seed);
    let mut on_ns = clock::trial_ns();
    let end_ns = on_ns + job.duration_us * 1000;
    while on_ns < end_ns {
        let off_ns = (on_ns + draw.ns(&job.on)).min(end_ns);
        match (job.message_bytes, job.interval_ns) {
            (Some(size), Some(interval_ns)) => {
                let mut due_ns = on_ns;
                while due_ns < off_ns {
                    send_when_due(flow, due_ns, size, socket, sent)?;
                    due_ns += interval_ns;
                }
            }
            _ => send_until(on_ns, off_ns, socket, sent)?,
        }
        on_ns = off_ns + draw.ns(&job.off);
    }
    clock::sleep_until_ns(end_ns);
    Ok(())
}

/// Send as fast as possible between two times.
fn send_until(from_ns: i64, to_ns: i64, socket: &OwnedFd, sent: &mut u64) -> Result<(), String> {
    clock::sleep_until_ns(from_ns);
    loop {
        let left_ns = to_ns - clock::trial_ns();
        // The kernel counts timeouts in ticks.
        let Some(left) = u64::try_from(left_ns).ok().filter(|left| *left > 1_000_000) else { return Ok(()) };
        set_socket_timeout(socket, Timeout::Send, Some(Duration::from_nanos(left)))
            .map_err(|errno| format!("setting the send timeout: {}", describe(errno)))?;
        *sent += bytes::send_some(socket, u64::MAX).map_err(describe)?;
    }
}

/// Receive messages of one size until the stream ends, and record when the last byte of each
/// arrived. Return that time of the last message. A sender on another machine knows when it was
/// due.
pub fn receive(
    flow: &FlowState,
    size: u64,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    let mut last_us = None;
    for number in 0.. {
        let got = receive_message(flow, size, socket, received)?;
        if got < size {
            break;
        }
        let now_us = clock::trial_us();
        let mut messages = flow.messages();
        if !messages.received(number, now_us) {
            messages.add(None, Some(now_us), size)?;
        }
        drop(messages);
        last_us = Some(now_us);
    }
    Ok(last_us)
}

/// Receive one message of `size` bytes; fewer at the end of the stream. Record the first byte of
/// the flow.
pub fn receive_message(
    flow: &FlowState,
    size: u64,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<u64, String> {
    let mut got = 0;
    if *received == 0 {
        got = bytes::receive(socket, 1)?;
        if got == 1 {
            flow.first_byte();
        }
    }
    if got < size && (got == 1 || *received > 0) {
        got += bytes::receive(socket, size - got)?;
    }
    *received += got;
    Ok(got)
}
