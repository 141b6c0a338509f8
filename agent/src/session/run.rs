//! The programs of a session: all runs, and each from its start to its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use super::guest;
use super::orders::{Order, Service, Start};
use super::output::{End, Kind, Output};
use super::streams::{Piece, Source, feed, nothing, prepare};
use super::terminal;
use crate::apply::{Applied, enter};
use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::program::{command, devices};
use crate::sys;

/// The size of one read.
const BUFFER_BYTES: usize = 64 * 1024;
/// How much of a program's last output the agent keeps, to find the devices that the program
/// missed.
const LAST_BYTES: usize = 2000;

/// A run, from the order that starts it to its end.
struct Live {
    /// The process group. None: the program has not started yet.
    group: Option<Pid>,
    /// Signals that arrived before the program started.
    early: Vec<i32>,
    terminal: Option<OwnedFd>,
    input: Option<Sender<Piece>>,
}

impl Live {
    fn signal(&mut self, number: i32) {
        let Some(group) = self.group else { return self.early.push(number) };
        let foreground = self.terminal.as_ref().and_then(terminal::foreground);
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = kill_process_group(foreground.unwrap_or(group), signal); // it may have ended
        }
    }
}

#[derive(Default)]
struct State {
    live: BTreeMap<u32, Live>,
    /// The session ends with this run.
    last: Option<u32>,
    over: bool,
    /// A run has ended since the last wait.
    news: bool,
    timed_out: bool,
}

/// All runs of a session.
pub struct Runs {
    output: Output,
    mounts: OwnedFd,
    group: File,
    namespaces: BTreeMap<&'static str, OwnedFd>,
    state: Mutex<State>,
    bell: Condvar,
}

