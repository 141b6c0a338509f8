//! Connections of programs: sockets that plait did not open, as `sock_diag` shows them in every
//! node with programs. They become flows in the tables, numbered after those of the plan.

mod connections;
mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use self::connections::{Appearance, Connections, Key};
use self::selection::Selection;
use super::flows::{Sampler, with_memory};
use super::mptcp_info::MptcpInfo;
use super::tcp_info::TcpInfo;
use crate::apply::{Applied, enter};
use crate::error::Result;
use crate::netlink::closed::Closed;
use crate::netlink::sock_diag::{FourTuple, Kind, LISTEN, SocketInfo, Ulp, dump};
use crate::netlink::{Family, Socket};
use crate::plan::{Flow, Plan};
use crate::program::Programs;
use crate::status;
use crate::tables::{self, Program, ProgramFigure, ProgramFlow, Table, TableSet};
use crate::traffic::Begun;

/// Of the calling thread's namespace; missing in a kernel without MPTCP.
const MPTCP_ENABLED: &str = "/proc/sys/net/mptcp/enabled";

/// The tables of programs, and the state to fill them.
pub struct ProgramTables {
    pub programs: Table<Program>,
    pub figures: Table<ProgramFigure>,
    flows: Table<ProgramFlow>,
    planned: &'static [Flow],
    nodes: Vec<Node>,
    connections: Connections,
    /// Which connections the plan observes, of programs that the agent did not start.
    selection: Option<Selection>,
}

/// A node with programs.
struct Node {
    name: &'static str,
    /// The node's own addresses. Connections from here to them cross no link.
    addresses: BTreeSet<IpAddr>,
    socket: Socket,
    /// The ports on which a socket listens or listened.
    listening: BTreeSet<u16>,
    /// When connections began, by token.
    begun: BTreeMap<u32, i64>,
    /// The token of a subflow's connection.
    tokens: BTreeMap<FourTuple, u32>,
}

impl Node {
    /// Describe a connection with these ends: by its token if it uses MPTCP.
    fn appearance(&self, ends: FourTuple, token: Option<u32>) -> Appearance {
        Appearance {
            node: self.name,
            key: token.map_or(Key::Tcp(ends), Key::Mptcp),
            remote_token: None,
            ends,
            listened: self.listening.contains(&ends.0.port()),
            mptcp: token.is_some(),
        }
    }
}

/// Report that MPTCP is turned off in the calling thread's namespace, which is that of a node.
fn note_disabled_mptcp(node: &str) {
    if std::fs::read_to_string(MPTCP_ENABLED).is_ok_and(|value| value.trim() == "0") {
        status::console(&format!(
            "MPTCP is off on {node}, so new connections use TCP; turn it on there with `sudo sysctl \
             net.mptcp.enabled=1`"
        ));
    }
}

