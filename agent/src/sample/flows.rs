//! Connections and subflows: two system calls per side of a flow and sample.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{getpeername, getsockname};

use super::mptcp_info::{MptcpInfo, SubflowInfo};
use super::tcp_info::TcpInfo;
use crate::error::Result;
use crate::netlink::closed::Closed;
use crate::plan::{Flow, SideName, Transport};
use crate::sys::{self, FullInfo, TCP_INFO_BYTES};
use crate::tables::{Connection, Event, Subflow, Table, TableSet};
use crate::traffic::{Priorities, Traffic};

/// `SK_MEMINFO_*` of `linux/sock_diag.h`: `RMEM_ALLOC`, `RCVBUF`, `SNDBUF`, `WMEM_QUEUED`.
const RECEIVE_MEMORY: usize = 0;
const RECEIVE_BUFFER: usize = 1;
const SEND_BUFFER: usize = 3;
const SEND_MEMORY: usize = 5;

/// The kernel numbers the subflows of a connection from 1.
const INITIAL_ID: u32 = 1;
/// A number that the kernel never reaches.
const UNKNOWN_ID: u32 = u32::MAX;

/// The sampler of all flows, which fills the tables `connections` and `subflows`.
pub struct Sampler {
    pub connections: Table<Connection>,
    pub subflows: Table<Subflow>,
    sides: Vec<[Side; 2]>,
    full: FullInfo,
}

/// What the sampler keeps of one side of a flow from sample to sample.
#[derive(Default)]
pub struct Side {
    /// The kernel's numbers of all subflows so far; the index of a subflow is its number in the
    /// tables.
    ids: Vec<u32>,
    /// The two ends of each of these subflows.
    subflow_ends: Vec<(SocketAddr, SocketAddr)>,
    /// The two ends of a TCP connection.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// The local token of an MPTCP connection.
    pub token: Option<u32>,
    /// Whether an MPTCP connection has fallen back to TCP.
    pub fallback: Option<bool>,
    /// Bytes received in order, at the latest sample.
    pub received_bytes: Option<i64>,
    /// Bytes sent, at the latest sample.
    sent_bytes: Option<i64>,
    /// The time of the latest sample.
    sampled_us: Option<i64>,
}

impl Sampler {
    /// Create the tables, for `flows` flows.
    pub fn create(set: &TableSet, flows: usize) -> Result<Self> {
        Ok(Self {
            connections: Table::create(set)?,
            subflows: Table::create(set)?,
            sides: (0..flows).map(|_| Default::default()).collect(),
            full: FullInfo::new(),
        })
    }

    /// Return the state of one side of the flow at `index`.
    pub fn side(&self, index: usize, name: SideName) -> &Side {
        &self.sides[index][name.place()]
    }

    /// Return how many bytes all sides have sent, at their latest samples.
    pub fn sent_bytes(&self) -> i64 {
        self.sides.iter().flatten().filter_map(|side| side.sent_bytes).sum()
    }

    /// Sample the connected sides of the flow at `index`. A side has one sample per time.
    pub fn sample(&mut self, index: usize, traffic: &Traffic, t_us: i64) -> Result<()> {
        let flow = &traffic.flows[index];
        for name in SideName::BOTH {
            if self.side(index, name).sampled_us == Some(t_us) {
                continue;
            }
            if let Some(socket) = flow.socket(name) {
                self.sides[index][name.place()].sampled_us = Some(t_us);
                self.sample_side(index, traffic, name, &socket, t_us)?;
            }
        }
        Ok(())
    }

    fn sample_side(
        &mut self,
        index: usize,
        traffic: &Traffic,
        name: SideName,
        socket: &OwnedFd,
        t_us: i64,
    ) -> Result<()> {
        let side = &mut self.sides[index][name.place()];
        let plan = traffic.flows[index].plan;
        let fell_back = side.fallback;
        let mptcp = plan.transport == Transport::Mptcp && self.full.read(socket.as_fd()).is_ok();
        let mut connection;
        if mptcp {
            let info = MptcpInfo::new(self.full.mptcp());
            side.token = side.token.or(info.token());
            side.fallback = info.fallback();
            connection = info.connection();
            for row in side.mptcp_rows(&self.full, &traffic.priorities.lock()) {
                self.subflows.push(row.sampled(t_us, plan.id, name))?;
            }
        } else {
            let mut bytes = [0; TCP_INFO_BYTES];
            let Ok(length) = sys::tcp_info(socket.as_fd(), &mut bytes) else {
                return Ok(()); // the socket is closed
            };
            let info = TcpInfo::new(&bytes[..length]);
            // If the client used plain TCP, `accept` gives the server a plain TCP socket.
            side.fallback = (plan.transport == Transport::Mptcp).then_some(true);
            connection = info.connection();
            let row = side.tcp_row(info, socket);
            self.subflows.push(row.sampled(t_us, plan.id, name))?;
        }
        (side.sent_bytes, side.received_bytes) = (connection.sent_bytes, connection.received_bytes);
        if side.fallback == Some(true) && fell_back != Some(true) {
            let event = Event::at(t_us, &plan.side(name).netns, "fallback");
            traffic.events.push(Event { flow: Some(plan.id), ..event });
        }
        if let Ok(memory) = sys::memory_info(socket.as_fd()) {
            connection = with_memory(connection, &memory);
        }
        self.connections.push(connection.sampled(t_us, plan.id, name))
    }

