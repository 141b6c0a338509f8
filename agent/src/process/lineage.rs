//! The two processes of an agent with namespaces of its own: the supervisor, and PID 1 of the
//! namespaces, which carries out the plan. Neither outlives the other.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::current::ENDING;
use super::isolate;
use crate::error::{Attempt, Error, Result};
use crate::sys;

/// How long PID 1 has to report after a signal before the supervisor kills it.
const GRACE: Duration = Duration::from_secs(5);

/// Start PID 1 of new namespaces, pass signals on to it, and return its exit code.
pub fn supervise() -> Result<i32> {
    let signals: Vec<i32> = ENDING.into_iter().chain([libc::SIGCHLD]).collect();
    let signals = sys::block_signals(&signals).attempt(|| "blocking signals")?;
    isolate::unshare()?;
    let mut child = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg("--parent")
        .arg(std::process::id().to_string())
        .spawn()
        .attempt(|| "starting the agent in its namespaces")?;
    let mut kill_at: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().attempt(|| "waiting for the agent in its namespaces")? {
            return status
                .code()
                .ok_or_else(|| Error::new(format!("the agent in its namespaces ended: {status}")));
        }
        let left = kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            child.kill().attempt(|| "killing the agent in its namespaces")?;
            kill_at = None;
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // An error is an interruption; the loop then looks at the child again.
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], left.as_ref());
        while let Some(number) = sys::read_signal(&signals) {
            if number != libc::SIGCHLD {
                pass_on(&child, number);
                kill_at.get_or_insert(Instant::now() + GRACE);
            }
        }
    }
}

/// Send a signal to the child, if it still exists.
fn pass_on(child: &Child, number: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
        let _ = kill_process(pid, signal);
    }
}

/// Let the kernel kill this process, which is PID 1 of its namespace, when its supervisor ends.
pub fn end_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).attempt(|| "binding the agent to its supervisor")?;
    // The supervisor may have ended before that call. This /proc is still that of its namespace.
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).attempt(|| format!("reading {path}"))?;
    let is_child = |line: &str| line.strip_prefix("PPid:").map(str::trim) == Some(&parent.to_string());
    if status.lines().any(is_child) { Ok(()) } else { Err(Error::new("the agent's supervisor has ended")) }
}
