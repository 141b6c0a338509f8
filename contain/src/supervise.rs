//! The processes of the sandbox: start, end, and exit code.
//!
//! The supervisor runs outside the PID namespace, where the guest can neither see nor signal it. It
//! has the guest's restrictions before it starts the guest.

use std::convert::Infallible;
use std::ffi::CString;

use rustix::fd::OwnedFd;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};

use crate::failure::{Attempt, Failure};
use crate::layer::Layer;
use crate::layers::Layers;
use crate::report;
use crate::root::{EMULATOR, KERNEL};
use crate::spec::Spec;
use crate::sys::{self, Signals};

/// The offset of the exit code of a guest that a signal ended, as in a shell.
const SIGNALLED: i32 = 128;

/// Ask the kernel to kill this process when the thread of `parent` that started it ends.
pub fn die_with(parent: i32) -> Result<(), Failure> {
    let context = || "asking for a signal when plait ends";
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).attempt(context)?;
    // plait may have ended before the request; then no signal would ever end this process.
    if rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        return Err(Failure::new(context(), "plait has already ended"));
    }
    Ok(())
}

/// Start process 1 and the guest, wait for the guest, end what remains, and return the guest's exit
/// code. `confined`: the process has a root of its own.
pub fn run(spec: &Spec, layers: &Layers<'_>, confined: bool) -> Result<u8, Failure> {
    let signals = Signals::block().attempt(|| "blocking signals")?;
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (life, supervisor) = rustix::pipe::pipe_with(flags).attempt(|| "creating a pipe")?;
    let first = if layers.held.contains(&Layer::PidNamespace) {
        let context = || "starting process 1 of the sandbox";
        Some(sys::fork(|| be_process_one(&supervisor, &life)).attempt(context)?)
    } else {
        None
    };
    let (outcome, result) = rustix::pipe::pipe_with(flags).attempt(|| "creating a pipe")?;
    let guest =
        sys::fork(|| become_guest(spec, confined, &signals, &result)).attempt(|| "starting the guest")?;
    drop((life, result));
    let failure = sys::read_to_end(&outcome).attempt(|| "starting the guest")?; // empty if the kernel runs
    if failure.is_empty() {
        report::started(spec, guest.as_raw_nonzero().get(), layers);
    } else {
        report::failed(
            spec,
            &Failure { layer: None, reason: String::from_utf8_lossy(&failure).into_owned() },
        );
    }
    let code = wait(guest, first, &signals)?;
    drop(supervisor);
    Ok(code)
}

/// Run process 1. Its namespace ends with it, and it ends with the supervisor.
fn be_process_one(supervisor: &OwnedFd, life: &OwnedFd) {
    sys::close_in_child(supervisor);
    // No process in the sandbox may trace this one. The kernel reaps orphans.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    sys::ignore_children();
    let _ = sys::read_to_end(life); // returns when the supervisor ends, for whatever reason
}

/// Execute the guest's kernel; write the reason to `result` on failure.
fn become_guest(spec: &Spec, confined: bool, signals: &Signals, result: &OwnedFd) {
    let kernel = if confined { KERNEL } else { &spec.kernel };
    let home = if confined { "/job" } else { &spec.job };
    let Err(failure) = start(kernel, home, spec, signals);
    let _ = rustix::io::write(result, failure.reason.as_bytes());
}

fn start(kernel: &str, home: &str, spec: &Spec, signals: &Signals) -> Result<Infallible, Failure> {
    let text = |value: String| CString::new(value).attempt(|| "reading the command line");
    let line = std::iter::once("linux".to_owned()).chain(spec.arguments.iter().cloned());
    let mut environment =
        vec![text("PATH=/".into())?, text(format!("HOME={home}"))?, text(format!("TMPDIR={home}"))?];
    if spec.emulator {
        environment.push(text(format!("QEMU_MODULE_DIR={home}/{EMULATOR}/modules"))?);
    }
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .attempt(|| "asking for a signal when plait ends")?;
    // A signal to its own process group must reach neither the supervisor nor process 1.
    rustix::process::setsid().attempt(|| "starting a session of the guest's own")?;
    signals.restore().attempt(|| "unblocking signals")?;
    let line = line.map(text).collect::<Result<Vec<_>, _>>()?;
    let failed = sys::execute(&text(kernel.to_owned())?, &line, &environment);
    Err(Failure::new(format!("executing {kernel}"), failed))
}

/// Return the exit code after the guest and everything else in the sandbox has ended. SIGTERM ends
/// the sandbox.
fn wait(guest: Pid, first: Option<Pid>, signals: &Signals) -> Result<u8, Failure> {
    loop {
        if signals.next().attempt(|| "waiting for the guest")? == Signal::TERM {
            // The namespace ends with its process 1.
            let _ = rustix::process::kill_process(first.unwrap_or(guest), Signal::KILL);
        }
        let ended =
            rustix::process::waitpid(Some(guest), WaitOptions::NOHANG).attempt(|| "waiting for the guest")?;
        if let Some((_, status)) = ended {
            if let Some(first) = first {
                let _ = rustix::process::kill_process(first, Signal::KILL);
                // Process 1 remains until every process of its namespace was reaped. A process of the guest may
                // have made this one the parent of others (CLONE_PARENT).
                let next = || rustix::process::wait(WaitOptions::empty()).attempt(|| "ending the sandbox");
                while next()?.is_some_and(|(ended, _)| ended != first) {}
            }
            return Ok(code(status));
        }
    }
}

fn code(status: WaitStatus) -> u8 {
    let signal = status.terminating_signal().map(|signal| SIGNALLED + signal);
    u8::try_from(status.exit_status().or(signal).unwrap_or(1)).unwrap_or(1)
}
