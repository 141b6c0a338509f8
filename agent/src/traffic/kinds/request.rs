//! Requests and responses: the client asks, and the server answers at once.
//!
//! A request begins with the size of its response, little-endian in eight bytes.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, shutdown};

use super::Kind;
use crate::clock;
use crate::error::describe;
use crate::plan::{Flow, Loop, Request};
use crate::traffic::draw::Draw;
use crate::traffic::flow::FlowState;
use crate::traffic::side::{FlowSide, discard, retried, transmit};
use crate::traffic::threads::STACK_BYTES;

const SIZE_BYTES: usize = 8;
/// The longest part of a request that is in memory.
const HEAD_BYTES: u64 = 64 * 1024;

impl Kind for Request {
    fn check(&self, _: &[Flow]) -> Result<(), &'static str> {
        let is_bounded = self.count.is_some() != self.duration_us.is_some();
        if is_bounded { Ok(()) } else { Err("requests need either a count or a duration") }
    }

    fn has_messages(&self) -> bool {
        true
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        answer(self.request_bytes, side)
    }

    /// Send the requests. Return when the last byte of the last response arrived.
    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        match self.r#loop {
            Loop::Closed => ask_in_turn(self, side),
            Loop::Open => ask_on_time(self, side),
        }
    }
}

/// Answer requests of `request_bytes` until the stream ends.
pub fn answer(request_bytes: u64, side: &mut FlowSide<'_>) -> Result<(), String> {
    let mut head =
        vec![0; usize::try_from(request_bytes.min(HEAD_BYTES)).map_err(|error| error.to_string())?];
    loop {
        let (_, got) = retried(|| recv(side.socket, &mut head[..], RecvFlags::WAITALL)).map_err(describe)?;
        if got < head.len() {
            return Ok(());
        }
        discard(side.socket, request_bytes - got as u64)?;
        let wanted = head[..SIZE_BYTES].try_into().map(u64::from_le_bytes).unwrap_or_default();
        side.send(wanted)?;
    }
}

/// Send a request of `request_bytes` for a response of `wanted` bytes.
pub fn send_request(request_bytes: u64, wanted: u64, socket: &OwnedFd) -> Result<(), String> {
    let head_bytes = request_bytes.min(HEAD_BYTES);
    let mut head = vec![0; usize::try_from(head_bytes).unwrap_or(SIZE_BYTES)];
    head[..SIZE_BYTES].copy_from_slice(&wanted.to_le_bytes());
    let mut rest = &head[..];
    while !rest.is_empty() {
        let count = retried(|| rustix::net::send(socket, rest, SendFlags::NOSIGNAL)).map_err(describe)?;
        rest = &rest[count..];
    }
    transmit(socket, request_bytes - head_bytes, &mut 0)
}

/// Whether the client sends request `number`, which is due at `due_ns`.
fn is_planned(job: &Request, number: u64, due_ns: i64, base_ns: i64) -> bool {
    match (job.count, job.duration_us) {
        (Some(count), _) => number < count,
        (None, Some(duration_us)) => due_ns < base_ns + duration_us * 1000,
        (None, None) => false,
    }
}

/// Send each request after the response to the previous one and a pause.
fn ask_in_turn(job: &Request, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
    let mut draw = Draw::new(job.seed);
    let base_ns = clock::trial_ns();
    let mut due_ns = base_ns;
    let mut last_us = None;
    for number in 0.. {
        if !is_planned(job, number, due_ns, base_ns) {
            break;
        }
        let place = side.flow.messages().sent(due_ns.div_euclid(1000), job.response_bytes)?;
        send_request(job.request_bytes, job.response_bytes, side.socket)?;
        let now_ns = receive_answer(side, place, side.flow, job.response_bytes)?;
        last_us = Some(now_ns.div_euclid(1000));
        due_ns = now_ns;
        if let Some(gap) = &job.gap {
            due_ns += draw.ns(gap);
            if is_planned(job, number + 1, due_ns, base_ns) {
                clock::sleep_until_ns(due_ns);
            }
        }
    }
    finish(side.socket)?;
    Ok(last_us)
}

/// Send each request when it is due. Another thread receives the responses.
fn ask_on_time(job: &Request, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
    let (flow, socket) = (side.flow, side.socket);
    thread::scope(|scope| {
        let reader = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || side.receive_messages(job.response_bytes));
        let reader = reader.map_err(|error| format!("starting a thread: {error}"))?;
        let asked = make_requests(flow, job, socket);
        let ended = finish_asking(socket);
        let last = reader.join().map_err(|_| "the thread that reads responses failed".to_owned())?;
        asked.and(ended).and(last)
    })
}

fn make_requests(flow: &FlowState, job: &Request, socket: &OwnedFd) -> Result<(), String> {
    let mut draw = Draw::new(job.seed);
    let base_ns = clock::trial_ns();
    let mut due_ns = base_ns;
    for number in 0.. {
        if !is_planned(job, number, due_ns, base_ns) {
            break;
        }
        clock::sleep_until_ns(due_ns);
        flow.messages().sent(due_ns.div_euclid(1000), job.response_bytes)?;
        send_request(job.request_bytes, job.response_bytes, socket)?;
        due_ns += job.gap.as_ref().map_or(0, |gap| draw.ns(gap));
    }
    Ok(())
}

/// Wait for the response to message `place` of `owner`. Return when its last byte arrived, in ns.
pub fn receive_answer(
    side: &mut FlowSide<'_>,
    place: usize,
    owner: &FlowState,
    bytes: u64,
) -> Result<i64, String> {
    if side.receive_message(bytes)? < bytes {
        return Err("the server closed the connection before its response was complete".to_owned());
    }
    let now_ns = clock::trial_ns();
    owner.messages().received(place, now_ns.div_euclid(1000));
    Ok(now_ns)
}

/// Signal that no request follows, and wait until the server signals the same.
pub fn finish(socket: &OwnedFd) -> Result<(), String> {
    finish_asking(socket)?;
    retried(|| crate::sys::receive_discarding(socket.as_fd(), 1)).map(drop).map_err(describe)
}

fn finish_asking(socket: &OwnedFd) -> Result<(), String> {
    shutdown(socket, Shutdown::Write).map_err(|errno| format!("ending the requests: {}", describe(errno)))
}
