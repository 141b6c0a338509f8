//! The prompt in a trial's own network, before its traffic or after it. Virtual time passes only while the host says so.
//!
//! Orders come as files, one after the other, and are looked for all the time: no virtual time passes meanwhile, and the
//! host stops the guest until it has an order. So the same orders leave the same trial.

use std::fs::File;
use std::sync::Arc;

use serde::Deserialize;

use super::guest;
use super::orders::Order;
use super::output::Output;
use super::run::Runs;
use crate::apply::Applied;
use crate::error::{Attempt, Error, Result};
use crate::job::JOB;
use crate::plan::{PauseAt, Plan};
use crate::{program, status, sys};

/// It has as many bytes as orders were given.
const COUNT: &str = "/job/input/orders";

/// What the host wants next.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// To be carried out as soon as time passes.
    Obey { order: Order },
    /// Time passes: so much, or until a program has ended.
    Pass { us: i64 },
    /// The trial goes on. Programs that still run go on as well.
    Leave,
}

/// The pauses of a trial.
pub struct Pauses {
    times: &'static [PauseAt],
    output: Option<Output>,
    /// So many orders have been read.
    orders: u64,
}

impl Pauses {
    /// Makes ready what programs need, if there is a pause at all.
    pub fn prepare(plan: &'static Plan) -> Result<Self> {
        let mut pauses = Self { times: &plan.pause, output: None, orders: 0 };
        if !plan.pause.is_empty() {
            program::prepare()?;
            guest::devices()?;
            if plan.programs.is_empty() {
                program::root::seal()?; // else it follows when all is mounted that they need
            }
            pauses.output = Some(Output::create()?);
        }
        Ok(pauses)
    }

    /// Does what the host wants until the trial shall go on; returns at once where the plan has no pause.
    pub fn hold(&mut self, at: PauseAt, network: &Applied) -> Result<()> {
        let Some(output) = self.output.as_ref().filter(|_| self.times.contains(&at)) else { return Ok(()) };
        status::enter_phase(at.phase());
        let door = program::group(at.phase())?;
        let runs = Arc::new(Runs::new(output.clone(), guest::enter()?, File::from(door), Some(network))?);
        runs.tell_ready()?;
        loop {
            match self.next()? {
                Step::Obey { order } => runs.obey(order),
                Step::Pass { us } => {
                    runs.wait_for_news(us);
                    sys::bury_orphans();
                    runs.tell_ready()?;
                }
                Step::Leave => return Ok(()),
            }
        }
    }

    fn next(&mut self) -> Result<Step> {
        let path = format!("{JOB}/input/order-{}", self.orders);
        let what = || format!("reading {path}");
        // A call that succeeds takes no virtual time; looking for a file that is not there would.
        while std::fs::metadata(COUNT).attempt(what)?.len() <= self.orders {}
        let json = std::fs::read(&path).attempt(what)?;
        self.orders += 1;
        serde_json::from_slice(&json).map_err(|error| Error::because(what(), error))
    }
}
