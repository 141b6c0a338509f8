//! Traffic control: the qdiscs that make a link's delay, loss, rate and queue, and the redirects that join its ends.

use std::fmt;

use netlink_bindings::tc::{
    self, OpNewqdiscDo, PushActAttrs, TcFifoQopt, TcNetemQopt, TcRatespec, TcTbfQopt, Tcmsg,
};
use netlink_bindings::utils::{Pusher, finalize_nested_header, push_nested_header};

use super::Build;
use crate::error::{Attempt, Error, Result};
use crate::plan::{Bfifo, Netem, Pfifo, Qdisc, QdiscOptions, Redirect, Tbf};

/// `TC_H_ROOT` of `linux/pkt_sched.h`.
pub const ROOT: u32 = 0xffff_ffff;
/// `TC_H_CLSACT`, the parent of the clsact qdisc, whose own number is ffff:.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`.
const CLSACT_INGRESS: u32 = 0xffff_fff2;
/// `TC_LINKLAYER_ETHERNET`: the rate table of old is not needed.
const LINKLAYER_ETHERNET: u8 = 1;
/// `TCA_EGRESS_REDIR`, `TC_ACT_STOLEN`.
const EGRESS_REDIRECT: u32 = 1;
const ACT_STOLEN: u32 = 4;
/// Every protocol (`linux/if_ether.h`).
const ETH_P_ALL: u16 = 3;
/// Position of the only action in the list; the kernel counts from 1.
const FIRST_ACTION: u16 = 1;

/// Adds the qdiscs in the order of the plan (parents come first there).
pub fn add_qdiscs(build: &mut Build, qdiscs: &'static [Qdisc]) -> Result<()> {
    for qdisc in qdiscs {
        let what = qdisc.to_string();
        let header = Tcmsg {
            ifindex: build.ifindex(&qdisc.netns, &qdisc.ifname)?,
            handle: parse_handle(&qdisc.handle).attempt(|| &what)?,
            parent: parse_handle(&qdisc.parent).attempt(|| &what)?,
            ..Default::default()
        };
        let mut request = tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
        push_options(&mut request, &qdisc.options, Occasion::Add).attempt(|| &what)?;
        build.batch(&qdisc.netns)?.add(&request, what);
    }
    Ok(())
}

/// Gives a qdisc that is there already all its options anew.
pub fn change_qdisc(build: &mut Build, qdisc: &'static Qdisc) -> Result<()> {
    let what = qdisc.to_string().replacen("adding", "changing", 1).replacen(" to ", " of ", 1);
    let header = Tcmsg {
        ifindex: build.ifindex(&qdisc.netns, &qdisc.ifname)?,
        handle: parse_handle(&qdisc.handle).attempt(|| &what)?,
        parent: parse_handle(&qdisc.parent).attempt(|| &what)?,
        ..Default::default()
    };
    let mut request = tc::Request::new().op_newqdisc_do(&header);
    push_options(&mut request, &qdisc.options, Occasion::Change).attempt(|| &what)?;
    build.batch(&qdisc.netns)?.add(&request, what);
    Ok(())
}

/// Whether options are those of a new qdisc. In one that is there, netem's generator goes on where it is: begun anew
/// with the seed, it would drop the same packets after every change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Add,
    Change,
}

fn push_options(request: &mut OpNewqdiscDo<'_>, options: &QdiscOptions, occasion: Occasion) -> Result<()> {
    let attributes = request.encode();
    match *options {
        QdiscOptions::Netem(Netem { delay_ns, jitter_ns, loss_ratio, limit_packets, seed }) => {
            let fixed =
                TcNetemQopt { limit: limit_packets, loss: loss_threshold(loss_ratio), ..Default::default() };
            let attributes =
                attributes.nested_options_netem(&fixed).push_latency64(delay_ns).push_jitter64(jitter_ns);
            if occasion == Occasion::Add {
                attributes.push_prng_seed(seed);
            }
        }
        QdiscOptions::Tbf(Tbf { rate_bps, burst_bytes, limit_bytes }) => {
            if rate_bps == 0 || rate_bps % 8 != 0 {
                return Err(Error::new(format!(
                    "the kernel counts rates in whole bytes a second, and {rate_bps} bit/s is none; \
                     use a multiple of 8 bit/s"
                )));
            }
            let bytes_ps = rate_bps / 8;
            let rate = TcRatespec {
                linklayer: LINKLAYER_ETHERNET,
                rate: u32::try_from(bytes_ps).unwrap_or(u32::MAX),
                ..Default::default()
            };
            attributes
                .nested_options_tbf()
                .push_parms(TcTbfQopt { rate, limit: limit_bytes, ..Default::default() })
                .push_rate64(bytes_ps)
                .push_burst(burst_bytes);
        }
        QdiscOptions::Pfifo(Pfifo { limit_packets }) => {
            attributes.nested_options_pfifo(&TcFifoQopt { limit: limit_packets });
        }
        QdiscOptions::Bfifo(Bfifo { limit_bytes }) => {
            attributes.nested_options_bfifo(&TcFifoQopt { limit: limit_bytes });
        }
    }
    Ok(())
}

