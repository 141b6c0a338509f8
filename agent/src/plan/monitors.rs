//! Monitors. `src/plait/plan/model/monitors.py` documents each field.

use std::net::IpAddr;

use serde::Deserialize;

use super::record::records;

records! {
    /// A monitor of interface counters.
    InterfaceMonitor {
        interval_us: i64,
        nodes: Vec<String>,
    }

    /// A monitor of the kernel's counters in each namespace.
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

    /// A packet capture on an interface.
    Capture {
        netns: String,
        ifname: String,
        file: String,
        packet_bytes: u32,
    }

    /// Measurements that the agent makes only on request.
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
        #[serde(default)]
        trace: Vec<String>,
    }
}
