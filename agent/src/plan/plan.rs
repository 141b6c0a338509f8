//! The plan of one trial. `src/plait/plan/model/plan.py` documents each field.

use std::net::IpAddr;

use serde::Deserialize;

use super::applications::{Application, SocketOptions, Transport};
use super::events::Event;
use super::monitors::Monitors;
use super::mptcp::Join;
use super::network::{Machine, Network};
use super::programs::Program;
use super::record::records;

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideName {
    Client,
    Server,
}

impl SideName {
    /// Return the name in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// When a trial pauses for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseAt {
    /// The network exists; no traffic has started.
    Before,
    /// All measurements are complete; the network still exists.
    After,
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

records! {
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

    /// A token bucket shared by link directions, for the table of queues.
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

    /// A path that a flow can take.
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

    /// One transport connection and the data in one direction of it.
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

    /// The time window of the steady goodput.
    Measure {
        from_us: i64,
        to_us: Option<i64>,
    }

    /// A host name for programs.
    HostName {
        address: String,
        name: String,
    }

    /// The paths between two hosts that run programs.
    Peers {
        source: String,
        target: String,
        transport: Transport,
        paths: Vec<Path>,
        ideal_rate_bps: Option<u64>,
    }

    /// The plan of one trial.
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

impl Flow {
    /// Return an end of the flow.
    pub fn side(&self, name: SideName) -> &Side {
        match name {
            SideName::Client => &self.client,
            SideName::Server => &self.server,
        }
    }
}
