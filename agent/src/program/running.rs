//! One program of a trial. A thread follows it from its start to its end.

use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::command::command;
use super::confine::{self, Group};
use super::log::{self, Log};
use super::{devices, prototype, ready, reports, root};
use crate::apply::enter;
use crate::clock::{self, Latch};
use crate::error::{Attempt, Error, Result};
use crate::machine;
use crate::plan::Program;
use crate::shared::Shared;
use crate::sys;
use crate::tables::{self, Event};
use crate::traffic::{self, Traffic};

/// The shell's offset of the exit code of a program that a signal ended.
const SIGNALLED: i64 = 128;
/// What programs say when they lack a file.
const NOT_THERE: [&str; 4] = ["No such file", "not found", "cannot open", "No module named"];
/// How long, in virtual time, a program's last output may take to reach its log.
pub const SETTLING_US: i64 = 1000;

/// A program of the plan and its state.
pub struct Running {
    /// The plan of the program.
    pub plan: &'static Program,
    pub group: Group,
    pub log: Log,
    pub started: Latch,
    pub ended: Latch,
    pub code: Shared<Option<i64>>,
    /// The agent has stopped the program, so its exit code is no failure.
    pub stopping: AtomicBool,
    pub failure: Shared<Option<String>>,
}

impl Running {
    /// Whether the program has started and not ended.
    pub fn is_running(&self) -> bool {
        self.started.time().is_some() && self.ended.time().is_none()
    }

    pub fn row(&self, traffic: &Traffic) -> tables::Program {
        let ready_us = traffic.programs.get(self.plan.name.as_str()).and_then(Latch::time);
        tables::Program {
            program: Some(self.plan.name.as_str().into()),
            node: Some(self.plan.netns.as_str().into()),
            start_us: self.started.time(),
            ready_us: ready_us.filter(|_| self.plan.ready.is_some()),
            end_us: self.ended.time(),
            exit_code: *self.code.lock(),
            stopped: Some(self.stopping.load(Ordering::SeqCst)),
        }
    }

    pub fn signal(&self) {
        if self.is_running() || self.started.time().is_none() {
            self.stopping.store(true, Ordering::SeqCst);
            self.group.signal(self.plan.stop.signal.into());
        }
    }

    fn fail(&self, why: &str) {
        let message = self.describe_failure(why);
        self.failure.lock().get_or_insert(message);
    }

    /// Format `program client (iperf3 -c h2) in h1: WHY; the last lines of its log: ..`.
    pub fn describe_failure(&self, why: &str) -> String {
        let Program { name, netns, argv, .. } = self.plan;
        let command: String = argv.join(" ").chars().take(120).collect();
        let printed = self.log.tail();
        if self.plan.flow.is_some()
            && let Some(error) = prototype::located_error(&printed)
        {
            return format!("prototype {name}: {error}");
        }
        let mut why = why.to_owned();
        if self.group.was_full() {
            let limit = confine::PROCESSES;
            let _ = write!(why, "; it reached the limit of {limit} processes and threads"); // to a String
        }
        for device in devices::missing(argv.iter().map(String::as_str).chain([printed.as_str()])) {
            let _ =
                write!(why, "; there is no {device} in a guest, which has none of this machine's devices");
        }
        if machine::is_this_one() && NOT_THERE.iter().any(|words| printed.contains(words)) {
            why += "; a machine has copies of only those files that plait finds by the command: name a missing \
                    one there, or write it with `files`";
        }
        let tail = if printed.is_empty() {
            "its log is empty".to_owned()
        } else {
            format!("the last lines of its log:\n{printed}")
        };
        format!("program {name} ({command}) in {netns}: {why}; {tail}")
    }
}

