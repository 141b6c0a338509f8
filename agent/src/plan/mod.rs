//! The plan as the agent reads it: the same records as `src/plait/plan/model.py`, in the same order.
//!
//! Both sides refuse fields that they do not know, so a plan is never half understood. Fields that the agent has
//! no use for (paths, ideal rates) are read and checked all the same.

mod records;

use serde::Deserialize;

pub use records::*;

use crate::error::{Error, Result};

/// The version of the plan that this agent reads.
pub const SCHEMA: u32 = 1;

/// What a namespace stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Role {
    Host,
    Switch,
    Router,
    Wire,
}

/// What a route does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum RouteKind {
    #[default]
    Unicast,
    Unreachable,
}

/// The options of a queueing discipline, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum QdiscOptions {
    Netem(Netem),
    Tbf(Tbf),
    Pfifo(Pfifo),
    Bfifo(Bfifo),
}

/// One thing that an event does, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Action {
    ChangeQdisc(ChangeQdisc),
    SetDevice(SetDevice),
}

/// As `ip mptcp endpoint` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum EndpointFlag {
    Signal,
    Subflow,
    Backup,
    Fullmesh,
}

/// What the application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum FlowKind {
    Bulk,
    Transfer,
}

impl FlowKind {
    /// As it stands in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Transfer => "transfer",
        }
    }
}

/// What the application asks of `socket()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Transport {
    Tcp,
    Mptcp,
}

impl Transport {
    /// As it stands in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
        }
    }
}

/// Which end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
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
    for flow in &plan.flows {
        let sizes = (flow.duration_us, flow.bytes, &flow.file);
        let consistent = match flow.kind {
            FlowKind::Bulk => matches!(sizes, (Some(1..), None, None)),
            FlowKind::Transfer => match sizes {
                (None, Some(1..), None) => true,
                (None, bytes, Some(file)) => bytes.is_none_or(|bytes| bytes == file.bytes),
                _ => false,
            },
        };
        if !consistent {
            return Err(Error::new(format!(
                "plan.json: flow {} ({}): a bulk flow has a duration, a transfer has bytes or a file",
                flow.id, flow.name
            )));
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests;
