//! The options of each kind of qdisc as netlink attributes.

use netlink_bindings::builtin::BuiltinBitfield32;
use netlink_bindings::tc::{
    OpNewqdiscDo, PushAttrs, TcFifoQopt, TcNetemGemodel, TcNetemQopt, TcNetemRate, TcRatespec, TcRedQopt,
    TcTbfQopt,
};
use netlink_bindings::utils::Pusher;

use crate::error::{Error, Result};
use crate::netlink::{push_attribute, push_nest};
use crate::plan::{Codel, Distribution, FqCodel, Gemodel, Netem, PlaitRed, QdiscOptions, Red, Tbf};

/// `TC_LINKLAYER_ETHERNET`: the kernel then needs no legacy rate table.
const LINKLAYER_ETHERNET: u8 = 1;
/// netem's own rate in bytes per second. The largest frame takes less than 1 ns at this rate. With
/// a rate, netem lets no packet overtake another.
const IN_ORDER_RATE: u64 = 1_000_000_000_000_000;
/// `TC_RED_ECN`.
const RED_ECN: u32 = 1;
/// `TCA_OPTIONS`, and the attributes of `sch_plait_red.c` inside it.
const OPTIONS: u16 = 2;
const PLAIT_RED_LIMIT: u16 = 1;
const PLAIT_RED_WEIGHT_LOG: u16 = 2;
const PLAIT_RED_POINTS: u16 = 3;
const PLAIT_RED_ECN: u16 = 4;
const PLAIT_RED_SEED: u16 = 5;
const PLAIT_RED_IDLE_NS: u16 = 6;

/// Whether the options belong to a new qdisc. A change leaves the random generator of an existing
/// qdisc in its state; with the seed again, the qdisc would drop the same packets after every
/// change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    Add,
    /// A new qdisc that makes the queue below it itself.
    AddWhole,
    Change,
}

/// Append the kind and the options of a qdisc.
pub fn push_options(
    request: &mut OpNewqdiscDo<'_>,
    options: &QdiscOptions,
    distributions: &[Distribution],
    occasion: Occasion,
) -> Result<()> {
    let attributes = request.encode();
    match options {
        QdiscOptions::Netem(netem) => return push_netem(attributes, netem, distributions, occasion),
        QdiscOptions::Tbf(tbf) => return push_tbf(attributes, tbf),
        QdiscOptions::Pfifo(fifo) => {
            attributes.nested_options_pfifo(&TcFifoQopt { limit: fifo.limit_packets });
        }
        QdiscOptions::Bfifo(fifo) => {
            attributes.nested_options_bfifo(&TcFifoQopt { limit: fifo.limit_bytes });
        }
        QdiscOptions::Red(red) => push_red(attributes, red, occasion),
        QdiscOptions::PlaitRed(red) => push_plait_red(attributes, red, occasion),
        QdiscOptions::Codel(codel) => push_codel(attributes, codel),
        QdiscOptions::FqCodel(codel) => push_fq_codel(attributes, codel),
        QdiscOptions::PlaitTrace(_) => return Err(Error::new("events cannot change a trace")),
    }
    Ok(())
}

fn push_netem<P: Pusher>(
    attributes: PushAttrs<P>,
    netem: &Netem,
    distributions: &[Distribution],
    occasion: Occasion,
) -> Result<()> {
    let fixed = TcNetemQopt {
        limit: netem.limit_packets,
        loss: threshold(netem.loss_ratio),
        duplicate: threshold(netem.duplicate_ratio),
        // netem may reorder one packet in each gap, so a gap of one lets it reorder any packet.
        gap: u32::from(netem.reorder_ratio.is_some_and(|ratio| ratio > 0.0)),
        ..Default::default()
    };
    let mut options = attributes
        .nested_options_netem(&fixed)
        .push_latency64(netem.delay_ns)
        .push_jitter64(netem.jitter_ns.into());
    if occasion != Occasion::Change {
        options = options.push_prng_seed(netem.seed);
    }
    if let Some(name) = &netem.distribution {
        options = options.push_delay_dist(&distribution(name, distributions)?);
    }
    if let Some(Gemodel { p, r, loss_bad, loss_good }) = netem.gemodel {
        let model = TcNetemGemodel {
            p: threshold(p),
            r: threshold(r),
            h: threshold(1.0 - loss_bad),
            k1: threshold(loss_good),
        };
        options = options.nested_loss().push_ge(model).end_nested();
    }
    for (kind, ratio) in netem.ratios() {
        // A probability and a correlation, 32 bits each.
        let value = [threshold(ratio), 0].map(u32::to_ne_bytes);
        push_attribute(options.as_vec_mut(), kind, value.as_flattened());
    }
    let rate = match netem.rate_bps {
        Some(bps) => Some(kernel_rate(bps)?.1),
        None => netem.in_order.then_some(IN_ORDER_RATE),
    };
    if let Some(bytes_ps) = rate {
        options.push_rate(TcNetemRate::default()).push_rate64(bytes_ps);
    }
    Ok(())
}

