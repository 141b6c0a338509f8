//! Path-manager events, such as a received `ADD_ADDR`, from the kernel's message to the row in the
//! table; and closed subflows. One thread waits for those of all hosts and records the time of each.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;

use netlink_bindings::mptcp_pm::{EventAttr, EventType, IterableEventAttr};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::apply::{Applied, enter, kernel_address};
use crate::clock;
use crate::error::{Attempt, Result};
use crate::join::Joiner;
use crate::netlink::Socket;
use crate::netlink::closed::{self, Closed};
use crate::plan::SideName;
use crate::process;
use crate::sample::flows::Sampler;
use crate::sample::programs::ProgramTables;
use crate::status;
use crate::tables::{Event, Table};
use crate::traffic::{Begun, Traffic};

const GROUP: &str = "mptcp_pm_events";
/// `struct genlmsghdr`: command, version, reserved.
const GENERIC_HEADER_BYTES: usize = 4;

/// Subscribe to the path-manager events of every host, and start the thread that reads them. By
/// then all sockets listen, so the setup of the trial causes no events.
pub fn watch(network: &mut Applied, traffic: &Arc<Traffic>) -> Result<()> {
    let Some(family) = network.path_manager.take() else { return Ok(()) };
    let context = || "subscribing to path-manager events";
    let group = family.group(GROUP)?;
    let mut joiner = Joiner::new(traffic, network, family.id)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).attempt(context)?;
    let mut nodes: Vec<(&'static str, Socket)> = Vec::new();
    let mut add = |node: &'static str, socket: Socket| {
        let data = epoll::EventData::new_u64(nodes.len() as u64);
        epoll::add(&epoll, socket.fd(), data, epoll::EventFlags::IN).attempt(context)?;
        nodes.push((node, socket));
        Ok(())
    };
    for namespace in &mut network.namespaces {
        let Some(socket) = namespace.generic.take() else { continue };
        match socket.join(group) {
            Err(Errno::PERM | Errno::ACCESS) if process::node().is_some() => {
                status::console("the kernel reports MPTCP events only to root: the tables have none");
                continue;
            }
            other => other.attempt(context)?,
        }
        add(namespace.name, socket)?;
        if traffic.has_mptcp(namespace.name) || traffic.has_programs(namespace.name) {
            enter(&namespace.fd)?;
            add(namespace.name, closed::listen().attempt(context)?)?;
        }
    }
    enter(&network.home)?;
    let traffic = Arc::clone(traffic);
    let body = move || {
        let mut ready = Vec::with_capacity(64);
        loop {
            if epoll::wait(&epoll, spare_capacity(&mut ready), None).is_err() {
                continue; // interrupted
            }
            for event in ready.drain(..) {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                if let Some((node, socket)) = nodes.get_mut(index) {
                    read(node, socket, family.id, &traffic, &mut joiner);
                }
            }
        }
    };
    thread::Builder::new().spawn(body).attempt(context)?;
    Ok(())
}

/// Read all messages of one namespace. The agent reports on the console if the kernel had to drop
/// events.
fn read(node: &'static str, socket: &mut Socket, family: u16, traffic: &Traffic, joiner: &mut Joiner) {
    let t_us = clock::trial_us();
    loop {
        let more = socket.receive_events(|kind, payload| {
            if kind == family
                && let Some((event, ends)) = decode(payload)
            {
                let established = event.event.as_deref() == Some("established");
                let connection = ends.filter(|_| established).zip(event.token);
                if let (Some((local, remote)), Some(backup)) = (ends, event.backup) {
                    traffic.priorities.lock().record(local, remote, backup);
                }
                record_begun(t_us, node, &event, ends, traffic);
                traffic.events.push(Event { t_us: Some(t_us), node: Some(node.into()), ..event });
                if let Some(((_, server), token)) = connection {
                    joiner.established(node, token, server, t_us, traffic);
                }
            } else if let Some((ends, info)) = closed::decode(kind, payload) {
                traffic.closed.push(Closed { t_us, node, ends, info });
            }
        });
        match more {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return crate::status::console(&format!("{node}: {error}")),
        }
    }
}

