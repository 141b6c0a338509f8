//! Probes: ICMP echo requests on paths. One thread sends them at exact times, another one waits for the answers.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv, send,
    socket_with,
};

use crate::apply::{Applied, enter};
use crate::clock;
use crate::error::{Attempt, Result};
use crate::plan;
use crate::tables::{Probe, Table};

/// ICMP and `ICMPv6`: an echo request, its answer, and the length of their header.
const ECHO_REQUEST: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
const HEADER_BYTES: usize = 8;
/// Longer than any packet that a probe sends.
const BUFFER_BYTES: usize = 2048;
/// Sequence numbers have 16 bits: more requests than this cannot wait for their answers at once.
const PENDING_MAX: usize = 1 << 15;

/// Fills the table `probes`.
pub struct Probes {
    table: Table<Probe>,
    shared: Arc<Vec<Running>>,
}

struct Running {
    plan: &'static plan::Probe,
    socket: OwnedFd,
    /// Identifies this probe's packets among those of others at the same host.
    id: u16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Sent, in order; each with the time when its answer came.
    waiting: VecDeque<Request>,
    /// The sequence number of the first that waits.
    first: u16,
    rows: Vec<Probe>,
}

struct Request {
    t_us: i64,
    sent_ns: i64,
    answered_ns: Option<i64>,
}

impl Probes {
    /// Creates the table.
    pub fn create(folder: &Path) -> Result<Self> {
        Ok(Self { table: Table::create(folder)?, shared: Arc::default() })
    }

    /// Makes the sockets and starts the two threads, which wait for the trial's zero. The calling thread ends in the
    /// namespace in which the agent began.
    pub fn start(&mut self, planned: &'static [plan::Probe], network: &Applied) -> Result<()> {
        let open = |(number, plan): (usize, &'static plan::Probe)| {
            let what = || format!("making the probe of path {} in {}", plan.path, plan.netns);
            enter(&network.namespace(&plan.netns).attempt(what)?.fd)?;
            let id = u16::try_from(number % usize::from(u16::MAX)).unwrap_or_default();
            Ok(Running { plan, socket: socket(plan).attempt(what)?, id, state: Mutex::default() })
        };
        let running = planned.iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
        enter(&network.home)?;
        self.shared = Arc::new(running);
        let shared = Arc::clone(&self.shared);
        spawn(move || send_all(&shared))?;
        let shared = Arc::clone(&self.shared);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).attempt(|| "waiting for probes")?;
        for (number, probe) in shared.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, &probe.socket, data, epoll::EventFlags::IN)
                .attempt(|| "waiting for probes")?;
        }
        spawn(move || receive_all(&shared, &epoll))
    }

    /// Writes the rows of requests whose fate is known.
    pub fn flush(&mut self) -> Result<()> {
        for probe in self.shared.iter() {
            let rows = std::mem::take(&mut probe.state().rows);
            for row in rows {
                self.table.push(row)?;
            }
        }
        self.table.flush()
    }

    /// Completes the table: what has not come back by now is not known.
    pub fn finish(mut self) -> Result<()> {
        for probe in self.shared.iter() {
            let mut state = probe.state();
            while let Some(request) = state.waiting.pop_front() {
                let row = probe.row(&request);
                state.rows.push(row);
            }
        }
        self.flush()?;
        self.table.finish()
    }
}

impl Running {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(&self, request: &Request) -> Probe {
        Probe {
            t_us: Some(request.t_us),
            path: Some(self.plan.path.as_str().into()),
            source: Some(self.plan.source.to_string().into()),
            destination: Some(self.plan.destination.to_string().into()),
            rtt_us: request.answered_ns.map(|ns| (ns - request.sent_ns + 500) / 1000),
        }
    }

    fn send(&self, t_us: i64) {
        let v6 = usize::from(self.plan.source.is_ipv6());
        let mut state = self.state();
        if state.waiting.len() >= PENDING_MAX {
            self.release(&mut state, true);
        }
        let number = state.first.wrapping_add(u16::try_from(state.waiting.len()).unwrap_or_default());
        let mut packet = vec![0; HEADER_BYTES + usize::from(self.plan.payload_bytes)];
        packet[0] = ECHO_REQUEST[v6];
        packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        packet[6..8].copy_from_slice(&number.to_be_bytes());
        // The kernel itself sums up ICMPv6.
        let sum = if v6 == 0 { checksum(&packet) } else { 0 };
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        state.waiting.push_back(Request { t_us, sent_ns: clock::monotonic_ns(), answered_ns: None });
        drop(state);
        // A request that cannot leave is one that gets no answer.
        let _ = send(&self.socket, &packet, SendFlags::DONTWAIT);
    }

    fn receive(&self) {
        let mut buffer = [0; BUFFER_BYTES];
        while let Ok((_, got)) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
            let now_ns = clock::monotonic_ns();
            let Some((id, number)) = reply(&buffer[..got], self.plan.source.is_ipv6()) else { continue };
            let mut state = self.state();
            let place = usize::from(number.wrapping_sub(state.first));
            if id == self.id
                && let Some(request) = state.waiting.get_mut(place)
            {
                request.answered_ns.get_or_insert(now_ns);
                self.release(&mut state, false);
            }
        }
    }

    /// Turns the requests at the front whose answers have come into rows; with `force` also the very first one.
    fn release(&self, state: &mut State, force: bool) {
        let mut force = force;
        while state.waiting.front().is_some_and(|request| force || request.answered_ns.is_some()) {
            force = false;
            if let Some(request) = state.waiting.pop_front() {
                state.first = state.first.wrapping_add(1);
                let row = self.row(&request);
                state.rows.push(row);
            }
        }
    }
}

/// Sends each probe's requests at its times, for ever.
fn send_all(probes: &[Running]) {
    let mut next: Vec<i64> = vec![0; probes.len()];
    while let Some(t_us) = next.iter().copied().min() {
        clock::sleep_until(t_us);
        for (probe, due) in probes.iter().zip(&mut next).filter(|(_, due)| **due == t_us) {
            probe.send(t_us);
            *due += probe.plan.interval_us;
        }
    }
}

fn receive_all(probes: &[Running], epoll: &OwnedFd) {
    let mut ready = Vec::with_capacity(64);
    loop {
        if epoll::wait(epoll, spare_capacity(&mut ready), None).is_err() {
            continue; // interrupted
        }
        for event in ready.drain(..) {
            let number = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if let Some(probe) = probes.get(number) {
                probe.receive();
            }
        }
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
        .attempt(|| format!("looking for the way to {}", plan.destination))?;
    Ok(socket)
}

/// Identifier and sequence number of an echo reply; None for anything else. IPv4 comes with its header.
fn reply(packet: &[u8], v6: bool) -> Option<(u16, u16)> {
    let start = if v6 { 0 } else { usize::from(packet.first()? & 15) * 4 };
    let icmp: &[u8; HEADER_BYTES] = packet.get(start..)?.first_chunk()?;
    (icmp[0] == ECHO_REPLY[usize::from(v6)])
        .then(|| (u16::from_be_bytes([icmp[4], icmp[5]]), u16::from_be_bytes([icmp[6], icmp[7]])))
}

/// The Internet checksum (RFC 1071) of a packet whose own field is zero.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or_default()
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().stack_size(128 * 1024).spawn(body).attempt(|| "starting a thread for probes")?;
    Ok(())
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
