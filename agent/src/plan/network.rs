//! The guest and its network. `src/plait/plan/model/plan.py` documents each field.

use serde::Deserialize;

use super::forwarding::{Datapath, Nat, Route, Rule};
use super::mptcp::{Middlebox, Mptcp};
use super::qdiscs::{Distribution, Qdisc};
use super::record::records;

/// The role of a namespace in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Host,
    Switch,
    Router,
    Wire,
}

/// The packets of an interface that a redirect takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    #[default]
    Ingress,
    Egress,
}

/// What the engine makes of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinksAs {
    /// Two veth pairs, qdiscs, redirects: any kernel has them.
    #[default]
    Chain,
    /// A `plait_link`, which only the laboratory kernel has.
    Device,
}

records! {
    /// A kernel module that a user added. The engine has copied it into the trial's folder.
    Module {
        name: String,
        sha256: String,
    }

    /// The guest. The engine has applied these settings before the agent starts.
    Machine {
        #[serde(default = "default_memory")]
        memory_mib: u32,
        #[serde(default)]
        syscall_ns: u64,
        #[serde(default)]
        sysctls: Vec<(String, String)>,
        #[serde(default)]
        modules: Vec<Module>,
        #[serde(default = "one")]
        processors: u32,
        #[serde(default = "one")]
        instruction_ns: u32,
        #[serde(default)]
        offloads: bool,
        #[serde(default)]
        links: LinksAs,
    }

    /// A network namespace.
    Namespace {
        name: String,
        role: Role,
        #[serde(default)]
        sysctls: Vec<(String, String)>,
    }

    /// One end of a veth pair.
    VethEnd {
        netns: String,
        ifname: String,
        mac: String,
        #[serde(default)]
        addresses: Vec<String>,
    }

    /// A veth pair.
    Veth {
        a: VethEnd,
        b: VethEnd,
        #[serde(default = "default_mtu")]
        mtu: u32,
    }

    /// A bridge and its ports.
    Bridge {
        netns: String,
        ifname: String,
        mac: String,
        ports: Vec<String>,
    }

    /// An intermediate functional block device, which returns packets to where a redirect took
    /// them.
    Ifb {
        netns: String,
        ifname: String,
        mac: String,
    }

    /// A redirect of all packets that pass the hook of `source` to `target`.
    Redirect {
        netns: String,
        source: String,
        target: String,
        #[serde(default)]
        hook: Hook,
    }

    /// All kernel objects of the network.
    Network {
        namespaces: Vec<Namespace>,
        veths: Vec<Veth>,
        #[serde(default)]
        bridges: Vec<Bridge>,
        #[serde(default)]
        datapaths: Vec<Datapath>,
        #[serde(default)]
        ifbs: Vec<Ifb>,
        #[serde(default)]
        distributions: Vec<Distribution>,
        #[serde(default)]
        qdiscs: Vec<Qdisc>,
        #[serde(default)]
        redirects: Vec<Redirect>,
        #[serde(default)]
        routes: Vec<Route>,
        #[serde(default)]
        rules: Vec<Rule>,
        #[serde(default)]
        nats: Vec<Nat>,
        #[serde(default)]
        middleboxes: Vec<Middlebox>,
        #[serde(default)]
        mptcp: Vec<Mptcp>,
    }
}

fn one() -> u32 {
    1
}

fn default_memory() -> u32 {
    256
}

fn default_mtu() -> u32 {
    1500
}