/// Record a new connection or subflow in a node with programs: only these events show which sockets
/// belong to which connection.
fn record_begun(
    t_us: i64,
    node: &'static str,
    event: &Event,
    ends: Option<(SocketAddr, SocketAddr)>,
    traffic: &Traffic,
) {
    let initial = matches!(event.event.as_deref(), Some("created" | "established"));
    let joined = event.event.as_deref() == Some("sub_established");
    if let (true, Some(ends), Some(token)) = (initial || joined, ends, event.token)
        && traffic.has_programs(node)
        && let Ok(token) = u32::try_from(token)
    {
        // For sockets that also listen on IPv6, events have mapped addresses and samples plain
        // ones.
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let begun = Begun { t_us, node, token, ends: (plain(ends.0), plain(ends.1)), initial };
        traffic.begun.push(begun);
    }
}

/// Decode a path-manager event into a row without time, node and flow, and the two ends of its
/// subflow.
fn decode(payload: &[u8]) -> Option<(Event, Option<(SocketAddr, SocketAddr)>)> {
    let command = *payload.first()?;
    let name = name(EventType::from_value(u64::from(command))?)?;
    let attributes = EventAttr::new(payload.get(GENERIC_HEADER_BYTES..)?);
    let local = kernel_address(attributes.get_saddr4().ok(), attributes.get_saddr6().ok());
    let remote = kernel_address(attributes.get_daddr4().ok(), attributes.get_daddr6().ok());
    let end = |address: Option<IpAddr>, port: Option<u16>| Some(SocketAddr::new(address?, port?));
    let ends = end(local, attributes.get_sport().ok()).zip(end(remote, attributes.get_dport().ok()));
    let event = Event {
        event: Some(name.into()),
        token: number(attributes.get_token()),
        local_id: number(attributes.get_loc_id()),
        remote_id: number(attributes.get_rem_id()),
        local_address: local.map(|address| address.to_string().into()),
        local_port: number(attributes.get_sport()),
        remote_address: remote.map(|address| address.to_string().into()),
        remote_port: number(attributes.get_dport()),
        backup: attributes.get_backup().ok().map(|backup| backup != 0),
        error: error(&attributes),
        reset_reason: number(attributes.get_reset_reason()),
        ..Default::default()
    };
    Some((event, ends))
}

fn number<E>(value: std::result::Result<impl Into<i64>, E>) -> Option<i64> {
    value.ok().map(Into::into)
}

/// Return the socket's error. The kernel adds it to every event that can have one; 0 means no error.
fn error(attributes: &IterableEventAttr<'_>) -> Option<i64> {
    attributes.get_error().ok().filter(|error| *error != 0).map(i64::from)
}

/// Return the name of an event in the table.
fn name(kind: EventType) -> Option<&'static str> {
    Some(match kind {
        EventType::Created => "created",
        EventType::Established => "established",
        EventType::Closed => "closed",
        EventType::Announced => "announced", // ADD_ADDR arrived
        EventType::Removed => "removed",
        EventType::SubEstablished => "sub_established",
        EventType::SubClosed => "sub_closed",
        EventType::SubPriority => "sub_priority",
        EventType::ListenerCreated => "listener_created",
        EventType::ListenerClosed => "listener_closed",
        EventType::Unspec => return None,
    })
}

/// Move events to their table, in order of time, each with the flow of its token.
///
/// With `before_us`, later events wait, because their connection may not be known yet.
pub fn write(
    table: &mut Table<Event>,
    traffic: &Traffic,
    flows: &Sampler,
    programs: Option<&ProgramTables>,
    before_us: Option<i64>,
) -> Result<()> {
    let mut events = traffic.events.take();
    events.sort_by_key(|event| event.t_us);
    let settled = events.partition_point(|event| before_us.is_none_or(|us| event.t_us < Some(us)));
    for event in events.split_off(settled) {
        traffic.events.push(event);
    }
    for mut event in events {
        event.flow = event.flow.or_else(|| flow_of(&event, traffic, flows, programs));
        table.push(event)?;
    }
    Ok(())
}

/// Return the flow of the connection with the event's token.
fn flow_of(
    event: &Event,
    traffic: &Traffic,
    flows: &Sampler,
    programs: Option<&ProgramTables>,
) -> Option<i64> {
    let node = event.node.as_deref()?;
    let token = u32::try_from(event.token?).ok()?;
    let mut planned = traffic.flows.iter().map(|flow| flow.plan).enumerate();
    let planned = planned.find(|(index, plan)| {
        let has = |side| plan.side(side).netns == node && flows.side(*index, side).token == Some(token);
        SideName::BOTH.into_iter().any(has)
    });
    planned.map(|(_, plan)| plan.id).or_else(|| programs?.flow_of(node, token))
}
