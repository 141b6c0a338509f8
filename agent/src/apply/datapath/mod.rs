//! `OpenFlow` switches: datapaths of the kernel's Open vSwitch, with planned or with learned flows.
//!
//! The agent replaces `ovs-vswitchd`. It creates the datapath, its ports and its flows, and handles
//! the packets that no flow matches. `docs/decisions/0013-open-vswitch.md` gives the reasons.

mod families;
mod fields;
mod learning;
mod request;
mod switch;

use std::collections::BTreeMap;

use netlink_bindings::ovs_flow::OvsActionHash;

use super::addresses::parse_mac;
use super::build::Build;
use super::namespace::enter;
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Batch, Family, Socket};
use crate::plan::{Datapath, FlowRule};

pub use switch::Switch;

use families::Families;
use fields::{EXACT_ADDRESS, Fields, HASH_SYMMETRIC_L4};
use request::{Command, Request};

/// `OVS_VPORT_TYPE_NETDEV`.
const VPORT_NETDEV: u32 = 1;

/// Create the datapaths. A thread serves those that learn.
pub(super) fn add_datapaths(build: &mut Build, datapaths: &'static [Datapath]) -> Result<Vec<Switch>> {
    let mut switches = Vec::with_capacity(datapaths.len());
    let mut learners = Vec::new();
    let mut families = None;
    for planned in datapaths {
        let netns = planned.netns.as_str();
        let context = || format!("creating the datapath {} in {netns}", planned.ifname);
        let namespace = build.namespace(netns)?;
        let ifindex = namespace.number(&planned.ifname)?.cast_unsigned();
        enter(&namespace.fd)?;
        let mut socket = Socket::open(Family::Generic).attempt(context)?;
        let families = *families.get_or_insert(Families::resolve(&mut socket).attempt(context)?);
        let upcalls =
            if planned.learning { Some(Socket::open(Family::Generic).attempt(context)?) } else { None };
        let port_id = upcalls.as_ref().map_or(0, Socket::port_id);
        socket.apply(ports(planned, ifindex, port_id, families))?;
        socket.apply(rules(planned, ifindex, families)?)?;
        if let Some(upcalls) = upcalls {
            let ports = u32::try_from(planned.ports.len()).unwrap_or(u32::MAX);
            let requests = Socket::open(Family::Generic).attempt(context)?;
            learners.push(learning::Learner::new(upcalls, requests, ifindex, ports, families));
        }
        switches.push(Switch { name: netns, socket, ifindex, flow_family: families.flow });
    }
    learning::start(learners)?;
    Ok(switches)
}

/// Encode the datapath and its ports, numbered from 1 in the order of the plan. Upcalls go to the
/// socket `port_id`; with 0 the kernel sends none.
fn ports(planned: &Datapath, ifindex: u32, port_id: u32, families: Families) -> Batch {
    let mut batch = Batch::default();
    let Datapath { netns, ifname, .. } = planned;
    let mut request = Request::new(Command::New, 0);
    request.datapath().push_name_bytes(ifname.as_bytes()).push_upcall_pid(0).push_ifindex(ifindex);
    batch.add_as(&request.0, families.datapath, format_args!("adding datapath {ifname} in {netns}"));
    for (number, port) in (1..).zip(&planned.ports) {
        let mut request = Request::new(Command::New, ifindex);
        let attributes = request.vport().push_type(VPORT_NETDEV).push_name_bytes(port.as_bytes());
        attributes.push_port_no(number).push_upcall_pid(&port_id.to_ne_bytes());
        let context = format_args!("adding {port} to datapath {ifname} in {netns}");
        batch.add_as(&request.0, families.vport, context);
    }
    batch
}

fn rules(planned: &Datapath, ifindex: u32, families: Families) -> Result<Batch> {
    let numbers: BTreeMap<&str, u32> = planned.ports.iter().map(String::as_str).zip(1..).collect();
    let number = |port: &String| {
        let missing = || Error::new(format!("{port} is not a port of the datapath in {}", planned.netns));
        numbers.get(port.as_str()).copied().ok_or_else(missing)
    };
    let mut batch = Batch::default();
    for (index, rule) in planned.rules.iter().enumerate() {
        let context = format!("adding flow {index} of the datapath in {}", planned.netns);
        let in_port = rule.in_port.as_ref().map(number).transpose().attempt(|| &context)?;
        let (key, mask) = fields(rule, in_port).attempt(|| &context)?;
        let mut request = Request::new(Command::New, ifindex);
        {
            let attributes = key.push(request.flow().nested_key()).end_nested();
            let attributes = mask.push(attributes.nested_mask()).end_nested();
            let mut actions = attributes.nested_actions();
            if let Some(hash_basis) = rule.hash_basis {
                let hash = OvsActionHash { hash_alg: HASH_SYMMETRIC_L4, hash_basis };
                actions = actions.push_hash(hash).push_recirc(rule.recirculate);
            }
            for port in &rule.output {
                actions = actions.push_output(number(port).attempt(|| &context)?);
            }
        }
        batch.add_as(&request.0, families.flow, context);
    }
    Ok(batch)
}

/// Return the key that a flow matches, and the mask of the bits that count.
fn fields(rule: &FlowRule, in_port: Option<u32>) -> Result<(Fields, Fields)> {
    let (address, mask) = match &rule.destination {
        None => ([0; 6], [0; 6]),
        Some(text) => match text.split_once('/') {
            None => (parse_mac(text)?, EXACT_ADDRESS),
            Some((address, mask)) => (parse_mac(address)?, parse_mac(mask)?),
        },
    };
    let key = Fields {
        recirculation: rule.recirculation,
        in_port,
        source: [0; 6],
        destination: address,
        hash: rule.hash_mask.map(|_| rule.hash),
    };
    let mask = Fields {
        recirculation: u32::MAX,
        in_port: in_port.map(|_| u32::MAX),
        source: [0; 6],
        destination: mask,
        hash: rule.hash_mask,
    };
    Ok((key, mask))
}
