//! One end of a prototype flow. A thread starts its program, and follows it to its end.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::log::Log;
use super::super::prototype;
use super::super::reports::{self, Relayed};
use super::filter;
use super::relay::Relay;
use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::plan::{Application, Flow, Plan, SideName};
use crate::sys;
use crate::traffic::Traffic;

const RUN: &str = "import sys; sys.path.insert(0, '.'); from plait.prototype.apart.main import main; main()";
const PYTHON: [&str; 6] = ["python3", "-I", "-S", "-B", "-c", RUN];
/// Processor time of a program beyond the length of the trial.
const SPARE_CPU_S: u64 = 60;
/// How long a program may live after it has closed its output, and its last words may take.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(5); // between looks; each loop has a deadline

/// An end and its program.
pub struct End {
    pub plan: &'static Flow,
    pub side: SideName,
    pub relay: Relay,
    directory: String,
    log: Log,
    lasts_s: u64,
    /// Dropped when the program is ready.
    ready: Mutex<Option<Sender<()>>>,
    input: Mutex<Option<ChildStdin>>,
    child: Mutex<Option<Child>>,
    stopping: AtomicBool,
}

impl Relayed for End {
    fn note_ready(&self) {
        *lock(&self.ready) = None;
    }

    fn client_port(&self, path: usize) -> Option<u16> {
        self.relay.client_port(path)
    }
}

impl End {
    /// Open the sockets of an end, and write the code and the settings of its program. The program
    /// drops `hang_up` when it is ready.
    pub fn prepare(
        plan: &'static Plan,
        flow: &'static Flow,
        side: SideName,
        hang_up: Sender<()>,
    ) -> Result<Self> {
        let Application::Prototype(application) = &flow.application else {
            return Err(Error::new("it is no prototype"));
        };
        let directory = job::path(&format!("prototype.{}", flow.id));
        let relay = Relay::open(flow, side)?;
        let settings = json!({
            "side": side.name(), "connection": application.seed & 0xffff_ffff, "job": application,
            "paths": prototype::paths(flow), "sample_us": plan.sample_interval_us,
            "descriptors": relay.descriptors(), "ports": relay.client_ports(), "filters": filter::filters()?,
        });
        prototype::write_files(&directory, &settings)?;
        Ok(Self {
            plan: flow,
            side,
            relay,
            log: Log::create(&directory, "program")?,
            directory,
            lasts_s: u64::try_from(plan.end_us / 1_000_000).unwrap_or_default(),
            ready: Mutex::new(Some(hang_up)),
            input: Mutex::default(),
            child: Mutex::default(),
            stopping: AtomicBool::default(),
        })
    }

    /// Let the program begin, now that the trial has a zero.
    pub fn begin(&self) {
        if let Some(input) = lock(&self.input).as_mut() {
            // A program that has ended reports why.
            let _ = writeln!(input, "{}", clock::zero_ns()).and_then(|()| input.flush());
        }
    }

    /// Kill the program, if it still runs.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.kill();
    }

    fn kill(&self) {
        if let Some(child) = lock(&self.child).as_mut() {
            let _ = child.kill(); // it may have ended
        }
    }

    fn spawn(&self) -> Result<Child> {
        let mut command = Command::new(PYTHON[0]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(&PYTHON[1..]).env_clear().env("PATH", path).env("LANG", "C.UTF-8");
        command.current_dir(&self.directory).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(self.log.writer().attempt(|| "opening its log")?);
        let cpu_s = self.lasts_s + SPARE_CPU_S;
        sys::run_alone(&mut command, self.relay.descriptors(), cpu_s);
        let child = command.spawn().attempt(|| "starting python3")?;
        self.relay.close_copies();
        Ok(child)
    }

    /// Wait for the end of a program that has closed its output.
    fn wait(&self) -> Option<ExitStatus> {
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            let status = lock(&self.child).as_mut().and_then(|child| child.try_wait().ok().flatten());
            if status.is_some() || Instant::now() > until {
                return status;
            }
            thread::sleep(PACE);
        }
    }

    /// Return the error of a scheduler that failed, or that did not return.
    fn located_error(&self, printed: &str) -> Option<String> {
        let Application::Prototype(application) = &self.plan.application else { return None };
        let stuck = || prototype::stuck_error(&self.log.text().ok()?, &application.scheduler);
        prototype::located_error(printed).map(str::to_owned).or_else(stuck)
    }

    /// Return why the program failed.
    fn describe(&self, status: Option<ExitStatus>) -> String {
        let name = &self.plan.name;
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            // Its last words reach the log a moment after its end.
            let printed = self.log.tail();
            if let Some(error) = self.located_error(&printed) {
                return format!("prototype {name}: {error}");
            }
            if !printed.is_empty() || Instant::now() > until {
                let how = status.map_or_else(|| "closed its output".to_owned(), |status| status.to_string());
                return format!("prototype {name}: its program ended early ({how}); it printed:\n{printed}");
            }
            thread::sleep(PACE);
        }
    }
}

/// Run the program of an end, and note its failure.
pub fn follow(end: &End, traffic: &Traffic, failure: &Mutex<Option<String>>) {
    let flow = traffic.flow(end.plan.id);
    let fail = |why: String| {
        if !end.stopping.load(Ordering::SeqCst) {
            lock(failure).get_or_insert(why);
        }
    };
    match end.spawn() {
        Err(error) => fail(format!("prototype {}: {error}", end.plan.name)),
        Ok(mut child) => {
            let output = child.stdout.take();
            *lock(&end.input) = child.stdin.take();
            *lock(&end.child) = Some(child);
            if let Some(output) = output {
                reports::follow(traffic, flow, output, Some(end));
            }
            let status = end.wait();
            end.kill();
            if !(flow.progress().stream_ended && status.is_some_and(|status| status.success())) {
                let reported = flow.progress().error.clone();
                fail(reported.unwrap_or_else(|| end.describe(status)));
            }
        }
    }
    reports::end(traffic, flow);
    end.note_ready();
    traffic.bell.ring();
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
