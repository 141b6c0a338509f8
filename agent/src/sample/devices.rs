//! Links that are devices (`kernel/links`): one dump covers every direction of every link.
//!
//! The device counts as sent what arrived at the other end. It distinguishes losses by its model,
//! packets that found its queue full, those that its qdisc dropped, and those that an end lost because
//! it was down.

use std::os::fd::AsFd;

use super::{Fields, cell};
use crate::apply::enter;
use crate::error::{Attempt, Result};
use crate::netlink::sock_diag::attributes_of;
use crate::netlink::{Family, GenericFamily, RawRequest, Socket};

/// `kernel/links/plait_link.h`.
const FAMILY: &str = "plait_link";
const GET: [u8; 4] = [1, 1, 0, 0];
const GET_SOJOURNS: [u8; 4] = [2, 1, 0, 0];
/// The first version of the family that has times in the queue.
const WITH_SOJOURNS: u32 = 2;
const NUMBER: u16 = 1;
const LINE: u16 = 2;
const QDISC: u16 = 3;
const SOJOURNS: u16 = 5;
/// `linux/gen_stats.h`.
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_APP: u16 = 4;

/// The socket that reads all links.
pub struct Reader {
    socket: Socket,
    family: u16,
    /// Whether the kernel reports times in the queue. Kernels of earlier versions of plait do not.
    pub has_sojourns: bool,
}

/// The counters of one direction.
pub struct Reading<'a> {
    /// The place of the direction in the plan.
    pub number: usize,
    /// `struct plait_line_counters`.
    pub(super) line: Fields<'a>,
    /// Of the qdisc in front of the line, if there is one.
    pub(super) queue: Option<QueueStats<'a>>,
}

/// What a queue has counted.
pub(super) struct QueueStats<'a> {
    pub sent_bytes: Option<i64>,
    pub sent_packets: Option<i64>,
    pub queue_packets: i64,
    pub queue_bytes: i64,
    pub drops: i64,
    /// The qdisc's own statistics.
    pub private: Fields<'a>,
}

impl Reader {
    /// Open the socket in `home`, the namespace from which the agent made the links.
    pub fn open(home: &impl AsFd) -> Result<Self> {
        enter(home)?;
        let mut socket = Socket::open(Family::Generic)?;
        let family = GenericFamily::resolve(&mut socket, FAMILY)?;
        Ok(Self { socket, family: family.id, has_sojourns: family.version >= WITH_SOJOURNS })
    }

    /// Pass the counters of every direction to `each`.
    pub fn read(&mut self, mut each: impl FnMut(&Reading<'_>)) -> Result<()> {
        self.socket
            .ask(&RawRequest::dump(GET.into()), self.family, |payload| {
                if let Some(reading) = decode(payload) {
                    each(&reading);
                }
            })
            .attempt(|| "reading the counters of the links")
    }

    /// Pass the number of every direction to `each`, with its packets by their time in the queue (see
    /// [`super::delays`]).
    pub fn read_sojourns(&mut self, mut each: impl FnMut(usize, &[u8])) -> Result<()> {
        self.socket
            .ask(&RawRequest::dump(GET_SOJOURNS.into()), self.family, |payload| {
                let mut number = None;
                for (kind, value) in attributes_of(payload.get(GET.len()..).unwrap_or_default()) {
                    match (kind, number) {
                        (NUMBER, _) => number = Fields(value).u32(0).and_then(|it| usize::try_from(it).ok()),
                        (SOJOURNS, Some(number)) => each(number, value),
                        _ => {}
                    }
                }
            })
            .attempt(|| "reading the queueing delays of the links")
    }
}

fn decode(payload: &[u8]) -> Option<Reading<'_>> {
    let (mut number, mut line, mut queue) = (None, None, None);
    for (kind, value) in attributes_of(payload.get(GET.len()..)?) {
        match kind {
            NUMBER => number = Fields(value).u32(0),
            LINE => line = Some(Fields(value)),
            QDISC => queue = queue_stats(value),
            _ => {}
        }
    }
    Some(Reading { number: usize::try_from(number?).ok()?, line: line?, queue })
}

fn queue_stats(nested: &[u8]) -> Option<QueueStats<'_>> {
    let (mut basic, mut queue, mut private) = (Fields(&[]), Fields(&[]), Fields(&[]));
    for (kind, value) in attributes_of(nested) {
        match kind {
            STATS_BASIC => basic = Fields(value),
            STATS_QUEUE => queue = Fields(value),
            STATS_APP => private = Fields(value),
            _ => {}
        }
    }
    Some(QueueStats {
        sent_bytes: basic.u64(0).and_then(cell),
        sent_packets: basic.cell32(8),
        queue_packets: queue.cell32(0)?,
        queue_bytes: queue.cell32(4)?,
        drops: queue.cell32(8)?,
        private,
    })
}
