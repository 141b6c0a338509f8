//! Requests and responses: the client asks, and the server answers at once. A page is a set of
//! objects to request.
//!
//! A request begins with the size of its response, little-endian in eight bytes.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, shutdown};

use super::bytes::{self, retried};
use super::draw::Draw;
use super::flow::FlowState;
use super::paced::receive_message;
use super::state::Traffic;
use super::threads::STACK_BYTES;
use crate::clock;
use crate::error::describe;
use crate::plan::{Loop, Page, Request};

const SIZE_BYTES: usize = 8;

/// Answer requests of `request_bytes` until the stream ends.
pub fn answer(request_bytes: u64, socket: &OwnedFd, sent: &mut u64) -> Result<(), String> {
    let size = usize::try_from(request_bytes).map_err(|error| error.to_string())?;
    let mut head = vec![0; size.min(64 * 1024)];
    loop {
        let (_, got) = retried(|| recv(socket, &mut head[..], RecvFlags::WAITALL)).map_err(describe)?;
        if got < head.len() {
            return Ok(());
        }
        bytes::receive(socket, request_bytes - got as u64)?;
        let wanted = head[..SIZE_BYTES].try_into().map(u64::from_le_bytes).unwrap_or_default();
        bytes::send(socket, wanted, sent)?;
    }
}

fn send_request(request_bytes: u64, wanted: u64, socket: &OwnedFd) -> Result<(), String> {
    let head_bytes = request_bytes.min(64 * 1024);
    let mut head = vec![0; usize::try_from(head_bytes).unwrap_or(SIZE_BYTES)];
    head[..SIZE_BYTES].copy_from_slice(&wanted.to_le_bytes());
    let mut rest = &head[..];
    while !rest.is_empty() {
        let count = retried(|| rustix::net::send(socket, rest, SendFlags::NOSIGNAL)).map_err(describe)?;
        rest = &rest[count..];
    }
    let mut sent = 0;
    bytes::send(socket, request_bytes - head_bytes, &mut sent)
}

/// Send the requests of `job`. Return when the last byte of the last response arrived.
pub fn ask(
    flow: &FlowState,
    job: &Request,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    match job.r#loop {
        Loop::Closed => ask_in_turn(flow, job, socket, received),
        Loop::Open => ask_on_time(flow, job, socket, received),
    }
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
fn ask_in_turn(
    flow: &FlowState,
    job: &Request,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    let mut draw = Draw::new(job.seed);
    let base_ns = clock::trial_ns();
    let mut due_ns = base_ns;
    let mut last_us = None;
    for number in 0.. {
        if !is_planned(job, number, due_ns, base_ns) {
            break;
        }
        let place = flow.messages().sent(due_ns.div_euclid(1000), job.response_bytes)?;
        send_request(job.request_bytes, job.response_bytes, socket)?;
        let now_ns = receive_answer(flow, place, flow, job.response_bytes, socket, received)?;
        last_us = Some(now_ns.div_euclid(1000));
        due_ns = now_ns;
        if let Some(gap) = &job.gap {
            due_ns += draw.ns(gap);
            if is_planned(job, number + 1, due_ns, base_ns) {
                clock::sleep_until_ns(due_ns);
            }
        }
    }
    finish(socket)?;
    Ok(last_us)
}

/// Send each request when it is due. Another thread receives the responses.
fn ask_on_time(
    flow: &FlowState,
    job: &Request,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
            let mut got = 0;
            let last = super::paced::receive(flow, job.response_bytes, socket, &mut got);
            (got, last)
        });
        let reader = reader.map_err(|error| format!("starting a thread: {error}"))?;
        let asked = make_requests(flow, job, socket);
        let ended = finish_asking(socket);
        let (got, last) = reader.join().map_err(|_| "the thread that reads responses failed".to_owned())?;
        *received = got;
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
fn receive_answer(
    flow: &FlowState,
    place: usize,
    owner: &FlowState,
    size: u64,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<i64, String> {
    if receive_message(flow, size, socket, received)? < size {
        return Err("the server closed the connection before its response was complete".to_owned());
    }
    let now_ns = clock::trial_ns();
    owner.messages().received(place, now_ns.div_euclid(1000));
    Ok(now_ns)
}

/// Signal that no request follows, and wait until the server signals the same.
fn finish(socket: &OwnedFd) -> Result<(), String> {
    finish_asking(socket)?;
    retried(|| crate::sys::receive_discarding(socket.as_fd(), 1)).map(drop).map_err(describe)
}

fn finish_asking(socket: &OwnedFd) -> Result<(), String> {
    shutdown(socket, Shutdown::Write).map_err(|errno| format!("ending the requests: {}", describe(errno)))
}

/// Load the remaining objects of a page over one of its connections. The first connection begins
/// with the document.
pub fn load(
    traffic: &Arc<Traffic>,
    flow: &FlowState,
    first: &FlowState,
    page: &Page,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    let is_first = first.plan.id == flow.plan.id;
    let mut last_us = None;
    let mut now_ns = clock::trial_ns();
    while let Some(number) = first.loading.take(page.objects.len()) {
        let size = page.objects[number];
        first.messages().sent_as(number, now_ns.div_euclid(1000), size)?;
        send_request(page.request_bytes, size, socket)?;
        now_ns = receive_answer(flow, number, first, size, socket, received)?;
        last_us = Some(now_ns.div_euclid(1000));
        if is_first && number == 0 {
            first.loading.document.set(now_ns.div_euclid(1000));
            traffic.bell.ring();
        }
    }
    finish(socket)?;
    Ok(last_us.or(Some(now_ns.div_euclid(1000))))
}
