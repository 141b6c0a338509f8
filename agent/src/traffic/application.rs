//! The two threads of a flow: they connect or accept, then run the application until the flow ends.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, connect as connect_to, shutdown};

use super::flow::FlowState;
use super::sockets::{Client, address, is_here};
use super::state::Traffic;
use super::threads::spawn;
use super::{bytes, file, paced, request, udp};
use crate::clock;
use crate::error::describe;
use crate::plan::{Application, SideName, Transfer};
use crate::sys;

/// The size of one receive call of a receiver that discards the data.
const RECEIVE_BYTES: usize = 1 << 30;

/// Run the server: accept the client, then run the application. The listening socket stays open,
/// because further subflows join an MPTCP connection through it.
pub fn serve(traffic: &Arc<Traffic>, flow: &FlowState, listener: &OwnedFd) {
    match accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => {
            let socket = Arc::new(socket);
            flow.progress().server = Some(Arc::clone(&socket));
            for rider in traffic.riders(flow) {
                traffic.flows[rider].progress().server = Some(Arc::clone(&socket));
                run_rider(traffic, rider, SideName::Server, &socket);
            }
            run_side(traffic, flow, SideName::Server, &socket);
        }
        Err(errno) => fail(traffic, flow, format!("accepting the connection: {}", describe(errno))),
    }
}

/// Run the client: wait for the flow's start, connect, then run the application.
pub fn connect(traffic: &Arc<Traffic>, flow: &FlowState, client: Client) {
    let begin_us = wait_to_begin(traffic, flow);
    clock::sleep_until(begin_us);
    let start_us = clock::trial_us();
    flow.progress().start_us = Some(start_us);
    traffic.event(start_us, flow, "flow_start");
    let server = address(&flow.plan.server);
    let connected = client.at_start(flow.plan).map_err(|error| error.to_string()).and_then(|socket| {
        let failed = |errno| format!("connecting to {server}: {}", describe(errno));
        connect_to(&socket, &server).map(|()| socket).map_err(failed)
    });
    let socket = match connected {
        Ok(socket) => socket,
        Err(why) => {
            for rider in traffic.riders(flow) {
                fail(traffic, &traffic.flows[rider], why.clone());
            }
            return fail(traffic, flow, why);
        }
    };
    let connected_us = clock::trial_us();
    traffic.event(connected_us, flow, "flow_connected");
    let socket = Arc::new(socket);
    {
        let mut progress = flow.progress();
        progress.connected_us = Some(connected_us);
        progress.client = Some(Arc::clone(&socket));
    }
    for rider in traffic.riders(flow) {
        {
            let mut progress = traffic.flows[rider].progress();
            progress.begin_us = Some(begin_us);
            progress.start_us = Some(start_us);
            progress.connected_us = Some(connected_us);
            progress.client = Some(Arc::clone(&socket));
        }
        run_rider(traffic, rider, SideName::Client, &socket);
    }
    run_side(traffic, flow, SideName::Client, &socket);
}

/// Wait for everything that the flow follows, and return when it starts, in µs of the trial.
pub fn wait_to_begin(traffic: &Traffic, flow: &FlowState) -> i64 {
    let plan = flow.plan;
    if let Application::PageConnection(job) = &plan.application {
        return traffic.flow(job.page).loading.document.wait();
    }
    let ended_us = plan.after.iter().map(|id| traffic.flow(*id).ended.wait()).max();
    let ended_us = ended_us.max(traffic.wait_for_programs(&plan.after_programs));
    let begin_us = ended_us.unwrap_or(0) + plan.start_us;
    flow.progress().begin_us = Some(begin_us);
    if ended_us.is_some() {
        // The main thread reads the new deadline.
        traffic.bell.ring();
    }
    begin_us
}

/// Run a flow that shares the connection of another flow, in a thread of its own.
fn run_rider(traffic: &Arc<Traffic>, rider: usize, side: SideName, socket: &Arc<OwnedFd>) {
    let (shared, socket) = (Arc::clone(traffic), Arc::clone(socket));
    spawn_rider(traffic, rider, move || run_side(&shared, &shared.flows[rider], side, &socket));
}

/// Run a UDP sender. Another thread receives the packets that come back. A server sends to the
/// address from which its client's first packet came, which may be later than planned.
pub fn send_datagrams(traffic: &Arc<Traffic>, flow: &FlowState, socket: OwnedFd) {
    let socket = Arc::new(socket);
    if flow.plan.sender == SideName::Server {
        hold(flow, SideName::Server, &socket);
        if let Err(why) = udp::connect_to_opener(traffic, &socket) {
            flow.progress().sent_bytes = Some(0);
            return fail(traffic, flow, why);
        }
    }
    let mut begin_us = wait_to_begin(traffic, flow);
    clock::sleep_until(begin_us);
    if flow.plan.sender == SideName::Server {
        begin_us = clock::reached(begin_us);
        flow.progress().begin_us = Some(begin_us);
    }
    for rider in traffic.riders(flow) {
        let (shared, socket) = (Arc::clone(traffic), Arc::clone(&socket));
        spawn_rider(traffic, rider, move || receive_packets(&shared, &shared.flows[rider], &socket));
    }
    hold(flow, flow.plan.sender, &socket);
    send_packets(traffic, flow, begin_us, &socket);
}

