//! Start the guest's process in a sandbox, wait for it, and end everything in the sandbox with it.
//!
//! The guest is untrusted, including its kernel: an attacker who controls that kernel can make any
//! system call that the host's process may make. That process therefore gets only what User-Mode
//! Linux needs:
//!
//! ```text
//! plait --> supervisor (this program, outside the PID namespace)
//!             |  new user, mount, PID, network, IPC, UTS and cgroup namespaces; a root of its own;
//!             |  limits, Landlock, no capabilities, no new privileges, seccomp
//!             +-- process 1: when it ends, the kernel kills all that is left in the PID namespace
//!             +-- process 2: becomes the guest's kernel
//! ```
//!
//! The supervisor itself gives up all that the guest must not have before it starts the guest.
//!
//! The only argument is a [`Spec`] as JSON, or `--calls`, which prints the table of system calls. One line of JSON goes to the socket `report`: the
//! guest's PID and the active layers, with a descriptor of the guest's folder, or the step that failed. The exit code is the guest's (128 +
//! signal).

mod failure;
mod filter;
mod layer;
mod layers;
mod namespaces;
mod privileges;
mod report;
mod root;
mod spec;
mod supervise;
mod sys;

use std::os::fd::AsFd;
use std::process::ExitCode;

use failure::{Attempt, Failure};
use spec::Spec;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "--calls" {
        let printed = serde_json::to_writer(std::io::stdout(), filter::TABLE);
        return ExitCode::from(u8::from(printed.is_err()));
    }
    let Ok(spec) = serde_json::from_str::<Spec>(&argument) else {
        eprintln!(
            "plait-contain: this program expects one argument, a specification as JSON; only plait should start it"
        );
        return ExitCode::from(2);
    };
    match run(&spec) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            report::failed(&spec, &failure);
            ExitCode::from(3)
        }
    }
}

/// Build the sandbox around this process, start the guest in it, and return its exit code.
fn run(spec: &Spec) -> Result<u8, Failure> {
    supervise::die_with(spec.parent)?;
    sys::close_on_exec(spec.report).attempt(|| "keeping the report from the guest")?;
    privileges::go_first_without_memory()?;
    let mut layers = layers::Layers::new(spec);
    namespaces::enter(&mut layers)?;
    let folder = root::enter(spec, &mut layers)?;
    let confined = folder.is_some();
    if let Some(folder) = folder {
        report::folder(spec, folder.as_fd())?; // plait alone keeps it
    }
    privileges::give_up(spec, &mut layers, confined)?;
    supervise::run(spec, &layers, confined)
}
