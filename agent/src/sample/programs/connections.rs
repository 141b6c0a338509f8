//! The connections of programs. One or two nodes show each; at the end each becomes a row.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::netlink::sock_diag::{FourTuple, SocketInfo};
use crate::plan::SideName;
use crate::tables::{Connection, Flow, ProgramFlow};

const US_PER_MS: i64 = 1000;

/// How a node identifies a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The two ends of a TCP connection.
    Tcp(FourTuple),
    /// The token of an MPTCP connection.
    Mptcp(u32),
}

/// One side of a connection, as its node lists it.
#[derive(Clone, Copy)]
pub struct Appearance {
    pub node: &'static str,
    pub key: Key,
    pub remote_token: Option<u32>,
    pub ends: FourTuple,
    /// Whether a socket listens on the local port.
    pub listened: bool,
    /// Whether this is an MPTCP socket.
    pub mptcp: bool,
}

/// One side of a connection and its samples.
pub struct View {
    /// The number of the connection in the tables.
    pub flow: i64,
    pub side: SideName,
    first: Appearance,
    /// The ends of its subflows; the index of a subflow is its number.
    subflows: Vec<FourTuple>,
    /// When the connection began, if the kernel reported it.
    pub begun_us: Option<i64>,
    pub fallback: Option<bool>,
    pub sent_bytes: Option<i64>,
    received: Arrivals,
    /// What the other end has acknowledged: it received this in order.
    acked: Arrivals,
    program: Option<String>,
    congestion_control: Option<String>,
}

/// What arrived in order at one end.
#[derive(Default)]
struct Arrivals {
    /// Time and bytes of the first sample.
    first: Option<(i64, i64)>,
    bytes: Option<i64>,
    /// When the last of them arrived.
    last_us: Option<i64>,
}

impl Arrivals {
    /// Note `bytes` so far, the last of which arrived at `last_us`.
    fn update(&mut self, bytes: Option<i64>, last_us: Option<i64>) {
        if bytes > self.bytes {
            self.bytes = bytes;
            self.last_us = last_us;
        }
    }

    /// Return (start, end, bytes in between) of a connection that began at `begun_us`. None: there
    /// are not two points in time.
    fn window(&self, begun_us: Option<i64>) -> Option<(i64, i64, i64)> {
        let (start_us, before) = begun_us.map(|us| (us, 0)).or(self.first)?;
        Some((start_us, self.last_us?.max(start_us), self.bytes? - before))
    }
}

impl View {
    /// Return the number of a subflow by its ends; add an unknown one.
    pub fn number(&mut self, ends: FourTuple) -> usize {
        self.subflows.iter().position(|seen_before| *seen_before == ends).unwrap_or_else(|| {
            self.subflows.push(ends);
            self.subflows.len() - 1
        })
    }

    /// Take a sample of the connection, whose last data arrived `last_data_ms` ago, and return its row.
    pub fn sample(&mut self, t_us: i64, row: Connection, last_data_ms: Option<i64>) -> Connection {
        for (arrivals, bytes) in
            [(&mut self.received, row.received_bytes), (&mut self.acked, row.acked_bytes)]
        {
            if let Some(bytes) = bytes {
                arrivals.first.get_or_insert((t_us, bytes));
            }
        }
        self.update_received(t_us, row.received_bytes, last_data_ms);
        self.acked.update(row.acked_bytes, Some(t_us));
        self.sent_bytes = row.sent_bytes;
        row.sampled(t_us, self.flow, self.side)
    }

    /// Update the received bytes and the time of the last of them, without a sample: `t_us` is now, and
    /// the last data arrived `last_data_ms` ago.
    pub fn update_received(&mut self, t_us: i64, received: Option<i64>, last_data_ms: Option<i64>) {
        self.received.update(received, last_data_ms.map(|ms| t_us - ms * US_PER_MS));
    }

    /// Record the congestion control, and the program that owns the connection unless it is known.
    pub fn set_owner(&mut self, owner: impl FnOnce() -> Option<String>, seen: &SocketInfo) {
        if self.program.is_none() {
            self.program = owner();
        }
        if seen.congestion_control.is_some() {
            self.congestion_control.clone_from(&seen.congestion_control);
        }
    }
}

/// A connection with the sides seen so far: client and server.
type Sides = [Option<View>; 2];

/// All connections, in order of appearance.
pub struct Connections {
    first: usize,
    /// Call an end that no node shows by its address, because it is outside of the plan.
    strangers: bool,
    all: Vec<Sides>,
    places: BTreeMap<(&'static str, Key), (usize, usize)>,
}

impl Connections {
    /// Create an empty list; the first connection will have the number `first`. With `strangers`, an
    /// end that no node shows gets its address as its name.
    pub fn new(first: usize, strangers: bool) -> Self {
        Self { first, strangers, all: Vec::new(), places: BTreeMap::new() }
    }

