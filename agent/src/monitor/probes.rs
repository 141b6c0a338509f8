//! Probes: ICMP echo requests on paths. The agent sends them on its schedule and then reads the
//! replies to earlier ones. The kernel time-stamps the replies, so a reply wakes no thread.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, send, socket_with,
};

use crate::apply::{Applied, enter};
use crate::clock;
use crate::error::{Attempt, Result};
use crate::plan;
use crate::sys::{self, Datagrams};
use crate::tables::{Probe, Table, TableSet};

/// ICMP and `ICMPv6`: the types of an echo request and of its reply, and the length of their
/// header.
const ECHO_REQUEST: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
const HEADER_BYTES: usize = 8;
/// Replies per system call.
const BATCH: usize = 64;
/// Sequence numbers have 16 bits, so no more requests than this can wait for replies.
const PENDING_MAX: usize = 1 << 15;

/// The monitor that fills the table `probes`.
pub struct Probes {
    table: Table<Probe>,
    running: Vec<Running>,
    answers: Datagrams,
}

struct Running {
    plan: &'static plan::Probe,
    socket: OwnedFd,
    /// The identifier of this probe's packets at its host.
    id: u16,
    due_us: i64,
    /// Pending requests in the order of sending, each with the time of its reply.
    waiting: VecDeque<Request>,
    /// The sequence number of the first pending request.
    first: u16,
    rows: Vec<Probe>,
}

struct Request {
    t_us: i64,
    /// The time from the trial's zero.
    sent_ns: i64,
    answered_ns: Option<i64>,
}

impl Probes {
    /// Create the table.
    pub fn create(set: &TableSet) -> Result<Self> {
        Ok(Self { table: Table::create(set)?, running: Vec::new(), answers: Datagrams::new(BATCH) })
    }

    /// Open the sockets. The calling thread ends in the namespace in which the agent began.
    pub fn attach(&mut self, planned: &'static [plan::Probe], network: &Applied) -> Result<()> {
        for (number, plan) in planned.iter().enumerate() {
            let context = || format!("creating the probe of path {} in {}", plan.path, plan.netns);
            enter(&network.namespace(&plan.netns).attempt(context)?.fd)?;
            let id = u16::try_from(number % usize::from(u16::MAX)).unwrap_or_default();
            let socket = socket(plan).attempt(context)?;
            let (waiting, rows) = (VecDeque::new(), Vec::new());
            self.running.push(Running { plan, socket, id, due_us: 0, waiting, first: 0, rows });
        }
        enter(&network.home)
    }

    /// Return when the next request is due.
    pub fn next_us(&self) -> i64 {
        self.running.iter().map(|probe| probe.due_us).min().unwrap_or(i64::MAX)
    }

    /// Send the requests that are due at `t_us`, and read the replies to those probes.
    pub fn read(&mut self, t_us: i64) -> Result<()> {
        if self.next_us() > t_us {
            return Ok(());
        }
        let now_ns = clock::trial_ns();
        for probe in self.running.iter_mut().filter(|probe| probe.due_us <= t_us) {
            probe.receive(&mut self.answers)?;
            probe.send(t_us, now_ns);
            probe.due_us += probe.plan.interval_us;
        }
        Ok(())
    }

    /// Read all replies.
    pub fn read_last(&mut self) -> Result<()> {
        self.running.iter_mut().try_for_each(|probe| probe.receive(&mut self.answers))
    }

    /// Give the table the rows of requests with a known outcome.
    pub fn release(&mut self) -> Result<()> {
        self.running
            .iter_mut()
            .flat_map(|probe| probe.rows.drain(..))
            .try_for_each(|row| self.table.push(row))
    }

    /// Give the table the other rows, too. The outcome of requests without a reply stays unknown.
    pub fn finish(mut self) -> Result<()> {
        for probe in &mut self.running {
            while let Some(request) = probe.waiting.pop_front() {
                probe.rows.push(row(probe.plan, &request));
            }
        }
        self.release()
    }
}