impl ProgramTables {
    /// Create the tables. None: the plan has no programs.
    pub fn create(set: &TableSet, plan: &'static Plan) -> Result<Option<Self>> {
        let observed = plan.monitors.connections.as_ref();
        if plan.programs.is_empty() && observed.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            programs: Table::create(set)?,
            figures: Table::create(set)?,
            flows: Table::create(set)?,
            planned: &plan.flows,
            nodes: Vec::new(),
            connections: Connections::new(plan.flows.len(), observed.is_some()),
            selection: observed.map(Selection::new),
        }))
    }

    /// Open a socket in each node with programs, and in the one whose connections are observed.
    pub fn attach(&mut self, plan: &'static Plan, network: &Applied) -> Result<()> {
        for name in plan.nodes_with_programs() {
            enter(&network.namespace(name)?.fd)?;
            if self.selection.is_some() {
                note_disabled_mptcp(name);
            }
            self.nodes.push(Node {
                name,
                addresses: node_addresses(plan, name),
                socket: Socket::open(Family::Sockets)?,
                listening: BTreeSet::new(),
                begun: BTreeMap::new(),
                tokens: BTreeMap::new(),
            });
        }
        enter(&network.home)
    }

    /// Sample all connections of programs.
    pub fn sample(
        &mut self,
        t_us: i64,
        samples: &mut Sampler,
        begun: Vec<Begun>,
        programs: &Programs,
    ) -> Result<()> {
        self.note_begun(begun);
        if let Some(selection) = &mut self.selection {
            selection.look_at_processes();
        }
        for place in 0..self.nodes.len() {
            let socket = &mut self.nodes[place].socket;
            let [mut tcp, mptcp] = dump(socket, [Kind::Tcp, Kind::Mptcp])?;
            let left_out = self.sample_mptcp(place, t_us, &mptcp, &tcp, samples, programs)?;
            let tokens: BTreeMap<u32, u32> = mptcp
                .iter()
                .filter(|socket| socket.inode != 0)
                .filter_map(|socket| Some((socket.inode, MptcpInfo::new(&socket.info).token()?)))
                .collect();
            for socket in &mut tcp {
                // The kernel tells only a privileged process to which connection a subflow belongs,
                // but a subflow has the inode of its connection.
                if socket.ulp.is_none_or(|ulp| ulp.token == 0)
                    && let Some(token) = tokens.get(&socket.inode)
                {
                    socket.ulp = Some(Ulp::of_connection(*token));
                }
            }
            tcp.retain(|socket| socket.ulp.is_none_or(|ulp| !left_out.contains(&ulp.token)));
            self.sample_tcp(place, t_us, tcp, samples, programs)?;
        }
        Ok(())
    }

    fn note_begun(&mut self, begun: Vec<Begun>) {
        for event in begun {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.name == event.node) {
                node.tokens.insert(event.ends, event.token);
                if event.initial {
                    node.begun.entry(event.token).or_insert(event.t_us);
                }
            }
        }
    }

    /// Sample MPTCP connections. Return the tokens of those that are not observed.
    fn sample_mptcp(
        &mut self,
        place: usize,
        t_us: i64,
        mptcp: &[SocketInfo],
        tcp: &[SocketInfo],
        samples: &mut Sampler,
        programs: &Programs,
    ) -> Result<BTreeSet<u32>> {
        let mut left_out = BTreeSet::new();
        let ulps = || tcp.iter().filter_map(|socket| socket.ulp);
        self.nodes[place].listening.extend(listeners(tcp));
        for socket in mptcp {
            let info = MptcpInfo::new(&socket.info);
            let Some(token) = info.token() else { continue };
            let Some(ends) = self.foreign(place, socket) else {
                left_out.insert(token);
                continue;
            };
            let remote = ulps().find(|ulp| ulp.token == token && ulp.remote_token != 0);
            let remote_token = remote.map(|ulp| ulp.remote_token);
            let appearance = Appearance { remote_token, ..self.nodes[place].appearance(ends, Some(token)) };
            let view = self.connections.view(appearance);
            view.begun_us = view.begun_us.or(self.nodes[place].begun.get(&token).copied());
            view.fallback = info.fallback();
            let owner = || owner(self.selection.as_mut(), programs, self.nodes[place].name, socket.inode);
            view.set_owner(owner, socket);
            let row = with_memory(info.connection(), &socket.memory);
            samples.connections.push(view.sample(t_us, row, info.last_data_ms()))?;
        }
        Ok(left_out)
    }

    /// Sample TCP connections, and the subflows of MPTCP connections.
    fn sample_tcp(
        &mut self,
        place: usize,
        t_us: i64,
        mut tcp: Vec<SocketInfo>,
        samples: &mut Sampler,
        programs: &Programs,
    ) -> Result<()> {
        // The initial subflow gets number 0, in whatever order the kernel lists them.
        tcp.sort_by_key(|socket| (socket.ulp.is_some_and(Ulp::has_joined), socket.ends));
        for socket in tcp {
            let name = self.nodes[place].name;
            let token = socket
                .ulp
                .map(|ulp| ulp.token)
                .filter(|token| self.connections.has(name, Key::Mptcp(*token)));
            // A subflow belongs to its connection, whatever its own ends are.
            let connected = || socket.ends.filter(|_| socket.state != LISTEN);
            let ends = if token.is_some() { connected() } else { self.foreign(place, &socket) };
            let Some(ends) = ends else { continue };
            let node = &mut self.nodes[place];
            if let Some(token) = token {
                node.tokens.insert(ends, token);
            }
            let appearance = Appearance { mptcp: socket.ulp.is_some(), ..node.appearance(ends, token) };
            let view = self.connections.view(appearance);
            let info = TcpInfo::new(&socket.info);
            let number = view.number(ends);
            let mut row = info.subflow().with_ends(number, ends.0, ends.1);
            let (flow, side) = (view.flow, view.side);
            if token.is_none() {
                // A subflow with a token belongs to a closed MPTCP connection, which the kernel no
                // longer lists.
                view.fallback = socket.ulp.filter(|ulp| ulp.token == 0).map(|_| true);
                view.set_owner(|| owner(self.selection.as_mut(), programs, name, socket.inode), &socket);
                let whole = with_memory(info.connection(), &socket.memory);
                samples.connections.push(view.sample(t_us, whole, info.last_data_ms()))?;
            } else {
                view.set_owner(|| None, &socket);
                row.backup = socket.ulp.map(Ulp::is_backup);
            }
            samples.subflows.push(row.sampled(t_us, flow, side))?;
        }
        Ok(())
    }

    /// Return the two ends of a socket that connects two nodes, belongs to no flow of the plan, and
    /// is observed.
    fn foreign(&self, place: usize, socket: &SocketInfo) -> Option<FourTuple> {
        let (local, remote) = socket.ends.filter(|_| socket.state != LISTEN)?;
        if self.selection.as_ref().is_some_and(|selection| !selection.has(local, remote, socket.inode)) {
            return None;
        }
        let Node { name, addresses, .. } = &self.nodes[place];
        let inside = addresses.contains(&remote.ip()) || local.ip().is_loopback();
        let planned = self.planned.iter().any(|flow| {
            (flow.client.netns == *name && flow.server.port == remote.port())
                || (flow.server.netns == *name && flow.server.port == local.port())
        });
        (!inside && !planned).then_some((local, remote))
    }

    /// Add the last row of a closed subflow or TCP connection.
    pub fn add_closed(&mut self, closed: &Closed, begun: Vec<Begun>, samples: &mut Sampler) -> Result<()> {
        self.note_begun(begun);
        let Some(place) = self.nodes.iter().position(|node| node.name == closed.node) else { return Ok(()) };
        let seen = SocketInfo { ends: Some(closed.ends), ..Default::default() };
        let info = TcpInfo::new(&closed.info);
        let row = info.subflow();
        let carried = |bytes: Option<i64>| bytes.is_some_and(|bytes| bytes > 0);
        let node = &self.nodes[place];
        let token = node.tokens.get(&closed.ends).copied();
        let known = token.is_some_and(|token| self.connections.has(node.name, Key::Mptcp(token)))
            || self.connections.has(node.name, Key::Tcp(closed.ends));
        let ends = if known { Some(closed.ends) } else { self.foreign(place, &seen) };
        let Some(ends) = ends.filter(|_| carried(row.sent_bytes) || carried(row.received_bytes)) else {
            return Ok(()); // it never carried anything
        };
        let appearance = node.appearance(ends, token);
        let view = self.connections.view(appearance);
        view.begun_us = view.begun_us.or(token.and_then(|token| node.begun.get(&token)).copied());
        if token.is_none() {
            view.update_received(closed.t_us, row.received_bytes, info.last_data_ms());
            view.sent_bytes = info.connection().sent_bytes.max(view.sent_bytes);
        }
        let number = view.number(ends);
        let (flow, side) = (view.flow, view.side);
        samples.subflows.push(row.with_ends(number, ends.0, ends.1).sampled(closed.t_us, flow, side))
    }

    /// Return the flow of the connection with this token in this node.
    pub fn flow_of(&self, node: &str, token: u32) -> Option<i64> {
        self.connections.flow_of(node, token)
    }

    /// Add a row for each connection to both tables of flows.
    pub fn write_flows(&mut self, flows: &mut Table<tables::Flow>) -> Result<()> {
        for (flow, about) in self.connections.rows() {
            flows.push(flow)?;
            self.flows.push(about)?;
        }
        Ok(())
    }
}

/// Return the program that holds a socket: one that the agent started, or else any.
fn owner(
    selection: Option<&mut Selection>,
    programs: &Programs,
    node: &'static str,
    inode: u32,
) -> Option<String> {
    selection.map_or_else(|| programs.owner(node, inode).map(str::to_owned), |all| all.owner(inode))
}

fn node_addresses(plan: &Plan, node: &str) -> BTreeSet<IpAddr> {
    let ends = plan.ends().filter(|end| end.netns == node);
    let addresses = ends.flat_map(|end| &end.addresses);
    addresses.filter_map(|text| text.split('/').next()?.parse().ok()).collect()
}

fn listeners(tcp: &[SocketInfo]) -> impl Iterator<Item = u16> {
    tcp.iter()
        .filter(|socket| socket.state == LISTEN)
        .filter_map(|socket| socket.ends)
        .map(|(local, _)| local.port())
}
