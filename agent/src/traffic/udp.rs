//! UDP packets at a steady pace. Each begins with its number, little-endian in eight bytes.
//!
//! The receiver takes many packets in one system call and has their times of arrival from the kernel's own stamps,
//! so that neither the load nor the resolution of the measurement depends on how often it is woken.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recvfrom, send};

use super::bytes::retried;
use super::flow::FlowState;
use super::state::Traffic;
use crate::clock;
use crate::error::describe;
use crate::plan::Udp;
use crate::sys::Datagrams;

/// Packets in one system call.
const BATCH: usize = 256;

/// Sends all packets, each when it is due. A network that cannot be reached for the moment is a lost packet.
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
        flow.messages().sent(due_ns.div_euclid(1000), job.packet_bytes)?;
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

/// Whether an error says of a packet that it did not get through, and nothing of the socket.
fn lost(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::CONNREFUSED | Errno::NOBUFS
    )
}

/// Waits for a packet, leaves it where it is, and connects the socket to where it came from.
pub fn connect_to_sender(socket: &OwnedFd) -> Result<(), String> {
    let (_, _, from) = retried(|| recvfrom(socket, &mut [0_u8; 8], RecvFlags::PEEK)).map_err(describe)?;
    let from = from.ok_or("no packet arrived that says where to send")?;
    connect(socket, &from)
        .map_err(|errno| format!("choosing the sender as the receiver: {}", describe(errno)))
}

/// Receives until all packets have arrived or the main thread shuts the socket down. Returns when the last came.
pub fn receive(
    traffic: &Traffic,
    flow: &FlowState,
    job: &Udp,
    socket: &OwnedFd,
    received: &mut u64,
) -> Result<Option<i64>, String> {
    let mut datagrams = Datagrams::new(BATCH);
    let mut last_us = None;
    let mut arrived = 0;
    while arrived < job.count {
        let ask = usize::try_from(job.count - arrived).unwrap_or(BATCH).min(BATCH);
        match retried(|| datagrams.receive(socket, ask)) {
            Err(errno) if lost(errno) => continue, // of one that was sent on this socket
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
