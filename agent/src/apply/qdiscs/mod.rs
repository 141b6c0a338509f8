//! Traffic control: the qdiscs that emulate a link's delay, loss, rate and queue, and the redirects
//! that connect its two ends.

mod options;
pub(super) mod traces;

use std::collections::BTreeSet;
use std::fmt;

use netlink_bindings::tc::{self, PushActAttrs, Tcmsg};
use netlink_bindings::utils::Pusher;

pub(super) use self::options::{Occasion, distribution, push_options, threshold};
use super::build::Build;
use crate::error::{Attempt, Error, Result};
use crate::netlink::push_nest;
use crate::plan::{Hook, Qdisc, QdiscOptions, Redirect};

/// `TC_H_ROOT` of `linux/pkt_sched.h`.
pub const ROOT: u32 = 0xffff_ffff;
/// `TC_H_CLSACT`, the parent of the clsact qdisc; the handle of the qdisc is ffff:.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`.
const CLSACT_INGRESS: u32 = 0xffff_fff2;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)`.
const CLSACT_EGRESS: u32 = 0xffff_fff3;
/// `TCA_EGRESS_REDIR`, `TC_ACT_STOLEN`.
const EGRESS_REDIRECT: u32 = 1;
const ACT_STOLEN: u32 = 4;
/// All protocols (`linux/if_ether.h`).
const ETH_P_ALL: u16 = 3;
/// Position of the only action in the list. The kernel counts from 1.
const FIRST_ACTION: u16 = 1;

/// Add the qdiscs in the order of the plan, in which parents come first.
pub fn add_qdiscs(build: &mut Build, qdiscs: &'static [Qdisc]) -> Result<()> {
    for qdisc in qdiscs {
        let context = qdisc.to_string();
        let header = header(build, qdisc, &context)?;
        if let QdiscOptions::PlaitTrace(trace) = &qdisc.options {
            let place = build.index(&qdisc.netns)?;
            let batch = &mut build.batches[place];
            let waiting = traces::add(batch, &context, trace, place, header).attempt(|| &context)?;
            build.traces.push(waiting);
            continue;
        }
        let mut request = tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
        push_options(&mut request, &qdisc.options, build.distributions, Occasion::Add)
            .attempt(|| &context)?;
        build.batch(&qdisc.netns)?.add(&request, context);
    }
    Ok(())
}

/// Replace all options of an existing qdisc.
pub fn change_qdisc(build: &mut Build, qdisc: &'static Qdisc) -> Result<()> {
    let context = qdisc.to_string().replacen("adding", "changing", 1).replacen(" to ", " of ", 1);
    let mut request = tc::Request::new().op_newqdisc_do(&header(build, qdisc, &context)?);
    push_options(&mut request, &qdisc.options, build.distributions, Occasion::Change).attempt(|| &context)?;
    build.batch(&qdisc.netns)?.add(&request, context);
    Ok(())
}

fn header(build: &Build, qdisc: &Qdisc, context: &str) -> Result<Tcmsg> {
    Ok(Tcmsg {
        ifindex: build.ifindex(&qdisc.netns, &qdisc.ifname)?,
        handle: parse_handle(&qdisc.handle).attempt(|| context)?,
        parent: parse_handle(&qdisc.parent).attempt(|| context)?,
        ..Default::default()
    })
}

/// Connect the two ends of a link. A packet that arrives on `source` leaves through `target`, past
/// its qdiscs. With the egress hook, a packet that is about to leave goes to an ifb first.
pub fn add_redirects(build: &mut Build, redirects: &'static [Redirect]) -> Result<()> {
    let mut prepared = BTreeSet::new();
    for redirect in redirects {
        let Redirect { netns, source, target, hook } = redirect;
        let ifindex = build.ifindex(netns, source)?;
        let target_index = build.ifindex(netns, target)?;
        let context = format!("redirecting {source} to {target} in {netns}");

        let batch = build.batch(netns)?;
        if prepared.insert((netns, source)) {
            let header = Tcmsg { ifindex, handle: CLSACT_HANDLE, parent: CLSACT, ..Default::default() };
            let mut request = tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
            request.encode().nested_options_clsact();
            batch.add(&request, format_args!("{context}: adding clsact"));
        }

        // The upper half is the priority (otherwise the kernel chooses one); the lower half is the
        // protocol in network order.
        let every_protocol = u32::from(ETH_P_ALL.to_be());
        let parent = match hook {
            Hook::Ingress => CLSACT_INGRESS,
            Hook::Egress => CLSACT_EGRESS,
        };
        let header = Tcmsg { ifindex, parent, info: 1 << 16 | every_protocol, ..Default::default() };
        let mut request = tc::Request::new().set_create().set_excl().op_newtfilter_do(&header);
        {
            let mut list = request.encode().nested_options_matchall().array_act();
            // The bindings number the action 0, which the kernel skips.
            push_nest(list.as_vec_mut(), FIRST_ACTION, |bytes| {
                PushActAttrs::new(bytes).nested_options_mirred().push_parms(&mirred(target_index));
            });
        }
        batch.add(&request, format_args!("{context}: adding the filter"));
    }
    Ok(())
}

/// `struct tc_mirred` of `linux/tc_act/tc_mirred.h`: steal the packet and send it out of `ifindex`.
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

/// Parse `root`, `1:` or `1:1` (hexadecimal, as in tc).
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
        let kind = self.options.name();
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
}
