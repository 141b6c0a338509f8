//! Monitors; `src/plait/plan/model/monitors.py` says what each field means.

use std::net::IpAddr;

use serde::Deserialize;

use super::record::records;

records! {
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
}
