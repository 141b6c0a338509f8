//! The two threads of a flow: they connect or accept, then run the application until the flow ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, connect as connect_to, shutdown};

use super::flow::FlowState;
use super::side::{FlowSide, discard};
use super::sockets::{Client, address, is_here};
use super::state::Traffic;
use super::threads::spawn;
use crate::clock;
use crate::error::describe;
use crate::plan::SideName;

/// Run the server: accept the client, then run the application. The listening socket stays open,
/// because further subflows join an MPTCP connection through it.
pub fn serve(traffic: &Arc<Traffic>, flow: &FlowState, listener: &OwnedFd) {
    match accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => {
            let socket = Arc::new(socket);
            flow.hold(SideName::Server, &socket);
            for rider in traffic.riders(flow) {
                traffic.flows[rider].hold(SideName::Server, &socket);
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
    let note = |flow: &FlowState| {
        let mut progress = flow.progress();
        progress.begin_us = Some(begin_us);
        progress.start_us = Some(start_us);
        progress.connected_us = Some(connected_us);
        progress.sockets[SideName::Client.place()] = Some(Arc::clone(&socket));
    };
    note(flow);
    for rider in traffic.riders(flow) {
        note(&traffic.flows[rider]);
        run_rider(traffic, rider, SideName::Client, &socket);
    }
    run_side(traffic, flow, SideName::Client, &socket);
}

/// Wait for everything that the flow follows, and return when it starts, in µs of the trial.
pub fn wait_to_begin(traffic: &Traffic, flow: &FlowState) -> i64 {
    let plan = flow.plan;
    if let Some(begin_us) = plan.application.job().wait(traffic) {
        return begin_us;
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
    spawn_rider(traffic, rider, socket, move |traffic, flow, socket| run_side(traffic, flow, side, socket));
}

/// Start a thread for a flow that shares the socket of another flow.
pub fn spawn_rider(
    traffic: &Arc<Traffic>,
    rider: usize,
    socket: &Arc<OwnedFd>,
    body: impl FnOnce(&Arc<Traffic>, &FlowState, &Arc<OwnedFd>) + Send + 'static,
) {
    let (shared, socket) = (Arc::clone(traffic), Arc::clone(socket));
    if let Err(error) = spawn(move || body(&shared, &shared.flows[rider], &socket)) {
        fail(traffic, &traffic.flows[rider], error.to_string());
    }
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

fn send(traffic: &Arc<Traffic>, flow: &FlowState, socket: &OwnedFd) {
    if !send_data(traffic, flow, socket) {
        return;
    }
    // The end of the stream shows the receiver that it has all data.
    match shutdown(socket, Shutdown::Write) {
        Ok(()) | Err(Errno::NOTCONN) => wait_for_distant_receiver(flow, socket),
        Err(errno) => fail(traffic, flow, format!("ending the stream: {}", describe(errno))),
    }
}

/// Send the data of a flow, and return whether that succeeded.
pub fn send_data(traffic: &Arc<Traffic>, flow: &FlowState, socket: &OwnedFd) -> bool {
    let mut side = FlowSide::new(traffic, flow, socket);
    let result = flow.plan.application.job().send(&mut side);
    flow.progress().sent_bytes = Some(side.bytes);
    result.map_err(|why| fail(traffic, flow, format!("sending: {why}"))).is_ok()
}

/// If the receiver is on another machine, wait until it closes the connection. The flow has then
/// ended.
fn wait_for_distant_receiver(flow: &FlowState, socket: &OwnedFd) {
    if is_here(flow.plan.side(flow.plan.sender.other())) {
        return;
    }
    // A failure ends the connection as well.
    while discard(socket, 1).is_ok_and(|count| count > 0) {}
    let now_us = clock::trial_us();
    let mut progress = flow.progress();
    progress.stream_ended = true;
    progress.last_byte_us = Some(now_us);
}

/// Receive the data of a flow, and record the received bytes and, if known, the time of the last one.
pub fn receive(traffic: &Arc<Traffic>, flow: &FlowState, socket: &OwnedFd) {
    let mut side = FlowSide::new(traffic, flow, socket);
    let result = flow.plan.application.job().receive(&mut side);
    {
        let mut progress = flow.progress();
        progress.received_bytes = Some(side.bytes);
        progress.stream_ended = result.is_ok();
        if let Ok(last_us) = &result {
            progress.last_byte_us = *last_us;
        }
    }
    if let Err(why) = result {
        fail(traffic, flow, format!("receiving: {why}"));
    }
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
