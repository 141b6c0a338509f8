//! The root of programs: the host's files, read-only, under private mounts.

use std::ffi::{CStr, CString};

use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::boot::mount_at;
use crate::error::{Attempt, Result};

/// Where the host's files appear.
pub const ROOT: &str = "/host";
/// The engine confines hostfs to the trial's folder, by a path that is put before every other. More steps up than any
/// folder is deep lead from there to the host's root.
const STEPS: usize = 64;
const STEP: &str = "../";
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

/// Where a path of the host is found from what hostfs is confined to.
pub fn host_path(path: &str) -> String {
    format!("{}{path}", STEP.repeat(STEPS))
}

/// Mounts the host's files, read-only.
pub fn mount_host() -> Result<()> {
    rustix::fs::mkdir(ROOT, Mode::from_raw_mode(0o755)).attempt(|| format!("making {ROOT}"))?;
    let root = CString::new(host_path("")).unwrap_or_default();
    mount("none", ROOT, "hostfs", MountFlags::RDONLY, root.as_c_str()).attempt(|| "mounting the host's files")
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

/// From here on nothing more of the host can be mounted, nor what is mounted be made writable: programs are root.
pub fn seal() -> Result<()> {
    let path = "/sys/module/hostfs/parameters/sealed";
    std::fs::write(path, "1")
        .attempt(|| format!("writing {path}, so that programs cannot change the host's files"))
}
