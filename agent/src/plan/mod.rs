//! The plan as the agent reads it: the records of `src/plait/plan/model`, which document each field.
//!
//! `tools/contract.py` derives them when the agent is built. Both sides refuse unknown fields, so neither can misread a
//! plan. The agent also reads and checks fields that it does not use (paths, ideal rates).

// The generator writes these lines; its Python source has the documentation.
#[allow(missing_docs, dead_code, clippy::all, clippy::pedantic)]
mod records;

use std::net::IpAddr;

pub use records::*;

use crate::error::{Error, Result};

/// The version of the plan that this agent reads.
pub const SCHEMA: u32 = 1;

/// Parse a plan and check what its types cannot express.
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
        return Err(Error::new("plan.json: the events are not in order of time"));
    }
    for (place, flow) in plan.flows.iter().enumerate() {
        consistent(&plan, place, flow)
            .map_err(|why| Error::new(format!("plan.json: flow {} ({}): {why}", flow.id, flow.name)))?;
    }
    Ok(plan)
}

/// Check that a flow is consistent in itself and with the flows before it.
fn consistent(plan: &Plan, place: usize, flow: &Flow) -> std::result::Result<(), &'static str> {
    let earlier = |id: i64| usize::try_from(id).ok().filter(|id| *id < place).map(|id| &plan.flows[id]);
    if usize::try_from(flow.id) != Ok(place) {
        return Err("its number is not its position (from 0)");
    }
    if flow.after.iter().any(|id| earlier(*id).is_none()) {
        return Err("it may follow only earlier flows");
    }
    if let Some(id) = flow.connection
        && !earlier(id).is_some_and(|other| other.connection.is_none() && other.sender != flow.sender)
    {
        return Err("it may share only the connection of an earlier flow, in the other direction");
    }
    if matches!(flow.application, Application::Udp(_)) != (flow.transport == Transport::Udp) {
        return Err("the application udp requires the transport udp, and the other way round");
    }
    if matches!(flow.application, Application::Prototype(_)) != (flow.transport == Transport::Prototype) {
        return Err("the application prototype requires the transport prototype, and the other way round");
    }
    match &flow.application {
        Application::Connection(_) => Err("a plan cannot contain connections of programs"),
        Application::Bulk(bulk) if bulk.duration_us.is_some_and(|us| us < 1) => {
            Err("its duration is not positive")
        }
        Application::Transfer(transfer) => match &transfer.file {
            Some(file) if file.bytes != transfer.bytes => Err("its size differs from that of its file"),
            _ if transfer.bytes == 0 => Err("a transfer needs at least one byte"),
            _ => Ok(()),
        },
        Application::OnOff(job) if job.message_bytes.is_some() != job.interval_ns.is_some() => {
            Err("messages need both a size and an interval")
        }
        Application::Request(job) if job.count.is_some() == job.duration_us.is_some() => {
            Err("requests need either a count or a duration")
        }
        Application::PageConnection(job)
            if !earlier(job.page).is_some_and(|page| matches!(page.application, Application::Page(_))) =>
        {
            Err("it refers to no earlier page")
        }
        _ => Ok(()),
    }
}

impl Action {
    /// Return the host or router whose kernel the action changes; None for a change of its links.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::AddEndpoint(add) => Some(&add.netns),
            Self::ChangeEndpoint(change) => Some(&change.netns),
            Self::RemoveEndpoint(remove) => Some(&remove.netns),
            Self::SetLimits(limits) => Some(&limits.netns),
            Self::SetSysctl(set) => Some(&set.netns),
            Self::ChangeLink(_) | Self::ChangeQdisc(_) | Self::SetDevice(_) => None,
        }
    }

    /// Return the address and the id of the endpoint that the action changes.
    pub fn endpoint(&self) -> Option<(IpAddr, u8)> {
        match self {
            Self::AddEndpoint(add) => Some((add.endpoint.address, add.endpoint.id)),
            Self::ChangeEndpoint(change) => Some((change.address, change.id)),
            Self::RemoveEndpoint(remove) => Some((remove.address, remove.id)),
            Self::ChangeLink(_)
            | Self::ChangeQdisc(_)
            | Self::SetDevice(_)
            | Self::SetLimits(_)
            | Self::SetSysctl(_) => None,
        }
    }
}

impl Application {
    /// Whether each message has a row in the table of messages.
    pub fn has_messages(&self) -> bool {
        match self {
            Self::Bulk(_) | Self::Transfer(_) | Self::Connection(_) => false,
            Self::OnOff(job) => job.message_bytes.is_some(),
            Self::Prototype(job) => job.message_bytes.is_some(),
            Self::Stream(_) | Self::Request(_) | Self::Page(_) | Self::PageConnection(_) | Self::Udp(_) => {
                true
            }
        }
    }
}

impl PauseAt {
    /// Return the agent's phase during the pause.
    pub fn phase(self) -> &'static str {
        match self {
            Self::Before => "pause before the traffic",
            Self::After => "pause after the traffic",
        }
    }
}

impl Plan {
    /// Return all ends of veth pairs and of links that are devices.
    pub fn ends(&self) -> impl Iterator<Item = &VethEnd> {
        let veths = self.network.veths.iter().flat_map(|veth| [&veth.a, &veth.b]);
        veths.chain(self.links.iter().filter_map(|link| link.ends.as_ref()).flatten())
    }
}

impl Link {
    /// Whether the link is a `plait_link`.
    pub fn is_device(&self) -> bool {
        self.ends.is_some()
    }
}

impl Flow {
    /// Return an end of the flow.
    pub fn side(&self, name: SideName) -> &Side {
        match name {
            SideName::Client => &self.client,
            SideName::Server => &self.server,
        }
    }
}

#[cfg(test)]
mod tests;
