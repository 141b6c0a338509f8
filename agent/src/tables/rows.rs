//! The cells that rows of several places have in common.

use std::net::SocketAddr;

use super::schema::{Connection, Event, Subflow};
use crate::plan::SideName;

impl Event {
    /// Return an event at a node.
    pub fn at(t_us: i64, node: &'static str, event: &'static str) -> Self {
        Self { t_us: Some(t_us), node: Some(node.into()), event: Some(event.into()), ..Self::default() }
    }
}

impl Connection {
    /// Complete the row with the side and the time of its sample.
    pub fn sampled(self, t_us: i64, flow: i64, side: SideName) -> Self {
        Self { t_us: Some(t_us), flow: Some(flow), side: Some(side.name().into()), ..self }
    }
}

impl Subflow {
    /// Complete the row with the side and the time of its sample.
    pub fn sampled(self, t_us: i64, flow: i64, side: SideName) -> Self {
        Self { t_us: Some(t_us), flow: Some(flow), side: Some(side.name().into()), ..self }
    }

    /// Complete the row with its number and its two ends.
    pub fn with_ends(self, number: usize, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            subflow: i64::try_from(number).ok(),
            local_address: Some(local.ip().to_string().into()),
            local_port: Some(i64::from(local.port())),
            remote_address: Some(remote.ip().to_string().into()),
            remote_port: Some(i64::from(remote.port())),
            ..self
        }
    }
}
