//! The guest as programs of a session see it: the host's files with private layers, devices,
//! control groups, a loopback.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountFlags, mount, mount_move};
use rustix::thread::UnshareFlags;

use super::orders::SessionRequest;
use crate::apply;
use crate::boot::mount_at;
use crate::error::{Attempt, Result};
use crate::program::root::{self, ROOT};
use crate::sys;

/// Folders of the host with a writable layer in memory.
const LAYERED: [&str; 2] = ["tmp", "var"];
/// The mount point of the writable layers.
const LAYERS: &str = "/run/layers";
/// Folders of version 1 control groups, for Mininet and libcgroup.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuacct", "freezer", "pids"];
const GROUPS: &str = "/host/sys/fs/cgroup";
/// The control group of all programs of a session; it limits the number of processes.
pub const GROUP: &str = "/host/sys/fs/cgroup/pids/plait";

/// Prepare the guest for programs, and return their mount namespace, whose root has the host's files.
pub fn prepare(first: &SessionRequest) -> Result<OwnedFd> {
    apply::bring_up_loopback()?;
    root::mount_host()?;
    layers()?;
    mount_at("tmpfs", "tmpfs", &format!("{ROOT}/run"), c"mode=0755,size=10%")?;
    root::mount_kernel()?;
    root::mount_names()?;
    devices()?;
    groups(first.processes_max)?;
    for folder in &first.writable {
        root::mount_host_path(folder, &format!("{ROOT}{folder}"), MountFlags::NOSUID)?;
    }
    root::seal()?;
    enter()
}

fn layers() -> Result<()> {
    mount_at("tmpfs", "tmpfs", &make(LAYERS, 0o755)?, c"mode=0755,size=50%")?;
    for name in LAYERED {
        let (upper, work) = (format!("{LAYERS}/{name}"), format!("{LAYERS}/{name}.work"));
        let lower = format!("{ROOT}/{name}");
        make(&work, 0o755)?;
        make(
            &upper,
            fs::metadata(&lower)
                .map_or(0o755, |status| std::os::unix::fs::PermissionsExt::mode(&status.permissions())),
        )?;
        let options =
            CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}")).unwrap_or_default();
        mount("overlay", &lower, "overlay", MountFlags::NOSUID, options.as_c_str())
            .attempt(|| format!("mounting an overlay on {lower}"))?;
    }
    Ok(())
}

fn make(path: &str, mode: u32) -> Result<String> {
    let context = || format!("creating {path}");
    rustix::fs::mkdir(path, Mode::from_raw_mode(mode)).attempt(context)?;
    // Set the mode again, because mkdir applies the umask.
    rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o7777)).attempt(context)?;
    Ok(path.to_owned())
}

/// Create the devices that devtmpfs leaves to user space.
pub fn devices() -> Result<()> {
    let dev = format!("{ROOT}/dev");
    // Programs see their own instance of devpts, not the kernel's node.
    let ptmx = format!("{dev}/ptmx");
    if fs::symlink_metadata(&ptmx).is_ok() {
        fs::remove_file(&ptmx).attempt(|| format!("removing {ptmx}"))?;
    }
    let descriptors = [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
    for (name, target) in descriptors.into_iter().chain([("ptmx", "pts/ptmx")]) {
        std::os::unix::fs::symlink(target, format!("{dev}/{name}"))
            .attempt(|| format!("creating {dev}/{name}"))?;
    }
    let tun = format!("{dev}/net/tun");
    if fs::symlink_metadata(&tun).is_err() {
        make(&format!("{dev}/net"), 0o755)?;
        let (mode, number) = (Mode::from_raw_mode(0o666), rustix::fs::makedev(10, 200));
        rustix::fs::mknodat(rustix::fs::CWD, &tun, FileType::CharacterDevice, mode, number)
            .attempt(|| format!("creating {tun}"))?;
    }
    Ok(())
}

fn groups(processes_max: u32) -> Result<()> {
    mount_at("cgroup", "tmpfs", GROUPS, c"mode=0755")?;
    for name in CONTROLLERS {
        let path = make(&format!("{GROUPS}/{name}"), 0o755)?;
        mount_at("cgroup", "cgroup", &path, &CString::new(name).unwrap_or_default())?;
    }
    make(GROUP, 0o755)?;
    let limit = format!("{GROUP}/pids.max");
    fs::write(&limit, processes_max.to_string()).attempt(|| format!("writing {limit}"))
}

/// Make the host's files the root of a new mount namespace, as `switch_root` does.
pub fn enter() -> Result<OwnedFd> {
    let (sender, receiver) = mpsc::channel();
    let make = move || {
        let made = sys::unshare(UnshareFlags::NEWNS | UnshareFlags::FS)
            .and_then(|()| rustix::process::chdir(ROOT))
            .and_then(|()| mount_move(".", "/"))
            .and_then(|()| rustix::process::chroot("."))
            .and_then(|()| {
                rustix::fs::open("/proc/thread-self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            });
        let _ = sender.send(made); // the receiver waits for it
    };
    let context = || "changing the root to the host's files";
    thread::Builder::new().spawn(make).attempt(context)?;
    receiver.recv().attempt(context)?.attempt(context)
}

/// Return how often the limit on processes refused a new one.
pub fn refused_processes() -> u64 {
    let events = fs::read_to_string(format!("{GROUP}/pids.events")).unwrap_or_default();
    events.split_whitespace().nth(1).and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// Return the private file systems that are full.
pub fn full() -> Vec<&'static str> {
    let places = [(LAYERS, "/tmp and /var"), ("/host/run", "/run"), ("/host/dev/shm", "/dev/shm")];
    let is_full = |path: &str| rustix::fs::statvfs(path).is_ok_and(|status| status.f_bavail == 0);
    places.into_iter().filter(|(path, _)| is_full(path)).map(|(_, name)| name).collect()
}
