//! The rows of flows and messages.

use rustix::net::sockopt;

use super::ends::End;
use super::output::Tables;
use crate::error::Result;
use crate::plan::{SideName, Transport};
use crate::tables;
use crate::traffic::{FlowState, Traffic};

/// Write a row for each flow and message.
pub(super) fn write_flows(traffic: &Traffic, tables: &mut Tables, ends: &[Option<End>]) -> Result<()> {
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
    let sender = &progress.sockets[plan.sender.place()];
    let job = plan.application.job();
    let of_kernel = || sender.as_ref().and_then(|socket| sockopt::tcp_congestion(&**socket).ok());
    let congestion_control = job.congestion_control().map(str::to_owned).or_else(of_kernel);
    let fallback = SideName::BOTH
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
        received_bytes: if job.is_cut_off() {
            end.and_then(|end| end.received_bytes)
        } else {
            progress.received_bytes.and_then(|bytes| i64::try_from(bytes).ok())
        },
        completed: Some(end.is_some_and(|end| end.completed)),
        fallback: fallback.filter(|_| plan.transport == Transport::Mptcp),
        sent_sha256: progress.sent_sha256.clone().map(Into::into),
        received_sha256: progress.received_sha256.clone().map(Into::into),
        error: progress.error.clone().map(Into::into),
    }
}