impl Runs {
    /// Create the state of a session without runs.
    ///
    /// `group` is the `cgroup.procs` of the programs' control group.
    pub fn new(output: Output, mounts: OwnedFd, group: File, network: Option<&Applied>) -> Result<Self> {
        let mut namespaces = BTreeMap::new();
        for namespace in network.into_iter().flat_map(|network| &network.namespaces) {
            let fd = namespace.fd.try_clone().attempt(|| format!("keeping namespace {}", namespace.name))?;
            namespaces.insert(namespace.name, fd);
        }
        let (state, bell) = (Mutex::default(), Condvar::new());
        Ok(Self { output, mounts, group, namespaces, state, bell })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Report to the host that the agent accepts orders.
    pub fn report_ready(&self) -> Result<()> {
        self.output.frame(0, Kind::Ready, &[])
    }

    /// End the session when this run ends.
    pub fn stop_after(&self, run: u32) {
        self.state().last = Some(run);
    }

    /// Wait until the session is over, at most until `t_us`. Return whether it is over.
    pub fn wait_for_the_end(&self, t_us: i64) -> bool {
        let left = u64::try_from(t_us - clock::trial_us()).unwrap_or_default();
        let state = self.state();
        let waited = self.bell.wait_timeout_while(state, Duration::from_micros(left), |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    /// Wait until a run ends, at most for `us` of the guest's time. A run that ended since the last
    /// wait counts.
    pub fn wait_for_news(&self, us: i64) {
        let most = Duration::from_micros(us.unsigned_abs());
        let waited = self.bell.wait_timeout_while(self.state(), most, |state| !state.news);
        waited.unwrap_or_else(PoisonError::into_inner).0.news = false;
    }

    /// Kill all programs: the session reached its time limit.
    pub fn end_all(&self) {
        self.state().timed_out = true;
        sys::kill_everything();
    }

    /// Carry out an order.
    pub fn carry_out(self: &Arc<Self>, order: Order) {
        match order {
            Order::Start(start) => self.start(start),
            Order::Stop => {
                self.state().over = true;
                self.bell.notify_all();
            }
            Order::Input { run, data, file } => {
                let mut state = self.state();
                let Some(live) = state.live.get_mut(&run) else { return };
                let piece = match (data, file) {
                    // Each character stands for the byte with that code point.
                    (Some(text), _) => {
                        Piece::Bytes(text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect())
                    }
                    (None, Some(name)) => Piece::File(job::path(&format!("input/{name}"))),
                    (None, None) => {
                        live.input = None;
                        return;
                    }
                };
                // The send fails if the program has closed its input.
                let _ = live.input.as_ref().map(|input| input.send(piece));
            }
            Order::Size { run, size } => {
                if let Some(person) = self.state().live.get(&run).and_then(|live| live.terminal.as_ref()) {
                    terminal::resize(person, size);
                }
            }
            Order::Signal { run, number } => {
                if let Some(live) = self.state().live.get_mut(&run) {
                    live.signal(number);
                }
            }
        }
    }

    /// Start a program, and follow it to its end in a thread of its own.
    pub fn start(self: &Arc<Self>, start: Start) {
        let runs = Arc::clone(self);
        let run = start.run;
        let (sender, receiver) = channel();
        let live = Live { group: None, early: Vec::new(), terminal: None, input: Some(sender) };
        self.state().live.insert(run, live);
        let follow = move || {
            let end = runs
                .follow(&start, receiver)
                .unwrap_or_else(|error| End { error: Some(error.to_string()), ..End::default() });
            runs.report_end(run, end);
        };
        if let Err(error) = thread::Builder::new().spawn(follow) {
            self.report_end(run, End { error: Some(error.to_string()), ..End::default() });
        }
    }

    fn report_end(&self, run: u32, end: End) {
        let mut state = self.state();
        state.live.remove(&run);
        let end = End {
            timed_out: state.timed_out,
            refused_processes: guest::refused_processes(),
            full: guest::full(),
            t_us: clock::trial_us(),
            ..end
        };
        if let Err(error) = self.output.end(run, &end) {
            crate::status::console(&error.to_string());
        }
        state.over |= state.last == Some(run);
        state.news = true;
        self.bell.notify_all();
    }

    fn follow(&self, start: &Start, orders: Receiver<Piece>) -> Result<End> {
        if let Some(netns) = &start.netns {
            let missing = || Error::new(format!("the network has no node {netns}"));
            enter(self.namespaces.get(netns.as_str()).ok_or_else(missing)?)?;
        }
        let (mut command, sources, terminal, input) = prepare(start)?;
        sys::run_in_place(&mut command, &self.mounts, &self.group, &start.directory, terminal.is_some());
        let spawned = command.spawn();
        drop(command); // closes the agent's copies of the streams
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                return Ok(End {
                    errno: error.raw_os_error(),
                    error: Some(error.to_string()),
                    ..End::default()
                });
            }
        };
        let context = || format!("following {}", start.argv.join(" "));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::because(context(), "it has no PID"))?;
        if let Some(input) = input {
            feed(input, orders, self.output.clone(), start.run).attempt(context)?;
        }
        if let Some(live) = self.state().live.get_mut(&start.run) {
            (live.group, live.terminal) = (Some(pid), terminal);
            for number in std::mem::take(&mut live.early) {
                live.signal(number);
            }
        }
        let ended = pidfd_open(pid, PidfdFlags::empty()).attempt(context)?;
        let last = self.relay(start.run, sources, ended.as_fd())?;
        let status = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).attempt(context)?;
        let code = status.as_ref().and_then(rustix::process::WaitIdStatus::exit_status);
        let signal = status.as_ref().and_then(rustix::process::WaitIdStatus::terminating_signal);
        let printed = String::from_utf8_lossy(&last);
        let words = start.argv.iter().map(String::as_str).chain([printed.as_ref()]);
        let missing_devices = if code == Some(0) { Vec::new() } else { devices::missing(words) };
        Ok(End { code, signal, missing_devices, ..End::default() })
    }

    /// Forward the program's output until the program has ended and its output is empty. Return the
    /// last bytes of it.
    fn relay(&self, run: u32, mut sources: Vec<Source>, ended: BorrowedFd<'_>) -> Result<Vec<u8>> {
        let context = || "reading what a program writes";
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut last = Vec::new();
        loop {
            let mut ready: Vec<PollFd<'_>> =
                sources.iter().map(|source| PollFd::new(&source.fd, PollFlags::IN)).collect();
            ready.push(PollFd::from_borrowed_fd(ended, PollFlags::IN));
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                other => other.attempt(context)?,
            };
            let is_over = ready.last().is_some_and(|fd| !fd.revents().is_empty());
            let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut quiet = true;
            for index in (0..sources.len()).rev().filter(|index| ready[*index]).collect::<Vec<_>>() {
                match rustix::io::read(&sources[index].fd, &mut buffer) {
                    // A terminal reports EIO when no program has it open.
                    Ok(0) | Err(Errno::IO) => drop(sources.remove(index)),
                    Ok(bytes) => {
                        quiet = false;
                        self.output.frame(run, sources[index].kind, &buffer[..bytes])?;
                        last.extend_from_slice(&buffer[..bytes]);
                        last.drain(..last.len().saturating_sub(LAST_BYTES));
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error).attempt(context),
                }
            }
            if is_over && quiet {
                return Ok(last);
            }
        }
    }

    /// Run a service, and fail unless it succeeds.
    pub fn complete(&self, service: &Service) -> Result<()> {
        let path = job::path(&format!("{}.log", service.name));
        let context = || format!("starting {} ({})", service.name, service.argv.join(" "));
        let log = File::options().append(true).create(true).open(&path).attempt(context)?;
        let mut command = command(&service.argv, &service.environment).attempt(context)?;
        command.stdin(nothing().attempt(context)?).stdout(log.try_clone().attempt(context)?).stderr(log);
        sys::run_in_place(&mut command, &self.mounts, &self.group, "/", false);
        let status = command.status().attempt(context)?;
        if status.success() {
            return Ok(());
        }
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        Err(Error::because(context(), format!("{status}\n{}", log.trim_end())))
    }
}
