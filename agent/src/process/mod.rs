//! The agent as an ordinary process of a machine that also does other things. Its clock is real.
//!
//! ```text
//! plait-agent --job DIR [--heartbeat SECONDS] [--on-order] [--node NAME [--netns FILE]]
//!             [--most-bytes N] [--most-rate BPS]
//! ```
//!
//! The agent reads `plan.json` and `input/` in DIR and writes `data/`, `progress` and
//! `status.json` there, as in a guest. Without `--node` it also writes `fidelity.json` (how well the machine kept
//! time, which the links need). It exits with 0 if the trial succeeded, with 1 if it failed (`status.json` has the
//! reason), and with 2 if its arguments are wrong.
//!
//! **Namespaces.** Without `--node` the agent moves into namespaces of its own (mount, network,
//! IPC, PID), in which a second process carries out the plan as PID 1. An ordinary user gets a user
//! namespace first. The network namespaces of the plan have no names; descriptors keep them. All
//! of it ends with the second process, however that ends.
//!
//! **`--node NAME`.** The agent stays where it is, and builds no network: its present network
//! namespace is the node NAME of the plan. It needs no privileges, unless the plan changes
//! something. It opens only the sockets of NAME. A flow whose other side is elsewhere has only the
//! values of this side; all others are null:
//!
//! - A receiver ends the flow when the stream ends; a sender ends it when the receiver has closed.
//! - `network.namespaces` of the plan must list NAME and nothing else, without sysctls unless the
//!   agent may write them. `veths`, `links` and everything else that the agent would build stay
//!   empty. `network.mptcp` may have an entry for NAME if the agent may configure endpoints; without
//!   it, the agent reads path-manager events only if it is privileged.
//! - Interfaces keep their names and numbers.
//!
//! **`--netns FILE`.** The agent first moves into this network namespace, which needs root.
//!
//! **Standard input** must be a pipe. When it closes, the agent ends. With `--heartbeat` it also
//! ends when no byte arrives for SECONDS. Lines may hold orders; empty lines are heartbeats:
//!
//! | order | answer on standard output |
//! |---|---|
//! | `start` | `zero REALTIME_NS`: the trial's zero on this machine's clock. Only with `--on-order`: the agent prints `ready`, and waits for this order |
//! | `close` | none: the agent drops the connections of the trial, and ends. Only with `--on-order`: the agent prints `done`, and waits for this order |
//! | `stop` | none: the agent ends |
//! | `end` | none: with the next sample the trial is over, and the agent completes its tables |
//! | `time` | `time REALTIME_NS`, at once, to estimate the offset between two clocks |
//!
//! SIGTERM, SIGINT and SIGHUP end the agent as well. Each of these ends leaves a failed
//! `status.json` with the reason.
//!
//! **Limits.** With `--most-bytes` and `--most-rate` the agent ends the trial when the TCP connections
//! of its flows have sent more than N bytes, or more than BPS over a second. It checks this with
//! each sample.
//!
//! **Settings of the machine** (`machine.sysctls` of the plan) hold for all namespaces. The agent
//! leaves them as they are; they do not even exist in its network namespaces.

mod arguments;
mod current;
mod fidelity;
mod isolate;
mod lineage;
mod orders;

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use arguments::{Arguments, arguments};
pub use current::{end, is_ordinary, node, require_guest, sending_limits, share_namespace};
pub use fidelity::Fidelity;
pub use orders::{announce_zero, is_told_to_end, wait_for_close, wait_for_start};

use crate::error::{Attempt, Result};
use crate::{clock, job, status};

/// Carry out the plan with `carry_out`, and end the process.
pub fn run(arguments: Arguments, carry_out: impl FnOnce() -> Result<()>) -> ! {
    job::use_folder(arguments.job.clone());
    clock::let_computing_take_time();
    let arguments = current::ARGUMENTS.get_or_init(|| arguments);
    if arguments.node.is_none() && arguments.parent.is_none() {
        let code = lineage::supervise().unwrap_or_else(|error| {
            status::write(Some(&error.to_string()));
            1
        });
        std::process::exit(code);
    }
    let outcome = prepare(arguments).and_then(|()| carry_out());
    end(outcome.err().map(|error| error.to_string()).as_deref())
}

/// Prepare the process that carries out the plan.
fn prepare(arguments: &'static Arguments) -> Result<()> {
    if let Some(parent) = arguments.parent {
        lineage::end_with(parent)?;
        isolate::mount_own_processes()?;
    }
    if let Some(file) = &arguments.netns {
        let context = || format!("entering the network namespace {}", file.display());
        let namespace = open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).attempt(context)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).attempt(context)?;
    }
    raise_descriptors()?;
    // Timers of ordinary threads may fire 50 us late; the threads of the trial inherit this value.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).attempt(|| "setting the timer slack")?;
    orders::watch(arguments)
}

/// A namespace takes four descriptors, so raise the limit as far as the machine allows.
fn raise_descriptors() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .attempt(|| "raising the limit on open files")
}
