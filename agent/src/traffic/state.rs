//! What the threads of all flows share with the main thread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::flow::FlowState;
use super::priority::Priorities;
use crate::clock::{Bell, Latch};
use crate::netlink::closed::Closed;
use crate::plan::Transport;
use crate::shared::Shared;
use crate::tables;

/// What the threads of all flows share with the main thread.
pub struct Traffic {
    /// Rings when a flow may have ended.
    pub bell: Bell,
    /// The flows, in the order of the plan.
    pub flows: Vec<FlowState>,
    /// Events of all threads, nearly in order of time.
    pub events: Shared<Vec<tables::Event>>,
    /// Subflow priorities that path-manager events reported.
    pub priorities: Shared<Priorities>,
    /// Closed sockets that the main thread has not sampled yet.
    pub closed: Shared<Vec<Closed>>,
    /// New MPTCP connections of nodes with programs, which the main thread has not read yet.
    pub begun: Shared<Vec<Begun>>,
    /// Samples that prototypes reported, which the main thread has not written yet.
    pub reported_subflows: Shared<Vec<tables::Subflow>>,
    pub reported_connections: Shared<Vec<tables::Connection>>,
    /// By program name: set when the program is ready, or when it has ended if the plan defines no
    /// readiness.
    pub programs: BTreeMap<&'static str, Latch>,
    /// What both sides of a flow between machines know, and nobody else: the seed of the plan.
    pub(super) secret: u64,
    /// The nodes in which programs run.
    pub(super) program_nodes: BTreeSet<&'static str>,
}

impl Traffic {
    /// Return the flow with this number.
    pub fn flow(&self, id: i64) -> &FlowState {
        &self.flows[usize::try_from(id).unwrap_or_default()]
    }

    /// Return the indices of the flows that share the connection of `flow`.
    pub fn riders(&self, flow: &FlowState) -> Vec<usize> {
        let shares = |other: &FlowState| other.plan.connection == Some(flow.plan.id);
        (0..self.flows.len()).filter(|place| shares(&self.flows[*place])).collect()
    }

    /// Record an event of the agent.
    pub fn event(&self, t_us: i64, flow: &FlowState, event: &'static str) {
        let event = tables::Event::at(t_us, &flow.plan.client.netns, event);
        self.events.push(tables::Event { flow: Some(flow.plan.id), ..event });
    }

    /// Wait for programs, and return when the last of them was ready, in µs of the trial. None:
    /// `names` is empty.
    pub fn wait_for_programs(&self, names: &[String]) -> Option<i64> {
        names.iter().filter_map(|name| self.programs.get(name.as_str())).map(Latch::wait).max()
    }

    /// Record that a program is ready or has ended.
    pub fn program_is_ready(&self, name: &str, t_us: i64) {
        if let Some(latch) = self.programs.get(name) {
            latch.set(t_us);
        }
    }

    /// Whether programs run in namespace `netns`.
    pub fn has_programs(&self, netns: &str) -> bool {
        self.program_nodes.contains(netns)
    }

    /// Whether an MPTCP flow has an end in namespace `netns`.
    pub fn has_mptcp(&self, netns: &str) -> bool {
        let mut flows = self.flows.iter().map(|flow| flow.plan);
        flows.any(|flow| {
            flow.transport == Transport::Mptcp
                && [&flow.client, &flow.server].iter().any(|side| side.netns == netns)
        })
    }
}

/// A new MPTCP connection or subflow, as one end reports it.
#[derive(Debug)]
pub struct Begun {
    /// When the event arrived.
    pub t_us: i64,
    /// The namespace of the reporting end.
    pub node: &'static str,
    /// The token at that end.
    pub token: u32,
    /// The two ends of the subflow.
    pub ends: (SocketAddr, SocketAddr),
    /// Whether this is the initial subflow.
    pub initial: bool,
}
