//! Prototype flows whose other end is on another machine.
//!
//! A program of Python runs the end of this machine. The agent relays its datagrams, because a
//! scheduler is a stranger's code: the program has no sockets of its own, so it can neither reach
//! other hosts nor exceed the limits. Before it loads the scheduler, it locks itself (see `filter`). It
//! starts before the trial's zero, and waits for that.

mod budget;
mod end;
mod filter;
mod relay;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::plan::{Application, Flow, Plan, SideName};
use crate::process;
use crate::traffic::{self, Traffic};
use budget::Budget;
use end::{End, follow};
use relay::Admit;

/// How long the programs may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The ends of prototype flows on this machine.
#[derive(Default)]
pub struct Ends {
    started: Vec<Arc<End>>,
    budget: Option<Arc<Budget>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Ends {
    /// Start the programs of this machine's ends, and wait until they are ready.
    pub fn start(plan: &'static Plan, traffic: &Arc<Traffic>) -> Result<Self> {
        let Some(node) = process::node() else { return Ok(Self::default()) };
        let mut ends = Self { budget: Some(Arc::new(Budget::new())), ..Self::default() };
        let mut waiting = Vec::new();
        for flow in &plan.flows {
            if matches!(flow.application, Application::Prototype(_)) {
                let side = if flow.client.netns == node { SideName::Client } else { SideName::Server };
                let ready = ends
                    .start_end(plan, flow, side, traffic)
                    .attempt(|| format!("preparing prototype {}", flow.name))?;
                waiting.push((&flow.name, ready));
            }
        }
        for (name, ready) in waiting {
            // The program hangs up when it is ready, and also when it ends.
            if ready.recv_timeout(READY_WITHIN) == Err(RecvTimeoutError::Timeout) {
                let most = READY_WITHIN.as_secs();
                return Err(Error::new(format!(
                    "prototype {name}: its program was not ready within {most} s"
                )));
            }
            ends.failure()?;
        }
        Ok(ends)
    }

    fn start_end(
        &mut self,
        plan: &'static Plan,
        flow: &'static Flow,
        side: SideName,
        traffic: &Arc<Traffic>,
    ) -> Result<Receiver<()>> {
        let (hang_up, ready) = channel();
        let end = Arc::new(End::prepare(plan, flow, side, hang_up)?);
        end.relay.start(&self.admission(traffic))?;
        self.started.push(Arc::clone(&end));
        let (traffic, failure) = (Arc::clone(traffic), Arc::clone(&self.failure));
        let body = move || follow(&end, &traffic, &failure);
        thread::Builder::new().spawn(body).attempt(|| "starting a thread")?;
        Ok(ready)
    }

    /// Return what decides whether a datagram may leave. The first one that may not ends the trial.
    fn admission(&self, traffic: &Arc<Traffic>) -> Arc<Admit> {
        let (budget, failure) = (self.budget.clone(), Arc::clone(&self.failure));
        let traffic = Arc::clone(traffic);
        Arc::new(move |bytes| {
            let Some(Err(why)) = budget.as_ref().map(|budget| budget.take(bytes as u64)) else { return true };
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
            traffic.bell.ring();
            false
        })
    }

    /// Let the programs begin: a server at the trial's zero, a client when its flow starts.
    pub fn begin(&self, traffic: &Arc<Traffic>) -> Result<()> {
        for end in &self.started {
            let (end, traffic) = (Arc::clone(end), Arc::clone(traffic));
            let body = move || {
                if end.side == SideName::Client {
                    clock::sleep_until(traffic::wait_to_begin(&traffic, traffic.flow(end.plan.id)));
                }
                end.begin();
            };
            thread::Builder::new().spawn(body).attempt(|| "starting a thread")?;
        }
        Ok(())
    }

    /// Return the first failure of a program, if any.
    pub fn failure(&self) -> Result<()> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(why) => Err(Error::new(why)),
            None => Ok(()),
        }
    }

    /// Note that the connections of the kernel have sent `bytes`.
    pub fn note_sent(&self, bytes: u64) {
        if let Some(budget) = &self.budget {
            budget.note_others(bytes);
        }
    }

    /// Kill the programs that still run.
    pub fn stop(&self) {
        for end in &self.started {
            end.stop();
        }
    }
}