/// Note the socket of one side of a flow.
fn hold(flow: &FlowState, side: SideName, socket: &Arc<OwnedFd>) {
    let mut progress = flow.progress();
    match side {
        SideName::Client => progress.client = Some(Arc::clone(socket)),
        SideName::Server => progress.server = Some(Arc::clone(socket)),
    }
}

/// Send the packets of a UDP flow that begins now.
fn send_packets(traffic: &Traffic, flow: &FlowState, begin_us: i64, socket: &OwnedFd) {
    let Application::Udp(job) = &flow.plan.application else { return };
    let start_us = clock::trial_us();
    flow.progress().start_us = Some(start_us);
    traffic.event(start_us, flow, "flow_start");
    let mut sent = 0;
    let result = udp::transmit(traffic, flow, job, begin_us, socket, &mut sent);
    flow.progress().sent_bytes = Some(sent);
    if let Err(why) = result {
        fail(traffic, flow, format!("sending: {why}"));
    }
    traffic.bell.ring();
}

/// Run a UDP receiver. Another thread answers if another flow shares the socket. A client that
/// receives first opens the way: a router between the two lets no packet in before one has gone out.
pub fn receive_datagrams(traffic: &Arc<Traffic>, flow: &FlowState, socket: OwnedFd) {
    let socket = Arc::new(socket);
    hold(flow, flow.receiver(), &socket); // the end of the trial shuts it down, also while a rider waits below
    if flow.plan.sender == SideName::Server {
        let index = flow.carrier();
        let (shared, socket) = (Arc::clone(traffic), Arc::clone(&socket));
        spawn_rider(traffic, index, move || udp::open_the_way(&shared, &shared.flows[index], &socket));
    }
    for rider in traffic.riders(flow) {
        answer(traffic, rider, &socket);
    }
    receive_packets(traffic, flow, &socket);
}

/// Wait for the first packet, whose source address may come from a NAT, and send packets back to
/// that address.
fn answer(traffic: &Arc<Traffic>, rider: usize, socket: &Arc<OwnedFd>) {
    let flow = &traffic.flows[rider];
    if let Err(why) = udp::connect_to_sender(socket) {
        flow.progress().sent_bytes = Some(0);
        return fail(traffic, flow, why);
    }
    let begin_us = clock::trial_us();
    {
        hold(flow, flow.plan.sender, socket);
        flow.progress().begin_us = Some(begin_us);
    }
    // The main thread reads the new deadline.
    traffic.bell.ring();
    let (shared, socket) = (Arc::clone(traffic), Arc::clone(socket));
    spawn_rider(traffic, rider, move || send_packets(&shared, &shared.flows[rider], begin_us, &socket));
}

/// Start a thread for a flow that shares the socket of another flow.
fn spawn_rider(traffic: &Traffic, rider: usize, body: impl FnOnce() + Send + 'static) {
    if let Err(error) = spawn(body) {
        fail(traffic, &traffic.flows[rider], error.to_string());
    }
}

/// Receive the packets of a UDP flow.
fn receive_packets(traffic: &Traffic, flow: &FlowState, socket: &Arc<OwnedFd>) {
    let Application::Udp(job) = &flow.plan.application else { return };
    hold(flow, flow.receiver(), socket);
    let mut received = 0;
    let result = udp::receive(traffic, flow, job, socket, &mut received);
    end_receiving(traffic, flow, received, result);
    traffic.bell.ring();
}

/// Run the application of one side, then wake the main thread.
fn run_side(traffic: &Arc<Traffic>, flow: &FlowState, side: SideName, socket: &OwnedFd) {
    if side == flow.plan.sender {
        send(traffic, flow, socket);
    } else {
        receive(traffic, flow, socket);
    }
    traffic.bell.ring();
}

fn send(traffic: &Traffic, flow: &FlowState, socket: &OwnedFd) {
    let mut sent = 0;
    let result = match &flow.plan.application {
        Application::Bulk(_) => bytes::send(socket, u64::MAX, &mut sent),
        Application::Transfer(job) => match &job.file {
            Some(planned) => file::send(planned, socket, &mut sent).map(|sha256| {
                flow.progress().sent_sha256 = Some(sha256);
            }),
            None => send_transfer(job, socket, &mut sent),
        },
        Application::Stream(job) => paced::send_stream(flow, job, socket, &mut sent),
        Application::OnOff(job) => paced::send_on_off(flow, job, socket, &mut sent),
        Application::Request(job) => request::answer(job.request_bytes, socket, &mut sent),
        Application::Page(job) => request::answer(job.request_bytes, socket, &mut sent),
        Application::PageConnection(job) => match &traffic.flow(job.page).plan.application {
            Application::Page(page) => request::answer(page.request_bytes, socket, &mut sent),
            _ => Ok(()),
        },
        Application::Udp(_) | Application::Prototype(_) | Application::Connection(_) => Ok(()),
    };
    flow.progress().sent_bytes = Some(sent);
    match result {
        Err(why) => fail(traffic, flow, format!("sending: {why}")),
        // The end of the stream shows the receiver that it has all data.
        Ok(()) => match shutdown(socket, Shutdown::Write) {
            Ok(()) | Err(Errno::NOTCONN) => wait_for_distant_receiver(flow, socket),
            Err(errno) => fail(traffic, flow, format!("ending the stream: {}", describe(errno))),
        },
    }
}