/// Run one program, from its start to its end.
pub fn follow(running: &Arc<Running>, namespace: &OwnedFd, traffic: &Arc<Traffic>) {
    let plan = running.plan;
    let flow = plan.flow.map(|id| traffic.flow(id));
    clock::sleep_until(match flow {
        Some(flow) => traffic::wait_to_begin(traffic, flow),
        None => traffic.wait_for_programs(&plan.after).unwrap_or(0) + plan.start_us,
    });
    if running.stopping.load(Ordering::SeqCst) {
        return;
    }
    let event = |event: &'static str, error: Option<i64>| {
        traffic.events.push(Event { error, ..Event::at(clock::trial_us(), &plan.netns, event) });
    };
    event("program_start", None);
    running.started.set(clock::trial_us());
    let mut child = match enter(namespace).and_then(|()| spawn(running)) {
        Ok(child) => child,
        Err(error) => {
            event("program_failed", None);
            running.ended.set(clock::trial_us());
            running.fail(&error.to_string());
            return traffic.bell.ring();
        }
    };
    stop_in_time(running);
    if let (Some(flow), Some(reports)) = (flow, child.stdout.take()) {
        reports::follow(traffic, flow, reports);
    }
    if let Some(ready) = &plan.ready {
        match ready::wait(ready, &running.log, &mut child) {
            Ok(()) => traffic.program_is_ready(&plan.name, clock::trial_us()),
            Err(why) if !running.stopping.load(Ordering::SeqCst) => running.fail(&why),
            Err(_) => {}
        }
    }
    let status = child.wait();
    let ended_us = clock::trial_us();
    let code = status.ok().and_then(code);
    *running.code.lock() = code;
    event("program_end", code);
    clock::sleep_until(clock::trial_us() + SETTLING_US);
    judge(running, code);
    if let Some(flow) = flow {
        reports::end(traffic, flow);
    }
    running.ended.set(ended_us);
    if plan.ready.is_none() {
        traffic.program_is_ready(&plan.name, ended_us);
    }
    traffic.bell.ring();
}

/// Fail unless the program ended as planned.
fn judge(running: &Running, code: Option<i64>) {
    if running.log.is_full() {
        running.fail(&format!("it printed more than {} MiB", log::MAX_BYTES >> 20));
    }
    if running.stopping.load(Ordering::SeqCst) {
        return;
    }
    let (Some(expected), Some(code)) = (running.plan.exit_code, code) else { return };
    if code != expected {
        let signal = code - SIGNALLED;
        let how = if signal > 0 {
            format!("ended by signal {signal}")
        } else {
            format!("ended with exit code {code}")
        };
        running.fail(&format!("it {how} instead of exit code {expected}"));
    }
}

/// Stop the program at its planned time, if it has one.
fn stop_in_time(running: &Arc<Running>) {
    let Some(at_us) = running.plan.stop.at_us else { return };
    let stopped = Arc::clone(running);
    let body = move || {
        clock::sleep_until(at_us);
        stopped.signal();
        clock::sleep_until(at_us + stopped.plan.stop.grace_us);
        stopped.group.kill();
    };
    if let Err(error) = thread::Builder::new().spawn(body) {
        running.fail(&format!("starting the thread that stops it: {error}"));
    }
}

fn spawn(running: &Running) -> Result<Child> {
    let plan = running.plan;
    let context = || "starting it".to_owned();
    let mut command = command(&plan.argv, &plan.environment).attempt(context)?;
    let output = running.log.writer().attempt(context)?;
    let errors = output.try_clone().attempt(context)?;
    command.env("PWD", &plan.directory);
    if plan.flow.is_some() {
        command.env(prototype::ZERO, clock::zero_ns().to_string());
    }
    let nothing = File::open(format!("{}/dev/null", root::ROOT)).attempt(context)?;
    command.stdin(nothing).stderr(errors).process_group(0);
    match plan.flow {
        Some(_) => command.stdout(Stdio::piped()),
        None => command.stdout(output),
    };
    sys::run_confined(&mut command, root::ROOT, &plan.directory, running.group.door().attempt(context)?);
    match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::because(
            context(),
            format!(
                "there is no program {}, or its directory {} does not exist; install the program, or give its path",
                plan.argv[0], plan.directory
            ),
        )),
        spawned => spawned.attempt(context),
    }
}

/// Return the exit code as a shell reports it.
fn code(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from).or(status.signal().map(|signal| SIGNALLED + i64::from(signal)))
}
