//! Namespaces of the agent's own: as root, or within a user namespace of an ordinary user.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::error::{Attempt, Result};
use crate::sys;

/// Move this process into namespaces of its own. Its next child becomes PID 1 of the PID namespace.
pub fn unshare() -> Result<()> {
    let (user, group) = (geteuid(), getegid());
    let ordinary = !user.is_root();
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWPID;
    sys::unshare(if ordinary { own | UnshareFlags::NEWUSER } else { own }).attempt(|| {
        if ordinary {
            "creating a user namespace (unshare)"
        } else {
            "creating namespaces (unshare); root in a container may lack CAP_SYS_ADMIN"
        }
    })?;
    if ordinary {
        let map = |name: &str, text: String| {
            let path = format!("/proc/self/{name}");
            std::fs::write(&path, text).attempt(|| format!("writing {path}"))
        };
        map("uid_map", format!("0 {} 1", user.as_raw()))?;
        map("setgroups", "deny".to_owned())?;
        map("gid_map", format!("0 {} 1", group.as_raw()))?;
    }
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).attempt(|| "making the mounts of the namespace private")
}

/// Mount /proc of the PID namespace. Where the machine forbids this (a container that masks parts
/// of /proc), the old one stays: its `self` and its sysctls are those of this process as well.
pub fn mount_own_processes() -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", flags, c"");
    std::fs::metadata("/proc/thread-self/ns/net").attempt(|| "reading /proc").map(|_| ())
}
