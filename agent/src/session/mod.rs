//! A session: programs of the host that the user starts, one (`plait exec`) or many (a prompt).
//!
//! The first orders come in the file `session.json`, later ones as lines on the console `tty1`. The
//! file `output` takes what programs write and how they end. Without a line on the console, a
//! session in virtual time is as reproducible as a trial.

mod captures;
mod console;
mod guest;
mod orders;
mod output;
mod pause;
mod run;
mod streams;
mod terminal;

use std::fs::File;
use std::sync::Arc;

use crate::clock;
use crate::error::{Attempt, Result};
use crate::job;
use crate::plan::Plan;
use crate::process::require_guest;
use crate::status::{self, Progress};
use crate::sys;

use captures::Captures;
use guest::GROUP;
use orders::SessionRequest;
use output::Output;
use run::Runs;

pub use pause::Pauses;

const REQUEST: &str = "session.json";
/// How often the agent reaps orphans and reports its progress, in us.
const ROUND_US: i64 = 100_000;

/// Whether the host booted this guest for a session.
pub fn is_requested() -> bool {
    job::folder().join(REQUEST).exists()
}

/// Carry out `session.json`; return when the session is over.
pub fn hold(plan: &'static Plan) -> Result<()> {
    require_guest("a session")?;
    let mut first: SessionRequest = job::read(REQUEST)?;
    status::enter_phase("preparing the guest");
    let network = if first.network { Some(crate::apply::apply(plan)?) } else { None };
    let mounts = guest::prepare(&first)?;
    let mut progress = Progress::create()?;
    clock::leave_first_second()?;
    status::booted(clock::set_zero());
    let members = format!("{GROUP}/cgroup.procs");
    let group = File::options().write(true).open(&members).attempt(|| format!("opening {members}"))?;
    let captures = first.capture_bytes.map(|keep| {
        let mounts = mounts.try_clone().attempt(|| "keeping the mounts of the programs")?;
        Captures::start(mounts, &job::folder().join("pcap"), keep)
    });
    let captures = captures.transpose()?;
    let runs = Arc::new(Runs::new(Output::create()?, mounts, group, network.as_ref())?);
    status::enter_phase("starting services");
    for service in &first.before {
        runs.complete(service)?;
    }
    status::enter_phase("run");
    console::listen(&runs)?;
    let began_us = clock::trial_us();
    let limit_us = first.time_limit_us.map_or(i64::MAX, |limit| began_us.saturating_add(limit));
    if let Some(start) = first.start.take() {
        runs.stop_after(start.run);
        runs.start(start);
    }
    runs.report_ready()?; // not earlier: input for a program that has not started would be lost
    let mut next_us = began_us;
    loop {
        next_us += ROUND_US;
        if runs.wait_for_the_end(next_us.min(limit_us)) {
            captures.map_or(Ok(()), Captures::finish)?;
            rustix::fs::sync();
            return Ok(());
        }
        // This reaps only children of this thread, for which no other thread waits.
        sys::bury_orphans();
        progress.report(clock::trial_us())?;
        if clock::trial_us() >= limit_us {
            runs.end_all();
        }
    }
}
