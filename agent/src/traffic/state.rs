//! What the threads of all flows share with the main thread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::flow::FlowState;
use super::priority::Priorities;
use crate::clock::{Bell, Latch};
use crate::netlink::closed::Closed;
use crate::plan::Transport;
use crate::tables;

/// What the threads of all flows share with the main thread.
pub struct Traffic {
    /// Rung when a flow may have ended.
    pub bell: Bell,
    /// One for each flow, in the order of the plan.
    pub flows: Vec<FlowState>,
    /// What happened, from all threads, nearly in order.
    pub events: Mutex<Vec<tables::Event>>,
    /// What path-manager events have told about the priority of subflows.
    pub priorities: Mutex<Priorities>,
    /// Sockets that the kernel has freed, not yet sampled.
    pub closed: Mutex<Vec<Closed>>,
    /// MPTCP connections that have begun in nodes where programs run, not yet looked at.
    pub begun: Mutex<Vec<Begun>>,
    /// By the programs' names: set when they are ready, or have ended where nothing tells that they are.
    pub programs: BTreeMap<&'static str, Latch>,
    /// Where programs run.
    pub(super) program_nodes: BTreeSet<&'static str>,
}

impl Traffic {
    /// The flow of that number.
    pub fn flow(&self, id: i64) -> &FlowState {
        &self.flows[usize::try_from(id).unwrap_or_default()]
    }

    /// The places of the flows that share the connection of `flow`.
    pub fn riders(&self, flow: &FlowState) -> Vec<usize> {
        let shares = |other: &FlowState| other.plan.connection == Some(flow.plan.id);
        (0..self.flows.len()).filter(|place| shares(&self.flows[*place])).collect()
    }

    /// Adds an event of the agent's own.
    pub fn event(&self, t_us: i64, flow: &FlowState, event: &'static str) {
        self.push_event(tables::Event {
            t_us: Some(t_us),
            node: Some(flow.plan.client.netns.as_str().into()),
            event: Some(event.into()),
            flow: Some(flow.plan.id),
            ..Default::default()
        });
    }

    /// Adds an event.
    pub fn push_event(&self, event: tables::Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Locks what is known of the priority of subflows.
    pub fn priorities(&self) -> MutexGuard<'_, Priorities> {
        self.priorities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a socket that the kernel has freed.
    pub fn push_closed(&self, closed: Closed) {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).push(closed);
    }

    /// Takes the sockets that were freed so far.
    pub fn take_closed(&self) -> Vec<Closed> {
        std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for programs; returns when the last of them was ready. None: there are none to wait for.
    pub fn wait_for_programs(&self, names: &[String]) -> Option<i64> {
        names.iter().filter_map(|name| self.programs.get(name.as_str())).map(Latch::wait).max()
    }

    /// A program is ready, or has ended.
    pub fn program_is_ready(&self, name: &str, t_us: i64) {
        if let Some(latch) = self.programs.get(name) {
            latch.set(t_us);
        }
    }

    /// Whether programs run in namespace `netns`.
    pub fn has_programs(&self, netns: &str) -> bool {
        self.program_nodes.contains(netns)
    }

    /// Takes the MPTCP connections that have begun since.
    pub fn take_begun(&self) -> Vec<Begun> {
        std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether an MPTCP flow begins or ends in namespace `netns`.
    pub fn has_mptcp(&self, netns: &str) -> bool {
        let mut flows = self.flows.iter().map(|flow| flow.plan);
        flows.any(|flow| {
            flow.transport == Transport::Mptcp
                && [&flow.client, &flow.server].iter().any(|side| side.netns == netns)
        })
    }

    /// Takes the events so far.
    pub fn take_events(&self) -> Vec<tables::Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An MPTCP connection that has begun, as one end of it tells.
#[derive(Debug)]
pub struct Begun {
    /// When.
    pub t_us: i64,
    /// Its namespace.
    pub node: &'static str,
    /// Its token there.
    pub token: u32,
    /// The two ends of the subflow that it is told with.
    pub ends: (SocketAddr, SocketAddr),
    /// That is the initial subflow.
    pub initial: bool,
}
