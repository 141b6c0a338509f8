//! Links as devices of their own (`kernel/links`): one pair of `plait_link` between two nodes has the conditions of
//! both directions as the plan gives them.

mod attributes;

use std::os::fd::AsFd;

use netlink_bindings::rt_link::{self, Ifinfomsg};
use netlink_bindings::utils::Pusher;

use self::attributes::{push_all, push_changes};
use super::build::Build;
use super::links::{INFO_DATA, UP, pair};
use super::namespace::enter;
use crate::error::{Error, Result};
use crate::netlink::{Batch, Family, Socket, push_attribute, push_nest};
use crate::plan::{LinkDirection, Plan};

/// Attributes of the device (`kernel/links/plait_link.h`).
const OUT: u16 = 2;
const IN: u16 = 3;
const NUMBER: u16 = 1;
/// The frame of a link is longer than its MTU by this.
const ETHERNET_HEADER: u32 = 14;

/// Create all links that are devices.
pub fn add(build: &mut Build, plan: &'static Plan, home: &impl AsFd) -> Result<()> {
    let mut links: Vec<_> =
        plan.links.iter().zip((0_u32..).step_by(2)).filter(|(link, _)| link.is_device()).collect();
    if links.is_empty() {
        return Ok(());
    }
    // Numbers of interfaces follow from this order.
    links.sort_by_key(|(link, _)| &link.directions[1].ifname);
    enter(home)?;
    let mut socket = Socket::open(Family::Route)?;
    let mut batch = Batch::default();
    for (link, number) in links {
        let Some([a, b]) = &link.ends else { continue };
        let [forward, backward] = &link.directions;
        let mtu = forward.frame_bytes.saturating_sub(ETHERNET_HEADER);
        let context = format!("adding link {} in {} to {} in {}", a.ifname, a.netns, b.ifname, b.netns);
        let request = pair(build, c"plait_link", (a, UP), (b, UP), mtu, |build, bytes| {
            for (side, direction, number) in [(OUT, forward, number), (IN, backward, number + 1)] {
                push_nest(bytes, side, |bytes| {
                    push_attribute(bytes, NUMBER, &number.to_ne_bytes());
                    push_all(bytes, direction, build.distributions)
                })?;
            }
            Ok(())
        })?;
        batch.add(&request, context);
        build.lines.insert(&forward.name, (a, forward));
        build.lines.insert(&backward.name, (b, backward));
    }
    socket.apply(batch)
}

/// Change the conditions of a direction.
pub fn change(build: &mut Build, now: &'static LinkDirection) -> Result<()> {
    let (end, before) = build.lines.get(now.name.as_str()).copied().ok_or_else(|| {
        Error::new(format!("the link of {} is no device, so that its qdiscs change instead", now.name))
    })?;
    build.lines.insert(&now.name, (end, now));
    let index = build.ifindex(&end.netns, &end.ifname)?;
    let header = Ifinfomsg { ifi_index: index, ..Default::default() };
    let mut request = rt_link::Request::new().op_newlink_do(&header);
    {
        let mut info = request.encode().nested_linkinfo().push_kind(c"plait_link");
        push_nest(info.as_vec_mut(), INFO_DATA, |bytes| {
            push_nest(bytes, OUT, |bytes| push_changes(bytes, before, now, build.distributions))
        })?;
    }
    let context = format_args!("changing the link at {} in {}", end.ifname, end.netns);
    build.batch(&end.netns)?.add(&request, context);
    Ok(())
}
