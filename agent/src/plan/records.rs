//! The records of the plan, field by field; `src/plait/plan/model/plan.py` says what each of them means.

use std::net::IpAddr;

use serde::Deserialize;

use super::applications::SocketOptions;
use super::multipath::{Join, Middlebox, Mptcp};
use super::running::Program;
use super::{Action, Application, Distribution, Hook, PauseAt, Qdisc, Role, RouteKind, SideName, Transport};

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            // The contract is read whole, also what only other engines use, and its names are its own.
            #[allow(dead_code, clippy::struct_field_names)]
            pub struct $name {
                $($(#[$attr])* pub $field: $kind,)*
            }
        )+

        /// Every record with the names of its fields, for the comparison with the other side of the contract.
        #[cfg(test)]
        pub(in crate::plan) const RECORDS: &[(&str, &[&str])] = &[$((stringify!($name), &[$(stringify!($field),)*]),)+];
    };
}

pub(super) use records;

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

    /// A policy routing rule.
    Rule {
        netns: String,
        source: String,
        table: u32,
        priority: u32,
        #[serde(default)]
        destination: Option<String>,
    }

    /// One of the equally good ways of a route.
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

    /// One flow of a datapath.
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

    /// A datapath of Open vSwitch, its ports and its flows.
    Datapath {
        netns: String,
        ifname: String,
        ports: Vec<String>,
        #[serde(default)]
        learning: bool,
        #[serde(default)]
        rules: Vec<FlowRule>,
    }

    /// Address translation at a router.
    Nat {
        netns: String,
        outside: Vec<String>,
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

    /// A qdisc gets other options.
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

    /// Something that is done to the network while the trial runs.
    Event {
        t_us: i64,
        name: String,
        subject: String,
        text: String,
        actions: Vec<Action>,
    }

    /// One direction of a link, for the table of links.
    LinkDirection {
        name: String,
        source: String,
        target: String,
        ifname: String,
        #[serde(default)]
        interface: Option<String>,
        rate_bps: Option<u64>,
        delay_ns: u64,
        #[serde(default)]
        jitter_ns: u64,
        #[serde(default)]
        jitter_distribution: Option<String>,
        #[serde(default)]
        loss_ratio: f64,
        #[serde(default)]
        loss_burst_packets: Option<f64>,
        #[serde(default)]
        reorder_ratio: f64,
        #[serde(default)]
        duplicate_ratio: f64,
        #[serde(default)]
        corrupt_ratio: f64,
        #[serde(default)]
        queue_packets: Option<u64>,
        #[serde(default)]
        queue_bytes: Option<u64>,
        #[serde(default)]
        aqm: Option<String>,
        #[serde(default)]
        baseline_bps: Option<u64>,
        #[serde(default)]
        burst_bytes: Option<u64>,
    }

    /// A link of the scenario.
    Link {
        name: String,
        directions: [LinkDirection; 2],
    }

    /// A token bucket that link directions share, for the table of queues.
    SharedBucket {
        name: String,
        ifname: String,
        peak_bps: u64,
        baseline_bps: u64,
        burst_bytes: u64,
        #[serde(default)]
        queue_packets: Option<u64>,
        #[serde(default)]
        queue_bytes: Option<u64>,
        directions: Vec<String>,
    }

    /// A path that a flow can use.
    Path {
        name: String,
        client_address: String,
        server_address: String,
        forward: Vec<String>,
        backward: Vec<String>,
        #[serde(default)]
        spread: Vec<String>,
        #[serde(default)]
        backup: bool,
        rate_bps: Option<u64>,
        base_rtt_us: f64,
    }

    /// One side of a flow.
    Side {
        netns: String,
        address: IpAddr,
        port: u16,
    }

    /// One transport connection and the data on it in one direction.
    Flow {
        id: i64,
        name: String,
        application: Application,
        transport: Transport,
        client: Side,
        server: Side,
        sender: SideName,
        start_us: i64,
        #[serde(default)]
        after: Vec<i64>,
        #[serde(default)]
        after_programs: Vec<String>,
        #[serde(default)]
        connection: Option<i64>,
        #[serde(default)]
        user: Option<String>,
        #[serde(default)]
        background: bool,
        #[serde(default)]
        group: Option<String>,
        #[serde(default)]
        socket: SocketOptions,
        #[serde(default)]
        joins: Vec<Join>,
        paths: Vec<Path>,
        ideal_rate_bps: Option<u64>,
    }

    /// The window of the steady goodput.
    Measure {
        from_us: i64,
        to_us: Option<i64>,
    }

    /// Counters of interfaces.
    InterfaceMonitor {
        interval_us: i64,
        nodes: Vec<String>,
    }

    /// Counters of namespaces.
    CounterMonitor {
        interval_us: i64,
    }

    /// Echo requests between two addresses.
    Probe {
        path: String,
        netns: String,
        source: IpAddr,
        destination: IpAddr,
        interval_us: i64,
        payload_bytes: u16,
    }

    /// The packets of an interface.
    Capture {
        netns: String,
        ifname: String,
        file: String,
        packet_bytes: u32,
    }

    /// What is measured only when it is asked for.
    #[derive(Default)]
    Monitors {
        #[serde(default)]
        interfaces: Option<InterfaceMonitor>,
        #[serde(default)]
        counters: Option<CounterMonitor>,
        #[serde(default)]
        probes: Vec<Probe>,
        #[serde(default)]
        captures: Vec<Capture>,
    }

    /// A name for programs.
    HostName {
        address: String,
        name: String,
    }

    /// The paths between two hosts in which programs run.
    Peers {
        source: String,
        target: String,
        transport: Transport,
        paths: Vec<Path>,
        ideal_rate_bps: Option<u64>,
    }

    /// One trial.
    Plan {
        schema: u32,
        seed: u64,
        machine: Machine,
        sample_interval_us: i64,
        end_us: i64,
        network: Network,
        links: Vec<Link>,
        #[serde(default)]
        buckets: Vec<SharedBucket>,
        flows: Vec<Flow>,
        #[serde(default)]
        events: Vec<Event>,
        #[serde(default)]
        monitors: Monitors,
        #[serde(default)]
        measure: Option<Measure>,
        #[serde(default)]
        programs: Vec<Program>,
        #[serde(default)]
        names: Vec<HostName>,
        #[serde(default)]
        peers: Vec<Peers>,
        #[serde(default)]
        pause: Vec<PauseAt>,
    }
}

fn default_memory() -> u32 {
    256
}

fn default_mtu() -> u32 {
    1500
}

fn default_table() -> u32 {
    254
}
