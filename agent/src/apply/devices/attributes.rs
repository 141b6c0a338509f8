//! The conditions of a direction as attributes of a `plait_link` (`kernel/links/plait_link.h`).

use netlink_bindings::tc::{self, Tcmsg};
use netlink_bindings::traits::NetlinkRequest;

use crate::apply::qdiscs::{Occasion, distribution, push_options, threshold};
use crate::error::Result;
use crate::netlink::push_attribute;
use crate::netlink::sock_diag::attributes_of;
use crate::plan::{Distribution, LinkDirection, QdiscOptions};

const RATE: u16 = 2;
const DELAY: u16 = 3;
const JITTER: u16 = 4;
const TABLE: u16 = 5;
const OVERTAKING: u16 = 6;
const LOSS: u16 = 7;
const GE: u16 = 8;
const QUEUE_PACKETS: u16 = 12;
const QUEUE_BYTES: u16 = 13;
const BUCKET_RATE: u16 = 14;
const BUCKET_BURST: u16 = 15;
const SEED: u16 = 16;
const QDISC: u16 = 17;
const QDISC_OPTIONS: u16 = 18;
/// `TCA_KIND` and `TCA_OPTIONS` of `linux/rtnetlink.h`, after a `struct tcmsg`.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCMSG_BYTES: usize = 20;
/// As netem in a chain: no packet arrives at the time at which it was sent.
const LEAST_DELAY_NS: u64 = 1000;
/// The distribution that the device computes without a table.
const UNIFORM: &str = "uniform";

/// Append the conditions of a new direction.
pub fn push_all(bytes: &mut Vec<u8>, direction: &LinkDirection, tables: &[Distribution]) -> Result<()> {
    // A new device has no effect, and a kernel of an earlier version refuses one that it does not know.
    let absent: Vec<u16> =
        direction.ratios().filter(|(_, ratio)| *ratio == 0.0).map(|(kind, _)| kind).collect();
    for (kind, value) in conditions(direction, tables, Occasion::AddWhole)? {
        if !absent.contains(&kind) {
            push_attribute(bytes, kind, &value);
        }
    }
    push_attribute(bytes, SEED, &direction.seed.to_ne_bytes());
    Ok(())
}

/// Append the conditions that differ from those before. The device keeps what it is not told.
pub fn push_changes(
    bytes: &mut Vec<u8>,
    before: &LinkDirection,
    now: &LinkDirection,
    tables: &[Distribution],
) -> Result<()> {
    let known = conditions(before, tables, Occasion::Change)?;
    for condition in conditions(now, tables, Occasion::Change)? {
        if !known.contains(&condition) {
            push_attribute(bytes, condition.0, &condition.1);
        }
    }
    Ok(())
}

fn conditions(
    direction: &LinkDirection,
    tables: &[Distribution],
    occasion: Occasion,
) -> Result<Vec<(u16, Vec<u8>)>> {
    let is = direction;
    let model = is.gemodel.as_ref().map_or([0.0; 4], |ge| [ge.p, ge.r, ge.loss_bad, ge.loss_good]);
    let loss = if is.gemodel.is_some() { 0.0 } else { is.loss_ratio };
    let overtaking = is.jitter_factor_ns > 0 && !is.in_order;
    let mut list = vec![
        (DELAY, is.delay_ns.max(LEAST_DELAY_NS).to_ne_bytes().to_vec()),
        (JITTER, is.jitter_factor_ns.to_ne_bytes().to_vec()),
        (TABLE, table(is.jitter_distribution.as_deref(), tables)?),
        (OVERTAKING, vec![u8::from(overtaking)]),
        (LOSS, threshold(loss).to_ne_bytes().to_vec()),
        (GE, model.into_iter().flat_map(|share| threshold(share).to_ne_bytes()).collect()),
    ];
    list.extend(is.ratios().map(|(kind, ratio)| (kind, threshold(ratio).to_ne_bytes().to_vec())));
    // A shaper's bucket fills at the rate of the link and passes what it holds at once.
    let is_shaper = is.burst_bytes.is_some() && is.baseline_bps.is_none();
    let (rate_bps, fills_bps) = if is_shaper { (None, is.rate_bps) } else { (is.rate_bps, is.baseline_bps) };
    if let Some(bps) = rate_bps {
        list.push((RATE, bps.to_ne_bytes().to_vec()));
    }
    if let (Some(bps), Some(bytes)) = (fills_bps, is.burst_bytes) {
        list.push((BUCKET_RATE, bps.to_ne_bytes().to_vec()));
        list.push((BUCKET_BURST, limit(bytes).to_ne_bytes().to_vec()));
    }
    if let Some(manager) = &is.manager {
        push_manager(&mut list, manager, occasion)?;
    } else {
        list.push((QUEUE_PACKETS, limit(is.queue_packets.unwrap_or_default()).to_ne_bytes().to_vec()));
        list.push((QUEUE_BYTES, limit(is.queue_bytes.unwrap_or_default()).to_ne_bytes().to_vec()));
    }
    Ok(list)
}

/// Return the table of a distribution, which the plan has; it is empty if the distribution is uniform.
fn table(name: Option<&str>, tables: &[Distribution]) -> Result<Vec<u8>> {
    name.filter(|name| *name != UNIFORM).map_or(Ok(Vec::new()), |name| distribution(name, tables))
}

/// Take the kind and the options from the request that would add or change the qdisc.
fn push_manager(list: &mut Vec<(u16, Vec<u8>)>, manager: &QdiscOptions, occasion: Occasion) -> Result<()> {
    let mut request = tc::Request::new().op_newqdisc_do(&Tcmsg::default());
    push_options(&mut request, manager, &[], occasion)?;
    let attributes = request.payload().get(TCMSG_BYTES..).unwrap_or_default();
    for (kind, value) in attributes_of(attributes) {
        match kind {
            TCA_KIND if occasion != Occasion::Change => list.push((QDISC, value.to_vec())),
            TCA_OPTIONS => list.push((QDISC_OPTIONS, value.to_vec())),
            _ => {}
        }
    }
    Ok(())
}

/// Return a limit as the kernel has it; it never binds where it is larger.
fn limit(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}
