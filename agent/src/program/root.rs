//! The root of programs: the host's files, read-only, under private mounts.

use std::ffi::CString;

use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::boot::mount_at;
use crate::error::{Attempt, Result};

/// Where the host's files appear.
pub const ROOT: &str = "/host";
/// The engine confines hostfs to the trial's folder, by a path that is put before every other. More steps up than any
/// folder is deep lead from there to the host's root.
const UP: usize = 64;
/// What programs may write to, each empty and in memory, and gone with the trial.
const PRIVATE: [(&str, &str); 4] =
    [("tmp", "mode=1777"), ("run", "mode=0755"), ("var/tmp", "mode=1777"), ("mnt", "mode=0755")];

/// Mounts everything once. Nothing of it reaches the host: its files are read-only.
pub fn prepare() -> Result<()> {
    rustix::fs::mkdir(ROOT, Mode::from_raw_mode(0o755)).attempt(|| format!("making {ROOT}"))?;
    let up = CString::new("../".repeat(UP)).unwrap_or_default();
    mount("none", ROOT, "hostfs", MountFlags::RDONLY, up.as_c_str())
        .attempt(|| "mounting the host's files")?;
    for (path, options) in PRIVATE {
        let options = CString::new(options).unwrap_or_default();
        mount_at("tmpfs", "tmpfs", &format!("{ROOT}/{path}"), &options)?;
    }
    mount_at("proc", "proc", &format!("{ROOT}/proc"), c"")?;
    mount_at("sysfs", "sysfs", &format!("{ROOT}/sys"), c"")?;
    mount_at("devtmpfs", "devtmpfs", &format!("{ROOT}/dev"), c"mode=0755")?;
    for (name, kind, options) in [("pts", "devpts", c"ptmxmode=0666"), ("shm", "tmpfs", c"mode=1777")] {
        let path = format!("{ROOT}/dev/{name}");
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).attempt(|| format!("making {path}"))?;
        mount_at(kind, kind, &path, options)?;
    }
    // Names of the namespaces, for `ip netns`.
    let names = format!("{ROOT}/run/netns");
    rustix::fs::mkdir(&names, Mode::from_raw_mode(0o755)).attempt(|| format!("making {names}"))?;
    mount_bind_recursive("/run/netns", &names).attempt(|| format!("mounting {names}"))
}
