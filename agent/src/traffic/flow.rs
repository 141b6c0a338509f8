//! A flow and what has become of it, shared by its threads and the main thread.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::loading::Loading;
use super::messages::Messages;
use crate::clock::{self, Latch};
use crate::plan::{Application, Flow, SideName};

/// A flow of the plan and what has become of it so far.
pub struct FlowState {
    /// What it shall do.
    pub plan: &'static Flow,
    progress: Mutex<Progress>,
    messages: Mutex<Messages>,
    /// Set when the flow has ended, for those that follow it.
    pub ended: Latch,
    /// What the connections of a page share; of its first one.
    pub loading: Loading,
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
    pub fn new(plan: &'static Flow) -> Self {
        Self {
            plan,
            progress: Mutex::default(),
            messages: Mutex::default(),
            ended: Latch::default(),
            loading: Loading::default(),
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
