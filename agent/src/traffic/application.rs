//! What the two threads of a flow do: connect or accept, then send or receive until the flow is over.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, accept_with, connect as connect_to,
};
use rustix::net::{sendmsg, shutdown};

use super::sockets::address;
use super::{FlowState, Traffic, file};
use crate::clock;
use crate::error::describe;
use crate::plan::{FlowKind, SideName};
use crate::sys;

/// What a synthetic sender sends: these bytes again and again, small enough for the cache.
static PATTERN: [u8; 64 * 1024] = [0; 64 * 1024];
/// How many times in one system call (the kernel's limit for one call is 1024).
const REPEATS: usize = 1024;
/// How much a receiver that does not look at the data asks for at once.
const RECEIVE_BYTES: usize = 1 << 30;

/// The server's thread: waits for the client, then plays its part. It goes on listening meanwhile, because
/// further subflows join an MPTCP connection through the listening socket.
pub fn serve(traffic: &Traffic, flow: &FlowState, listener: &OwnedFd) {
    match accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => {
            let socket = Arc::new(socket);
            flow.progress().server = Some(Arc::clone(&socket));
            play(traffic, flow, SideName::Server, &socket);
        }
        Err(errno) => fail(traffic, flow, format!("accepting the connection: {}", describe(errno))),
    }
}

/// The client's thread: waits for the flow's start, connects, then plays its part.
pub fn connect(traffic: &Traffic, flow: &FlowState, socket: OwnedFd) {
    clock::sleep_until(flow.plan.start_us);
    let start_us = clock::trial_us();
    flow.progress().start_us = Some(start_us);
    traffic.event(start_us, flow, "flow_start");
    let server = address(&flow.plan.server);
    if let Err(errno) = connect_to(&socket, &server) {
        return fail(traffic, flow, format!("connecting to {server}: {}", describe(errno)));
    }
    let connected_us = clock::trial_us();
    traffic.event(connected_us, flow, "flow_connected");
    let socket = Arc::new(socket);
    {
        let mut progress = flow.progress();
        progress.connected_us = Some(connected_us);
        progress.client = Some(Arc::clone(&socket));
    }
    play(traffic, flow, SideName::Client, &socket);
}

/// Sends or receives; afterwards the main thread hears of it.
fn play(traffic: &Traffic, flow: &FlowState, side: SideName, socket: &OwnedFd) {
    if side == flow.plan.sender {
        send(traffic, flow, socket);
    } else {
        receive(traffic, flow, socket);
    }
    traffic.bell.ring();
}

fn send(traffic: &Traffic, flow: &FlowState, socket: &OwnedFd) {
    let mut sent = 0;
    let result = match (&flow.plan.file, flow.plan.kind, flow.plan.bytes) {
        (Some(planned), ..) => file::send(planned, socket, &mut sent).map(|sha256| {
            flow.progress().sent_sha256 = Some(sha256);
        }),
        (None, FlowKind::Bulk, _) => send_pattern(socket, u64::MAX, &mut sent),
        (None, FlowKind::Transfer, bytes) => send_pattern(socket, bytes.unwrap_or_default(), &mut sent),
    };
    flow.progress().sent_bytes = Some(sent);
    match result {
        Err(why) => fail(traffic, flow, format!("sending: {why}")),
        // The receiver learns from the end of the stream that it has everything.
        Ok(()) => match shutdown(socket, Shutdown::Write) {
            Ok(()) | Err(Errno::NOTCONN) => {}
            Err(errno) => fail(traffic, flow, format!("ending the stream: {}", describe(errno))),
        },
    }
}

/// Sends `bytes` bytes of the pattern, in as few system calls as the kernel allows.
fn send_pattern(socket: &OwnedFd, bytes: u64, sent: &mut u64) -> Result<(), String> {
    while *sent < bytes {
        let now = usize::try_from(bytes - *sent).unwrap_or(usize::MAX).min(REPEATS * PATTERN.len());
        let mut slices = vec![IoSlice::new(&PATTERN); now / PATTERN.len()];
        if now % PATTERN.len() > 0 {
            slices.push(IoSlice::new(&PATTERN[..now % PATTERN.len()]));
        }
        slices.truncate(REPEATS);
        match sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(count) => *sent += count as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(describe(errno)),
        }
    }
    Ok(())
}

fn receive(traffic: &Traffic, flow: &FlowState, socket: &OwnedFd) {
    let mut received = 0;
    let result = match &flow.plan.file {
        Some(planned) => {
            file::receive(planned, socket, &mut received, || first_byte(flow)).map(|(sha256, last_us)| {
                let mut progress = flow.progress();
                // The hash of a part says nothing.
                progress.received_sha256 = last_us.map(|_| sha256);
                progress.last_byte_us = last_us;
            })
        }
        None => receive_anything(flow, socket, &mut received),
    };
    let mut progress = flow.progress();
    progress.received_bytes = Some(received);
    progress.stream_ended = result.is_ok();
    drop(progress);
    if let Err(why) = result {
        fail(traffic, flow, format!("receiving: {why}"));
    }
}

/// Counts what arrives until the stream ends, without looking at it.
fn receive_anything(flow: &FlowState, socket: &OwnedFd, received: &mut u64) -> Result<(), String> {
    let expected = flow.plan.bytes;
    loop {
        // The first byte is asked for alone, so that its time is known; then all that is still to come.
        let rest = expected.map_or(u64::MAX, |bytes| bytes.saturating_sub(*received));
        let ask = match (*received, rest) {
            (0, _) | (_, 0) => 1,
            (_, rest) => usize::try_from(rest).unwrap_or(usize::MAX).min(RECEIVE_BYTES),
        };
        let count = match sys::receive_discarding(socket.as_fd(), ask) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(describe(errno)),
        };
        if *received == 0 {
            first_byte(flow);
        }
        *received += count as u64;
        if Some(*received) == expected {
            let last_us = clock::trial_us();
            flow.progress().last_byte_us = Some(last_us);
        }
    }
}

fn first_byte(flow: &FlowState) {
    let now = clock::trial_us();
    flow.progress().first_byte_us = Some(now);
}

/// Records the first failure of a flow, unless the main thread has ended it already, and tells the main thread.
fn fail(traffic: &Traffic, flow: &FlowState, why: String) {
    {
        let now = clock::trial_us();
        let mut progress = flow.progress();
        if !progress.stopped && progress.error.is_none() {
            progress.error = Some(why);
            progress.failed_us = Some(now);
        }
    }
    traffic.bell.ring();
}