/// If the receiver is on another machine, wait until it closes the connection. The flow has then
/// ended.
fn wait_for_distant_receiver(flow: &FlowState, socket: &OwnedFd) {
    if is_here(flow.plan.side(flow.receiver())) {
        return;
    }
    // A failure ends the connection as well.
    while bytes::receive(socket, 1).is_ok_and(|count| count > 0) {}
    let now_us = clock::trial_us();
    let mut progress = flow.progress();
    progress.stream_ended = true;
    progress.last_byte_us = Some(now_us);
}

/// Send the bytes of a transfer, with a pause after the first ones if the plan has one.
fn send_transfer(job: &Transfer, socket: &OwnedFd, sent: &mut u64) -> Result<(), String> {
    if let Some(first) = &job.first {
        bytes::send(socket, first.bytes.min(job.bytes), sent)?;
        clock::sleep_until(clock::trial_us() + first.pause_us);
    }
    bytes::send(socket, job.bytes - *sent, sent)
}

fn receive(traffic: &Arc<Traffic>, flow: &FlowState, socket: &OwnedFd) {
    let mut received = 0;
    let result = match &flow.plan.application {
        Application::Transfer(job) => match &job.file {
            Some(planned) => {
                let first_byte = || flow.first_byte();
                file::receive(planned, socket, &mut received, first_byte).map(|(sha256, last_us)| {
                    // The hash of a partial transfer is meaningless.
                    flow.progress().received_sha256 = last_us.map(|_| sha256);
                    last_us
                })
            }
            None => receive_anything(flow, Some(job.bytes), socket, &mut received),
        },
        Application::Stream(job) => paced::receive(flow, job.message_bytes, socket, &mut received),
        Application::OnOff(job) => match job.message_bytes {
            Some(size) => paced::receive(flow, size, socket, &mut received),
            None => receive_to_the_end(flow, socket, &mut received),
        },
        Application::Request(job) => request::ask(flow, job, socket, &mut received),
        Application::Page(page) => request::load(traffic, flow, flow, page, socket, &mut received),
        Application::PageConnection(job) => match &traffic.flow(job.page).plan.application {
            Application::Page(page) => {
                request::load(traffic, flow, traffic.flow(job.page), page, socket, &mut received)
            }
            _ => Ok(None),
        },
        Application::Bulk(_)
        | Application::Udp(_)
        | Application::Prototype(_)
        | Application::Connection(_) => receive_anything(flow, None, socket, &mut received),
    };
    end_receiving(traffic, flow, received, result);
}

/// Record the received bytes and, if known, the time of the last one.
fn end_receiving(traffic: &Traffic, flow: &FlowState, received: u64, result: Result<Option<i64>, String>) {
    {
        let mut progress = flow.progress();
        progress.received_bytes = Some(received);
        progress.stream_ended = result.is_ok();
        if let Ok(last_us) = &result {
            progress.last_byte_us = *last_us;
        }
    }
    if let Err(why) = result {
        fail(traffic, flow, format!("receiving: {why}"));
    }
}

/// Count the received bytes until the stream ends, without reading them. Return when the last of
/// `expected` bytes arrived.
fn receive_anything(
    flow: &FlowState,
    expected: Option<u64>,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    let mut last_us = None;
    loop {
        // Receive the first byte alone, to know its time; then receive all the rest.
        let rest = expected.map_or(u64::MAX, |bytes| bytes.saturating_sub(*received));
        let ask = match (*received, rest) {
            (0, _) | (_, 0) => 1,
            (_, rest) => usize::try_from(rest).unwrap_or(usize::MAX).min(RECEIVE_BYTES),
        };
        let count = bytes::retried(|| sys::receive_discarding(socket.as_fd(), ask)).map_err(describe)?;
        if count == 0 {
            return Ok(last_us);
        }
        if *received == 0 {
            flow.first_byte();
        }
        *received += count as u64;
        if Some(*received) == expected {
            last_us = Some(clock::trial_us());
        }
    }
}

/// Count the received bytes of a stream of unknown length. Return when the stream ended.
fn receive_to_the_end(flow: &FlowState, socket: &OwnedFd, received: &mut u64) -> Result<Option<i64>, String> {
    receive_anything(flow, None, socket, received)?;
    Ok(Some(clock::trial_us()))
}

/// Record the first failure of a flow, unless the main thread has ended the flow, and wake the main
/// thread.
pub fn fail(traffic: &Traffic, flow: &FlowState, why: String) {
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
