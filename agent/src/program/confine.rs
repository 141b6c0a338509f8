//! Control groups: one per program, to count, find and end the program and all its descendants.

use std::fmt;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};

use crate::boot::mount_at;
use crate::error::{Attempt, Result};

/// Limit on the processes and threads of a program, itself included.
pub const PROCESSES: u32 = 512;

const GROUPS: &str = "/run/programs";

/// Mount the control groups where programs cannot see them.
pub fn prepare() -> Result<()> {
    rustix::fs::mkdir(GROUPS, Mode::from_raw_mode(0o755)).attempt(|| format!("creating {GROUPS}"))?;
    mount_at("cgroup2", "cgroup2", GROUPS, c"")?;
    std::fs::write(format!("{GROUPS}/cgroup.subtree_control"), "+pids")
        .attempt(|| "enabling limits on the number of processes")
}

/// The control group of one program.
pub struct Group {
    path: String,
}

impl Group {
    /// Create the control group with its limit.
    pub fn create(name: &str) -> Result<Self> {
        let path = format!("{GROUPS}/{name}");
        std::fs::create_dir(&path).attempt(|| format!("creating {path}"))?;
        std::fs::write(format!("{path}/pids.max"), PROCESSES.to_string())
            .attempt(|| format!("limiting the processes of {name}"))?;
        Ok(Self { path })
    }

    /// Open `cgroup.procs`. A process that writes 0 to it joins the group.
    pub fn door(&self) -> rustix::io::Result<OwnedFd> {
        let path = format!("{}/cgroup.procs", self.path);
        rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Return the number by which the kernel knows the group: the inode of its folder.
    pub fn id(&self) -> Result<u64> {
        let metadata = std::fs::metadata(&self.path).attempt(|| format!("reading {}", self.path))?;
        Ok(std::os::unix::fs::MetadataExt::ino(&metadata))
    }

    /// Return the PIDs in the group.
    fn members(&self) -> Vec<Pid> {
        let list = std::fs::read_to_string(format!("{}/cgroup.procs", self.path)).unwrap_or_default();
        list.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }

    /// Send a signal to all processes in the group.
    pub fn signal(&self, number: i32) {
        for pid in self.members() {
            if let Some(signal) = Signal::from_named_raw(number) {
                let _ = kill_process(pid, signal); // it may have ended
            }
        }
    }

    /// Kill all processes in the group at once.
    pub fn kill(&self) {
        // An empty group needs no signal.
        let _ = std::fs::write(format!("{}/cgroup.kill", self.path), "1");
    }

    /// Whether the limit has ever refused a new process.
    pub fn was_full(&self) -> bool {
        let events = std::fs::read_to_string(format!("{}/pids.events", self.path)).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|count| count != "0"))
    }

    /// Whether a process in the group has a descriptor of the socket with this inode.
    pub fn holds(&self, inode: u32) -> bool {
        self.members()
            .into_iter()
            .flat_map(|pid| held_sockets(pid.as_raw_nonzero()))
            .any(|held| held == inode)
    }
}

/// Return the inodes of the sockets that a process holds, as far as this process may see them.
pub fn held_sockets(pid: impl fmt::Display) -> impl Iterator<Item = u32> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| {
        let target = std::fs::read_link(descriptor.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}
