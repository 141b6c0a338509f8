//! Routes and policy routing rules.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_bindings::rt_route::{self, Rtmsg};
use netlink_bindings::rt_rule::{self, FibRuleHdr};

use super::addresses::{address_family, parse_prefix};
use super::build::Build;
use crate::error::{Attempt, Result};
use crate::netlink::push_attribute;
use crate::plan::{Nexthop, Route, RouteKind, Rule};

/// `RT_TABLE_COMPAT`: an attribute holds the table number, which may exceed one byte.
const TABLE_IN_ATTRIBUTE: u8 = libc::RT_TABLE_COMPAT;
/// `FR_ACT_TO_TBL` of `linux/fib_rules.h`.
const LOOK_UP_TABLE: u8 = 1;
/// The size of `struct rtnexthop`.
const NEXTHOP_BYTES: u16 = 8;

/// Add the routes in the order of the plan.
pub fn add_routes(build: &mut Build, routes: &'static [Route]) -> Result<()> {
    for route in routes {
        let context = route.to_string();
        let (address, length) = destination_prefix(route).attempt(|| &context)?;
        let unreachable = route.kind == RouteKind::Unreachable;
        let direct = route.via.is_none() && route.nexthops.is_empty() && address.is_ipv4() && !unreachable;
        let header = Rtmsg {
            rtm_family: address_family(address),
            rtm_dst_len: length,
            rtm_table: TABLE_IN_ATTRIBUTE,
            rtm_protocol: libc::RTPROT_STATIC,
            rtm_scope: if direct { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE },
            rtm_type: if unreachable { libc::RTN_UNREACHABLE } else { libc::RTN_UNICAST },
            ..Default::default()
        };
        let mut request = rt_route::Request::new().set_create().set_excl().op_newroute_do(&header);
        let mut attributes = request.encode().push_table(route.table);
        if let Some(device) = &route.device {
            let device = build.ifindex(&route.netns, device).attempt(|| &context)?;
            attributes = attributes.push_oif(device.cast_unsigned());
        }
        if length > 0 {
            attributes = attributes.push_dst(address);
        }
        if let Some(via) = route.via {
            attributes = attributes.push_gateway(via);
        }
        if !route.nexthops.is_empty() {
            let ways = multipath(build, route).attempt(|| &context)?;
            attributes = attributes.push_multipath(&ways);
        }
        if let Some(source) = route.source {
            attributes = attributes.push_prefsrc(source);
        }
        if let Some(metric) = route.metric {
            attributes = attributes.push_priority(metric);
        }
        drop(attributes);
        build.batch(&route.netns)?.add(&request, context);
    }
    Ok(())
}

/// `RTA_MULTIPATH`: for each next hop a `struct rtnexthop` of `linux/rtnetlink.h` with equal
/// weight, and its gateway.
fn multipath(build: &Build, route: &Route) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for nexthop in &route.nexthops {
        let device = build.ifindex(&route.netns, &nexthop.device)?;
        let mut gateway = Vec::new();
        match nexthop.via {
            IpAddr::V4(v4) => push_attribute(&mut gateway, libc::RTA_GATEWAY, &v4.octets()),
            IpAddr::V6(v6) => push_attribute(&mut gateway, libc::RTA_GATEWAY, &v6.octets()),
        }
        let length = NEXTHOP_BYTES + u16::try_from(gateway.len()).unwrap_or_default();
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&[0, 0]); // flags; weight, of which the kernel counts from 0
        bytes.extend_from_slice(&device.to_ne_bytes());
        bytes.append(&mut gateway);
    }
    Ok(bytes)
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("adding route ")?;
        if self.kind == RouteKind::Unreachable {
            f.write_str("unreachable ")?;
        }
        f.write_str(&self.destination)?;
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        if let Some(device) = &self.device {
            write!(f, " dev {device}")?;
        }
        for Nexthop { device, via } in &self.nexthops {
            write!(f, " nexthop via {via} dev {device}")?;
        }
        write!(f, " table {} in {}", self.table, self.netns)
    }
}

/// Return the destination's prefix. `default` takes its family from the gateway or the source
/// address, otherwise IPv4.
fn destination_prefix(route: &Route) -> Result<(IpAddr, u8)> {
    if route.destination != "default" {
        return parse_prefix(&route.destination);
    }
    let any = match route.via.or(route.source).or(route.nexthops.first().map(|first| first.via)) {
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    Ok((any, 0))
}

/// Add the policy routing rules in the order of the plan.
pub fn add_rules(build: &mut Build, rules: &'static [Rule]) -> Result<()> {
    for rule in rules {
        let Rule { netns, source, table, priority, destination } = rule;
        let to = destination.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let context = format!("adding rule {priority}: from {source}{to} lookup {table} in {netns}");
        let (address, length) = parse_prefix(source).attempt(|| &context)?;
        let target = destination.as_deref().map(parse_prefix).transpose().attempt(|| &context)?;
        let header = FibRuleHdr {
            family: address_family(address),
            src_len: length,
            dst_len: target.map_or(0, |(_, length)| length),
            table: TABLE_IN_ATTRIBUTE,
            action: LOOK_UP_TABLE,
            ..Default::default()
        };
        let mut request = rt_rule::Request::new().set_create().set_excl().op_newrule_do(&header);
        {
            let attributes = request.encode().push_src(address).push_priority(*priority).push_table(*table);
            if let Some((target, _)) = target {
                attributes.push_dst(target);
            }
        }
        build.batch(netns)?.add(&request, context);
    }
    Ok(())
}
