//! The plan as the agent reads it: the same records as `src/plait/plan/model/plan.py`, in the same order.
//!
//! Both sides refuse fields that they do not know, so a plan is never half understood. Fields that the agent has
//! no use for (paths, ideal rates) are read and checked all the same.

// What variants mean is said once, in the Python model.
#![allow(missing_docs)]

mod applications;
mod multipath;
mod qdiscs;
mod records;
mod running;

use std::net::IpAddr;

use serde::Deserialize;

pub use applications::{Application, Bulk, File, Gap, Loop, OnOff, Page, Request, Stream, Transfer, Udp};
pub use multipath::*;
pub use qdiscs::*;
pub use records::*;
pub use running::*;

use crate::error::{Error, Result};

/// The version of the plan that this agent reads.
pub const SCHEMA: u32 = 1;

/// What a namespace stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Host,
    Switch,
    Router,
    Wire,
}

/// What a route does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
    #[default]
    Unicast,
    Unreachable,
}

/// The options of a queueing discipline, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QdiscOptions {
    Netem(Netem),
    Tbf(Tbf),
    Pfifo(Pfifo),
    Bfifo(Bfifo),
    Red(Red),
    PlaitRed(PlaitRed),
    Codel(Codel),
    FqCodel(FqCodel),
    PlaitTrace(PlaitTrace),
}

impl QdiscOptions {
    /// As the kernel calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
            Self::Pfifo(_) => "pfifo",
            Self::Bfifo(_) => "bfifo",
            Self::Red(_) => "red",
            Self::PlaitRed(_) => "plait_red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::PlaitTrace(_) => "plait_trace",
        }
    }
}

/// On which packets of an interface a redirect acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    #[default]
    Ingress,
    Egress,
}

/// One thing that an event does, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    ChangeQdisc(ChangeQdisc),
    SetDevice(SetDevice),
    AddEndpoint(AddEndpoint),
    ChangeEndpoint(ChangeEndpoint),
    RemoveEndpoint(RemoveEndpoint),
    SetLimits(SetLimits),
    SetSysctl(SetSysctl),
}

impl Action {
    /// The host or router whose kernel is told something else, but for its links.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::AddEndpoint(add) => Some(&add.netns),
            Self::ChangeEndpoint(change) => Some(&change.netns),
            Self::RemoveEndpoint(remove) => Some(&remove.netns),
            Self::SetLimits(limits) => Some(&limits.netns),
            Self::SetSysctl(set) => Some(&set.netns),
            Self::ChangeQdisc(_) | Self::SetDevice(_) => None,
        }
    }

    /// Address and number of the endpoint that it is about.
    pub fn endpoint(&self) -> Option<(IpAddr, u8)> {
        match self {
            Self::AddEndpoint(add) => Some((add.endpoint.address, add.endpoint.id)),
            Self::ChangeEndpoint(change) => Some((change.address, change.id)),
            Self::RemoveEndpoint(remove) => Some((remove.address, remove.id)),
            Self::ChangeQdisc(_) | Self::SetDevice(_) | Self::SetLimits(_) | Self::SetSysctl(_) => None,
        }
    }
}

/// The segments of a TCP connection that a middlebox tells apart: those with SYN, with SYN and ACK, without either
/// and without payload, and with payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Segment {
    Syn,
    Synack,
    Ack,
    Data,
}

/// As `ip mptcp endpoint` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointFlag {
    Signal,
    Subflow,
    Backup,
    Fullmesh,
}

/// What the application asks of `socket()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Mptcp,
    Udp,
}

impl Transport {
    /// As it stands in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
        }
    }
}

/// Which end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideName {
    Client,
    Server,
}

impl SideName {
    /// As it stands in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// When a trial is halted for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseAt {
    /// The network stands, and nothing of the traffic is there yet.
    Before,
    /// Everything has been measured, and the network still stands.
    After,
}

impl PauseAt {
    /// What the agent is at then.
    pub fn phase(self) -> &'static str {
        match self {
            Self::Before => "pause before the traffic",
            Self::After => "pause after the traffic",
        }
    }
}

/// Reads a plan and checks what its types cannot say.
pub fn parse(json: &[u8]) -> Result<Plan> {
    let plan: Plan =
        serde_json::from_slice(json).map_err(|error| Error::because("reading plan.json", error))?;
    if plan.schema != SCHEMA {
        return Err(Error::new(format!("plan.json has schema {}; this agent reads {SCHEMA}", plan.schema)));
    }
    if plan.sample_interval_us < 1000 {
        return Err(Error::new("plan.json: sample_interval_us is below 1000 us"));
    }
    if !plan.events.is_sorted_by_key(|event| event.t_us) {
        return Err(Error::new("plan.json: the events are not in the order of their times"));
    }
    for (place, flow) in plan.flows.iter().enumerate() {
        consistent(&plan, place, flow)
            .map_err(|why| Error::new(format!("plan.json: flow {} ({}): {why}", flow.id, flow.name)))?;
    }
    Ok(plan)
}

/// What a flow says of itself and of others must fit together.
fn consistent(plan: &Plan, place: usize, flow: &Flow) -> std::result::Result<(), &'static str> {
    let earlier = |id: i64| usize::try_from(id).ok().filter(|id| *id < place).map(|id| &plan.flows[id]);
    if usize::try_from(flow.id) != Ok(place) {
        return Err("flows are numbered in their order, from 0");
    }
    if flow.after.iter().any(|id| earlier(*id).is_none()) {
        return Err("it can only follow flows before it");
    }
    if let Some(id) = flow.connection
        && !earlier(id).is_some_and(|other| other.connection.is_none() && other.sender != flow.sender)
    {
        return Err("it can only share the connection of a flow before it, in the other direction");
    }
    if matches!(flow.application, Application::Udp(_)) != (flow.transport == Transport::Udp) {
        return Err("udp is an application and a transport, or neither");
    }
    match &flow.application {
        Application::Connection(_) => Err("connections of programs are seen, not planned"),
        Application::Bulk(bulk) if bulk.duration_us.is_some_and(|us| us < 1) => Err("it lasts for no time"),
        Application::Transfer(transfer) => match &transfer.file {
            Some(file) if file.bytes != transfer.bytes => Err("a transfer has as many bytes as its file"),
            _ if transfer.bytes == 0 => Err("a transfer has bytes"),
            _ => Ok(()),
        },
        Application::OnOff(job) if job.message_bytes.is_some() != job.interval_ns.is_some() => {
            Err("messages have a size and an interval, or there are none")
        }
        Application::Request(job) if job.count.is_some() == job.duration_us.is_some() => {
            Err("requests have a count or a duration")
        }
        Application::PageConnection(job)
            if !earlier(job.page).is_some_and(|page| matches!(page.application, Application::Page(_))) =>
        {
            Err("it belongs to no page")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
