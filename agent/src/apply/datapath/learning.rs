//! MAC learning: the agent handles packets that no flow matches, as `ovs-vswitchd` does.
//!
//! The source address of a packet shows which port it is behind. A packet to a known address
//! installs a flow, so the kernel forwards the following ones itself. The agent floods every other
//! packet to all ports. When an address moves to another port, the agent removes the flows to that
//! address. Addresses do not age: a trial is shorter than 300 s, or its addresses do not move.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use netlink_bindings::ovs_flow::{OpGetDump, OvsHeader};
use netlink_bindings::ovs_packet::OpExecuteDo;
use netlink_bindings::traits::NetlinkRequest;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::families::Families;
use super::fields::{EXACT_ADDRESS, Fields};
use super::request::{Command, GENERIC_HEADER_BYTES, MISS, Request};

use crate::error::{Attempt, Result};
use crate::netlink::{Batch, Socket, push_attribute};

type Mac = [u8; 6];
/// `OVS_FLOW_ATTR_KEY` and `OVS_ACTION_ATTR_OUTPUT`.
const FLOW_KEY: u16 = 1;
const ACTION_OUTPUT: u16 = 1;
const GROUP_BIT: u8 = 1;

/// A datapath with MAC learning.
pub struct Learner {
    upcalls: Socket,
    /// For requests: their answers must not queue behind packets.
    socket: Socket,
    ifindex: u32,
    ports: u32,
    families: Families,
    behind: BTreeMap<Mac, u32>,
    flows: BTreeSet<(u32, Mac, Mac)>,
}

/// A packet that no flow matched.
struct Miss {
    in_port: u32,
    source: Mac,
    destination: Mac,
    packet: Vec<u8>,
    key: Vec<u8>,
}

/// Start the thread that serves these datapaths, if there are any.
pub fn start(mut learners: Vec<Learner>) -> Result<()> {
    if learners.is_empty() {
        return Ok(());
    }
    let serve = move || {
        if let Err(error) = serve(&mut learners) {
            panic!("{error}");
        }
    };
    thread::Builder::new()
        .name("switches".into())
        .spawn(serve)
        .attempt(|| "starting the thread of the switches")?;
    Ok(())
}

fn serve(learners: &mut [Learner]) -> Result<()> {
    loop {
        let ready: Vec<bool> = {
            let mut waiting: Vec<_> =
                learners.iter().map(|l| PollFd::from_borrowed_fd(l.upcalls.fd(), PollFlags::IN)).collect();
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).attempt(|| "waiting for packets from the switches"),
            }
            waiting.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        for (learner, _) in learners.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            learner.serve()?;
        }
    }
}

impl Learner {
    pub fn new(upcalls: Socket, socket: Socket, ifindex: u32, ports: u32, families: Families) -> Self {
        Self { upcalls, socket, ifindex, ports, families, behind: BTreeMap::new(), flows: BTreeSet::new() }
    }

    fn serve(&mut self) -> Result<()> {
        let mut misses = Vec::new();
        while self.upcalls.receive_events(|_, payload| misses.extend(read(payload)))? {}
        misses.into_iter().try_for_each(|miss| self.forward(&miss))
    }

    fn forward(&mut self, miss: &Miss) -> Result<()> {
        self.learn(miss.source, miss.in_port)?;
        let port = self.behind.get(&miss.destination).copied();
        let output: Vec<u32> = match port.filter(|_| miss.destination[0] & GROUP_BIT == 0) {
            Some(port) => {
                let output = if port == miss.in_port { vec![] } else { vec![port] };
                self.add_flow(miss, &output)?;
                output
            }
            None => (1..=self.ports).filter(|port| *port != miss.in_port).collect(),
        };
        let mut request = Request::execute(self.ifindex);
        {
            let attributes = request.packet().push_packet(&miss.packet).push_key(&miss.key);
            attributes.push_actions(&encode_outputs(&output));
        }
        self.send(&request, self.families.packet, "forwarding a packet")
    }

    fn learn(&mut self, source: Mac, port: u32) -> Result<()> {
        if self.behind.insert(source, port).is_none_or(|before| before == port) {
            return Ok(());
        }
        let stale: Vec<_> = self.flows.iter().filter(|flow| flow.2 == source).copied().collect();
        for flow in stale {
            self.flows.remove(&flow);
            let mut request = Request::new(Command::Delete, self.ifindex);
            drop(key(flow).push(request.flow().nested_key()));
            self.send(&request, self.families.flow, "removing a flow")?;
        }
        Ok(())
    }

    fn add_flow(&mut self, miss: &Miss, output: &[u32]) -> Result<()> {
        let flow = (miss.in_port, miss.source, miss.destination);
        if !self.flows.insert(flow) {
            return Ok(());
        }
        let mask = Fields {
            recirculation: u32::MAX,
            in_port: Some(u32::MAX),
            source: EXACT_ADDRESS,
            destination: EXACT_ADDRESS,
            hash: None,
        };
        let mut request = Request::new(Command::New, self.ifindex);
        {
            let attributes = key(flow).push(request.flow().nested_key()).end_nested();
            let mut actions = mask.push(attributes.nested_mask()).end_nested().nested_actions();
            for port in output {
                actions = actions.push_output(*port);
            }
        }
        self.send(&request, self.families.flow, "adding a flow")
    }

    fn send(&mut self, request: &Request, family: u16, context: &str) -> Result<()> {
        let mut batch = Batch::default();
        batch.add_as(&request.0, family, context);
        self.socket.apply(batch)
    }
}

fn key((in_port, source, destination): (u32, Mac, Mac)) -> Fields {
    Fields { recirculation: 0, in_port: Some(in_port), source, destination, hash: None }
}

/// Decode an upcall; None unless no flow matched its packet.
fn read(payload: &[u8]) -> Option<Miss> {
    let body = payload.get(GENERIC_HEADER_BYTES..).filter(|_| payload[0] == MISS)?;
    let (_, upcall) = OpExecuteDo::decode_request(body);
    let (packet, key) = (upcall.get_packet().ok()?.to_vec(), upcall.get_key().ok()?.to_vec());
    // The key has the same layout as in a flow, where the bindings can decode it.
    let mut flow = OvsHeader::default().as_slice().to_vec();
    push_attribute(&mut flow, FLOW_KEY, &key);
    let (_, flow) = OpGetDump::decode_reply(&flow);
    let fields = flow.get_key().ok()?;
    let (in_port, ethernet) = (fields.get_in_port().ok()?, fields.get_ethernet().ok()?);
    Some(Miss { in_port, source: ethernet.eth_src, destination: ethernet.eth_dst, packet, key })
}

/// Encode an output action (`OVS_ACTION_ATTR_OUTPUT`) for each port.
fn encode_outputs(ports: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for port in ports {
        push_attribute(&mut bytes, ACTION_OUTPUT, &port.to_ne_bytes());
    }
    bytes
}