/// Joins the two ends of a link: what arrives on one interface leaves through the other, past its qdiscs.
pub fn add_redirects(build: &mut Build, redirects: &'static [Redirect]) -> Result<()> {
    for redirect in redirects {
        let Redirect { netns, source, target } = redirect;
        let ifindex = build.ifindex(netns, source)?;
        let target_index = build.ifindex(netns, target)?;
        let what = format!("redirecting {source} to {target} in {netns}");

        let header = Tcmsg { ifindex, handle: CLSACT_HANDLE, parent: CLSACT, ..Default::default() };
        let mut request = tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
        request.encode().nested_options_clsact();
        let batch = build.batch(netns)?;
        batch.add(&request, format_args!("{what}: adding clsact"));

        // The upper half is the priority (the kernel would choose one), the lower the protocol in network order.
        let every_protocol = u32::from(ETH_P_ALL.to_be());
        let header =
            Tcmsg { ifindex, parent: CLSACT_INGRESS, info: 1 << 16 | every_protocol, ..Default::default() };
        let mut request = tc::Request::new().set_create().set_excl().op_newtfilter_do(&header);
        {
            let mut list = request.encode().nested_options_matchall().array_act();
            // The bindings would number the action 0, which the kernel skips.
            let bytes = list.as_vec_mut();
            let entry = push_nested_header(bytes, FIRST_ACTION);
            PushActAttrs::new(&mut *bytes).nested_options_mirred().push_parms(&mirred(target_index));
            finalize_nested_header(bytes, entry);
        }
        batch.add(&request, format_args!("{what}: adding the filter"));
    }
    Ok(())
}

/// `struct tc_mirred` of `linux/tc_act/tc_mirred.h`: take the packet and send it out of `ifindex`.
fn mirred(ifindex: i32) -> [u8; 28] {
    let (index, capabilities, references, bindings) = (0, 0, 0, 0);
    let fields =
        [index, capabilities, ACT_STOLEN, references, bindings, EGRESS_REDIRECT, ifindex.cast_unsigned()];
    let mut bytes = [0; 28];
    for (chunk, field) in bytes.chunks_exact_mut(4).zip(fields) {
        chunk.copy_from_slice(&field.to_ne_bytes());
    }
    bytes
}

/// netem's threshold for a 32-bit random number, as `tc` computes it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and u32::MAX by construction
fn loss_threshold(ratio: f64) -> u32 {
    (ratio.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

/// `root`, `1:` or `1:1` (hexadecimal, as tc writes them) as a number.
fn parse_handle(text: &str) -> Result<u32> {
    if text == "root" {
        return Ok(ROOT);
    }
    let wrong = || Error::new(format!("{text:?} is not a handle such as root, 1: or 1:1"));
    let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
    let half = |digits: &str| u16::from_str_radix(digits, 16).map_err(|_| wrong());
    let minor = if minor.is_empty() { 0 } else { half(minor)? };
    Ok(u32::from(half(major)?) << 16 | u32::from(minor))
}

impl fmt::Display for Qdisc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.options {
            QdiscOptions::Netem(_) => "netem",
            QdiscOptions::Tbf(_) => "tbf",
            QdiscOptions::Pfifo(_) => "pfifo",
            QdiscOptions::Bfifo(_) => "bfifo",
        };
        let Self { handle, parent, ifname, netns, .. } = self;
        write!(f, "adding {kind} {handle} (parent {parent}) to {ifname} in {netns}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_hexadecimal_as_in_tc() {
        assert_eq!(parse_handle("root").unwrap(), ROOT);
        assert_eq!(parse_handle("1:").unwrap(), 0x0001_0000);
        assert_eq!(parse_handle("10:1f").unwrap(), 0x0010_001f);
        for wrong in ["", "1", "x:", "10000:", "1:g", ":"] {
            assert!(parse_handle(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn loss_spans_the_whole_range_of_the_generator() {
        assert_eq!(loss_threshold(0.0), 0);
        assert_eq!(loss_threshold(1.0), u32::MAX);
        assert_eq!(loss_threshold(0.5), 0x8000_0000);
    }
}
