//! The threads of UDP flows, and the addresses that their ends learn from packets.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags, connect, recvfrom, send};

use super::application::{fail, receive, send_data, spawn_rider, wait_to_begin};
use super::flow::FlowState;
use super::side::retried;
use super::state::Traffic;
use crate::clock;
use crate::error::describe;
use crate::plan::SideName;

/// How often a client opens the way for packets to it, until the first of them has arrived.
const OPENING_EVERY_NS: i64 = 200_000_000;
const OPENING_BYTES: usize = 16;

/// Run a UDP sender. Another thread receives the packets that come back. A server sends to the
/// address from which its client's first packet came, which may be later than planned.
pub fn send_datagrams(traffic: &Arc<Traffic>, flow: &FlowState, socket: OwnedFd) {
    let socket = Arc::new(socket);
    if flow.plan.sender == SideName::Server {
        flow.hold(SideName::Server, &socket);
        if let Err(why) = connect_to_opener(traffic, &socket) {
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
        spawn_rider(traffic, rider, &socket, receive_packets);
    }
    flow.hold(flow.plan.sender, &socket);
    send_packets(traffic, flow, &socket);
}

/// Send the packets of a UDP flow that begins now.
fn send_packets(traffic: &Arc<Traffic>, flow: &FlowState, socket: &Arc<OwnedFd>) {
    let start_us = clock::trial_us();
    flow.progress().start_us = Some(start_us);
    traffic.event(start_us, flow, "flow_start");
    send_data(traffic, flow, socket);
    traffic.bell.ring();
}

/// Run a UDP receiver. Another thread answers if another flow shares the socket. A client that
/// receives first opens the way: a router between the two lets no packet in before one has gone out.
pub fn receive_datagrams(traffic: &Arc<Traffic>, flow: &FlowState, socket: OwnedFd) {
    let socket = Arc::new(socket);
    // The end of the trial shuts it down, also while a rider waits below.
    flow.hold(flow.plan.sender.other(), &socket);
    if flow.plan.sender == SideName::Server {
        spawn_rider(traffic, flow.carrier(), &socket, open_the_way);
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
    if let Err(why) = connect_to_sender(socket) {
        flow.progress().sent_bytes = Some(0);
        return fail(traffic, flow, why);
    }
    flow.hold(flow.plan.sender, socket);
    flow.progress().begin_us = Some(clock::trial_us());
    // The main thread reads the new deadline.
    traffic.bell.ring();
    spawn_rider(traffic, rider, socket, send_packets);
}

/// Receive the packets of a UDP flow.
fn receive_packets(traffic: &Arc<Traffic>, flow: &FlowState, socket: &Arc<OwnedFd>) {
    flow.hold(flow.plan.sender.other(), socket);
    receive(traffic, flow, socket);
    traffic.bell.ring();
}

/// Send packets without a number to the server, until the first packet of the flow arrives or the
/// flow ends. Routers on the way then let the packets of the server in, and the server learns under
/// which address it sees this client.
fn open_the_way(traffic: &Arc<Traffic>, flow: &FlowState, socket: &Arc<OwnedFd>) {
    let waits = || {
        let progress = flow.progress();
        progress.first_byte_us.is_none() && progress.received_bytes.is_none() && !progress.stopped
    };
    let mut due_ns = 0;
    while waits() {
        clock::sleep_until_ns(due_ns);
        // A packet that is lost is replaced by the next one.
        let _ = send(socket, &opening(traffic), SendFlags::NOSIGNAL);
        due_ns += OPENING_EVERY_NS;
    }
}

/// Return the packet that opens the way: no packet's number, and the secret of both sides.
fn opening(traffic: &Traffic) -> [u8; OPENING_BYTES] {
    let mut packet = [0xff; OPENING_BYTES];
    packet[8..].copy_from_slice(&traffic.secret.to_le_bytes());
    packet
}

/// Wait for the packet with which the client opens the way, and connect the socket to its source.
/// A stranger does not know the secret, so it cannot direct the packets of this flow anywhere.
fn connect_to_opener(traffic: &Traffic, socket: &OwnedFd) -> Result<(), String> {
    let expected = opening(traffic);
    let mut packet = [0; OPENING_BYTES];
    loop {
        let (_, length, from) =
            retried(|| recvfrom(socket, &mut packet, RecvFlags::TRUNC)).map_err(describe)?;
        if length == 0 {
            return Err("no packet of the client arrived, so its address is unknown".to_owned());
        }
        if let Some(from) = from.filter(|_| length == OPENING_BYTES && packet == expected) {
            return connect(socket, &from).map_err(|errno| {
                format!("connecting to the client that opened the way: {}", describe(errno))
            });
        }
    }
}

/// Wait for a packet, leave it in the queue, and connect the socket to its sender.
fn connect_to_sender(socket: &OwnedFd) -> Result<(), String> {
    let (_, _, from) = retried(|| recvfrom(socket, &mut [0_u8; 8], RecvFlags::PEEK)).map_err(describe)?;
    let from = from.ok_or("no packet arrived, so the address of the receiver is unknown")?;
    connect(socket, &from)
        .map_err(|errno| format!("connecting to the sender of the first packet: {}", describe(errno)))
}
