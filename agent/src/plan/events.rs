//! The events of a trial. `src/plait/plan/model/plan.py` and `mptcp.py` document each field.

use std::net::IpAddr;

use serde::Deserialize;

use super::forwarding::Route;
use super::mptcp::{AddEndpoint, ChangeEndpoint, RemoveEndpoint, SetLimits, SetSysctl};
use super::qdiscs::Qdisc;
use super::record::records;

/// One action of an event, by kind.
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
    /// Return the host or router whose kernel the action changes; None for a change of its links.
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

    /// Return the address and the id of the endpoint that the action changes.
    pub fn endpoint(&self) -> Option<(IpAddr, u8)> {
        match self {
            Self::AddEndpoint(add) => Some((add.endpoint.address, add.endpoint.id)),
            Self::ChangeEndpoint(change) => Some((change.address, change.id)),
            Self::RemoveEndpoint(remove) => Some((remove.address, remove.id)),
            Self::ChangeQdisc(_) | Self::SetDevice(_) | Self::SetLimits(_) | Self::SetSysctl(_) => None,
        }
    }
}

records! {
    /// Other options for a qdisc.
    ChangeQdisc {
        qdisc: Qdisc,
    }

    /// An interface goes down or up.
    SetDevice {
        netns: String,
        ifname: String,
        up: bool,
        #[serde(default)]
        addresses: Vec<String>,
        #[serde(default)]
        routes: Vec<Route>,
    }

    /// A change of the network during the trial.
    Event {
        t_us: i64,
        name: String,
        subject: String,
        text: String,
        actions: Vec<Action>,
    }
}
