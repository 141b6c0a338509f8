//! The sockets of the flows. The agent creates them before the trial's zero, each in its namespace
//! with all its options.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with, sockopt,
};

use crate::apply::{Applied, SCHEDULER, enter, write_sysctl};
use crate::error::{Attempt, Error, Result};
use crate::plan::{Action, Flow, Plan, Side, SideName, Transport};
use crate::process;
use crate::shared::Shared;
use crate::sys;

/// A flow with its sockets.
pub struct Prepared {
    pub flow: &'static Flow,
    pub sockets: Sockets,
}

/// The sockets of a flow.
pub enum Sockets {
    /// A listening server, and a client ready to connect. A side that is elsewhere has none.
    Connection { listener: Option<OwnedFd>, client: Option<Client> },
    /// The bound sockets of client and server; that of the client is connected. A side that is elsewhere has none.
    Datagrams([Option<OwnedFd>; 2]),
    /// The flow shares the sockets of another flow.
    Shared,
    /// A program opens its own sockets.
    OfProgram,
}

/// The socket of a client.
pub struct Client {
    socket: OwnedFd,
    /// The client's namespace, if events change its endpoints, limits or sysctls, which the kernel
    /// reads when it creates a socket.
    changing: Option<OwnedFd>,
}

impl Client {
    /// Return the socket for the flow's start. If events change the host, create the socket now, as
    /// a program that starts now would. The calling thread may end in the client's namespace.
    pub fn at_start(self, flow: &Flow) -> Result<OwnedFd> {
        let Some(namespace) = self.changing else { return Ok(self.socket) };
        drop(self.socket);
        enter(&namespace)?;
        bound(flow, &flow.client)
    }
}

/// The kernel reads a socket's scheduler from the namespace's sysctl, so only one thread at a time
/// may create a socket with a scheduler of its own.
static CHOOSING: Shared<()> = Shared::new(());

/// The receive buffer of a UDP receiver unless the plan sets one: more than can arrive at once.
const DATAGRAM_BUFFER_BYTES: usize = 16 << 20;

/// Create the sockets of every flow. The calling thread ends in the namespace in which the agent
/// began.
pub fn prepare(plan: &'static Plan, network: &Applied) -> Result<Vec<Prepared>> {
    let mut prepared = Vec::with_capacity(plan.flows.len());
    let changing: BTreeSet<&str> =
        plan.events.iter().flat_map(|event| &event.actions).filter_map(Action::host).collect();
    for flow in &plan.flows {
        let context = || format!("preparing flow {} ({})", flow.id, flow.name);
        flow.application.job().prepare().attempt(context)?;
        let sockets = match flow.transport {
            _ if flow.connection.is_some() => Sockets::Shared,
            Transport::Prototype => Sockets::OfProgram,
            Transport::Udp => {
                let answered = plan.flows.iter().any(|other| other.connection == Some(flow.id));
                datagrams(flow, network, answered).attempt(context)?
            }
            _ => Sockets::Connection {
                listener: is_here(&flow.server)
                    .then(|| server(flow, network))
                    .transpose()
                    .attempt(context)?,
                client: is_here(&flow.client)
                    .then(|| client(flow, network, &changing))
                    .transpose()
                    .attempt(context)?,
            },
        };
        prepared.push(Prepared { flow, sockets });
    }
    enter(&network.home)?;
    Ok(prepared)
}

fn client(flow: &Flow, network: &Applied, changing: &BTreeSet<&str>) -> Result<Client> {
    let namespace = &network.namespace(&flow.client.netns)?.fd;
    enter(namespace)?;
    let changing = changing.contains(flow.client.netns.as_str());
    let changing = changing.then(|| namespace.try_clone()).transpose();
    Ok(Client {
        socket: bound(flow, &flow.client)?,
        changing: changing.attempt(|| format!("keeping namespace {}", flow.client.netns))?,
    })
}

