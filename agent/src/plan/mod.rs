//! The plan as the agent reads it: the records of `src/plait/plan/model`, which document each field.
//!
//! `tools/contract.py` derives them when the agent is built. Both sides refuse unknown fields, so neither can misread a
//! plan. The agent also reads and checks fields that it does not use (paths, ideal rates).

// The generator writes these lines; its Python source has the documentation.
#[allow(missing_docs, dead_code, clippy::all, clippy::pedantic)]
mod records;

use std::collections::BTreeSet;
use std::net::IpAddr;

pub use records::*;

use crate::error::{Attempt, Error, Result};

/// The version of the plan that this agent reads.
pub const SCHEMA: u32 = 1;

/// Parse a plan and check what its types cannot express.
pub fn parse(json: &[u8]) -> Result<Plan> {
    let plan: Plan = serde_json::from_slice(json).attempt(|| "reading plan.json")?;
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
    let job = flow.application.job();
    if !job.suits(flow.transport) {
        return Err("its application does not suit its transport");
    }
    job.check(&plan.flows[..place])
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
            _ => None,
        }
    }

    /// Return the address and the id of the endpoint that the action changes.
    pub fn endpoint(&self) -> Option<(IpAddr, u8)> {
        match self {
            Self::AddEndpoint(add) => Some((add.endpoint.address, add.endpoint.id)),
            Self::ChangeEndpoint(change) => Some((change.address, change.id)),
            Self::RemoveEndpoint(remove) => Some((remove.address, remove.id)),
            _ => None,
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
    /// Return the nodes in which programs run, or whose connections are observed.
    pub fn nodes_with_programs(&self) -> BTreeSet<&str> {
        let observed = self.monitors.connections.iter().map(|monitor| monitor.node.as_str());
        self.programs.iter().map(|program| program.netns.as_str()).chain(observed).collect()
    }

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

impl SideName {
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// Return its place in an array of both sides.
    pub fn place(self) -> usize {
        usize::from(self == Self::Server)
    }

    pub fn other(self) -> Self {
        Self::BOTH[1 - self.place()]
    }
}

impl Flow {
    /// Return an end of the flow.
    pub fn side(&self, name: SideName) -> &Side {
        [&self.client, &self.server][name.place()]
    }
}

#[cfg(test)]
mod tests;