fn push_tbf<P: Pusher>(attributes: PushAttrs<P>, tbf: &Tbf) -> Result<()> {
    let (rate, bytes_ps) = kernel_rate(tbf.rate_bps)?;
    let mut fixed = TcTbfQopt { rate, limit: tbf.limit_bytes, ..Default::default() };
    let mut peak_bytes_ps = None;
    if let Some(bps) = tbf.peak_bps {
        let (peakrate, bytes_ps) = kernel_rate(bps)?;
        fixed.peakrate = peakrate;
        peak_bytes_ps = Some(bytes_ps);
    }
    let options =
        attributes.nested_options_tbf().push_parms(fixed).push_rate64(bytes_ps).push_burst(tbf.burst_bytes);
    if let (Some(bytes_ps), Some(burst)) = (peak_bytes_ps, tbf.peak_burst_bytes) {
        options.push_prate64(bytes_ps).push_pburst(burst);
    }
    Ok(())
}

/// Return a rate as the kernel expects it, and its exact value in bytes per second.
fn kernel_rate(bps: u64) -> Result<(TcRatespec, u64)> {
    if bps == 0 || !bps.is_multiple_of(8) {
        return Err(Error::new(format!(
            "the kernel counts rates in whole bytes a second, and {bps} bit/s is none; \
             use a multiple of 8 bit/s"
        )));
    }
    let bytes_ps = bps / 8;
    let rate = u32::try_from(bytes_ps).unwrap_or(u32::MAX);
    Ok((TcRatespec { linklayer: LINKLAYER_ETHERNET, rate, ..Default::default() }, bytes_ps))
}

fn push_red<P: Pusher>(attributes: PushAttrs<P>, red: &Red, occasion: Occasion) {
    // Without a limit the kernel creates a queue of its own, also on a change, and replaces the
    // planned one.
    let fixed = TcRedQopt {
        limit: if occasion == Occasion::AddWhole { red.limit_bytes } else { 0 },
        qth_min: red.min_bytes,
        qth_max: red.max_bytes,
        Wlog: red.weight_log,
        Plog: 0,
        Scell_log: red.idle_log,
        flags: 0,
    };
    let ecn = BuiltinBitfield32 { value: if red.ecn { RED_ECN } else { 0 }, selector: RED_ECN };
    attributes
        .nested_options_red()
        .push_parms(fixed)
        .push_stab(&red.idle_shifts)
        .push_max_p(threshold(red.probability))
        .push_flags(ecn);
}

fn push_plait_red<P: Pusher>(attributes: PushAttrs<P>, red: &PlaitRed, occasion: Occasion) {
    let mut attributes = attributes.push_kind(c"plait_red");
    let points = red.points.iter().flat_map(|(average, share)| [*average, *share]);
    push_nest(attributes.as_vec_mut(), OPTIONS, |bytes| {
        push_attribute(bytes, PLAIT_RED_LIMIT, &red.limit_packets.to_ne_bytes());
        push_attribute(bytes, PLAIT_RED_WEIGHT_LOG, &u32::from(red.weight_log).to_ne_bytes());
        push_attribute(bytes, PLAIT_RED_POINTS, &points.flat_map(u32::to_ne_bytes).collect::<Vec<_>>());
        push_attribute(bytes, PLAIT_RED_ECN, &u32::from(red.ecn).to_ne_bytes());
        push_attribute(bytes, PLAIT_RED_IDLE_NS, &red.idle_ns.to_ne_bytes());
        if occasion != Occasion::Change {
            let [.., b4, b5, b6, b7] = red.seed.to_be_bytes();
            push_attribute(bytes, PLAIT_RED_SEED, &u32::from_be_bytes([b4, b5, b6, b7]).to_ne_bytes());
        }
    });
}

fn push_codel<P: Pusher>(attributes: PushAttrs<P>, codel: &Codel) {
    attributes
        .nested_options_codel()
        .push_target(codel.target_us)
        .push_limit(codel.limit_packets)
        .push_interval(codel.interval_us)
        .push_ecn(codel.ecn.into());
}

fn push_fq_codel<P: Pusher>(attributes: PushAttrs<P>, codel: &FqCodel) {
    attributes
        .nested_options_fq_codel()
        .push_target(codel.target_us)
        .push_limit(codel.limit_packets)
        .push_interval(codel.interval_us)
        .push_ecn(codel.ecn.into())
        .push_flows(codel.flows)
        .push_quantum(codel.quantum_bytes);
}

/// Return the table of a distribution of the plan.
pub fn distribution(name: &str, tables: &[Distribution]) -> Result<Vec<u8>> {
    let known = tables.iter().find(|table| table.name == name);
    let known = known.ok_or_else(|| Error::new(format!("the plan has no distribution {name}")))?;
    Ok(known.values.iter().flat_map(|value| value.to_ne_bytes()).collect())
}

/// Convert a share into a threshold for a 32-bit random number, as `tc` does.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and u32::MAX by construction
pub fn threshold(ratio: f64) -> u32 {
    (ratio.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_spans_the_whole_range_of_the_generator() {
        assert_eq!(threshold(0.0), 0);
        assert_eq!(threshold(1.0), u32::MAX);
        assert_eq!(threshold(0.5), 0x8000_0000);
    }

    #[test]
    fn rates_are_whole_bytes() {
        assert_eq!(kernel_rate(8_000).unwrap().1, 1000);
        assert!(kernel_rate(8_001).is_err());
        assert!(kernel_rate(0).is_err());
    }
}
