//! The root of programs: the host's files, read-only, under private mounts.

use std::ffi::{CStr, CString};

use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount, mount_bind_recursive};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::boot::mount_at;
use crate::error::{Attempt, Error, Result};

/// Where the host's files appear.
pub const ROOT: &str = "/host";
/// The engine confines hostfs to the trial's folder, by a path that is put before every other. More steps up than any
/// folder is deep lead from there to the root of the sandbox, where the host's files have a place of their own.
const STEPS: usize = 64;
const STEP: &str = "../";
const HOST: &str = "plait/host";
/// What programs may write to, each empty and in memory, and gone with the trial. All of them together leave memory to
/// run in: what lies in them is never given up, and a guest without any memory left stands still.
const PRIVATE: [(&str, &str); 4] = [
    ("tmp", "mode=1777,size=50%"),
    ("run", "mode=0755,size=10%"),
    ("var/tmp", "mode=1777,size=10%"),
    ("mnt", "mode=0755,size=1%"),
];
/// Of `/dev/shm`.
const SHARED_MEMORY: &CStr = c"mode=1777,size=10%";

/// Mounts everything once. Nothing of it reaches the host: its files are read-only.
pub fn prepare() -> Result<()> {
    mount_host()?;
    for (path, options) in PRIVATE {
        let options = CString::new(options).unwrap_or_default();
        mount_at("tmpfs", "tmpfs", &format!("{ROOT}/{path}"), &options)?;
    }
    mount_kernel()?;
    mount_names()
}

/// The source of a mount of `path` of the host, an absolute path.
pub fn mount_host_path(path: &str, target: &str, flags: MountFlags) -> Result<()> {
    let what = || format!("mounting the host's {path}");
    let up = STEP.repeat(STEPS);
    let source = |place: &str| CString::new(place).map_err(|error| Error::because(what(), error));
    // Without a root of its own (`--unconfined` on a machine that offers none) the sandbox's root is the host's.
    mount("none", target, "hostfs", flags, source(&format!("{up}{HOST}{path}"))?.as_c_str())
        .or_else(|_| {
            mount(
                "none",
                target,
                "hostfs",
                flags,
                CString::new(format!("{up}{path}")).unwrap_or_default().as_c_str(),
            )
        })
        .attempt(what)
}

/// Mounts the host's files, read-only, and ignores their set-user-ID bits. Programs are root already, and where an
/// ordinary user runs the guest, the host's files belong to user 65534 here: without this, `mount` would run as that
/// user and be refused.
pub fn mount_host() -> Result<()> {
    rustix::fs::mkdir(ROOT, Mode::from_raw_mode(0o755)).attempt(|| format!("making {ROOT}"))?;
    mount_host_path("/", ROOT, MountFlags::RDONLY | MountFlags::NOSUID)
}

/// Mounts what the guest's kernel offers, in place of what the host's does.
pub fn mount_kernel() -> Result<()> {
    mount_at("proc", "proc", &format!("{ROOT}/proc"), c"")?;
    mount_at("sysfs", "sysfs", &format!("{ROOT}/sys"), c"")?;
    mount_at("devtmpfs", "devtmpfs", &format!("{ROOT}/dev"), c"mode=0755")?;
    for (name, kind, options) in [("pts", "devpts", c"ptmxmode=0666"), ("shm", "tmpfs", SHARED_MEMORY)] {
        let path = format!("{ROOT}/dev/{name}");
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).attempt(|| format!("making {path}"))?;
        mount_at(kind, kind, &path, options)?;
    }
    Ok(())
}

/// Names of the namespaces, for `ip netns`.
pub fn mount_names() -> Result<()> {
    let names = format!("{ROOT}/run/netns");
    rustix::fs::mkdir(&names, Mode::from_raw_mode(0o755)).attempt(|| format!("making {names}"))?;
    mount_bind_recursive("/run/netns", &names).attempt(|| format!("mounting {names}"))
}

/// From here on nothing more of the host can be mounted, nor what is mounted be made writable, nor code be brought into
/// the kernel: programs are root. Called by the main thread, from which all programs descend.
pub fn seal() -> Result<()> {
    for path in ["/sys/module/hostfs/parameters/sealed", "/proc/sys/kernel/modules_disabled"] {
        std::fs::write(path, "1")
            .attempt(|| format!("writing {path}, so that programs cannot leave the guest"))?;
    }
    for capability in [CapabilitySet::SYS_MODULE, CapabilitySet::SYS_RAWIO] {
        remove_capability_from_bounding_set(capability)
            .attempt(|| "keeping programs from the kernel's memory and modules")?;
    }
    Ok(())
}
