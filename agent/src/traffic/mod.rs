//! The applications: one thread for each side of a flow, asleep in the kernel while data move.
//!
//! A return to user space costs some 50 us of wall time in the guest, so senders hand the kernel hundreds of
//! megabytes at once and receivers ask for a gigabyte at once: a flow of ten seconds is a handful of system calls.

mod application;
mod bytes;
mod draw;
mod file;
mod messages;
mod paced;
mod priority;
mod request;
mod sockets;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

pub use file::path as input_path;
pub use messages::Messages;
pub use priority::Priorities;
pub use sockets::{Prepared, prepare};

use sockets::Sockets;

use crate::clock::{self, Bell, Latch};
use crate::error::{Attempt, Result};
use crate::plan::{Application, Flow, Program, SideName, Transport};
use crate::sample::closed::Closed;
use crate::tables;

/// Flow threads need little stack.
const STACK_BYTES: usize = 128 * 1024;

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
    program_nodes: BTreeSet<&'static str>,
}

/// A flow of the plan and what has become of it so far.
pub struct FlowState {
    /// What it shall do.
    pub plan: &'static Flow,
    progress: Mutex<Progress>,
    messages: Mutex<Messages>,
    /// Set when the flow has ended, for those that follow it.
    pub ended: Latch,
    /// What the connections of a page share; of its first one.
    pub loading: request::Loading,
}

/// What has become of a flow so far.
#[derive(Debug, Default)]
pub struct Progress {
    /// The client's socket once `connect` has returned, the server's once `accept` has.
    pub client: Option<Arc<OwnedFd>>,
    /// See `client`.
    pub server: Option<Arc<OwnedFd>>,
    /// When the flow was to start: its own time, or so long after the end of those before it.
    pub begin_us: Option<i64>,
    /// When `connect` was called.
    pub start_us: Option<i64>,
    /// When `connect` returned.
    pub connected_us: Option<i64>,
    /// When the receiver had its first byte.
    pub first_byte_us: Option<i64>,
    /// When the receiver had the last byte, of what has an end of its own.
    pub last_byte_us: Option<i64>,
    /// Application bytes handed to the sender's socket. None: its thread is still at it.
    pub sent_bytes: Option<u64>,
    /// Application bytes that the receiver has read. None: its thread is still at it.
    pub received_bytes: Option<u64>,
    /// The receiver saw the end of the stream.
    pub stream_ended: bool,
    /// SHA-256 of what was sent and of what was received; transfers of a file only.
    pub sent_sha256: Option<String>,
    /// See `sent_sha256`.
    pub received_sha256: Option<String>,
    /// The first thing that failed.
    pub error: Option<String>,
    /// When it failed.
    pub failed_us: Option<i64>,
    /// The main thread has ended the flow: what calls return from now on is no failure.
    pub stopped: bool,
}

impl FlowState {
    fn new(plan: &'static Flow) -> Self {
        Self {
            plan,
            progress: Mutex::default(),
            messages: Mutex::default(),
            ended: Latch::default(),
            loading: request::Loading::default(),
        }
    }

    /// What has become of the flow so far, locked.
    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages of the flow so far, locked.
    pub fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the receiver has its first byte now.
    pub fn first_byte(&self) {
        let now_us = clock::trial_us();
        self.progress().first_byte_us = Some(now_us);
    }

    /// Tells those that follow that the flow has ended.
    pub fn end_at(&self, t_us: i64) {
        if matches!(self.plan.application, Application::Page(_)) && self.loading.document.set(t_us) {
            // The document has not arrived: nothing else of the page is asked for.
            self.loading.give_up();
        }
        self.ended.set(t_us);
    }

    /// Where its connection is sampled: at the flow whose connection it shares, or at itself.
    pub fn carrier(&self) -> usize {
        usize::try_from(self.plan.connection.unwrap_or(self.plan.id)).unwrap_or_default()
    }

    /// The client's or the server's socket, when it is connected.
    pub fn socket(&self, side: SideName) -> Option<Arc<OwnedFd>> {
        let progress = self.progress();
        match side {
            SideName::Client => progress.client.clone(),
            SideName::Server => progress.server.clone(),
        }
    }

    /// The side that receives the application's data.
    pub fn receiver(&self) -> SideName {
        match self.plan.sender {
            SideName::Client => SideName::Server,
            SideName::Server => SideName::Client,
        }
    }
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

/// Starts the threads of every flow; each client sleeps until its start.
pub fn start(prepared: Vec<Prepared>, programs: &'static [Program]) -> Result<Arc<Traffic>> {
    let flows = prepared.iter().map(|p| FlowState::new(p.flow)).collect();
    let traffic = Arc::new(Traffic {
        bell: Bell::default(),
        flows,
        events: Mutex::default(),
        priorities: Mutex::default(),
        closed: Mutex::default(),
        begun: Mutex::default(),
        programs: programs.iter().map(|program| (program.name.as_str(), Latch::default())).collect(),
        program_nodes: programs.iter().map(|program| program.netns.as_str()).collect(),
    });
    for (index, Prepared { sockets, .. }) in prepared.into_iter().enumerate() {
        let (one, other) = (Arc::clone(&traffic), Arc::clone(&traffic));
        match sockets {
            Sockets::Connection { listener, client } => {
                spawn(move || application::serve(&one, &one.flows[index], &listener))?;
                spawn(move || application::connect(&other, &other.flows[index], client))?;
            }
            Sockets::Datagrams { receiver, sender } => {
                spawn(move || application::receive_datagrams(&one, &one.flows[index], receiver))?;
                spawn(move || application::send_datagrams(&other, &other.flows[index], sender))?;
            }
            Sockets::Shared => {}
        }
    }
    Ok(traffic)
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    // Nobody joins: threads end by themselves, or with the machine.
    thread::Builder::new().stack_size(STACK_BYTES).spawn(body).attempt(|| "starting a thread")?;
    Ok(())
}