    /// Add the last row of a closed subflow, if the flow at `index` owns it.
    pub fn add_closed(&mut self, index: usize, plan: &Flow, closed: &Closed) -> Result<()> {
        let Some(name) = side_of(plan, closed) else { return Ok(()) };
        let row = TcpInfo::new(&closed.info).subflow();
        let side = &mut self.sides[index][name.place()];
        let is_known = side.subflow_ends.contains(&closed.ends);
        if !is_known
            && row.sent_bytes.is_none_or(|bytes| bytes == 0)
            && row.received_bytes.is_none_or(|bytes| bytes == 0)
        {
            return Ok(()); // the other end refused this join
        }
        let row = row.with_ends(side.number_of_closed(closed.ends), closed.ends.0, closed.ends.1);
        self.subflows.push(row.sampled(closed.t_us, plan.id, name))
    }
}

impl Side {
    /// Return the rows of an MPTCP connection's live subflows, in order of their numbers.
    fn mptcp_rows(&mut self, full: &FullInfo, priorities: &Priorities) -> Vec<Subflow> {
        let mut live: Vec<_> = full
            .subflows()
            .filter_map(|(identity, tcp)| Some((SubflowInfo::read(identity)?, TcpInfo::new(tcp))))
            .collect();
        live.sort_by_key(|(identity, _)| identity.id);
        live.into_iter()
            .map(|(identity, tcp)| {
                let SubflowInfo { id, local, remote } = identity;
                let backup = priorities.backup(local, remote, id == INITIAL_ID);
                let number = self.number(id, (local, remote));
                Subflow { backup, ..tcp.subflow() }.with_ends(number, local, remote)
            })
            .collect()
    }

    /// Return the index of the kernel's subflow number `id`; add an unknown one.
    fn number(&mut self, id: u32, ends: (SocketAddr, SocketAddr)) -> usize {
        self.ids.iter().position(|seen| *seen == id).unwrap_or_else(|| {
            self.ids.push(id);
            self.subflow_ends.push(ends);
            self.ids.len() - 1
        })
    }

    /// Return the index of a closed subflow. One that opened and closed between two samples is new.
    fn number_of_closed(&mut self, ends: (SocketAddr, SocketAddr)) -> usize {
        match self.subflow_ends.iter().rposition(|seen| *seen == ends) {
            Some(number) => number,
            None => self.number(UNKNOWN_ID - u32::try_from(self.ids.len()).unwrap_or_default(), ends),
        }
    }

    fn tcp_row(&mut self, info: TcpInfo<'_>, socket: &OwnedFd) -> Subflow {
        let row = info.subflow();
        if self.ends.is_none() {
            self.ends = ends(socket).ok();
        }
        match self.ends {
            Some((local, remote)) => row.with_ends(0, local, remote),
            None => Subflow { subflow: Some(0), ..row },
        }
    }
}

/// Return the side of an MPTCP flow that a closed socket belonged to; every flow has a port of its
/// own.
fn side_of(plan: &Flow, closed: &Closed) -> Option<SideName> {
    let (local, remote) = closed.ends;
    if plan.transport != Transport::Mptcp {
        None
    } else if closed.node == plan.client.netns && remote.port() == plan.server.port {
        Some(SideName::Client)
    } else if closed.node == plan.server.netns && local.port() == plan.server.port {
        Some(SideName::Server)
    } else {
        None
    }
}

/// Complete a connection's row with the counters of its socket's memory.
pub fn with_memory(row: Connection, memory: &[u32]) -> Connection {
    let bytes = |index: usize| memory.get(index).copied().map(i64::from);
    Connection {
        send_buffer_bytes: bytes(SEND_BUFFER),
        receive_buffer_bytes: bytes(RECEIVE_BUFFER),
        send_memory_bytes: bytes(SEND_MEMORY),
        receive_memory_bytes: bytes(RECEIVE_MEMORY),
        ..row
    }
}

fn ends(socket: &OwnedFd) -> std::result::Result<(SocketAddr, SocketAddr), Errno> {
    let local = SocketAddr::try_from(getsockname(socket)?)?;
    let remote = getpeername(socket)?.ok_or(Errno::NOTCONN)?;
    Ok((local, SocketAddr::try_from(remote)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_keeps_its_number_when_others_close() {
        let mut side = Side::default();
        let ends = |port| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        assert_eq!([1, 3, 4].map(|id| side.number(id, ends(1))), [0, 1, 2]);
        assert_eq!([4, 9].map(|id| side.number(id, ends(9))), [2, 3]);
        assert_eq!(side.number_of_closed(ends(9)), 3);
        // No sample showed this subflow while it was open.
        assert_eq!(side.number_of_closed(ends(7)), 4);
        assert_eq!(side.number(12, ends(12)), 5);
    }
}
