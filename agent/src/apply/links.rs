//! Interfaces: loopbacks, veth pairs created directly in their two namespaces, bridges, ifbs, and
//! addresses.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use netlink_bindings::rt_addr::{self, Ifaddrmsg};
use netlink_bindings::rt_link::{self, Ifinfomsg, OpNewlinkDo, PushLinkAttrs};
use netlink_bindings::utils::Pusher;

use super::addresses::{address_family, parse_mac, parse_prefix};
use super::build::Build;
use super::namespace::enter;
use crate::error::{Attempt, Result};
use crate::netlink::{Batch, Family, Socket, push_nest};
use crate::plan::{Bridge, Ifb, SetDevice, Veth, VethEnd};

pub(super) const UP: u32 = libc::IFF_UP as u32;
/// `IFLA_INFO_DATA` of `IFLA_LINKINFO`, and the peer inside it: of a veth, and of a `plait_link`
/// (`kernel/links/plait_link.h`). The bindings lack both.
pub(super) const INFO_DATA: u16 = 2;
const PEER: u16 = 1;
/// `RTEXT_FILTER_SKIP_STATS` of `linux/rtnetlink.h`. The agent ignores the answer; without counters
/// it is shorter.
const SKIP_STATISTICS: u32 = 1 << 3;
/// A number of answers that always fits into a socket's receive buffer.
const ANSWERS_AT_ONCE: usize = 25;

/// Create every veth pair with both ends in place, named, numbered and up.
///
/// The agent sends these requests first. A bridge then finds its ports with carrier and forwards
/// from the first frame on.
pub fn add_veths(build: &mut Build, veths: &'static [Veth], home: &impl AsFd) -> Result<()> {
    enter(home)?;
    let mut socket = Socket::open(Family::Route)?;
    let mut batch = Batch::default();
    for veth in veths {
        let (a, b) = (&veth.a, &veth.b);
        let request = pair(build, c"veth", (a, UP), (b, 0), veth.mtu, |_, _| Ok(()))?;
        batch.add(
            &request,
            format_args!("adding veth pair {} in {} and {} in {}", a.ifname, a.netns, b.ifname, b.netns),
        );
    }
    socket.apply(batch).attempt(|| "creating links")?;
    // The kernel cannot bring the second end up before it has connected the two ends.
    for end in veths.iter().map(|veth| &veth.b) {
        let index = build.ifindex(&end.netns, &end.ifname)?;
        bring(build.batch(&end.netns)?, index, &end.ifname, &end.netns, true);
    }
    build.run()?;
    settle(build, veths)
}

