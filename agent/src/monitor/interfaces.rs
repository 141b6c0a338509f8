//! Interface counters: one dump of the interfaces of each watched namespace.

use std::path::Path;

use netlink_bindings::rt_link::{self, Ifinfomsg, OpGetlinkDump};
use netlink_bindings::traits::NetlinkRequest;

use crate::apply::{Applied, enter};
use crate::error::{Attempt, Result};
use crate::netlink::{Family, Socket, kernel_type};
use crate::plan::InterfaceMonitor;
use crate::tables::{Interface, Table};

/// Fills the table `interfaces`.
pub struct Interfaces {
    plan: &'static InterfaceMonitor,
    table: Table<Interface>,
    nodes: Vec<(&'static str, Socket)>,
}

impl Interfaces {
    /// Creates the table.
    pub fn create(folder: &Path, plan: &'static InterfaceMonitor) -> Result<Self> {
        Ok(Self { plan, table: Table::create(folder)?, nodes: Vec::new() })
    }

    /// Opens a socket in each namespace. The calling thread ends where the agent began.
    pub fn attach(&mut self, network: &Applied) -> Result<()> {
        for node in &self.plan.nodes {
            let what = || format!("watching the interfaces of {node}");
            enter(&network.namespace(node).attempt(what)?.fd)?;
            self.nodes.push((node, Socket::open(Family::Route).attempt(what)?));
        }
        enter(&network.home)
    }

    /// How often to read, in us.
    pub fn interval_us(&self) -> i64 {
        self.plan.interval_us
    }

    /// Adds a row for each interface.
    pub fn read(&mut self, t_us: i64) -> Result<()> {
        for (node, socket) in &mut self.nodes {
            let mut rows = Vec::new();
            let request = rt_link::Request::new().op_getlink_dump(&Ifinfomsg::default());
            socket
                .ask(&request, kernel_type(&request), |payload| rows.extend(row(node, t_us, payload)))
                .attempt(|| format!("reading the interfaces of {node}"))?;
            for row in rows {
                self.table.push(row)?;
            }
        }
        Ok(())
    }

    /// Writes the rows that wait.
    pub fn flush(&mut self) -> Result<()> {
        self.table.flush()
    }

    /// Completes the table.
    pub fn finish(self) -> Result<()> {
        self.table.finish()
    }
}

/// The row of one interface; None for the loopback.
fn row(node: &'static str, t_us: i64, payload: &[u8]) -> Option<Interface> {
    let (header, attributes) = OpGetlinkDump::decode_reply(payload);
    if header.ifi_flags & libc::IFF_LOOPBACK.cast_unsigned() != 0 {
        return None;
    }
    let stats = attributes.get_stats64().ok();
    let counter = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
    Some(Interface {
        t_us: Some(t_us),
        node: Some(node.into()),
        interface: attributes.get_ifname().ok().map(|name| name.to_string_lossy().into_owned().into()),
        sent_bytes: counter(stats.as_ref().map(|stats| stats.tx_bytes)),
        sent_packets: counter(stats.as_ref().map(|stats| stats.tx_packets)),
        received_bytes: counter(stats.as_ref().map(|stats| stats.rx_bytes)),
        received_packets: counter(stats.as_ref().map(|stats| stats.rx_packets)),
        dropped_packets: counter(stats.as_ref().map(|stats| stats.tx_dropped + stats.rx_dropped)),
    })
}
