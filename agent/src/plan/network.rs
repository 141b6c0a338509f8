//! The guest and its network; `src/plait/plan/model/plan.py` says what each field means.

use serde::Deserialize;

use super::forwarding::{Datapath, Nat, Route, Rule};
use super::mptcp::{Middlebox, Mptcp};
use super::qdiscs::{Distribution, Qdisc};
use super::record::records;

/// What a namespace stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Host,
    Switch,
    Router,
    Wire,
}

/// On which packets of an interface a redirect acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    #[default]
    Ingress,
    Egress,
}

records! {
    /// A kernel module that somebody added; the engine has put it into the trial's folder.
    Module {
        name: String,
        sha256: String,
    }

    /// The guest itself; the engine has applied it by the time the agent runs.
    Machine {
        #[serde(default = "default_memory")]
        memory_mib: u32,
        #[serde(default)]
        syscall_ns: u64,
        #[serde(default)]
        sysctls: Vec<(String, String)>,
        #[serde(default)]
        modules: Vec<Module>,
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

    /// A device that gives packets back to where they were redirected from.
    Ifb {
        netns: String,
        ifname: String,
        mac: String,
    }

    /// Everything that passes the hook of `source` leaves through `target`.
    Redirect {
        netns: String,
        source: String,
        target: String,
        #[serde(default)]
        hook: Hook,
    }

    /// All kernel objects.
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

fn default_memory() -> u32 {
    256
}

fn default_mtu() -> u32 {
    1500
}
