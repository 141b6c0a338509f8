//! UDP packets at a constant rate. Each begins with its number, little-endian in eight bytes. Between
//! machines the secret of the trial follows, if there is room: a queue on the way can still hold
//! packets of the trial before.
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
use crate::plan::{SideName, Udp};
use crate::sys::{Datagram, Datagrams};

/// Packets per system call.
const BATCH: usize = 256;

/// How often a client opens the way for packets to it, until the first of them has arrived.
const OPENING_EVERY_NS: i64 = 200_000_000;
const OPENING_BYTES: usize = 16;
/// Where a packet has the secret of its trial.
const MARK: std::ops::Range<usize> = 8..16;

/// Send each packet when it is due. A packet that the network cannot carry at that moment is lost.
pub fn transmit(
    traffic: &Traffic,
    flow: &FlowState,
    job: &Udp,
    begin_us: i64,
    socket: &OwnedFd,
    sent: &mut u64,
) -> Result<(), String> {
    let mut packet = vec![0; job.packet_bytes.into()];
    if let Some(mark) = mark(traffic, flow, job) {
        packet[MARK].copy_from_slice(&mark);
    }
    let mut due_ns = begin_us * 1000;
    for number in 0..job.count {
        clock::sleep_until_ns(due_ns);
        if flow.progress().stopped {
            break;
        }
        flow.messages().sent(clock::reached(due_ns.div_euclid(1000)), job.packet_bytes.into())?;
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

/// Return what marks the packets of this trial between machines. None: both ends are on this machine,
/// or the packets are too short.
fn mark(traffic: &Traffic, flow: &FlowState, job: &Udp) -> Option<[u8; 8]> {
    let apart = !is_here(&flow.plan.client) || !is_here(&flow.plan.server);
    let fits = usize::from(job.packet_bytes) >= MARK.end;
    (apart && fits).then(|| traffic.secret.to_le_bytes())
}

/// Return the number of a packet; none if it is of another trial.
fn number_of(datagram: &Datagram, mark: Option<[u8; 8]>) -> Option<usize> {
    mark.is_none_or(|mark| datagram.head[MARK] == mark)
        .then(|| usize::try_from(datagram.number()).unwrap_or(usize::MAX))
}

/// Whether an error means that a packet was lost, not that the socket is broken.
fn lost(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::CONNREFUSED | Errno::NOBUFS
    )
}

/// Send packets without a number to the server, until the first packet of the flow arrives or the
/// flow ends. Routers on the way then let the packets of the server in, and the server learns under
/// which address it sees this client.
pub fn open_the_way(traffic: &Traffic, flow: &FlowState, socket: &OwnedFd) {
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
pub fn connect_to_opener(traffic: &Traffic, socket: &OwnedFd) -> Result<(), String> {
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
pub fn connect_to_sender(socket: &OwnedFd) -> Result<(), String> {
    let (_, _, from) = retried(|| recvfrom(socket, &mut [0_u8; 8], RecvFlags::PEEK)).map_err(describe)?;
    let from = from.ok_or("no packet arrived, so the address of the receiver is unknown")?;
    connect(socket, &from)
        .map_err(|errno| format!("connecting to the sender of the first packet: {}", describe(errno)))
}

/// Record that the first packet, with this number, arrived at a time. A server that sends may have
/// begun late; the end of the flow follows.
fn note_first(traffic: &Traffic, flow: &FlowState, job: &Udp, number: usize, t_us: i64) {
    let mut progress = flow.progress();
    progress.first_byte_us = Some(t_us);
    if flow.plan.sender == SideName::Server && flow.plan.connection.is_none() {
        let before_us = i64::try_from(number).unwrap_or_default() * job.interval_ns / 1000;
        progress.begin_us = Some((t_us - before_us).max(flow.plan.start_us));
        drop(progress);
        traffic.bell.ring();
    }
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
        flow.messages().expect(count, job.packet_bytes.into())?;
    }
    let mark = mark(traffic, flow, job);
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
            let Some(number) = number_of(&datagram, mark) else { continue };
            if messages.received(number, t_us) {
                arrived += 1;
                *received += datagram.length;
                if last_us.is_none() {
                    note_first(traffic, flow, job, number, t_us);
                }
                last_us = Some(t_us);
            }
        }
    }
    traffic.bell.ring();
    Ok(last_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64, secret: u64) -> Datagram {
        let mut head = [0; 32];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[MARK].copy_from_slice(&secret.to_le_bytes());
        Datagram { head, length: 64, realtime_ns: 1 }
    }

    #[test]
    fn packets_of_the_trial_before_do_not_count() {
        let mark = Some(7_u64.to_le_bytes());
        assert_eq!(number_of(&packet(3, 7), mark), Some(3));
        assert_eq!(number_of(&packet(3, 6), mark), None);
        assert_eq!(number_of(&packet(3, 6), None), Some(3));
    }
}
