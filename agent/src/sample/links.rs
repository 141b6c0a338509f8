//! Links: one dump of the qdiscs in namespace `wire` covers every direction of every link.
//!
//! How the kernel counts (net/sched, 6.12): the root qdisc netem counts as sent what it passed to
//! the device after delay *and* rate. It counts as dropped its random losses and also each packet
//! that its child refused. tbf counts as dropped whatever its queue refused or dropped, for any
//! reason, and as backlog what waits for the rate; a netem with a rate below the root counts as tbf
//! does, and as backlog also the packet that it sends. A managed queue itself reports what it dropped
//! because it was full.

use std::collections::BTreeMap;

use netlink_bindings::tc::{self, OpGetqdiscDump, Tcmsg};
use netlink_bindings::traits::NetlinkRequest;

use super::queues::{Qdisc, Watched};
use super::{delays, devices, queues};
use crate::apply::Applied;
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Socket, kernel_type};
use crate::plan::Plan;
use crate::tables::{Link, Queue, QueueingDelay, Table, TableSet};

/// The sampler of all link directions, which fills the tables `links`, `queues` and `queueing_delays`.
pub struct Sampler {
    table: Table<Link>,
    delays: Option<Table<QueueingDelay>>,
    /// Exists only if the plan has managed queues or shared buckets.
    queues: Option<Table<Queue>>,
    socket: Option<Socket>,
    devices: Option<devices::Reader>,
    directions: Vec<Direction>,
    buckets: Vec<Watched>,
    /// The index of a direction by the number of its interface; that of a bucket.
    by_ifindex: BTreeMap<i32, usize>,
    buckets_by_ifindex: BTreeMap<i32, usize>,
    sampled_us: Option<i64>,
}

struct Direction {
    name: &'static str,
    limited: bool,
    aqm: Option<&'static str>,
    queue: Option<Watched>,
    has_bucket: bool,
    row: Link,
}

impl Sampler {
    /// Create the table for the links of `plan`.
    pub fn create(set: &TableSet, plan: &'static Plan) -> Result<Self> {
        let directions = plan.links.iter().flat_map(|link| &link.directions);
        let directions = directions.map(|direction| Direction {
            name: &direction.name,
            limited: direction.rate_bps.is_some(),
            aqm: direction.aqm.as_deref(),
            queue: direction.aqm.as_deref().map(|kind| Watched::queue(&direction.name, kind)),
            has_bucket: direction.burst_bytes.is_some(),
            row: Link::default(),
        });
        let directions: Vec<_> = directions.collect();
        let buckets: Vec<_> = plan.buckets.iter().map(|bucket| Watched::bucket(&bucket.name)).collect();
        let has_queues = !buckets.is_empty() || directions.iter().any(|direction| direction.queue.is_some());
        Ok(Self {
            table: Table::create(set)?,
            delays: None,
            queues: has_queues.then(|| Table::create(set)).transpose()?,
            socket: None,
            devices: None,
            directions,
            buckets,
            by_ifindex: BTreeMap::new(),
            buckets_by_ifindex: BTreeMap::new(),
            sampled_us: None,
        })
    }

    /// Look up the interfaces of all links in namespace `wire`, and take over that namespace.
    ///
    /// The table `queueing_delays` is created here, if links with a rate are devices.
    pub fn attach(&mut self, set: &TableSet, plan: &'static Plan, network: &mut Applied) -> Result<()> {
        let Some(wire) = network.take_wire() else {
            return if plan.links.is_empty() {
                Ok(())
            } else {
                Err(Error::new("the plan has links but no namespace with the role wire"))
            };
        };
        let sides =
            plan.links.iter().flat_map(|link| link.directions.iter().map(|side| (link.is_device(), side)));
        for (place, (_, direction)) in sides.clone().enumerate().filter(|(_, (is_device, _))| !is_device) {
            let ifindex = wire.ifindex(&direction.ifname).attempt(|| format!("link {}", direction.name))?;
            self.by_ifindex.insert(ifindex, place);
        }
        for (place, bucket) in plan.buckets.iter().enumerate() {
            let ifindex = wire.ifindex(&bucket.ifname).attempt(|| format!("queue {}", bucket.name))?;
            self.buckets_by_ifindex.insert(ifindex, place);
        }
        let mut devices =
            sides.filter_map(|(is_device, direction)| is_device.then_some(direction)).peekable();
        if devices.peek().is_some() {
            let reader = devices::Reader::open(&network.home)?;
            if reader.has_sojourns && devices.any(|direction| direction.rate_bps.is_some()) {
                self.delays = Some(Table::create(set)?);
            }
            self.devices = Some(reader);
        }
        self.socket = Some(wire.route);
        Ok(())
    }

