//! Programs of the host that run in nodes. They start at their planned times and end with the trial
//! at the latest.
//!
//! A thread follows each program from its start to its end. The first failure of a program ends the
//! trial; the error quotes the last lines of the program's log.

mod command;
mod confine;
pub mod devices;
mod figures;
mod files;
mod log;
mod prototype;
mod ready;
mod reports;
pub mod root;
mod running;
mod transport;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::apply::{Applied, enter};
use crate::clock::{self, Latch};
use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::plan::{Plan, StreamTransport};
use crate::process::require_guest;
use crate::shared::Shared;
use crate::tables::{self, ProgramFigure, Table};
use crate::traffic::Traffic;

pub use command::command;
use confine::Group;
pub use confine::held_sockets;
use log::Log;
use running::{Running, SETTLING_US, follow};

/// Mount the root of programs and their control groups, once.
pub fn prepare() -> Result<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    require_guest("a program")?;
    if DONE.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    root::prepare()?;
    confine::prepare()
}

/// Create a control group and open its `cgroup.procs`; a process that writes 0 to it joins the
/// group. Call [`prepare`] before.
pub fn group(name: &str) -> Result<OwnedFd> {
    Group::create(name)?.door().attempt(|| format!("opening the control group {name}"))
}

/// The programs of a trial.
#[derive(Default)]
pub struct Programs {
    running: Vec<Arc<Running>>,
    /// What gives programs MPTCP sockets, as long as it is open.
    sockets: Vec<OwnedFd>,
}

impl Programs {
    /// Prepare the root of programs, and start a thread for each, which waits for the program's
    /// start.
    pub fn start(plan: &'static Plan, network: &Applied, traffic: &Arc<Traffic>) -> Result<Self> {
        let mut programs = Self::default();
        if plan.programs.is_empty() {
            return Ok(programs);
        }
        prepare()?;
        files::name_hosts(&plan.names)?;
        files::mount_packages()?;
        root::seal()?;
        let folder = job::path("programs");
        std::fs::create_dir_all(&folder).attempt(|| format!("creating {folder}"))?;
        let sample_us = plan.sample_interval_us;
        for plan in &plan.programs {
            let context = || format!("preparing program {}", plan.name);
            let namespace = network.namespace(&plan.netns).attempt(context)?;
            enter(&namespace.fd)?;
            let group = Group::create(&plan.name).attempt(context)?;
            if plan.transport == StreamTransport::Mptcp {
                programs.sockets.extend(transport::replace_tcp(&group).attempt(context)?);
            }
            files::write(plan).attempt(context)?;
            if let Some(flow) = plan.flow {
                prototype::write(plan, traffic.flow(flow).plan, sample_us).attempt(context)?;
            }
            programs.running.push(Arc::new(Running {
                plan,
                group,
                log: Log::create(&folder, &plan.name).attempt(context)?,
                started: Latch::default(),
                ended: Latch::default(),
                code: Shared::default(),
                stopping: AtomicBool::new(false),
                failure: Shared::default(),
            }));
        }
        enter(&network.home)?;
        for program in &programs.running {
            let namespace = network
                .namespace(&program.plan.netns)?
                .fd
                .try_clone()
                .attempt(|| format!("keeping namespace {}", program.plan.netns))?;
            let (program, traffic) = (Arc::clone(program), Arc::clone(traffic));
            thread::Builder::new()
                .spawn(move || follow(&program, &namespace, &traffic))
                .attempt(|| "starting a thread")?;
        }
        Ok(programs)
    }

    /// Return the first failure of a program, if any.
    pub fn failure(&self) -> Result<()> {
        match self.running.iter().find_map(|program| program.failure.lock().clone()) {
            Some(why) => Err(Error::new(why)),
            None => Ok(()),
        }
    }

    /// Whether the trial waits for a program.
    pub fn any_awaited(&self) -> bool {
        self.running.iter().any(|program| program.plan.awaited)
    }

    /// Whether a program that the trial waits for has not ended.
    pub fn any_unfinished(&self) -> bool {
        self.unfinished().is_some()
    }

    fn unfinished(&self) -> Option<&Arc<Running>> {
        self.running.iter().find(|program| program.plan.awaited && program.ended.time().is_none())
    }

    /// Fail if the trial's time is over and a program that the trial waits for has not ended.
    pub fn overdue(&self, end_us: i64) -> Result<()> {
        match self.unfinished() {
            Some(program) => Err(Error::new(program.describe_failure(&format!(
                "it still ran when the trial's time was over, at {:.3} s",
                clock::seconds(end_us)
            )))),
            None => Ok(()),
        }
    }

    /// Stop the programs that still run: send the planned signal, and kill all processes that
    /// outlive the grace period.
    pub fn stop(&self, traffic: &Traffic) {
        let begun_us = clock::trial_us();
        for program in &self.running {
            program.signal();
        }
        let living = || self.running.iter().filter(|program| program.is_running());
        let grace_us = living().map(|program| program.plan.stop.grace_us).max().unwrap_or(0);
        traffic.bell.wait_while(begun_us + grace_us, || living().next().is_some());
        for program in &self.running {
            program.group.kill();
        }
    }

    /// Collect the programs' files, and write a row per program and the figures that programs
    /// report.
    pub fn collect(
        &self,
        traffic: &Traffic,
        programs: &mut Table<tables::Program>,
        figures: &mut Table<ProgramFigure>,
    ) -> Result<()> {
        clock::sleep_until(clock::trial_us() + SETTLING_US);
        self.failure()?;
        for program in &self.running {
            programs.push(program.row(traffic))?;
            let failure = |error: Error| Error::new(program.describe_failure(&error.to_string()));
            files::collect(program.plan).map_err(failure)?;
            if let Some(kind) = program.plan.result {
                let rows = figures::read(kind, program.plan, &program.log).map_err(failure)?;
                rows.into_iter().try_for_each(|row| figures.push(row))?;
            }
        }
        Ok(())
    }

    /// Return the program in `node` that holds the socket with this inode. A program alone in its
    /// node owns all sockets there.
    pub fn owner(&self, node: &str, inode: u32) -> Option<&'static str> {
        let mut there = self.running.iter().filter(|program| program.plan.netns == node);
        let first = there.next()?;
        if there.next().is_none() {
            return Some(first.plan.name.as_str());
        }
        let held = |program: &&Arc<Running>| program.plan.netns == node && program.group.holds(inode);
        (inode != 0)
            .then(|| self.running.iter().find(held))
            .flatten()
            .map(|program| program.plan.name.as_str())
    }
}
