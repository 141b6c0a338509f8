//! The rows of flows, messages and events.

use rustix::net::sockopt;

use super::ends::End;
use super::output::Tables;
use crate::error::Result;
use crate::plan::{Application, SideName, Transport};
use crate::tables;
use crate::traffic::{FlowState, Traffic};

/// Write a row for each flow and message, and all events.
pub(super) fn write_flows(traffic: &Traffic, tables: &mut Tables, ends: &[Option<End>]) -> Result<()> {
    write_events(traffic, tables, None)?;
    for (flow, end) in traffic.flows.iter().zip(ends) {
        let row = flow_row(flow, *end, tables);
        tables.flows.push(row)?;
        if let Some(messages) = &mut tables.messages {
            for row in flow.messages().rows(flow.plan, flow.plan.transport == Transport::Udp) {
                messages.push(row)?;
            }
        }
    }
    match &mut tables.programs {
        Some(program_tables) => program_tables.write_flows(&mut tables.flows),
        None => Ok(()),
    }
}

fn flow_row(flow: &FlowState, end: Option<End>, tables: &Tables) -> tables::Flow {
    let plan = flow.plan;
    let progress = flow.progress();
    let sender = match plan.sender {
        SideName::Client => &progress.client,
        SideName::Server => &progress.server,
    };
    let congestion_control = sender.as_ref().and_then(|socket| sockopt::tcp_congestion(&**socket).ok());
    let fallback = [SideName::Client, SideName::Server]
        .into_iter()
        .filter_map(|side| tables.samples.side(flow.carrier(), side).fallback)
        .reduce(|client, server| client || server);
    tables::Flow {
        flow: Some(plan.id),
        name: Some(plan.name.as_str().into()),
        kind: Some(plan.application.name().into()),
        transport: Some(plan.transport.name().into()),
        congestion_control: congestion_control.map(Into::into),
        start_us: progress.start_us,
        connected_us: progress.connected_us,
        first_byte_us: progress.first_byte_us,
        end_us: end.map(|end| end.t_us),
        sent_bytes: progress.sent_bytes.and_then(|bytes| i64::try_from(bytes).ok()),
        received_bytes: match plan.application {
            Application::Bulk(_) => end.and_then(|end| end.received_bytes),
            _ => progress.received_bytes.and_then(|bytes| i64::try_from(bytes).ok()),
        },
        completed: Some(end.is_some_and(|end| end.completed)),
        fallback: fallback.filter(|_| plan.transport == Transport::Mptcp),
        sent_sha256: progress.sent_sha256.clone().map(Into::into),
        received_sha256: progress.received_sha256.clone().map(Into::into),
        error: progress.error.clone().map(Into::into),
    }
}

/// Move events to their table, in order of time, each with the flow of its token.
///
/// With `before_us`, later events wait, because their connection may not be known yet.
pub(super) fn write_events(traffic: &Traffic, tables: &mut Tables, before_us: Option<i64>) -> Result<()> {
    let mut events = traffic.take_events();
    events.sort_by_key(|event| event.t_us);
    let settled = events.partition_point(|event| before_us.is_none_or(|us| event.t_us < Some(us)));
    for event in events.split_off(settled) {
        traffic.push_event(event);
    }
    for mut event in events {
        event.flow = event.flow.or_else(|| flow_of(&event, traffic, tables));
        tables.events.push(event)?;
    }
    Ok(())
}

/// Return the flow of the connection with the event's token.
fn flow_of(event: &tables::Event, traffic: &Traffic, tables: &Tables) -> Option<i64> {
    let token = event.token?;
    let node = event.node.as_deref()?;
    let mut flows = traffic.flows.iter().enumerate();
    let planned = flows.find(|(index, flow)| {
        [(SideName::Client, &flow.plan.client), (SideName::Server, &flow.plan.server)].into_iter().any(
            |(side, place)| {
                place.netns == node && tables.samples.side(*index, side).token.map(i64::from) == Some(token)
            },
        )
    });
    let foreign = || tables.programs.as_ref()?.flow_of(node, u32::try_from(token).ok()?);
    planned.map(|(_, flow)| flow.plan.id).or_else(foreign)
}
