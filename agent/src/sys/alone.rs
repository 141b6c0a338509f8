//! How a stranger's program starts on a real host: alone, bounded, and bound to the agent's life.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

/// Descriptors above this number do not exist: the agent opens few, and none of a program has more.
const MOST_DESCRIPTORS: RawFd = 1024;

/// Make a command run with the descriptors `kept` besides its standard streams, at most `cpu_s`
/// seconds of processor time, and without gaining privileges by files that it executes. The kernel
/// kills it when the thread that starts it ends. The descriptors must be open until then.
pub fn run_alone(command: &mut Command, kept: Vec<RawFd>, cpu_s: u64) {
    let agent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(agent) {
            return Err(rustix::io::Errno::SRCH.into()); // the agent has ended in between
        }
        for descriptor in 3..MOST_DESCRIPTORS {
            let flags = if kept.contains(&descriptor) { 0 } else { libc::FD_CLOEXEC };
            // SAFETY: changes a flag of a descriptor of this process, or fails if there is none.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, flags) };
        }
        let bound = |most| Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Cpu, bound(cpu_s))?;
        setrlimit(Resource::Core, bound(0))?;
        rustix::thread::set_no_new_privs(true)?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(prepare);
    }
}