    /// Whether a node has listed this connection before.
    pub fn has(&self, node: &'static str, key: Key) -> bool {
        self.places.contains_key(&(node, key))
    }

    /// Return this side of a connection; create it at its first appearance.
    pub fn view(&mut self, appearance: Appearance) -> &mut View {
        let seen_before = self.places.get(&(appearance.node, appearance.key)).copied();
        let (index, side) = seen_before.unwrap_or_else(|| self.place(&appearance));
        self.places.insert((appearance.node, appearance.key), (index, side));
        let flow = i64::try_from(self.first + index).unwrap_or_default();
        let view = self.all[index][side].get_or_insert_with(|| View {
            flow,
            side: SideName::BOTH[side],
            first: appearance,
            subflows: Vec::new(),
            begun_us: None,
            fallback: None,
            sent_bytes: None,
            received: Arrivals::default(),
            acked: Arrivals::default(),
            program: None,
            congestion_control: None,
        });
        view.first.remote_token = view.first.remote_token.or(appearance.remote_token);
        view
    }

    /// Assign a new side: to a connection that another node shows, or to a new connection.
    fn place(&mut self, appearance: &Appearance) -> (usize, usize) {
        for exactly in [true, false] {
            for (index, sides) in self.all.iter().enumerate().rev() {
                for (side, view) in sides.iter().enumerate() {
                    if sides[1 - side].is_none()
                        && let Some(view) = view
                        && is_other_side(view, side, appearance, exactly)
                    {
                        return (index, 1 - side);
                    }
                }
            }
        }
        self.all.push([None, None]);
        (self.all.len() - 1, usize::from(appearance.listened))
    }

    /// Return the flow with this token in this node.
    pub fn flow_of(&self, node: &str, token: u32) -> Option<i64> {
        let places: &BTreeMap<(&str, Key), _> = &self.places;
        places.get(&(node, Key::Mptcp(token))).and_then(|(index, _)| i64::try_from(self.first + index).ok())
    }

