//! UDP packets at a constant rate. Each begins with its number, little-endian in eight bytes. Between
//! machines the secret of the trial follows, if there is room: a queue on the way can still hold
//! packets of the trial before.
//!
//! The receiver takes many packets per system call and reads the kernel's time stamps. Neither the
//! load nor the time resolution depends on how often the receiver wakes up.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::Kind;
use crate::clock;
use crate::error::describe;
use crate::plan::{SideName, Transport, Udp};
use crate::sys::{Datagram, Datagrams};
use crate::traffic::flow::FlowState;
use crate::traffic::side::{FlowSide, retried};
use crate::traffic::sockets::is_here;
use crate::traffic::state::Traffic;

/// Packets per system call.
const BATCH: usize = 256;
/// Where a packet has the secret of its trial.
const MARK: std::ops::Range<usize> = 8..16;

impl Kind for Udp {
    fn suits(&self, transport: Transport) -> bool {
        transport == Transport::Udp
    }

    fn has_messages(&self) -> bool {
        true
    }

    fn sends_us(&self) -> Option<i64> {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        Some(self.interval_ns.saturating_mul(count).div_euclid(1000))
    }

    fn lasts_us(&self) -> Option<i64> {
        Some(self.sends_us()? + self.drain_us)
    }

    /// Send each packet when it is due. A packet that the network cannot carry at that moment is lost.
    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        let flow = side.flow;
        let mut packet = vec![0; self.packet_bytes.into()];
        if let Some(mark) = mark(side.traffic, flow, self) {
            packet[MARK].copy_from_slice(&mark);
        }
        let mut due_ns = flow.progress().begin_us.unwrap_or_default() * 1000;
        for number in 0..self.count {
            clock::sleep_until_ns(due_ns);
            if flow.progress().stopped {
                break;
            }
            flow.messages().sent(clock::reached(due_ns.div_euclid(1000)), self.packet_bytes.into())?;
            packet[..8].copy_from_slice(&number.to_le_bytes());
            match retried(|| send(side.socket, &packet, SendFlags::NOSIGNAL)) {
                Ok(count) => side.bytes += count as u64,
                Err(errno) if lost(errno) => {}
                Err(errno) => return Err(describe(errno)),
            }
            due_ns += self.interval_ns;
        }
        Ok(())
    }

    /// Receive until all packets have arrived or the main thread shuts the socket down. Return when the
    /// last packet arrived.
    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        let (traffic, flow) = (side.traffic, side.flow);
        if !is_here(flow.plan.side(flow.plan.sender)) {
            let count = usize::try_from(self.count).map_err(|error| error.to_string())?;
            flow.messages().expect(count, self.packet_bytes.into())?;
        }
        let mark = mark(traffic, flow, self);
        let mut datagrams = Datagrams::new(BATCH);
        let mut last_us = None;
        let mut arrived = 0;
        while arrived < self.count {
            let ask = usize::try_from(self.count - arrived).unwrap_or(BATCH).min(BATCH);
            match retried(|| datagrams.receive(side.socket, ask)) {
                Err(errno) if lost(errno) => continue, // an error of a packet sent on this socket
                done => done.map_err(describe)?,
            }
            let zero_ns = clock::realtime_zero_ns();
            let mut messages = flow.messages();
            for datagram in &datagrams.received {
                if datagram.length == 0 {
                    return Ok(last_us); // the socket was shut down
                }
                let t_us = (datagram.realtime_ns - zero_ns).div_euclid(1000);
                let Some(number) = number_of(datagram, mark) else { continue };
                if messages.received(number, t_us) {
                    arrived += 1;
                    side.bytes += datagram.length;
                    if last_us.is_none() {
                        note_first(traffic, flow, self, number, t_us);
                    }
                    last_us = Some(t_us);
                }
            }
        }
        traffic.bell.ring();
        Ok(last_us)
    }
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
