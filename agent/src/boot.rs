//! The first steps of PID 1 (file systems, timer slack, the plan) and the last one (power off).

use std::ffi::CStr;

use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};

use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::machine;
use crate::plan::{self, Plan};
use crate::process;
use crate::{status, sys};

/// The folder with the names of the network namespaces.
const NETNS: &str = "/run/netns";
/// `fs.nr_open`, the default maximum of the kernel.
const DESCRIPTORS: u64 = 1 << 20;
/// The level below which the kernel writes messages to the console.
const LOG_LEVEL: &str = "/proc/sys/kernel/printk";

/// Prepare the guest: mounts, limits, and exact timers.
pub fn prepare() -> Result<()> {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err(Error::new("plait-agent must run as PID 1 of a guest; `plait run` boots one"));
    }
    sys::share_one_heap();
    mount_at("proc", "proc", "/proc", c"")?;
    log_below("5")?;
    mount_at("sysfs", "sysfs", "/sys", c"")?;
    if machine::is_this_one() {
        machine::prepare()?;
    }
    mount_at("tmpfs", "tmpfs", "/run", c"mode=0755")?;
    mount_at("tmpfs", "tmpfs", "/tmp", c"mode=1777")?;
    rustix::fs::mkdir(NETNS, Mode::from_raw_mode(0o755)).attempt(|| format!("creating {NETNS}"))?;
    // Otherwise the kernel adds a tunnel device of each kind to every new namespace.
    let tunnels = "/proc/sys/net/core/fb_tunnels_only_for_init_net";
    std::fs::write(tunnels, "2").attempt(|| format!("writing {tunnels}"))?;
    // A namespace takes four descriptors, and a network may have thousands.
    let descriptors = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    setrlimit(Resource::Nofile, descriptors)
        .attempt(|| format!("setting the limit on open files to {DESCRIPTORS}"))?;
    // By default, sleeps of ordinary threads may end 50 us late, which saves power on real
    // machines.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
        .attempt(|| "setting the timer slack")
}

/// Let the kernel write everything to the console from now on, which the host keeps. It writes only
/// warnings before, because each device of a network has several messages.
pub fn log_everything() -> Result<()> {
    if process::is_ordinary() { Ok(()) } else { log_below("8") }
}

/// Set the level. The console of a machine is a serial line, which would take processor time.
fn log_below(level: &str) -> Result<()> {
    if machine::is_this_one() {
        return Ok(());
    }
    std::fs::write(LOG_LEVEL, level).attempt(|| format!("writing {level} to {LOG_LEVEL}"))
}

/// Mount the trial's folder. Without it the agent has no plan and cannot report.
pub fn mount_job() -> Result<()> {
    if machine::is_this_one() {
        return machine::receive_job();
    }
    mount_at("none", "hostfs", job::MOUNTED, c"")
}

/// Mount a file system of `kind`.
pub fn mount_at(source: &str, kind: &str, target: &str, options: &CStr) -> Result<()> {
    mount(source, target, kind, MountFlags::empty(), options)
        .attempt(|| format!("mounting {kind} on {target}"))
}

/// Read /job/plan.json. The plan lives as long as the machine.
pub fn read_plan() -> Result<&'static Plan> {
    let json = std::fs::read(job::path("plan.json")).attempt(|| "reading plan.json")?;
    Ok(Box::leak(Box::new(plan::parse(&json)?)))
}

/// Power the machine off. PID 1 must never return, because the kernel would panic.
pub fn power_off() -> ! {
    if machine::is_this_one()
        && let Err(error) = machine::send_results()
    {
        status::console(&error.to_string());
    }
    loop {
        let _ = reboot(RebootCommand::PowerOff);
        std::thread::park();
    }
}
