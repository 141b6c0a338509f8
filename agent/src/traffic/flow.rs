//! A flow and its state, shared by its threads and the main thread.

use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};

use super::loading::Loading;
use super::messages::Messages;
use crate::clock::{self, Latch};
use crate::plan::{Flow, SideName};
use crate::shared::Shared;

/// A flow of the plan and its state.
pub struct FlowState {
    /// The plan of the flow.
    pub plan: &'static Flow,
    progress: Shared<Progress>,
    messages: Shared<Messages>,
    /// Set when the flow has ended; following flows wait for it.
    pub ended: Latch,
    /// The state that the connections of a page share; only that of its first connection counts.
    pub loading: Loading,
}

/// The state of a flow.
#[derive(Debug, Default)]
pub struct Progress {
    /// The client's socket, after `connect` returned, and the server's, after `accept` returned.
    pub sockets: [Option<Arc<OwnedFd>>; 2],
    /// The planned start: the flow's own time, or a time after the end of the flows that it
    /// follows.
    pub begin_us: Option<i64>,
    /// When `connect` was called.
    pub start_us: Option<i64>,
    /// When `connect` returned.
    pub connected_us: Option<i64>,
    /// When the receiver got its first byte.
    pub first_byte_us: Option<i64>,
    /// When the receiver got the last byte, for flows with a planned end.
    pub last_byte_us: Option<i64>,
    /// Bytes that the application gave to the sender's socket. None: the sender still runs.
    pub sent_bytes: Option<u64>,
    /// Bytes that the receiver read. None: the receiver still runs.
    pub received_bytes: Option<u64>,
    /// The receiver reached the end of the stream.
    pub stream_ended: bool,
    /// SHA-256 of the sent data, for transfers of a file.
    pub sent_sha256: Option<String>,
    /// SHA-256 of the received data, for transfers of a file.
    pub received_sha256: Option<String>,
    /// The first failure.
    pub error: Option<String>,
    /// When the first failure happened.
    pub failed_us: Option<i64>,
    /// The main thread has ended the flow, so later errors are no failures.
    pub stopped: bool,
}

impl FlowState {
    pub fn new(plan: &'static Flow) -> Self {
        Self {
            plan,
            progress: Shared::default(),
            messages: Shared::default(),
            ended: Latch::default(),
            loading: Loading::default(),
        }
    }

    /// Lock the state of the flow.
    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// Lock the messages of the flow.
    pub fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock()
    }

    /// Record that the receiver gets its first byte now.
    pub fn first_byte(&self) {
        let now_us = clock::trial_us();
        self.progress().first_byte_us = Some(now_us);
    }

    /// Report the end of the flow to the flows that follow it.
    pub fn end_at(&self, t_us: i64) {
        self.loading.end_at(t_us);
        self.ended.set(t_us);
    }

    /// Return the index of the flow whose connection this flow uses: a shared one or its own.
    pub fn carrier(&self) -> usize {
        usize::try_from(self.plan.connection.unwrap_or(self.plan.id)).unwrap_or_default()
    }

    /// Note the socket of one side.
    pub fn hold(&self, side: SideName, socket: &Arc<OwnedFd>) {
        self.progress().sockets[side.place()] = Some(Arc::clone(socket));
    }

    /// Return the socket of one side, if it is connected.
    pub fn socket(&self, side: SideName) -> Option<Arc<OwnedFd>> {
        self.progress().sockets[side.place()].clone()
    }

    /// Return the sockets of the sides that are connected.
    pub fn sockets(&self) -> Vec<Arc<OwnedFd>> {
        self.progress().sockets.iter().flatten().cloned().collect()
    }
}
