//! Interface counters: one read of /proc/net/dev per monitored namespace covers all its interfaces.
//!
//! A netlink dump has the same and more, but takes three system calls and a thousand attributes per
//! interface.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::apply::{Applied, enter};
use crate::error::{Attempt, Error, Result};
use crate::plan::InterfaceMonitor;
use crate::tables::{Interface, Table, TableSet};

/// The path refers to the namespace of the thread that opens it; an open file keeps its namespace.
const FILE: &str = "/proc/thread-self/net/dev";
/// An upper bound for the length of a line.
const LINE_BYTES: usize = 256;
const PAGE_BYTES: usize = 4096;

/// The monitor that fills the table `interfaces`.
pub struct Interfaces {
    plan: &'static InterfaceMonitor,
    table: Table<Interface>,
    nodes: Vec<(&'static str, File)>,
    text: Vec<u8>,
}

impl Interfaces {
    /// Create the table.
    pub fn create(set: &TableSet, plan: &'static InterfaceMonitor) -> Result<Self> {
        Ok(Self { plan, table: Table::create(set)?, nodes: Vec::new(), text: Vec::new() })
    }

    /// Open the file of each namespace. The calling thread ends where the agent began.
    pub fn attach(&mut self, network: &Applied) -> Result<()> {
        for node in &self.plan.nodes {
            let context = || format!("watching the interfaces of {node}");
            enter(&network.namespace(node).attempt(context)?.fd)?;
            self.nodes.push((node, File::open(FILE).attempt(context)?));
        }
        enter(&network.home)
    }

    /// Return how often to read, in us.
    pub fn interval_us(&self) -> i64 {
        self.plan.interval_us
    }

    /// Add a row for each interface.
    pub fn read(&mut self, t_us: i64) -> Result<()> {
        for (node, file) in &self.nodes {
            let context = || format!("reading the interfaces of {node}");
            let length = whole(file, &mut self.text).attempt(context)?;
            let text = String::from_utf8_lossy(&self.text[..length]);
            for line in text.lines().skip(HEADER_LINES) {
                let row = row(node, t_us, line);
                let row =
                    row.ok_or_else(|| Error::because(context(), format!("an unknown line: {line:?}")))?;
                if row.interface.as_deref() != Some("lo") {
                    self.table.push(row)?;
                }
            }
        }
        Ok(())
    }
}

const HEADER_LINES: usize = 2;
/// Columns after the name (net/core/net-procfs.c): eight for received packets, then eight for sent
/// ones. Each group begins with bytes, packets, errors, drops.
const COLUMNS: usize = 16;
const SENT: usize = 8;

/// Read the file from its beginning. The kernel ends a piece before the first line that does not
/// fit into its page, so a shorter piece is the last one.
fn whole(file: &File, text: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut length = 0;
    loop {
        text.resize(text.len().max(length + PAGE_BYTES), 0);
        let got = file.read_at(&mut text[length..], length as u64)?;
        length += got;
        if got + LINE_BYTES < PAGE_BYTES {
            return Ok(length);
        }
    }
}

/// Parse the row of one interface.
fn row(node: &'static str, t_us: i64, line: &str) -> Option<Interface> {
    let (name, counters) = line.split_once(':')?;
    let counters: Vec<i64> = counters.split_whitespace().map_while(|text| text.parse().ok()).collect();
    let counters: [i64; COLUMNS] = counters.try_into().ok()?;
    let [received_bytes, received_packets, _, received_drops, ..] = counters;
    Some(Interface {
        t_us: Some(t_us),
        node: Some(node.into()),
        interface: Some(name.trim_start().to_owned().into()),
        sent_bytes: Some(counters[SENT]),
        sent_packets: Some(counters[SENT + 1]),
        received_bytes: Some(received_bytes),
        received_packets: Some(received_packets),
        dropped_packets: Some(received_drops + counters[SENT + 3]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_received_and_sent_counters() {
        let line = "h1-eth0:  100 10 0 1 0 0 0 0  200 20 0 2 0 0 0 0";
        let row = row("h1", 7, line).unwrap();
        assert_eq!(row.interface.as_deref(), Some("h1-eth0"));
        assert_eq!((row.received_bytes, row.received_packets), (Some(100), Some(10)));
        assert_eq!((row.sent_bytes, row.sent_packets, row.dropped_packets), (Some(200), Some(20), Some(3)));
        assert!(super::row("h1", 7, "h1-eth0: 1 2 3").is_none());
    }
}
