//! Forwarding beyond one link: routes, rules, datapaths, NAT. `src/plait/plan/model/forwarding.py`
//! and `plan.py` document each field.

use std::net::IpAddr;

use serde::Deserialize;

use super::record::records;

/// The type of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
    #[default]
    Unicast,
    Unreachable,
}

records! {
    /// A policy routing rule.
    Rule {
        netns: String,
        source: String,
        table: u32,
        priority: u32,
        #[serde(default)]
        destination: Option<String>,
    }

    /// One next hop of a multipath route.
    Nexthop {
        device: String,
        via: IpAddr,
    }

    /// A route.
    Route {
        netns: String,
        destination: String,
        #[serde(default)]
        kind: RouteKind,
        #[serde(default)]
        device: Option<String>,
        #[serde(default)]
        via: Option<IpAddr>,
        #[serde(default)]
        source: Option<IpAddr>,
        #[serde(default = "default_table")]
        table: u32,
        #[serde(default)]
        metric: Option<u32>,
        #[serde(default)]
        nexthops: Vec<Nexthop>,
    }

    /// A flow of a datapath.
    FlowRule {
        #[serde(default)]
        recirculation: u32,
        #[serde(default)]
        in_port: Option<String>,
        #[serde(default)]
        destination: Option<String>,
        #[serde(default)]
        hash: u32,
        #[serde(default)]
        hash_mask: Option<u32>,
        #[serde(default)]
        output: Vec<String>,
        #[serde(default)]
        hash_basis: Option<u32>,
        #[serde(default)]
        recirculate: u32,
    }

    /// An Open vSwitch datapath with its ports and its flows.
    Datapath {
        netns: String,
        ifname: String,
        ports: Vec<String>,
        #[serde(default)]
        learning: bool,
        #[serde(default)]
        rules: Vec<FlowRule>,
    }

    /// Network address translation in a router.
    Nat {
        netns: String,
        outside: Vec<String>,
    }
}

fn default_table() -> u32 {
    254
}
