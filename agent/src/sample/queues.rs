//! Queues with more statistics than their length: the drop causes of managed queues, and shared
//! token buckets.
//!
//! How the kernel counts (net/sched, 6.12), in each qdisc's own statistics: red and `plait_red`
//! distinguish drops by the curve from drops of a full queue. codel and `fq_codel` report only the
//! latter, and all drops together in the common statistics.

use std::collections::BTreeMap;

use netlink_bindings::tc::{self, Tcmsg};

use super::devices::{QueueStats, Reading};
use super::{Fields, cell};
use crate::apply::{Namespace, ROOT};
use crate::error::{Attempt, Result};
use crate::netlink::sock_diag::attributes_of;
use crate::plan::Plan;
use crate::tables::{Queue, Table, TableSet};

/// `TCA_XSTATS`: the qdisc's own statistics.
const XSTATS: u16 = 4;
/// Bytes of `struct tcmsg` before the attributes.
const HEADER_BYTES: usize = 20;
/// The kind of a shared token bucket in the table.
const BUCKET: &str = "bucket";

/// The sampler of managed queues and shared buckets, which fills the table `queues`. The table
/// exists only if the plan has some.
pub struct Sampler {
    table: Table<Queue>,
    queues: Vec<Watched>,
    by_ifindex: BTreeMap<i32, usize>,
    /// The places of those of devices, by the number of their direction.
    by_number: BTreeMap<usize, usize>,
}

struct Watched {
    name: &'static str,
    /// In `wire`; None for a device.
    ifname: Option<&'static str>,
    kind: &'static str,
    row: Queue,
}

impl Sampler {
    /// Create the table; None if the plan has no such queue.
    pub fn create(set: &TableSet, plan: &'static Plan) -> Result<Option<Self>> {
        let directions =
            plan.links.iter().flat_map(|link| link.directions.iter().map(|side| (link.is_device(), side)));
        let managed = directions.filter_map(|(is_device, direction)| {
            let kind = direction.aqm.as_deref()?;
            let ifname = Some(direction.ifname.as_str()).filter(|_| !is_device);
            Some(Watched::new(&direction.name, ifname, kind))
        });
        let buckets =
            plan.buckets.iter().map(|bucket| Watched::new(&bucket.name, Some(&bucket.ifname), BUCKET));
        let queues: Vec<_> = managed.chain(buckets).collect();
        let numbers = plan.links.iter().flat_map(|link| &link.directions).enumerate();
        let managed = numbers.filter(|(_, direction)| direction.aqm.is_some());
        let by_number = managed.enumerate().map(|(place, (number, _))| (number, place)).collect();
        if queues.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { table: Table::create(set)?, queues, by_ifindex: BTreeMap::new(), by_number }))
    }

    /// Look up the interfaces.
    pub fn attach(&mut self, wire: &Namespace) -> Result<()> {
        for (place, queue) in self.queues.iter().enumerate() {
            let Some(ifname) = queue.ifname else { continue };
            let ifindex = wire.ifindex(ifname).attempt(|| format!("queue {}", queue.name))?;
            self.by_ifindex.insert(ifindex, place);
        }
        Ok(())
    }

    /// Read one qdisc; `payload` is its message.
    pub fn read(&mut self, header: &Tcmsg, attributes: &tc::IterableAttrs<'_>, payload: &[u8]) {
        let Some(queue) = self.by_ifindex.get(&header.ifindex).map(|place| &mut self.queues[*place]) else {
            return;
        };
        let is_managed = attributes.get_kind().is_ok_and(|kind| kind.to_bytes() == queue.kind.as_bytes());
        if is_managed || (queue.kind == BUCKET && header.parent == ROOT) {
            queue.read(attributes, Fields(xstats(payload)));
        }
    }

    /// Read the managed queue of a device's direction.
    pub fn read_device(&mut self, reading: &Reading<'_>) {
        if let (Some(place), Some(stats)) = (self.by_number.get(&reading.number), &reading.queue) {
            self.queues[*place].fill(stats);
        }
    }

    /// Add a row for each queue.
    pub fn push(&mut self, t_us: i64) -> Result<()> {
        for queue in &mut self.queues {
            let row = std::mem::take(&mut queue.row);
            self.table.push(Queue {
                t_us: Some(t_us),
                queue: Some(queue.name.into()),
                kind: Some(queue.kind.into()),
                ..row
            })?;
        }
        Ok(())
    }
}

impl Watched {
    fn new(name: &'static str, ifname: Option<&'static str>, kind: &'static str) -> Self {
        Self { name, ifname, kind, row: Queue::default() }
    }

    fn read(&mut self, attributes: &tc::IterableAttrs<'_>, private: Fields<'_>) {
        let Ok(stats) = attributes.get_stats2() else { return };
        let Ok(queue) = stats.get_queue() else { return };
        let basic = stats.get_basic().ok();
        self.fill(&QueueStats {
            sent_bytes: basic.as_ref().and_then(|basic| cell(basic.bytes)),
            sent_packets: basic.and_then(|basic| cell(stats.get_pkt64().unwrap_or(u64::from(basic.packets)))),
            queue_packets: i64::from(queue.qlen),
            queue_bytes: i64::from(queue.backlog),
            drops: i64::from(queue.drops),
            private,
        });
    }

    fn fill(&mut self, stats: &QueueStats<'_>) {
        let QueueStats { private, drops, .. } = *stats;
        let sum = |a: usize, b: usize| Some(private.cell32(a)? + private.cell32(b)?);
        let row = &mut self.row;
        row.sent_bytes = stats.sent_bytes;
        row.sent_packets = stats.sent_packets;
        row.queue_bytes = Some(stats.queue_bytes);
        row.queue_packets = Some(stats.queue_packets);
        row.overflow_packets = overflow(self.kind, private, drops);
        // Offsets in tc_red_xstats, plait_red_xstats, tc_codel_xstats and tc_fq_codel_xstats.
        match self.kind {
            "red" => {
                row.managed_packets = private.cell32(0);
                row.marked_packets = private.cell32(12);
            }
            "plait_red" => {
                row.managed_packets = sum(0, 4);
                row.marked_packets = private.cell32(8);
                row.average_millipackets = private.u32(16).map(|average| i64::from(average) * 1000 / 256);
            }
            "codel" => {
                row.managed_packets = row.overflow_packets.map(|overflow| drops - overflow);
                row.marked_packets = private.cell32(24);
                row.delay_us = private.cell32(12);
            }
            "fq_codel" => {
                row.managed_packets = row.overflow_packets.map(|overflow| drops - overflow);
                row.marked_packets = private.cell32(12);
            }
            _ => {}
        }
    }
}

/// Return how many packets a full queue refused; `drops` is the total that the qdisc counts.
pub(super) fn overflow(kind: &str, private: Fields<'_>, drops: i64) -> Option<i64> {
    match kind {
        "red" => private.cell32(4),
        "plait_red" => private.cell32(12),
        "codel" => private.cell32(20),
        "fq_codel" => private.cell32(8),
        _ => Some(drops),
    }
}

/// Return the qdisc's own statistics in its message; empty if it has none.
pub(super) fn xstats(payload: &[u8]) -> &[u8] {
    let attributes = payload.get(HEADER_BYTES..).unwrap_or_default();
    attributes_of(attributes).find(|(kind, _)| *kind == XSTATS).map_or(&[], |(_, value)| value)
}
