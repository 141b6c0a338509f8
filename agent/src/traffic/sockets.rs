//! The sockets of the flows: made before the trial's zero, each in its own namespace, with all options set.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};

use super::file;
use crate::apply::{Applied, enter};
use crate::error::{Attempt, Result};
use crate::plan::{Flow, Side, Transport};

/// A flow whose server listens and whose client could connect.
pub struct Prepared {
    pub flow: &'static Flow,
    pub listener: OwnedFd,
    pub client: OwnedFd,
}

/// Makes the sockets of every flow. The calling thread ends in the namespace in which the agent began.
pub fn prepare(flows: &'static [Flow], network: &Applied) -> Result<Vec<Prepared>> {
    let mut prepared = Vec::with_capacity(flows.len());
    for flow in flows {
        let what = || format!("preparing flow {} ({})", flow.id, flow.name);
        if let Some(file) = &flow.file {
            file::check(file).attempt(what)?;
        }
        let listener = server(flow, network).attempt(what)?;
        let client = client(flow, network).attempt(what)?;
        prepared.push(Prepared { flow, listener, client });
    }
    enter(&network.home)?;
    Ok(prepared)
}

/// The server listens on every address of its node, as servers do. For MPTCP it has to: the kernel takes a join to
/// a further address only where something listens on it.
fn server(flow: &Flow, network: &Applied) -> Result<OwnedFd> {
    let side = &flow.server;
    let socket = socket(flow, side, network)?;
    let any = match side.address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let any = SocketAddr::new(any, side.port);
    let what = || format!("listening on {any} in {}", side.netns);
    sockopt::set_socket_reuseaddr(&socket, true).attempt(what)?;
    if any.is_ipv6() {
        // Joins over IPv4 to a connection over IPv6 arrive here as well.
        sockopt::set_ipv6_v6only(&socket, false).attempt(what)?;
    }
    bind(&socket, &any).attempt(what)?;
    listen(&socket, 16).attempt(what)?;
    Ok(socket)
}

fn client(flow: &Flow, network: &Applied) -> Result<OwnedFd> {
    let side = &flow.client;
    let socket = socket(flow, side, network)?;
    bind(&socket, &address(side)).attempt(|| format!("binding to {} in {}", address(side), side.netns))?;
    Ok(socket)
}

/// A socket of `side` with the congestion control and the buffers of `flow`.
fn socket(flow: &Flow, side: &Side, network: &Applied) -> Result<OwnedFd> {
    enter(&network.namespace(&side.netns)?.fd)?;
    let socket = open(flow.transport, side)?;
    if let Some(name) = &flow.congestion_control {
        let what = || format!("choosing congestion control {name} in {}", side.netns);
        if flow.transport == Transport::Mptcp {
            // An MPTCP socket takes any name and falls back to the default later; a TCP socket says no at once.
            sockopt::set_tcp_congestion(&open(Transport::Tcp, side)?, name).attempt(what)?;
        }
        sockopt::set_tcp_congestion(&socket, name).attempt(what)?;
    }
    // The forms that ignore the machine's limits: a plan's figure is either what happens or a failure.
    if let Some(bytes) = flow.send_buffer {
        sockopt::set_socket_send_buffer_size_force(&socket, bytes)
            .attempt(|| format!("setting SO_SNDBUF to {bytes} in {}", side.netns))?;
    }
    if let Some(bytes) = flow.receive_buffer {
        sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
            .attempt(|| format!("setting SO_RCVBUF to {bytes} in {}", side.netns))?;
    }
    Ok(socket)
}

/// A socket in the current namespace, which is that of `side`.
fn open(transport: Transport, side: &Side) -> Result<OwnedFd> {
    let family = if side.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let protocol = match transport {
        Transport::Tcp => ipproto::TCP,
        Transport::Mptcp => ipproto::MPTCP,
    };
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(protocol))
        .attempt(|| format!("making a {} socket in {}", transport.name(), side.netns))
}

/// Where a side of a flow is.
pub fn address(side: &Side) -> SocketAddr {
    SocketAddr::new(side.address, side.port)
}
