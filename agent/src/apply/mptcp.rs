//! The MPTCP path manager: limits and endpoints, initially and after each event.

use std::net::IpAddr;

use netlink_bindings::mptcp_pm::{self, OpAddAddrDo, OpSetLimitsDo, PushAddress};
use netlink_bindings::traits::Pusher;

use super::addresses::address_family;
use super::build::Build;
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Batch, GenericFamily};
use crate::plan::{Action, ChangeEndpoint, Endpoint, EndpointFlag, Mptcp, RemoveEndpoint};

const FAMILY: &str = "mptcp_pm";

/// Set limits and endpoints, and resolve the path manager's netlink family. None: the network has
/// no host.
pub fn configure(build: &mut Build, planned: &'static [Mptcp]) -> Result<Option<GenericFamily>> {
    let Some(first) = build.namespaces.iter_mut().find_map(|namespace| namespace.generic.as_mut()) else {
        return match planned.first() {
            None => Ok(None),
            Some(mptcp) => Err(Error::new(format!(
                "the plan has MPTCP settings for {}, which is not a host",
                mptcp.netns
            ))),
        };
    };
    let family = GenericFamily::resolve(first, FAMILY)?;
    for mptcp in planned {
        let batch = batch(build, mptcp, family.id)?;
        let netns = &mptcp.netns;
        let socket = build.namespace(netns)?.generic.as_mut();
        let socket = socket.ok_or_else(|| {
            Error::new(format!("the plan has MPTCP settings for {netns}, which is not a host"))
        })?;
        socket.apply(batch)?;
    }
    Ok(Some(family))
}

fn batch(build: &Build, mptcp: &Mptcp, family: u16) -> Result<Batch> {
    let mut batch = Batch::default();
    set_limits(&mut batch, &mptcp.netns, (mptcp.subflows.into(), mptcp.add_addr_accepted.into()), family);
    for endpoint in &mptcp.endpoints {
        add_endpoint(&mut batch, build, &mptcp.netns, endpoint, family)?;
    }
    Ok(batch)
}

/// Encode what an event does to the path manager; None if it does nothing to it.
pub(super) fn event(build: &Build, action: &Action, family: u16) -> Result<Option<Batch>> {
    let mut batch = Batch::default();
    match action {
        Action::SetLimits(limits) => {
            set_limits(
                &mut batch,
                &limits.netns,
                (limits.subflows.into(), limits.add_addr_accepted.into()),
                family,
            );
        }
        Action::AddEndpoint(add) => add_endpoint(&mut batch, build, &add.netns, &add.endpoint, family)?,
        Action::ChangeEndpoint(change) => {
            let ChangeEndpoint { netns, address, id, backup, fullmesh } = change;
            let mut request = mptcp_pm::Request::new().op_set_flags_do();
            let flags = [(*backup, EndpointFlag::Backup), (*fullmesh, EndpointFlag::Fullmesh)];
            let flags = flags.into_iter().filter(|(on, _)| *on).fold(0, |flags, (_, flag)| flags | bit(flag));
            // Without a family the kernel selects the endpoint by its id and ignores the port.
            drop(request.encode().nested_addr().push_id(*id).push_flags(flags));
            batch.add_as(
                &request,
                family,
                format_args!("changing MPTCP endpoint {id} ({address}) in {netns}"),
            );
        }
        Action::RemoveEndpoint(remove) => {
            let RemoveEndpoint { netns, address, id } = remove;
            let mut request = mptcp_pm::Request::new().op_del_addr_do();
            let attributes = request.encode().nested_addr().push_id(*id);
            drop(if *id == 0 { push_endpoint_address(attributes, *address) } else { attributes });
            batch.add_as(
                &request,
                family,
                format_args!("removing MPTCP endpoint {id} ({address}) in {netns}"),
            );
        }
        Action::ChangeLink(_) | Action::ChangeQdisc(_) | Action::SetDevice(_) | Action::SetSysctl(_) => {
            return Ok(None);
        }
    }
    Ok(Some(batch))
}

fn set_limits(batch: &mut Batch, netns: &str, (subflows, accepted): (u32, u32), family: u16) {
    let context =
        format!("setting MPTCP limits of {netns} to {subflows} subflows, {accepted} accepted addresses");
    batch.add_as(&limits_request(subflows, accepted), family, context);
}

/// Return the request that sets limits.
pub fn limits_request(subflows: u32, accepted: u32) -> OpSetLimitsDo<'static> {
    let mut request = mptcp_pm::Request::new().op_set_limits_do();
    request.encode().push_rcv_add_addrs(accepted).push_subflows(subflows);
    request
}

fn add_endpoint(
    batch: &mut Batch,
    build: &Build,
    netns: &str,
    endpoint: &Endpoint,
    family: u16,
) -> Result<()> {
    let Endpoint { address, id, .. } = endpoint;
    let context = format!("adding MPTCP endpoint {id} ({address}) in {netns}");
    let interface = endpoint.device.as_ref().map(|device| build.ifindex(netns, device));
    let interface = interface.transpose().attempt(|| &context)?;
    let flags = endpoint_flags(&endpoint.flags);
    batch.add_as(&endpoint_request(*id, flags, interface, *address, endpoint.port), family, context);
    Ok(())
}

/// Return the request that adds an endpoint.
pub fn endpoint_request(
    id: u8,
    flags: u32,
    interface: Option<i32>,
    address: IpAddr,
    port: Option<u16>,
) -> OpAddAddrDo<'static> {
    let mut request = mptcp_pm::Request::new().op_add_addr_do();
    let mut attributes = request.encode().nested_addr().push_id(id).push_flags(flags);
    if let Some(interface) = interface {
        attributes = attributes.push_if_idx(interface);
    }
    attributes = push_endpoint_address(attributes, address);
    if let Some(port) = port {
        attributes = attributes.push_port(port);
    }
    drop(attributes);
    request
}

/// Push the family and the address of an endpoint.
pub fn push_endpoint_address<P: Pusher>(attributes: PushAddress<P>, address: IpAddr) -> PushAddress<P> {
    let attributes = attributes.push_family(u16::from(address_family(address)));
    match address {
        IpAddr::V4(v4) => attributes.push_addr4(v4.to_bits()),
        IpAddr::V6(v6) => attributes.push_addr6(&v6.octets()),
    }
}

/// Return the bits of `flags`.
pub fn endpoint_flags(flags: &[EndpointFlag]) -> u32 {
    flags.iter().fold(0, |bits, flag| bits | bit(*flag))
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
