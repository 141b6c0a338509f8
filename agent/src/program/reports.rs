//! What the program of a prototype flow reports: one JSON object per line, which the agent checks
//! and turns into the flow's progress and rows of the tables.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

use crate::plan::{Flow, SideName};
use crate::tables::{self, Connection, Subflow};
use crate::traffic::{FlowState, Traffic, fail};

/// Limits on what one program reports.
const LINE_BYTES: u64 = 4096;
const LINES: usize = 4_000_000;

/// A line of a report.
#[derive(Debug, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case", deny_unknown_fields)]
enum Report {
    Started {
        t_us: i64,
    },
    Connected {
        t_us: i64,
    },
    FirstByte {
        t_us: i64,
    },
    Joined {
        t_us: i64,
        path: usize,
        local_port: u16,
    },
    Message {
        sent_us: Option<i64>,
        received_us: Option<i64>,
    },
    /// A sample of one side of a path.
    Path {
        t_us: i64,
        side: SideName,
        path: usize,
        local_port: u16,
        row: Box<Subflow>,
    },
    /// A sample of one side of the connection.
    Side {
        t_us: i64,
        side: SideName,
        row: Box<Connection>,
    },
    Ended {
        t_us: i64,
        #[serde(default)]
        sent_bytes: Option<u64>,
        #[serde(default)]
        received_bytes: Option<u64>,
        completed: bool,
    },
}

/// Read the reports of the flow's program until it closes its output.
pub fn follow(traffic: &Traffic, flow: &FlowState, output: impl Read) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    for _ in 0..LINES {
        line.clear();
        match reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return fail(traffic, flow, format!("reading what the prototype reports: {error}")),
        }
        let done = serde_json::from_slice(&line)
            .map_err(|error| error.to_string())
            .and_then(|report| take(traffic, flow, report));
        if let Err(why) = done {
            let text: String = String::from_utf8_lossy(&line).chars().take(100).collect();
            let why = format!("the prototype printed {text:?}, which is no report ({why}); print to stderr");
            return fail(traffic, flow, why);
        }
    }
    fail(traffic, flow, format!("the prototype reported more than {LINES} lines"));
}

/// Let a flow fail whose program has ended before it reported the flow's end.
pub fn end(traffic: &Traffic, flow: &FlowState) {
    let ended = flow.progress().stream_ended;
    if !ended {
        fail(traffic, flow, "the prototype ended before its flow".to_owned());
    }
}

fn take(traffic: &Traffic, flow: &FlowState, report: Report) -> std::result::Result<(), String> {
    match report {
        Report::Started { t_us } => {
            flow.progress().start_us = Some(t_us);
            traffic.event(t_us, flow, "flow_start");
        }
        Report::Connected { t_us } => {
            flow.progress().connected_us = Some(t_us);
            traffic.event(t_us, flow, "flow_connected");
        }
        Report::FirstByte { t_us } => flow.progress().first_byte_us = Some(t_us),
        Report::Joined { t_us, path, local_port } => {
            let (local, remote) = ends(flow.plan, path, local_port).ok_or("there is no such path")?;
            traffic.events.push(tables::Event {
                flow: Some(flow.plan.id),
                local_address: Some(local.ip().to_string().into()),
                local_port: Some(i64::from(local.port())),
                remote_address: Some(remote.ip().to_string().into()),
                remote_port: Some(i64::from(remote.port())),
                backup: flow.plan.paths.get(path).map(|path| path.backup),
                ..tables::Event::at(t_us, &flow.plan.client.netns, "sub_established")
            });
        }
        Report::Message { sent_us, received_us } => {
            let mut messages = flow.messages();
            messages.add(sent_us, received_us, message_bytes(flow.plan))?;
        }
        Report::Path { t_us, side, path, local_port, row } => {
            let (client, server) = ends(flow.plan, path, local_port).ok_or("there is no such path")?;
            let (local, remote) = if side == SideName::Client { (client, server) } else { (server, client) };
            let number = row.subflow.and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
            let row = row.with_ends(number, local, remote).sampled(t_us, flow.plan.id, side);
            traffic.reported_subflows.push(row);
        }
        Report::Side { t_us, side, row } => {
            traffic.reported_connections.push(row.sampled(t_us, flow.plan.id, side));
        }
        Report::Ended { t_us, sent_bytes, received_bytes, completed } => {
            if !completed {
                return Err("the flow did not complete".to_owned());
            }
            {
                let mut progress = flow.progress();
                progress.sent_bytes = sent_bytes;
                progress.received_bytes = received_bytes;
                progress.last_byte_us = Some(t_us);
                progress.stream_ended = true;
            }
            traffic.bell.ring();
        }
    }
    Ok(())
}

fn message_bytes(flow: &Flow) -> u64 {
    match &flow.application {
        crate::plan::Application::Prototype(job) => job.message_bytes.unwrap_or_default(),
        _ => 0,
    }
}

/// Return the two ends of a path, the client's first.
fn ends(flow: &Flow, path: usize, local_port: u16) -> Option<(SocketAddr, SocketAddr)> {
    let path = flow.paths.get(path)?;
    let address = |text: &str| text.parse::<IpAddr>().ok();
    let local = SocketAddr::new(address(&path.client_address)?, local_port);
    Some((local, SocketAddr::new(address(&path.server_address)?, flow.server.port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_no_unknown_fields() {
        let parse = |text: &str| serde_json::from_str::<Report>(text).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(parse(r#"{"report": "started", "t_us": 5}"#), Ok(()));
        assert!(parse(r#"{"report": "started", "t_us": 5, "x": 1}"#).is_err());
        assert!(parse(r#"{"report": "path", "t_us": 5, "side": "client"}"#).is_err());
        let side =
            |row| parse(&format!(r#"{{"report": "side", "t_us": 5, "side": "client", "row": {row}}}"#));
        assert_eq!(side(r#"{"subflows": 2, "acked_bytes": null}"#), Ok(()));
        assert!(side(r#"{"subflow": 2}"#).is_err());
        assert!(parse("hello").is_err());
    }
}