    /// Add a row for each direction, once per time.
    pub fn sample(&mut self, t_us: i64) -> Result<()> {
        let Some(socket) = self.socket.as_mut().filter(|_| self.sampled_us != Some(t_us)) else {
            return Ok(());
        };
        self.sampled_us = Some(t_us);
        let Self { directions, buckets, by_ifindex, buckets_by_ifindex, .. } = self;
        if let Some(reader) = &mut self.devices {
            reader.read(|reading| {
                if let Some(direction) = directions.get_mut(reading.number) {
                    direction.read_device(reading);
                }
            })?;
        }
        if by_ifindex.is_empty() && self.devices.is_some() {
            return self.push(t_us);
        }
        let request = tc::Request::new().op_getqdisc_dump(&Tcmsg::default());
        socket
            .ask(&request, kernel_type(&request), |payload| {
                let (header, attributes) = OpGetqdiscDump::decode_reply(payload);
                let Some(qdisc) = Qdisc::read(&header, &attributes, payload) else { return };
                if let Some(place) = by_ifindex.get(&header.ifindex) {
                    directions[*place].read(&qdisc);
                }
                if let Some(place) = buckets_by_ifindex.get(&header.ifindex) {
                    buckets[*place].read(&qdisc);
                }
            })
            .attempt(|| "reading the qdiscs of the links")?;
        self.push(t_us)
    }

    fn push(&mut self, t_us: i64) -> Result<()> {
        for direction in &mut self.directions {
            let row = std::mem::take(&mut direction.row);
            self.table.push(Link { t_us: Some(t_us), link: Some(direction.name.into()), ..row })?;
        }
        let Some(table) = &mut self.queues else { return Ok(()) };
        let managed = self.directions.iter_mut().filter_map(|direction| direction.queue.as_mut());
        managed.chain(&mut self.buckets).try_for_each(|queue| table.push(queue.take(t_us)))
    }

    /// Take the last sample, and the queueing delays of the trial.
    pub fn sample_last(&mut self, t_us: i64) -> Result<()> {
        self.sample(t_us)?;
        let (Some(reader), Some(table)) = (&mut self.devices, &mut self.delays) else { return Ok(()) };
        let mut rows = Vec::new();
        reader.read_sojourns(|number, counts| {
            if let Some(direction) = self.directions.get(number).filter(|direction| direction.limited) {
                rows.extend(delays::rows(direction.name, counts));
            }
        })?;
        rows.into_iter().try_for_each(|row| table.push(row))
    }
}

impl Direction {
    /// Read one qdisc of the direction's interface.
    fn read(&mut self, qdisc: &Qdisc<'_>) {
        if let Some(queue) = &mut self.queue {
            queue.read(qdisc);
        }
        let Qdisc { is_root, kind, stats } = qdisc;
        if *is_root {
            self.row.sent_bytes = stats.sent_bytes;
            self.row.sent_packets = stats.sent_packets;
            self.row.dropped_packets = Some(stats.drops);
        }
        let is_line = !is_root && *kind == b"netem";
        if self.limited && (is_line || matches!(*kind, b"tbf" | b"plait_trace")) {
            if self.aqm.is_none() {
                self.row.overflow_packets = Some(stats.drops);
            }
            self.row.queue_bytes = Some(stats.queue_bytes);
            self.row.queue_packets = Some(stats.queue_packets);
        }
        if let Some(aqm) = self.aqm.filter(|aqm| aqm.as_bytes() == *kind) {
            self.row.overflow_packets = queues::overflow(aqm, stats.private, stats.drops);
        }
    }

    /// Read the counters of the direction's line.
    fn read_device(&mut self, reading: &devices::Reading<'_>) {
        if let (Some(queue), Some(stats)) = (&mut self.queue, &reading.queue) {
            queue.fill(stats);
        }
        let line = reading.line;
        self.row.sent_packets = line.cell64(0);
        self.row.sent_bytes = line.cell64(8);
        // All packets that did not reach the other end.
        self.row.dropped_packets = [16, 24, 32, 104].into_iter().map(|offset| line.cell64(offset)).sum();
        self.row.bucket_bytes = line.cell64(88).filter(|_| self.has_bucket);
        if self.limited {
            self.row.overflow_packets = match (self.aqm, &reading.queue) {
                (Some(aqm), Some(queue)) => queues::overflow(aqm, queue.private, queue.drops),
                _ => line.cell64(24),
            };
            self.row.queue_packets = line.cell64(64);
            self.row.queue_bytes = line.cell64(72);
        }
    }
}