/// Listen on all addresses of the node, as servers do. MPTCP requires it: the kernel accepts a join
/// to another address only if a socket listens there.
fn server(flow: &Flow, network: &Applied) -> Result<OwnedFd> {
    let side = &flow.server;
    enter(&network.namespace(&side.netns)?.fd)?;
    let socket = socket(flow, side)?;
    let any = match side.address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let any = SocketAddr::new(any, side.port);
    let context = || format!("listening on {any} in {}", side.netns);
    sockopt::set_socket_reuseaddr(&socket, true).attempt(context)?;
    if any.is_ipv6() {
        // IPv4 joins to an IPv6 connection arrive here as well.
        sockopt::set_ipv6_v6only(&socket, false).attempt(context)?;
    }
    bind(&socket, &any).attempt(context)?;
    listen(&socket, 16).attempt(context)?;
    Ok(socket)
}

/// Create the sockets of a UDP flow. If the flow is `answered`, both of them receive.
fn datagrams(flow: &Flow, network: &Applied, answered: bool) -> Result<Sockets> {
    let server = || {
        enter(&network.namespace(&flow.server.netns)?.fd)?;
        let socket = bound(flow, &flow.server)?;
        receiving(&socket, flow, &flow.server)?;
        Ok(socket)
    };
    let client = || {
        enter(&network.namespace(&flow.client.netns)?.fd)?;
        let socket = bound(flow, &flow.client)?;
        if answered || flow.sender == SideName::Server {
            receiving(&socket, flow, &flow.client)?;
        }
        let to = address(&flow.server);
        connect(&socket, &to).attempt(|| format!("connecting to {to} in {}", flow.client.netns))?;
        Ok(socket)
    };
    let server = is_here(&flow.server).then(server).transpose()?;
    Ok(Sockets::Datagrams([is_here(&flow.client).then(client).transpose()?, server]))
}

/// Whether a side of a flow is on this machine.
pub fn is_here(side: &Side) -> bool {
    process::node().is_none_or(|node| node == side.netns)
}

/// Set the receive buffer, and let the kernel time-stamp packets.
fn receiving(socket: &OwnedFd, flow: &Flow, side: &Side) -> Result<()> {
    let bytes = DATAGRAM_BUFFER_BYTES;
    match flow.socket.receive_buffer {
        Some(bytes) => set_buffer(socket, Buffer::Receive, bytes, side)?,
        // An ordinary user gets as much as the machine allows.
        None => sockopt::set_socket_recv_buffer_size_force(socket, bytes)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))
            .attempt(|| format!("setting SO_RCVBUF in {}", side.netns))?,
    }
    sys::stamp_arrivals(socket).attempt(|| format!("enabling time stamps in {}", side.netns))
}

/// Create a socket bound to the address of `side`, in the current namespace, which is that of
/// `side`.
fn bound(flow: &Flow, side: &Side) -> Result<OwnedFd> {
    let socket = socket(flow, side)?;
    bind(&socket, &address(side)).attempt(|| format!("binding to {} in {}", address(side), side.netns))?;
    Ok(socket)
}

/// Create a socket of `side` with the scheduler, the congestion control and the buffers of `flow`.
fn socket(flow: &Flow, side: &Side) -> Result<OwnedFd> {
    let socket = match &flow.socket.scheduler {
        Some(name) => scheduled(name, || open(flow.transport, side))
            .attempt(|| format!("setting scheduler {name} in {}", side.netns))?,
        None => open(flow.transport, side)?,
    };
    if let Some(name) = &flow.socket.congestion_control {
        let context = || format!("setting congestion control {name} in {}", side.netns);
        if flow.transport == Transport::Mptcp {
            // An MPTCP socket accepts any name and falls back to the default later. A TCP socket
            // refuses an unknown name at once.
            sockopt::set_tcp_congestion(&open(Transport::Tcp, side)?, name).attempt(context)?;
        }
        sockopt::set_tcp_congestion(&socket, name).attempt(context)?;
    }
    if let Some(bytes) = flow.socket.send_buffer {
        set_buffer(&socket, Buffer::Send, bytes, side)?;
    }
    if let Some(bytes) = flow.socket.receive_buffer {
        set_buffer(&socket, Buffer::Receive, bytes, side)?;
    }
    set_options(&socket, flow, side)?;
    Ok(socket)
}

