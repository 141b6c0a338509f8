//! The plan as the agent reads it: the same records as in `src/plait/plan/model`, in the same
//! order.
//!
//! Both sides refuse unknown fields, so neither can misread a plan. The agent also reads and checks
//! fields that it does not use (paths, ideal rates).

// The Python model documents the variants.
#![allow(missing_docs)]

mod applications;
mod events;
mod forwarding;
mod monitors;
mod mptcp;
mod network;
#[allow(clippy::module_inception)] // the modules are named as in `src/plait/plan/model`
mod plan;
mod programs;
mod qdiscs;
mod record;

pub use applications::*;
pub use events::*;
pub use forwarding::*;
pub use monitors::*;
pub use mptcp::*;
pub use network::*;
pub use plan::*;
pub use programs::*;
pub use qdiscs::*;

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

#[cfg(test)]
mod tests;
