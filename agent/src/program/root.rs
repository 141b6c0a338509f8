//! The root directory of programs: the host's files, read-only, with private mounts over them.

use std::ffi::{CStr, CString};

use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive, mount_remount};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::boot::mount_at;
use crate::error::{Attempt, Result};
use crate::machine;

/// The mount point of the host's files.
pub const ROOT: &str = "/host";
/// The engine confines hostfs to the trial's folder: it prepends the path of that folder to every
/// other path. More `..` than any folder is deep lead from there to the root of the sandbox, which
/// contains the host's files.
const STEPS: usize = 64;
const STEP: &str = "../";
const HOST: &str = "plait/host";
/// Private folders for programs: empty, in memory, discarded with the trial. Their limits together
/// leave memory to run in, because tmpfs never frees the pages of files, and a guest without free
/// memory stops.
const PRIVATE: [(&str, &str); 4] = [
    ("tmp", "mode=1777,size=50%"),
    ("run", "mode=0755,size=10%"),
    ("var/tmp", "mode=1777,size=10%"),
    ("mnt", "mode=0755,size=1%"),
];
const HOSTFS_SEALED: &str = "/sys/module/hostfs/parameters/sealed";
const MODULES_DISABLED: &str = "/proc/sys/kernel/modules_disabled";
/// Mount options of `/dev/shm`.
const SHARED_MEMORY: &CStr = c"mode=1777,size=10%";

/// Mount the root of programs. The host's files are read-only, so no write reaches the host.
pub fn prepare() -> Result<()> {
    mount_host()?;
    for (path, options) in PRIVATE {
        let options = CString::new(options).unwrap_or_default();
        mount_at("tmpfs", "tmpfs", &format!("{ROOT}/{path}"), &options)?;
    }
    mount_kernel()?;
    mount_names()
}

/// Mount `path`, an absolute path of the host, on `target`.
pub fn mount_host_path(path: &str, target: &str, flags: MountFlags) -> Result<()> {
    let context = || format!("mounting the host's {path}");
    let up = STEP.repeat(STEPS);
    let mount_from = |place: String| {
        let source = CString::new(place).attempt(context)?;
        mount("none", target, "hostfs", flags, source.as_c_str()).attempt(context)
    };
    // Without a root of its own (`--unconfined` on a machine that offers none) the sandbox has the
    // host's root.
    mount_from(format!("{up}{HOST}{path}")).or_else(|_| mount_from(format!("{up}{path}")))
}

/// Mount `path`, an absolute path of the host, read-only on `target`, also if it lies below a folder
/// that is private to the guest, such as `/tmp`.
pub fn mount_covered(path: &str, target: &str) -> Result<()> {
    if !machine::is_this_one() {
        return mount_host_path(path, target, MountFlags::RDONLY | MountFlags::NOSUID);
    }
    let context = || format!("mounting the host's {path} on {target}");
    mount_bind(ROOT, target).attempt(context)?; // without the mounts below it
    mount_bind(format!("{target}{path}"), target).attempt(context)
}

/// Mount the host's files, read-only and without set-user-ID bits. Programs are already root. If an
/// ordinary user runs the guest, the host's files belong to user 65534 here; with set-user-ID,
/// `mount` would run as that user and fail.
pub fn mount_host() -> Result<()> {
    if machine::is_this_one() {
        return mount_copies();
    }
    rustix::fs::mkdir(ROOT, Mode::from_raw_mode(0o755)).attempt(|| format!("creating {ROOT}"))?;
    mount_host_path("/", ROOT, MountFlags::RDONLY | MountFlags::NOSUID)
}

/// Make the copies of the host's files read-only that a machine has got with its job.
fn mount_copies() -> Result<()> {
    let context = || format!("mounting {ROOT}");
    mount_bind(ROOT, ROOT).attempt(context)?;
    mount_remount(ROOT, MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID, c"").attempt(context)
}

/// Mount the kernel file systems of the guest over those of the host.
pub fn mount_kernel() -> Result<()> {
    mount_at("proc", "proc", &format!("{ROOT}/proc"), c"")?;
    mount_at("sysfs", "sysfs", &format!("{ROOT}/sys"), c"")?;
    mount_at("devtmpfs", "devtmpfs", &format!("{ROOT}/dev"), c"mode=0755")?;
    for (name, kind, options) in [("pts", "devpts", c"ptmxmode=0666"), ("shm", "tmpfs", SHARED_MEMORY)] {
        let path = format!("{ROOT}/dev/{name}");
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).attempt(|| format!("creating {path}"))?;
        mount_at(kind, kind, &path, options)?;
    }
    Ok(())
}

/// Mount the names of the namespaces, for `ip netns`.
pub fn mount_names() -> Result<()> {
    let names = format!("{ROOT}/run/netns");
    rustix::fs::mkdir(&names, Mode::from_raw_mode(0o755)).attempt(|| format!("creating {names}"))?;
    mount_bind_recursive("/run/netns", &names).attempt(|| format!("mounting {names}"))
}

/// Lock the guest down, because programs are root: they can no longer mount anything of the host,
/// make a mount writable, or load code into the kernel. The main thread calls this; all programs
/// descend from it.
pub fn seal() -> Result<()> {
    let hostfs = (!machine::is_this_one()).then_some(HOSTFS_SEALED); // a stock kernel has none
    for path in hostfs.into_iter().chain([MODULES_DISABLED]) {
        std::fs::write(path, "1")
            .attempt(|| format!("writing {path}, so that programs cannot leave the guest"))?;
    }
    for capability in [CapabilitySet::SYS_MODULE, CapabilitySet::SYS_RAWIO] {
        remove_capability_from_bounding_set(capability)
            .attempt(|| "keeping programs from the kernel's memory and modules")?;
    }
    Ok(())
}
