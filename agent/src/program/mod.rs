//! Programs of the host that run in a node: started at their time, ended with the trial at the latest.

pub mod root;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::apply::{Applied, enter};
use crate::boot::JOB;
use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::plan::Program;
use crate::sys;
use crate::tables::Event;
use crate::traffic::Traffic;

/// What the shell reports for a program that a signal has ended.
const SIGNALLED: i64 = 128;

/// The programs of a trial that run now.
#[derive(Default)]
pub struct Programs {
    running: Arc<Mutex<Vec<Pid>>>,
}

impl Programs {
    /// Prepares the root of programs, and a thread for each, which waits for its start.
    pub fn start(planned: &'static [Program], network: &Applied, traffic: &Arc<Traffic>) -> Result<Self> {
        let programs = Self::default();
        if planned.is_empty() {
            return Ok(programs);
        }
        root::prepare()?;
        let folder = format!("{JOB}/programs");
        std::fs::create_dir_all(&folder).attempt(|| format!("making {folder}"))?;
        for plan in planned {
            let what = || format!("preparing program {}", plan.name);
            let namespace = network.namespace(&plan.netns).attempt(what)?.fd.try_clone().attempt(what)?;
            let log = File::create(format!("{folder}/{}.log", plan.name)).attempt(what)?;
            let (running, traffic) = (Arc::clone(&programs.running), Arc::clone(traffic));
            thread::Builder::new()
                .spawn(move || run(plan, &namespace, log, &running, &traffic))
                .attempt(what)?;
        }
        Ok(programs)
    }

    /// Ends what still runs, and everything that it has started.
    pub fn stop(&self) {
        for pid in self.running.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = kill_process_group(*pid, Signal::KILL); // it may have ended by itself
        }
    }
}

/// One program, from its start to its end.
fn run(plan: &'static Program, namespace: &OwnedFd, log: File, running: &Mutex<Vec<Pid>>, traffic: &Traffic) {
    clock::sleep_until(plan.start_us);
    let event = |event: &'static str, error: Option<i64>| {
        traffic.push_event(Event {
            t_us: Some(clock::trial_us()),
            node: Some(plan.netns.as_str().into()),
            event: Some(event.into()),
            error,
            ..Default::default()
        });
    };
    event("program_start", None);
    let started = enter(namespace).and_then(|()| spawn(plan, log));
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            crate::console(&error.to_string());
            return event("program_failed", None);
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    running.lock().unwrap_or_else(PoisonError::into_inner).extend(pid);
    let status = child.wait();
    running.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| Some(*other) != pid);
    event("program_end", status.ok().and_then(code));
}

fn spawn(plan: &Program, log: File) -> Result<std::process::Child> {
    let what = || format!("starting program {} ({}) in {}", plan.name, plan.argv.join(" "), plan.netns);
    let (program, arguments) = plan.argv.split_first().ok_or_else(|| Error::because(what(), "no command"))?;
    let errors = log.try_clone().attempt(what)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
    let nothing = File::open(format!("{}/dev/null", root::ROOT)).attempt(what)?;
    command.stdin(nothing).stdout(log).stderr(errors).process_group(0);
    sys::run_below(&mut command, root::ROOT);
    command.spawn().attempt(what)
}

/// The exit code, as a shell gives it.
fn code(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from).or(status.signal().map(|signal| SIGNALLED + i64::from(signal)))
}
