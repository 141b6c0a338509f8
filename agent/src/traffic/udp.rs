//! UDP packets at a constant rate. Each begins with its number, little-endian in eight bytes.
//!
//! The receiver takes many packets per system call and reads the kernel's time stamps. Neither the
//! load nor the time resolution depends on how often the receiver wakes up.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recvfrom, send};

use super::bytes::retried;
use super::flow::FlowState;
use super::sockets::is_here;
use super::state::Traffic;
use crate::clock;
use crate::error::describe;
use crate::plan::Udp;
use crate::sys::Datagrams;

/// Packets per system call.
const BATCH: usize = 256;

/// Send each packet when it is due. A packet that the network cannot carry at that moment is lost.
pub fn transmit(
    flow: &FlowState,
    job: &Udp,
    begin_us: i64,
    socket: &OwnedFd,
    sent: &mut u64,
) -> Result<(), String> {
    let size = usize::try_from(job.packet_bytes).map_err(|error| error.to_string())?;
    let mut packet = vec![0; size];
    let mut due_ns = begin_us * 1000;
    for number in 0..job.count {
        clock::sleep_until_ns(due_ns);
        if flow.progress().stopped {
            break;
        }
        flow.messages().sent(clock::reached(due_ns.div_euclid(1000)), job.packet_bytes)?;
        packet[..8].copy_from_slice(&number.to_le_bytes());
        match retried(|| send(socket, &packet, SendFlags::NOSIGNAL)) {
            Ok(count) => *sent += count as u64,
            Err(errno) if lost(errno) => {}
            Err(errno) => return Err(describe(errno)),
        }
        due_ns += job.interval_ns;
    }
    Ok(())
}

/// Whether an error means that a packet was lost, not that the socket is broken.
fn lost(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::CONNREFUSED | Errno::NOBUFS
    )
}

/// Wait for a packet, leave it in the queue, and connect the socket to its sender.
pub fn connect_to_sender(socket: &OwnedFd) -> Result<(), String> {
    let (_, _, from) = retried(|| recvfrom(socket, &mut [0_u8; 8], RecvFlags::PEEK)).map_err(describe)?;
    let from = from.ok_or("no packet arrived, so the address of the receiver is unknown")?;
    connect(socket, &from)
        .map_err(|errno| format!("connecting to the sender of the first packet: {}", describe(errno)))
}

/// Receive until all packets have arrived or the main thread shuts the socket down. Return when the
/// last packet arrived.
pub fn receive(
    traffic: &Traffic,
    flow: &FlowState,
    job: &Udp,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    if !is_here(flow.plan.side(flow.plan.sender)) {
        let count = usize::try_from(job.count).map_err(|error| error.to_string())?;
        flow.messages().expect(count, job.packet_bytes)?;
    }
    let mut datagrams = Datagrams::new(BATCH);
    let mut last_us = None;
    let mut arrived = 0;
    while arrived < job.count {
        let ask = usize::try_from(job.count - arrived).unwrap_or(BATCH).min(BATCH);
        match retried(|| datagrams.receive(socket, ask)) {
            Err(errno) if lost(errno) => continue, // an error of a packet sent on this socket
            done => done.map_err(describe)?,
        }
        let zero_ns = clock::realtime_zero_ns();
        let mut messages = flow.messages();
        for datagram in datagrams.iter() {
            if datagram.length == 0 {
                return Ok(last_us); // the socket was shut down
            }
            let t_us = (datagram.realtime_ns - zero_ns).div_euclid(1000);
            let number = usize::try_from(datagram.number()).unwrap_or(usize::MAX);
            if messages.received(number, t_us) {
                arrived += 1;
                *received += datagram.length;
                if last_us.is_none() {
                    flow.progress().first_byte_us = Some(t_us);
                }
                last_us = Some(t_us);
            }
        }
    }
    traffic.bell.ring();
    Ok(last_us)
}