/// A buffer of a socket.
#[derive(Clone, Copy)]
enum Buffer {
    Send,
    Receive,
}

/// Set a buffer. Fail if the kernel has reduced it, as it does for ordinary users; it doubles what it
/// sets.
fn set_buffer(socket: &OwnedFd, buffer: Buffer, bytes: u64, side: &Side) -> Result<()> {
    let (name, forced, plain, limit) = match buffer {
        Buffer::Send => ("SO_SNDBUF", libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, "net.core.wmem_max"),
        Buffer::Receive => ("SO_RCVBUF", libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "net.core.rmem_max"),
    };
    let context = || format!("setting {name} to {bytes} in {}", side.netns);
    let wanted = u32::try_from(bytes).attempt(context)?;
    // The first option ignores the limits of the machine.
    sys::set_option(socket, libc::SOL_SOCKET, forced, wanted)
        .or_else(|_| sys::set_option(socket, libc::SOL_SOCKET, plain, wanted))
        .attempt(context)?;
    let set = match buffer {
        Buffer::Send => sockopt::socket_send_buffer_size(socket),
        Buffer::Receive => sockopt::socket_recv_buffer_size(socket),
    };
    let allowed = set.attempt(context)? as u64 / 2;
    if allowed >= bytes {
        return Ok(());
    }
    let why = format!("the kernel allows {allowed} bytes without root; raise {limit}, or run as root");
    Err(Error::because(context(), why))
}

/// Call `make` with `name` as the namespace's scheduler.
fn scheduled<T>(name: &str, make: impl FnOnce() -> Result<T>) -> Result<T> {
    let _alone = CHOOSING.lock();
    let before = std::fs::read_to_string(format!("/proc/sys/{SCHEDULER}"))
        .attempt(|| format!("reading sysctl {SCHEDULER}"))?;
    write_sysctl(SCHEDULER, name)?;
    let socket = make();
    write_sysctl(SCHEDULER, before.trim_end())?;
    socket
}

/// Set the remaining options of a socket.
fn set_options(socket: &OwnedFd, flow: &Flow, side: &Side) -> Result<()> {
    let options = &flow.socket;
    let (traffic_class, level, option) = if side.address.is_ipv4() {
        ("IP_TOS", libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        ("IPV6_TCLASS", libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    let values = [
        ("SO_MARK", libc::SOL_SOCKET, libc::SO_MARK, options.mark),
        (traffic_class, level, option, options.dscp.map(|dscp| u32::from(dscp) << 2)),
        ("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY, options.nodelay.then_some(1)),
        ("TCP_NOTSENT_LOWAT", libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, options.notsent_lowat),
        ("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG, options.mss.map(u32::from)),
    ];
    for (name, level, option, value) in values {
        if let Some(value) = value {
            sys::set_option(socket, level, option, value)
                .attempt(|| format!("setting {name} in {}", side.netns))?;
        }
    }
    Ok(())
}

/// Open a socket in the current namespace, which is that of `side`.
fn open(transport: Transport, side: &Side) -> Result<OwnedFd> {
    let family = if side.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let (kind, protocol) = match transport {
        Transport::Tcp => (SocketType::STREAM, ipproto::TCP),
        Transport::Mptcp => (SocketType::STREAM, ipproto::MPTCP),
        Transport::Udp | Transport::Prototype => (SocketType::DGRAM, ipproto::UDP),
    };
    socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))
        .attempt(|| format!("creating a {} socket in {}", transport.name(), side.netns))
}

/// Return the address of a side.
pub fn address(side: &Side) -> SocketAddr {
    SocketAddr::new(side.address, side.port)
}
