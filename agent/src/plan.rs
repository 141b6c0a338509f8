//! The plan as the agent reads it: the same records as `src/plait/plan/model.py`, in the same order.
//!
//! Both sides refuse fields that they do not know, so a plan is never half understood. Fields that the agent has
//! no use for (paths, ideal rates) are read and checked all the same.

use std::net::IpAddr;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The version of the plan that this agent reads.
pub const SCHEMA: u32 = 1;

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            #[allow(dead_code)] // the contract is read whole, also what only other engines use
            pub struct $name {
                $($(#[$attr])* pub $field: $kind,)*
            }
        )+

        /// Every record with the names of its fields, for the comparison with the other side of the contract.
        #[cfg(test)]
        const RECORDS: &[(&str, &[&str])] = &[$((stringify!($name), &[$(stringify!($field),)*]),)+];
    };
}

records! {
    /// The guest itself; the engine has applied it by the time the agent runs.
    Machine {
        #[serde(default = "default_memory")]
        memory_mib: u32,
        #[serde(default)]
        syscall_ns: u64,
        #[serde(default)]
        sysctls: Vec<(String, String)>,
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

    /// Delay and loss.
    Netem {
        delay_ns: i64,
        #[serde(default)]
        jitter_ns: i64,
        #[serde(default)]
        loss_ratio: f64,
        limit_packets: u32,
        seed: u64,
    }

    /// A rate.
    Tbf {
        rate_bps: u64,
        burst_bytes: u32,
        limit_bytes: u32,
    }

    /// A queue of so many packets.
    Pfifo {
        limit_packets: u32,
    }

    /// A queue of so many bytes.
    Bfifo {
        limit_bytes: u32,
    }

    /// A queueing discipline.
    Qdisc {
        netns: String,
        ifname: String,
        parent: String,
        handle: String,
        options: QdiscOptions,
    }

    /// Everything that arrives on `source` leaves through `target`.
    Redirect {
        netns: String,
        source: String,
        target: String,
    }

    /// A policy routing rule.
    Rule {
        netns: String,
        source: String,
        table: u32,
        priority: u32,
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
    }

    /// An MPTCP endpoint.
    Endpoint {
        address: IpAddr,
        #[serde(default)]
        device: Option<String>,
        id: u8,
        flags: Vec<EndpointFlag>,
        #[serde(default)]
        port: Option<u16>,
    }

    /// The path manager of one namespace.
    Mptcp {
        netns: String,
        subflows: u32,
        add_addr_accepted: u32,
        #[serde(default)]
        endpoints: Vec<Endpoint>,
    }

    /// All kernel objects.
    Network {
        namespaces: Vec<Namespace>,
        veths: Vec<Veth>,
        #[serde(default)]
        bridges: Vec<Bridge>,
        #[serde(default)]
        qdiscs: Vec<Qdisc>,
        #[serde(default)]
        redirects: Vec<Redirect>,
        #[serde(default)]
        routes: Vec<Route>,
        #[serde(default)]
        rules: Vec<Rule>,
        #[serde(default)]
        mptcp: Vec<Mptcp>,
    }

    /// One direction of a link, for the table of links.
    LinkDirection {
        name: String,
        source: String,
        target: String,
        ifname: String,
        rate_bps: Option<u64>,
        delay_ns: u64,
        #[serde(default)]
        jitter_ns: u64,
        #[serde(default)]
        loss_ratio: f64,
        #[serde(default)]
        queue_packets: Option<u64>,
        #[serde(default)]
        queue_bytes: Option<u64>,
    }

    /// A link of the scenario.
    Link {
        name: String,
        directions: [LinkDirection; 2],
    }

    /// A path that a flow can use.
    Path {
        name: String,
        client_address: String,
        server_address: String,
        forward: Vec<String>,
        backward: Vec<String>,
        rate_bps: Option<u64>,
        base_rtt_us: f64,
    }

    /// One side of a flow.
    Side {
        netns: String,
        address: IpAddr,
        port: u16,
    }

    /// A real file to transfer, at `input/NAME`.
    File {
        name: String,
        bytes: u64,
        sha256: String,
    }

    /// One transport connection.
    Flow {
        id: i64,
        name: String,
        kind: FlowKind,
        transport: Transport,
        client: Side,
        server: Side,
        sender: SideName,
        start_us: i64,
        #[serde(default)]
        duration_us: Option<i64>,
        #[serde(default)]
        bytes: Option<u64>,
        #[serde(default)]
        file: Option<File>,
        #[serde(default)]
        congestion_control: Option<String>,
        #[serde(default)]
        send_buffer: Option<usize>,
        #[serde(default)]
        receive_buffer: Option<usize>,
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
        flows: Vec<Flow>,
    }
}

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

fn default_memory() -> u32 {
    256
}

fn default_mtu() -> u32 {
    1500
}

fn default_table() -> u32 {
    254
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
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The records of model.py: for each class the names of its fields.
    fn python_records() -> BTreeMap<String, BTreeSet<String>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/plait/plan/model.py");
        let source = std::fs::read_to_string(path).unwrap();
        let mut records: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut class = String::new();
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("class ").and_then(|rest| rest.strip_suffix("(Record):")) {
                class = name.to_owned();
                records.insert(class.clone(), BTreeSet::new());
            } else if let Some((name, _)) = line.strip_prefix("    ").and_then(|rest| rest.split_once(": "))
                && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
                && let Some(fields) = records.get_mut(&class)
            {
                fields.insert(if name == "schema_version" { "schema" } else { name }.to_owned());
            }
        }
        records
    }

    #[test]
    fn both_sides_of_the_plan_know_the_same_fields() {
        let mut python = python_records();
        for kind in ["Netem", "Tbf", "Pfifo", "Bfifo"] {
            // Here the discriminator belongs to the enum around the record.
            python.get_mut(kind).unwrap().remove("kind");
        }
        let rust: BTreeMap<_, BTreeSet<_>> = RECORDS
            .iter()
            .map(|(name, fields)| {
                ((*name).to_owned(), fields.iter().map(|field| (*field).to_owned()).collect())
            })
            .collect();
        assert_eq!(python, rust);
    }

    fn minimal(flow: &str) -> String {
        format!(
            r#"{{"schema": 1, "seed": 1, "machine": {{}}, "sample_interval_us": 100000, "end_us": 1,
                "network": {{"namespaces": [], "veths": []}}, "links": [], "flows": [{flow}]}}"#
        )
    }

    fn flow(sizes: &str) -> String {
        let side = r#"{"netns": "h", "address": "10.0.0.1", "port": 1}"#;
        minimal(&format!(
            r#"{{"id": 0, "name": "f", "kind": "transfer", "transport": "tcp", "client": {side},
                "server": {side}, "sender": "client", "start_us": 0, "paths": [], "ideal_rate_bps": null{sizes}}}"#
        ))
    }

    #[test]
    fn defaults_may_be_left_out() {
        let plan = parse(minimal("").as_bytes()).unwrap();
        assert_eq!((plan.machine.memory_mib, plan.network.routes.len()), (256, 0));
    }

    #[test]
    fn a_field_nobody_knows_is_refused_by_name() {
        let json = minimal("").replace("\"seed\": 1", "\"seed\": 1, \"sed\": 2");
        assert!(parse(json.as_bytes()).unwrap_err().to_string().contains("unknown field `sed`"));
        let qdisc = r#"{"kind": "pfifo", "limit_packets": 1, "limit_bytes": 2}"#;
        assert!(serde_json::from_str::<QdiscOptions>(qdisc).is_err());
    }

    #[test]
    fn another_schema_is_refused() {
        let json = minimal("").replace("\"schema\": 1", "\"schema\": 2");
        assert!(parse(json.as_bytes()).unwrap_err().to_string().contains("this agent reads 1"));
    }

    #[test]
    fn a_transfer_needs_to_know_how_much() {
        assert!(parse(flow("").as_bytes()).is_err());
        assert!(parse(flow(r#", "bytes": 5"#).as_bytes()).is_ok());
        let file = r#", "file": {"name": "f", "bytes": 5, "sha256": "00"}"#;
        assert!(parse(flow(file).as_bytes()).is_ok());
        assert!(parse(flow(&format!("{file}, \"bytes\": 6")).as_bytes()).is_err());
    }
}