impl Running {
    fn send(&mut self, t_us: i64, sent_ns: i64) {
        let v6 = usize::from(self.plan.source.is_ipv6());
        if self.waiting.len() >= PENDING_MAX {
            self.release(true);
        }
        let number = self.first.wrapping_add(u16::try_from(self.waiting.len()).unwrap_or_default());
        let mut packet = vec![0; HEADER_BYTES + usize::from(self.plan.payload_bytes)];
        packet[0] = ECHO_REQUEST[v6];
        packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        packet[6..8].copy_from_slice(&number.to_be_bytes());
        // The kernel computes the checksum of ICMPv6 itself.
        let sum = if v6 == 0 { checksum(&packet) } else { 0 };
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        self.waiting.push_back(Request { t_us, sent_ns, answered_ns: None });
        // A request that the host cannot send gets no reply.
        let _ = send(&self.socket, &packet, SendFlags::DONTWAIT);
    }

    fn receive(&mut self, answers: &mut Datagrams) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let context = || format!("reading the replies to the probe of path {}", self.plan.path);
        let zero_ns = clock::realtime_zero_ns();
        loop {
            // An unreachable message of a router is neither a reply nor a failure of the probe.
            match answers.take(&self.socket) {
                Err(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::CONNREFUSED) => continue,
                done => done.attempt(context)?,
            }
            for answer in &answers.received {
                let reply = reply(&answer.head, self.plan.source.is_ipv6());
                let Some((_, number)) = reply.filter(|(id, _)| *id == self.id) else { continue };
                let place = usize::from(number.wrapping_sub(self.first));
                if let Some(request) = self.waiting.get_mut(place) {
                    request.answered_ns.get_or_insert(answer.realtime_ns - zero_ns);
                }
            }
            self.release(false);
            if answers.received.len() < BATCH {
                return Ok(());
            }
        }
    }

    /// Convert the answered requests at the front into rows; with `force` also the first pending
    /// one.
    fn release(&mut self, force: bool) {
        let mut force = force;
        while self.waiting.front().is_some_and(|request| force || request.answered_ns.is_some())
            && let Some(request) = self.waiting.pop_front()
        {
            force = false;
            self.first = self.first.wrapping_add(1);
            self.rows.push(row(self.plan, &request));
        }
    }
}

fn row(plan: &'static plan::Probe, request: &Request) -> Probe {
    Probe {
        t_us: Some(request.t_us),
        path: Some(plan.path.as_str().into()),
        source: Some(plan.source.to_string().into()),
        destination: Some(plan.destination.to_string().into()),
        rtt_us: request.answered_ns.map(|ns| (ns - request.sent_ns + 500) / 1000),
    }
}

fn socket(plan: &plan::Probe) -> Result<OwnedFd> {
    let (family, protocol) = match plan.source {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol))
        .attempt(|| "opening a raw socket")?;
    bind(&socket, &SocketAddr::new(plan.source, 0)).attempt(|| format!("binding to {}", plan.source))?;
    connect(&socket, &SocketAddr::new(plan.destination, 0))
        .attempt(|| format!("connecting to {}", plan.destination))?;
    sys::stamp_arrivals(&socket).attempt(|| "enabling time stamps")?;
    Ok(socket)
}

/// Parse an echo reply into its identifier and sequence number; None for any other packet. IPv4
/// packets include their header.
fn reply(packet: &[u8], v6: bool) -> Option<(u16, u16)> {
    let start = if v6 { 0 } else { usize::from(packet.first()? & 15) * 4 };
    let icmp: &[u8; HEADER_BYTES] = packet.get(start..)?.first_chunk()?;
    (icmp[0] == ECHO_REPLY[usize::from(v6)])
        .then(|| (u16::from_be_bytes([icmp[4], icmp[5]]), u16::from_be_bytes([icmp[6], icmp[7]])))
}

/// Compute the Internet checksum (RFC 1071) of a packet with a checksum field of zero.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // Section 3: the sum of 0001 f203 f4f5 f6f7 is ddf2.
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[1]), !0x0100);
    }

    #[test]
    fn only_an_echo_reply_is_an_answer() {
        let mut packet = vec![0x45; 20];
        packet.extend([0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(reply(&packet, false), Some((0x102, 0x304)));
        packet[20] = 8;
        assert_eq!(reply(&packet, false), None);
        assert_eq!(reply(&[129, 0, 0, 0, 0, 7, 0, 9], true), Some((7, 9)));
        assert_eq!(reply(&[129, 0], true), None);
    }
}
