//! The options of a link's qdiscs as conditions of a `plait_link` (`kernel/links/plait_link.h`).

use netlink_bindings::tc::{self, Tcmsg};
use netlink_bindings::traits::NetlinkRequest;
use netlink_bindings::utils::push_header;

use crate::apply::qdiscs::{Occasion, push_options, threshold};
use crate::error::{Error, Result};
use crate::netlink::sock_diag::attributes_of;
use crate::plan::{Distribution, Netem, QdiscOptions, Tbf};

const RATE: u16 = 2;
const DELAY: u16 = 3;
const JITTER: u16 = 4;
const TABLE: u16 = 5;
const OVERTAKING: u16 = 6;
const LOSS: u16 = 7;
const GE: u16 = 8;
const DUPLICATE: u16 = 9;
const REORDER: u16 = 10;
const CORRUPT: u16 = 11;
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

/// Append the conditions that a qdisc with these options stands for.
pub fn push_conditions(
    bytes: &mut Vec<u8>,
    options: &QdiscOptions,
    distributions: &[Distribution],
    occasion: Occasion,
    parent: &str,
) -> Result<()> {
    match options {
        QdiscOptions::Netem(netem) => push_netem(bytes, netem, distributions, occasion)?,
        QdiscOptions::Tbf(tbf) => push_tbf(bytes, tbf),
        // The queue of `red` is its own.
        QdiscOptions::Pfifo(_) | QdiscOptions::Bfifo(_) if parent == "3:1" => {}
        QdiscOptions::Pfifo(fifo) => {
            push(bytes, QUEUE_PACKETS, &fifo.limit_packets.to_ne_bytes());
            push(bytes, QUEUE_BYTES, &0_u32.to_ne_bytes());
        }
        QdiscOptions::Bfifo(fifo) => {
            push(bytes, QUEUE_PACKETS, &0_u32.to_ne_bytes());
            push(bytes, QUEUE_BYTES, &fifo.limit_bytes.to_ne_bytes());
        }
        QdiscOptions::Red(_)
        | QdiscOptions::PlaitRed(_)
        | QdiscOptions::Codel(_)
        | QdiscOptions::FqCodel(_) => push_qdisc(bytes, options, occasion)?,
        QdiscOptions::PlaitTrace(_) => return Err(Error::new("this link cannot replay a trace")),
    }
    Ok(())
}

fn push_netem(
    bytes: &mut Vec<u8>,
    netem: &Netem,
    distributions: &[Distribution],
    occasion: Occasion,
) -> Result<()> {
    push(bytes, DELAY, &netem.delay_ns.to_ne_bytes());
    push(bytes, JITTER, &netem.jitter_ns.to_ne_bytes());
    let table = match &netem.distribution {
        None => Vec::new(),
        Some(name) => {
            let known = distributions.iter().find(|table| table.name == *name);
            let known = known.ok_or_else(|| Error::new(format!("the plan has no distribution {name}")))?;
            known.values.iter().flat_map(|value| value.to_ne_bytes()).collect()
        }
    };
    push(bytes, TABLE, &table);
    push(bytes, OVERTAKING, &[u8::from(netem.jitter_ns > 0 && !netem.in_order)]);
    push(bytes, LOSS, &threshold(netem.loss_ratio).to_ne_bytes());
    let ge = netem.gemodel.as_ref().map_or([0.0; 4], |ge| [ge.p, ge.r, ge.loss_bad, ge.loss_good]);
    let ge: Vec<u8> = ge.into_iter().flat_map(|share| threshold(share).to_ne_bytes()).collect();
    push(bytes, GE, &ge);
    push(bytes, DUPLICATE, &threshold(netem.duplicate_ratio).to_ne_bytes());
    push(bytes, REORDER, &threshold(netem.reorder_ratio.unwrap_or_default()).to_ne_bytes());
    push(bytes, CORRUPT, &threshold(netem.corrupt_ratio.unwrap_or_default()).to_ne_bytes());
    if occasion != Occasion::Change {
        push(bytes, SEED, &netem.seed.to_ne_bytes());
    }
    Ok(())
}

/// With a peak rate, that is the line's rate, and the other one fills the bucket.
fn push_tbf(bytes: &mut Vec<u8>, tbf: &Tbf) {
    push(bytes, RATE, &tbf.peak_bps.unwrap_or(tbf.rate_bps).to_ne_bytes());
    if tbf.peak_bps.is_some() {
        push(bytes, BUCKET_RATE, &tbf.rate_bps.to_ne_bytes());
        push(bytes, BUCKET_BURST, &tbf.burst_bytes.to_ne_bytes());
    }
}

/// Take the kind and the options from the request that would add or change the qdisc.
fn push_qdisc(bytes: &mut Vec<u8>, options: &QdiscOptions, occasion: Occasion) -> Result<()> {
    let mut request = tc::Request::new().op_newqdisc_do(&Tcmsg::default());
    push_options(&mut request, options, &[], occasion)?;
    let attributes = request.payload().get(TCMSG_BYTES..).unwrap_or_default();
    for (kind, value) in attributes_of(attributes) {
        match kind {
            TCA_KIND if occasion != Occasion::Change => push(bytes, QDISC, value),
            TCA_OPTIONS => push(bytes, QDISC_OPTIONS, value),
            _ => {}
        }
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    push_header(bytes, kind, u16::try_from(value.len()).expect("a condition fits into an attribute"));
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
