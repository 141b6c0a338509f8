//! A control group for each program: it and all that it starts can be counted, found and ended together.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use crate::boot::mount_at;
use crate::error::{Attempt, Result};

/// Processes and threads that a program may have, itself included.
pub const PROCESSES: u32 = 512;

const GROUPS: &str = "/run/programs";

/// Mounts the control groups, out of sight of programs.
pub fn prepare() -> Result<()> {
    rustix::fs::mkdir(GROUPS, Mode::from_raw_mode(0o755)).attempt(|| format!("making {GROUPS}"))?;
    mount_at("cgroup2", "cgroup2", GROUPS, c"")?;
    std::fs::write(format!("{GROUPS}/cgroup.subtree_control"), "+pids")
        .attempt(|| "letting the number of processes be limited")
}

/// The control group of one program.
pub struct Group {
    path: String,
}

impl Group {
    /// Makes it, with its limit.
    pub fn create(name: &str) -> Result<Self> {
        let path = format!("{GROUPS}/{name}");
        std::fs::create_dir(&path).attempt(|| format!("making {path}"))?;
        std::fs::write(format!("{path}/pids.max"), PROCESSES.to_string())
            .attempt(|| format!("limiting the processes of {name}"))?;
        Ok(Self { path })
    }

    /// Who writes 0 here is in the group from then on.
    pub fn door(&self) -> rustix::io::Result<OwnedFd> {
        let path = format!("{}/cgroup.procs", self.path);
        rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The processes in it.
    fn members(&self) -> Vec<i32> {
        let list = std::fs::read_to_string(format!("{}/cgroup.procs", self.path)).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Sends a signal to all processes in it.
    pub fn signal(&self, number: i32) {
        for pid in self.members() {
            crate::sys::signal(pid, number); // one may have ended by itself
        }
    }

    /// Ends all that is in it, at once.
    pub fn kill(&self) {
        // What is empty needs nothing.
        let _ = std::fs::write(format!("{}/cgroup.kill", self.path), "1");
    }

    /// Whether it has ever asked for more processes than it may have.
    pub fn was_full(&self) -> bool {
        let events = std::fs::read_to_string(format!("{}/pids.events", self.path)).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|count| count != "0"))
    }

    /// Whether a process in it has a descriptor of the socket with this inode.
    pub fn holds(&self, inode: u32) -> bool {
        let wanted = format!("socket:[{inode}]");
        self.members().into_iter().any(|pid| {
            let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
            descriptors.flatten().any(|one| {
                std::fs::read_link(one.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())
            })
        })
    }
}
