//! The MPTCP path manager: limits and endpoints.

use std::net::IpAddr;

use netlink_bindings::mptcp_pm;

use super::{Build, address_family};
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Batch, GenericFamily};
use crate::plan::{Endpoint, EndpointFlag, Mptcp};

const FAMILY: &str = "mptcp_pm";

/// Sets limits and endpoints, and finds the numbers of the path manager. None: there is no host.
pub fn configure(build: &mut Build, planned: &'static [Mptcp]) -> Result<Option<GenericFamily>> {
    let Some(first) = build.namespaces.iter_mut().find_map(|namespace| namespace.generic.as_mut()) else {
        return match planned.first() {
            None => Ok(None),
            Some(mptcp) => Err(Error::new(format!("MPTCP settings for {}, which is no host", mptcp.netns))),
        };
    };
    let family = GenericFamily::resolve(first, FAMILY)?;
    for mptcp in planned {
        let batch = batch(build, mptcp, family.id)?;
        let netns = &mptcp.netns;
        let socket = build.namespace(netns)?.generic.as_mut();
        let socket =
            socket.ok_or_else(|| Error::new(format!("MPTCP settings for {netns}, which is no host")))?;
        socket.apply(batch)?;
    }
    Ok(Some(family))
}

fn batch(build: &Build, mptcp: &Mptcp, family: u16) -> Result<Batch> {
    let netns = &mptcp.netns;
    let mut batch = Batch::default();
    let mut limits = mptcp_pm::Request::new().op_set_limits_do();
    limits.encode().push_rcv_add_addrs(mptcp.add_addr_accepted).push_subflows(mptcp.subflows);
    batch.add_as(
        &limits,
        family,
        format_args!(
            "setting MPTCP limits of {netns} to {} subflows, {} accepted addresses",
            mptcp.subflows, mptcp.add_addr_accepted
        ),
    );
    for endpoint in &mptcp.endpoints {
        let Endpoint { address, id, .. } = endpoint;
        let what = format!("adding MPTCP endpoint {id} ({address}) in {netns}");
        let mut request = mptcp_pm::Request::new().op_add_addr_do();
        let mut attributes = request
            .encode()
            .nested_addr()
            .push_family(u16::from(address_family(*address)))
            .push_id(*id)
            .push_flags(endpoint.flags.iter().fold(0, |flags, flag| flags | bit(*flag)));
        if let Some(device) = &endpoint.device {
            attributes = attributes.push_if_idx(build.ifindex(netns, device).attempt(|| &what)?);
        }
        attributes = match address {
            IpAddr::V4(v4) => attributes.push_addr4(v4.to_bits()),
            IpAddr::V6(v6) => attributes.push_addr6(&v6.octets()),
        };
        if let Some(port) = endpoint.port {
            attributes = attributes.push_port(port);
        }
        drop(attributes);
        batch.add_as(&request, family, what);
    }
    Ok(batch)
}

/// `MPTCP_PM_ADDR_FLAG_*` of `linux/mptcp.h`.
fn bit(flag: EndpointFlag) -> u32 {
    match flag {
        EndpointFlag::Signal => 1,
        EndpointFlag::Subflow => 2,
        EndpointFlag::Backup => 4,
        EndpointFlag::Fullmesh => 8,
    }
}
