//! The prompt in a trial's network, before or after the traffic. Virtual time passes only when the
//! host asks for it.
//!
//! Orders come as files, one after the other. The agent polls for them without a pause: a poll
//! takes no virtual time, and the host stops the guest until it has an order. The same orders
//! therefore reproduce the same trial.

use std::fs::File;
use std::sync::Arc;

use serde::Deserialize;

use super::guest;
use super::orders::Order;
use super::output::Output;
use super::run::Runs;
use crate::apply::Applied;
use crate::error::{Attempt, Result};
use crate::job;
use crate::plan::{PauseAt, Plan};
use crate::{program, status, sys};

/// A file with one byte for each order so far.
const COUNT: &str = "/job/input/orders";

/// An order of the host during a pause.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// Carry out the order as soon as time passes.
    Obey { order: Order },
    /// Let this much time pass, or less if a run ends.
    Pass { us: i64 },
    /// Continue the trial. Programs that still run keep running.
    Leave,
}

/// The pauses of a trial.
pub struct Pauses {
    times: &'static [PauseAt],
    output: Option<Output>,
    /// How many orders the agent has read.
    orders: u64,
}

impl Pauses {
    /// Prepare what programs need, if the plan has a pause.
    pub fn prepare(plan: &'static Plan) -> Result<Self> {
        let mut pauses = Self { times: &plan.pause, output: None, orders: 0 };
        if !plan.pause.is_empty() {
            program::prepare()?;
            guest::devices()?;
            if plan.programs.is_empty() {
                program::root::seal()?; // otherwise `Programs::start` does this after its mounts
            }
            pauses.output = Some(Output::create()?);
        }
        Ok(pauses)
    }

    /// Carry out orders until the host continues the trial. Return at once if the plan has no pause
    /// `at` this point.
    pub fn hold(&mut self, at: PauseAt, network: &Applied) -> Result<()> {
        let Some(output) = self.output.as_ref().filter(|_| self.times.contains(&at)) else { return Ok(()) };
        status::enter_phase(at.phase());
        let door = program::group(at.phase())?;
        let runs = Arc::new(Runs::new(output.clone(), guest::enter()?, File::from(door), Some(network))?);
        runs.report_ready()?;
        loop {
            match self.next()? {
                Step::Obey { order } => runs.carry_out(order),
                Step::Pass { us } => {
                    runs.wait_for_news(us);
                    sys::bury_orphans();
                    runs.report_ready()?;
                }
                Step::Leave => return Ok(()),
            }
        }
    }

    fn next(&mut self) -> Result<Step> {
        // A call that succeeds takes no virtual time; looking for a missing file would take some.
        while std::fs::metadata(COUNT).attempt(|| format!("reading {COUNT}"))?.len() <= self.orders {}
        self.orders += 1;
        job::read(&format!("input/order-{}", self.orders - 1))
    }
}