    /// Return a row of both tables for each connection.
    pub fn rows(&self) -> Vec<(Flow, ProgramFlow)> {
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        let row = |(index, sides): (usize, &Sides)| {
            let id = i64::try_from(self.first + index).ok();
            let details = details(id, sides, self.strangers);
            let served = details.server_program.as_deref().filter(|_| self.strangers);
            let whose = details.program.as_deref().or(served);
            let whose = whose.or(details.client.as_deref()).or(details.server.as_deref());
            let base = format!("{}:{}", whose.unwrap_or("?"), details.server_port.unwrap_or_default());
            let count = names.entry(base.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { base } else { format!("{base}#{count}") };
            (flow(id, name, sides, &details, self.strangers), details)
        };
        self.all.iter().enumerate().map(row).collect()
    }
}

/// Whether a known side and a new one belong to one connection. Behind a NAT, the client's own
/// address differs from the one that the server sees; the port is mostly the same.
fn is_other_side(view: &View, side: usize, appearance: &Appearance, exactly: bool) -> bool {
    if view.first.node == appearance.node {
        return false;
    }
    // A joining subflow carries the token of the other end. Without one, only addresses can match
    // the sides.
    if let (Key::Mptcp(there), Key::Mptcp(here)) = (view.first.key, appearance.key)
        && (view.first.remote_token == Some(here) || appearance.remote_token == Some(there))
    {
        return true;
    }
    let (client, server) =
        if side == 0 { (view.first.ends, appearance.ends) } else { (appearance.ends, view.first.ends) };
    client.1 == server.0 && client.0.port() == server.1.port() && (!exactly || client.0 == server.1)
}

fn details(id: Option<i64>, [client, server]: &Sides, strangers: bool) -> ProgramFlow {
    let ends = client.as_ref().map(|view| view.first.ends);
    let ends = ends.or(server.as_ref().map(|view| (view.first.ends.1, view.first.ends.0)));
    let got = |view: &Option<View>| view.as_ref().and_then(|view| view.received.bytes);
    let sent = |view: &Option<View>| view.as_ref().and_then(|view| view.sent_bytes);
    let from_client = got(server).max(sent(client));
    let from_server = got(client).max(sent(server));
    let program = |view: &Option<View>| view.as_ref().and_then(|view| view.program.clone()).map(Into::into);
    let node = |view: &Option<View>, end: Option<SocketAddr>| {
        let stranger = || end.filter(|_| strangers).map(|end| end.ip().to_string().into());
        view.as_ref().map(|view| view.first.node.into()).or_else(stranger)
    };
    ProgramFlow {
        flow: id,
        program: program(client),
        server_program: program(server),
        client: node(client, ends.map(|ends| ends.0)),
        client_address: ends.map(|ends| ends.0.ip().to_string().into()),
        client_port: ends.map(|ends| i64::from(ends.0.port())),
        server: node(server, ends.map(|ends| ends.1)),
        server_address: ends.map(|ends| ends.1.ip().to_string().into()),
        server_port: ends.map(|ends| i64::from(ends.1.port())),
        sender: Some(if from_client >= from_server { "client" } else { "server" }.into()),
    }
}

fn flow(id: Option<i64>, name: String, sides: &Sides, details: &ProgramFlow, strangers: bool) -> Flow {
    let views = || sides.iter().flatten();
    let (sender, receiver) = match details.sender.as_deref() {
        Some("client") => (&sides[0], &sides[1]),
        _ => (&sides[1], &sides[0]),
    };
    let begun_us = views().filter_map(|view| view.begun_us).min();
    let acked = || sender.as_ref().filter(|_| strangers)?.acked.window(begun_us);
    let arrived = receiver.as_ref().and_then(|view| view.received.window(view.begun_us));
    let window = arrived.or_else(acked);
    let mptcp = views().any(|view| view.first.mptcp);
    let plain = views().any(|view| !view.first.mptcp || view.fallback == Some(true));
    Flow {
        flow: id,
        name: Some(name.into()),
        kind: Some("program".into()),
        transport: Some(if mptcp { "mptcp" } else { "tcp" }.into()),
        congestion_control: sender.as_ref().and_then(|view| view.congestion_control.clone()).map(Into::into),
        start_us: begun_us.or(window.map(|(start_us, ..)| start_us)),
        connected_us: begun_us,
        end_us: window.map(|(_, end_us, _)| end_us),
        sent_bytes: sender.as_ref().and_then(|view| view.sent_bytes),
        received_bytes: window.map(|(.., bytes)| bytes),
        completed: Some(true),
        fallback: mptcp.then_some(plain),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appearance(node: &'static str, ends: (&str, &str), listened: bool) -> Appearance {
        let ends = (ends.0.parse().unwrap(), ends.1.parse().unwrap());
        Appearance { node, key: Key::Tcp(ends), remote_token: None, ends, listened, mptcp: false }
    }

    #[test]
    fn two_nodes_show_one_connection_also_through_a_translating_router() {
        let mut all = Connections::new(3, false);
        let client = all.view(appearance("h1", ("192.168.0.2:4000", "10.0.0.9:80"), false));
        assert_eq!((client.flow, client.side), (3, SideName::Client));
        let server = all.view(appearance("h2", ("10.0.0.9:80", "10.0.0.1:4000"), true));
        assert_eq!((server.flow, server.side), (3, SideName::Server));
        let other = all.view(appearance("h2", ("10.0.0.9:80", "10.0.0.1:4001"), true));
        assert_eq!((other.flow, other.side), (4, SideName::Server));
    }

    #[test]
    fn tokens_pair_the_ends_of_an_mptcp_connection() {
        let mut all = Connections::new(0, false);
        let mut client = appearance("h1", ("10.0.0.1:4000", "10.0.0.2:80"), false);
        (client.key, client.remote_token) = (Key::Mptcp(7), Some(8));
        let mut other = appearance("h2", ("10.9.9.9:80", "10.8.8.8:1"), true);
        other.key = Key::Mptcp(8);
        assert_eq!(all.view(client).flow, 0);
        assert_eq!((all.view(other).flow, all.flow_of("h2", 8), all.flow_of("h2", 7)), (0, Some(0), None));
    }

    #[test]
    fn a_connection_is_measured_from_its_first_sample_to_its_last_byte() {
        let mut all = Connections::new(0, false);
        let view = all.view(appearance("h1", ("10.0.0.1:4000", "10.0.0.2:80"), false));
        for (t_us, bytes, last_data_ms) in [(100_000, 50, 0), (200_000, 150, 3), (300_000, 150, 103)] {
            let row = Connection { received_bytes: Some(bytes), ..Connection::default() };
            view.sample(t_us, row, Some(last_data_ms));
        }
        assert_eq!(view.received.window(None), Some((100_000, 197_000, 100)));
        let (flow, details) = all.rows().remove(0);
        assert_eq!((flow.name.as_deref(), details.sender.as_deref()), (Some("h1:80"), Some("server")));
        assert_eq!((flow.received_bytes, flow.end_us), (Some(100), Some(197_000)));
    }
}
