//! Links as devices of their own (`kernel/links`): one pair of `plait_link` between two nodes holds all
//! conditions, in place of two veth pairs, their qdiscs and redirects.
//!
//! The plan describes links as chains. A link whose chain has only what the device knows becomes a
//! device. A link with a middlebox, a shared bucket or a replayed trace stays a chain.

mod attributes;
pub mod choice;

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use netlink_bindings::rt_link::{self, Ifinfomsg, PushLinkAttrs};
use netlink_bindings::utils::{Pusher, finalize_nested_header, push_header, push_nested_header};

use self::attributes::push_conditions;
use self::choice::Pair;
use super::build::Build;
use super::links::{header, push_end};
use super::namespace::enter;
use super::qdiscs::Occasion;
use crate::error::Result;
use crate::netlink::{Batch, Family, Socket};
use crate::plan::{Plan, Qdisc, VethEnd};

const UP: u32 = libc::IFF_UP as u32;
/// `IFLA_INFO_DATA` of `IFLA_LINKINFO`.
const INFO_DATA: u16 = 2;
/// Attributes of the device (`kernel/links/plait_link.h`).
const PEER: u16 = 1;
const OUT: u16 = 2;
const IN: u16 = 3;
const NUMBER: u16 = 1;

/// Create all links that are devices, with their conditions, in the order of the plan.
pub fn add(build: &mut Build, plan: &'static Plan, home: &impl AsFd) -> Result<()> {
    let pairs = std::mem::take(&mut build.devices.pairs);
    if pairs.is_empty() {
        return Ok(());
    }
    enter(home)?;
    let mut socket = Socket::open(Family::Route)?;
    let numbers: BTreeMap<_, _> = plan
        .links
        .iter()
        .flat_map(|link| &link.directions)
        .zip(0_u32..)
        .map(|(direction, number)| (direction.ifname.as_str(), number))
        .collect();
    let mut batch = Batch::default();
    for Pair { a: of_a, b: of_b } in &pairs {
        let (a, b) = (&of_a.a, &of_b.a);
        let context = format!("adding link {} in {} to {} in {}", a.ifname, a.netns, b.ifname, b.netns);
        let mut request =
            rt_link::Request::new().set_create().set_excl().op_newlink_do(&header(build, a, UP)?);
        {
            let attributes = push_end(build, request.encode(), a, of_a.mtu)?;
            let mut info = attributes.nested_linkinfo().push_kind(c"plait_link");
            let bytes = info.as_vec_mut();
            let data = push_nested_header(bytes, INFO_DATA);
            let peer = push_nested_header(bytes, PEER);
            bytes.extend_from_slice(header(build, b, UP)?.as_slice());
            push_end(build, PushLinkAttrs::new(&mut *bytes), b, of_b.mtu)?;
            finalize_nested_header(bytes, peer);
            for (side, shaper) in [(OUT, &of_b.b.ifname), (IN, &of_a.b.ifname)] {
                let nest = push_nested_header(bytes, side);
                if let Some(number) = numbers.get(shaper.as_str()) {
                    push_header(bytes, NUMBER, 4);
                    bytes.extend_from_slice(&number.to_ne_bytes());
                }
                let qdiscs = plan.network.qdiscs.iter().filter(|qdisc| qdisc.ifname == *shaper);
                for qdisc in qdiscs {
                    push_conditions(
                        bytes,
                        &qdisc.options,
                        build.distributions,
                        Occasion::AddWhole,
                        &qdisc.parent,
                    )?;
                }
                finalize_nested_header(bytes, nest);
            }
            finalize_nested_header(bytes, data);
        }
        batch.add(&request, context);
    }
    socket.apply(batch)?;
    build.devices.pairs = pairs;
    Ok(())
}

/// Change the conditions of a direction that leaves from `sender`, as `qdisc` would.
pub fn change(build: &mut Build, sender: &'static VethEnd, qdisc: &'static Qdisc) -> Result<()> {
    let index = build.ifindex(&sender.netns, &sender.ifname)?;
    let header = Ifinfomsg { ifi_index: index, ..Default::default() };
    let mut request = rt_link::Request::new().op_newlink_do(&header);
    {
        let mut info = request.encode().nested_linkinfo().push_kind(c"plait_link");
        let bytes = info.as_vec_mut();
        let data = push_nested_header(bytes, INFO_DATA);
        let nest = push_nested_header(bytes, OUT);
        push_conditions(bytes, &qdisc.options, build.distributions, Occasion::Change, &qdisc.parent)?;
        finalize_nested_header(bytes, nest);
        finalize_nested_header(bytes, data);
    }
    let context = format_args!("changing the link at {} in {}", sender.ifname, sender.netns);
    build.batch(&sender.netns)?.add(&request, context);
    Ok(())
}