/// Return the request that creates two connected interfaces, each with its flags. `fill` adds what their kind needs.
pub(super) fn pair(
    build: &mut Build,
    kind: &CStr,
    (a, flags_a): (&'static VethEnd, u32),
    (b, flags_b): (&'static VethEnd, u32),
    mtu: u32,
    fill: impl FnOnce(&mut Build, &mut Vec<u8>) -> Result<()>,
) -> Result<OpNewlinkDo<'static>> {
    let mut request =
        rt_link::Request::new().set_create().set_excl().op_newlink_do(&header(build, a, flags_a)?);
    {
        let attributes = push_end(build, request.encode(), a, mtu)?;
        let mut info = attributes.nested_linkinfo().push_kind(kind);
        push_nest(info.as_vec_mut(), INFO_DATA, |bytes| {
            push_nest(bytes, PEER, |bytes| {
                bytes.extend_from_slice(header(build, b, flags_b)?.as_slice());
                push_end(build, PushLinkAttrs::new(&mut *bytes), b, mtu).map(drop)
            })?;
            fill(build, bytes)
        })?;
    }
    Ok(request)
}

/// Make the first ends ready to send.
///
/// They came up before their peers, without carrier. The kernel's link watch activates their queues
/// later, but it handles a hundred devices (200 urgent ones) and then waits for a second. In a
/// network of 50 links some devices would drop all packets until then. A request for a single
/// interface makes the link watch handle that interface at once (`linkwatch_sync_dev` in
/// `rtnl_getlink`).
fn settle(build: &mut Build, veths: &'static [Veth]) -> Result<()> {
    let mut asked = vec![0_usize; build.namespaces.len()];
    for end in veths.iter().map(|veth| &veth.a) {
        let place = build.index(&end.netns)?;
        let header = Ifinfomsg { ifi_index: build.ifindex(&end.netns, &end.ifname)?, ..Default::default() };
        let mut request = rt_link::Request::new().op_getlink_do(&header);
        request.encode().push_ext_mask(SKIP_STATISTICS);
        let context = format_args!("waiting for {} in {} to be ready", end.ifname, end.netns);
        build.batches[place].add(&request, context);
        asked[place] += 1;
        if asked[place].is_multiple_of(ANSWERS_AT_ONCE) {
            let batch = std::mem::take(&mut build.batches[place]);
            build.namespaces[place].route.apply(batch)?;
        }
    }
    build.run()
}

/// Return the fixed part of a new interface: its number and its flags.
fn header(build: &mut Build, end: &'static VethEnd, flags: u32) -> Result<Ifinfomsg> {
    let index = build.namespace(&end.netns)?.number(&end.ifname)?;
    Ok(Ifinfomsg { ifi_index: index, ifi_flags: flags, ifi_change: flags, ..Default::default() })
}

fn bring(batch: &mut Batch, index: i32, ifname: &str, netns: &str, up: bool) {
    let flags = if up { UP } else { 0 };
    let header = Ifinfomsg { ifi_index: index, ifi_flags: flags, ifi_change: UP, ..Default::default() };
    batch.add(
        &rt_link::Request::new().op_setlink_do(&header),
        format_args!("bringing {ifname} {} in {netns}", if up { "up" } else { "down" }),
    );
}

/// Bring an interface down, or up again with its addresses.
pub fn set_device(build: &mut Build, device: &'static SetDevice) -> Result<()> {
    let SetDevice { netns, ifname, up, addresses, .. } = device;
    let index = build.ifindex(netns, ifname)?;
    bring(build.batch(netns)?, index, ifname, netns, *up);
    add_addresses_to(build, netns, ifname, addresses)
}

fn push_end<P: Pusher>(
    build: &mut Build,
    attributes: PushLinkAttrs<P>,
    end: &VethEnd,
    mtu: u32,
) -> Result<PushLinkAttrs<P>> {
    let mac = parse_mac(&end.mac).attempt(|| format!("interface {} in {}", end.ifname, end.netns))?;
    let namespace = build.namespace(&end.netns)?;
    let attributes = attributes
        .push_ifname_bytes(end.ifname.as_bytes())
        .push_address(&mac)
        .push_mtu(mtu)
        .push_net_ns_fd(namespace.fd.as_raw_fd().cast_unsigned());
    // `offloads.rs` explains why, and what hosts do instead.
    Ok(if namespace.generic.is_some() { attributes } else { attributes.push_gso_max_segs(1) })
}

/// Bring up the loopback of every namespace.
pub fn add_loopbacks(build: &mut Build) {
    for (namespace, batch) in build.namespaces.iter().zip(&mut build.batches) {
        bring(batch, 1, "lo", namespace.name, true);
    }
}

/// Bring up the loopback of the calling thread's namespace.
pub fn bring_up_loopback() -> Result<()> {
    let mut batch = Batch::default();
    bring(&mut batch, 1, "lo", "the first namespace", true);
    Socket::open(Family::Route)?.apply(batch)
}

/// Create bridges that forward from the first frame on, and add their ports.
pub fn add_bridges(build: &mut Build, bridges: &'static [Bridge]) -> Result<()> {
    for Bridge { netns, ifname, mac, ports } in bridges {
        let index = add_device(build, "bridge", netns, ifname, mac, |attributes| {
            let bridge = attributes.nested_linkinfo().nested_data_bridge();
            drop(bridge.push_stp_state(0).push_forward_delay(0).push_mcast_snooping(0));
        })?;
        for port in ports {
            let header = Ifinfomsg { ifi_index: build.ifindex(netns, port)?, ..Default::default() };
            let mut request = rt_link::Request::new().op_setlink_do(&header);
            request.encode().push_master(index.cast_unsigned());
            let context = format_args!("adding {port} to bridge {ifname} in {netns}");
            build.batch(netns)?.add(&request, context);
        }
    }
    Ok(())
}

/// Create the ifbs that carry token buckets.
pub fn add_ifbs(build: &mut Build, ifbs: &'static [Ifb]) -> Result<()> {
    for Ifb { netns, ifname, mac } in ifbs {
        add_device(build, "ifb", netns, ifname, mac, |attributes| {
            drop(attributes.nested_linkinfo().push_kind(c"ifb"));
        })?;
    }
    Ok(())
}

/// Create a device that is up, with the attributes that `fill` adds, and return its number.
fn add_device(
    build: &mut Build,
    kind: &str,
    netns: &'static str,
    ifname: &'static str,
    mac: &str,
    fill: impl FnOnce(PushLinkAttrs<&mut Vec<u8>>),
) -> Result<i32> {
    let mac = parse_mac(mac).attempt(|| format!("{kind} {ifname} in {netns}"))?;
    let index = build.namespace(netns)?.number(ifname)?;
    let header = Ifinfomsg { ifi_index: index, ifi_flags: UP, ifi_change: UP, ..Default::default() };
    let mut request = rt_link::Request::new().set_create().set_excl().op_newlink_do(&header);
    fill(request.encode().push_ifname_bytes(ifname.as_bytes()).push_address(&mac));
    build.batch(netns)?.add(&request, format_args!("adding {kind} {ifname} in {netns}"));
    Ok(index)
}

/// Add the addresses of all ends of veth pairs and links.
pub fn add_addresses(build: &mut Build, ends: impl Iterator<Item = &'static VethEnd>) -> Result<()> {
    for end in ends {
        add_addresses_to(build, &end.netns, &end.ifname, &end.addresses)?;
    }
    Ok(())
}

/// Add the addresses of an interface. IPv6 addresses skip duplicate address detection.
fn add_addresses_to(build: &mut Build, netns: &str, ifname: &str, addresses: &[String]) -> Result<()> {
    let index = build.ifindex(netns, ifname)?.cast_unsigned();
    for text in addresses {
        let context = format!("adding address {text} to {ifname} in {netns}");
        let (address, length) = parse_prefix(text).attempt(|| &context)?;
        let header = Ifaddrmsg {
            ifa_family: address_family(address),
            ifa_prefixlen: length,
            ifa_index: index,
            ..Default::default()
        };
        let mut request = rt_addr::Request::new().set_create().set_excl().op_newaddr_do(&header);
        let attributes = request.encode().push_local(address).push_address(address);
        if address.is_ipv6() {
            attributes.push_flags(libc::IFA_F_NODAD);
        } else {
            drop(attributes);
        }
        build.batch(netns)?.add(&request, context);
    }
    Ok(())
}
