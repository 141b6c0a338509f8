//! Queues with more statistics than their length: the drop causes of managed queues, and shared
//! token buckets.
//!
//! How the kernel counts (net/sched, 6.12), in each qdisc's own statistics: red and `plait_red`
//! distinguish drops by the curve from drops of a full queue. codel and `fq_codel` report only the
//! latter, and all drops together in the common statistics.

use std::ffi::CStr;

use netlink_bindings::tc::{self, Tcmsg};

use super::devices::QueueStats;
use super::{Fields, cell};
use crate::apply::ROOT;
use crate::netlink::sock_diag::attributes_of;
use crate::tables::Queue;

/// `TCA_XSTATS`: the qdisc's own statistics.
const XSTATS: u16 = 4;
/// Bytes of `struct tcmsg` before the attributes.
const HEADER_BYTES: usize = 20;
/// The kind of a shared token bucket in the table.
const BUCKET: &str = "bucket";

/// A managed queue or a shared token bucket, and its next row in the table `queues`.
pub struct Watched {
    name: &'static str,
    kind: &'static str,
    row: Queue,
}

impl Watched {
    /// Watch the queue of a direction, which its qdisc of this kind manages.
    pub fn queue(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, row: Queue::default() }
    }

    /// Watch a shared bucket.
    pub fn bucket(name: &'static str) -> Self {
        Self::queue(name, BUCKET)
    }

    /// Return the row at a time.
    pub fn take(&mut self, t_us: i64) -> Queue {
        let row = std::mem::take(&mut self.row);
        Queue { t_us: Some(t_us), queue: Some(self.name.into()), kind: Some(self.kind.into()), ..row }
    }

    /// Read one qdisc of its interface.
    pub fn read(&mut self, qdisc: &Qdisc<'_>) {
        if qdisc.kind == self.kind.as_bytes() || (self.kind == BUCKET && qdisc.is_root) {
            self.fill(&qdisc.stats);
        }
    }

    /// Take the counters of a queue.
    pub fn fill(&mut self, stats: &QueueStats<'_>) {
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

/// A qdisc and its counters in a dump.
pub(super) struct Qdisc<'a> {
    pub is_root: bool,
    pub kind: &'a [u8],
    pub stats: QueueStats<'a>,
}

impl<'a> Qdisc<'a> {
    /// Decode a message; None: it has no counters.
    pub fn read(header: &Tcmsg, attributes: &tc::IterableAttrs<'a>, payload: &'a [u8]) -> Option<Self> {
        let stats = attributes.get_stats2().ok()?;
        let queue = stats.get_queue().ok()?;
        let basic = stats.get_basic().ok();
        let own = attributes_of(payload.get(HEADER_BYTES..)?).find(|(kind, _)| *kind == XSTATS);
        let stats = QueueStats {
            sent_bytes: basic.as_ref().and_then(|basic| cell(basic.bytes)),
            // The 32-bit counter wraps; the kernel reports the 64-bit one as soon as it has.
            sent_packets: basic.and_then(|basic| cell(stats.get_pkt64().unwrap_or(u64::from(basic.packets)))),
            queue_packets: i64::from(queue.qlen),
            queue_bytes: i64::from(queue.backlog),
            drops: i64::from(queue.drops),
            private: Fields(own.map_or(&[], |(_, value)| value)),
        };
        let kind = attributes.get_kind().map_or(&[][..], CStr::to_bytes);
        Some(Self { is_root: header.parent == ROOT, kind, stats })
    }
}
