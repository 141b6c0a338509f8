//! The root of the sandbox: a small file system in memory with the guest's folder, its kernel, a
//! /proc of three names, and optionally the host's files, read-only.
//!
//! ```text
//! /job              the guest's folder, writable; its inputs are mounted over it, read-only
//! /proc/self/cwd    -> /job         (the kernel's command line names it, the same on every machine)
//! /proc/self/exe    -> /plait/linux (kernels since 7.0 execute themselves once more)
//! /proc/cpuinfo     the host's first processor
//! /dev/null         the output of the kernel's unused consoles
//! /plait/linux      the kernel, the one file that can be executed
//! /plait/host       the host's files without /proc, /sys, /run, /dev and every file system of its kernel
//! ```

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use crate::failure::{Attempt, Failure};
use crate::layer::Layer;
use crate::layers::Layers;
use crate::spec::{Input, Spec};
use crate::sys;

/// The path of the guest's kernel in the sandbox.
pub const KERNEL: &str = "/plait/linux";
const HOST: &str = "plait/host";
/// The input with an emulator's files.
pub const EMULATOR: &str = "emulator";
/// Folders that expose the host's kernel, its devices, and the sockets of its services.
const HIDDEN: [&str; 4] = ["proc", "sys", "run", "dev"];
/// File systems that expose the host's kernel or its devices, wherever they are mounted.
const OF_THE_KERNEL: [&str; 21] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "functionfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// The length of /proc/cpuinfo that suffices: the guest's kernel needs only the first processor.
const CPUINFO_BYTES: usize = 8192;

/// Build and enter the new root, unless the layer is inactive. Return whether the process has a new
/// root.
pub fn enter(spec: &Spec, layers: &mut Layers<'_>) -> Result<bool, Failure> {
    if layers.held.contains(&Layer::MinimalRoot) {
        // The layer counts as active since its namespace exists. A root that cannot be built in it
        // is always fatal.
        build(spec).map_err(|failure| Failure { layer: Some(Layer::MinimalRoot), ..failure })?;
        return Ok(true);
    }
    for Input { source, name } in &spec.inputs {
        copy(Path::new(source), &Path::new(&spec.job).join(name))
            .attempt(|| format!("copying {name} to the job folder"))?;
    }
    rustix::process::chdir(&*spec.job).attempt(|| "entering the job folder")?;
    Ok(false)
}

fn build(spec: &Spec) -> Result<(), Failure> {
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .attempt(|| "making mounts private")?;
    let cpuinfo = first_processor()?;
    for input in &spec.inputs {
        make_mount_point(&Path::new(&spec.job).join(&input.name), Path::new(&input.source).is_dir())?;
    }
    let root = memory("1m")?;
    let job = subtree(&spec.job, false, ATTRIBUTES)?;
    let inputs: Vec<(OwnedFd, String)> = (spec.inputs.iter())
        .map(|input| {
            // The loader maps the emulator's program and libraries executable; Landlock still forbids
            // the execution of every file but the loader.
            let executable = spec.emulator && input.name == EMULATOR;
            let attributes =
                if executable { NO_DEVICES | MountAttrFlags::MOUNT_ATTR_RDONLY } else { READ_ONLY };
            Ok((subtree(&input.source, false, attributes)?, format!("job/{}", input.name)))
        })
        .collect::<Result<_, Failure>>()?;
    let executable = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let kernel = subtree(&spec.kernel, false, executable)?;
    let null =
        subtree("/dev/null", false, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    let host = if spec.host_files { host_files(&spec.writable)? } else { Vec::new() };

    attach(&root, &spec.job)?;
    rustix::process::chdir(&*spec.job).attempt(|| "entering the new root")?;
    for folder in ["job", "proc", "proc/self", "dev", "plait", HOST] {
        fs::create_dir(folder).attempt(|| format!("creating /{folder}"))?;
    }
    symlink("/job", "proc/self/cwd").attempt(|| "creating /proc/self/cwd")?;
    symlink(KERNEL, "proc/self/exe").attempt(|| "creating /proc/self/exe")?;
    fs::write("proc/cpuinfo", cpuinfo).attempt(|| "writing /proc/cpuinfo")?;
    for (file, tree) in [("plait/linux", &kernel), ("dev/null", &null)] {
        fs::write(file, "").attempt(|| format!("creating the mount point of /{file}"))?;
        attach(tree, file)?;
    }
    attach(&job, "job")?;
    for (tree, name) in &inputs {
        attach(tree, name)?;
    }
    for (tree, place) in &host {
        attach(tree, place)?;
    }
    sys::set_mount_attributes(root.as_fd(), READ_ONLY, false).attempt(|| "making the new root read-only")?;
    rustix::process::pivot_root(".", ".").attempt(|| "changing the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).attempt(|| "unmounting the host's root")?;
    rustix::process::chdir("/job").attempt(|| "entering /job")
}

/// Not NOEXEC for the host's files, because the guest's kernel asks the host whether a program is
/// executable (access(2)). Landlock forbids the execution of all of them.
const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
const READ_ONLY: MountAttrFlags = ATTRIBUTES.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// Return the host's files as trees with their mount points: read-only, without what exposes the
/// kernel, and with the `writable` folders on top.
fn host_files(writable: &[String]) -> Result<Vec<(OwnedFd, String)>, Failure> {
    let mut trees =
        vec![(subtree("/", true, NO_DEVICES | MountAttrFlags::MOUNT_ATTR_RDONLY)?, HOST.to_owned())];
    let mut covered: Vec<String> = HIDDEN.iter().map(|name| format!("/{name}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").attempt(|| "reading /proc/self/mountinfo")?;
    for (place, kind) in mounts.lines().filter_map(place_and_kind) {
        let is_below = covered.iter().any(|folder| Path::new(&place).starts_with(folder));
        if !is_below && OF_THE_KERNEL.contains(&kind) {
            covered.push(place);
        }
    }
    for place in &covered {
        let cover = match fs::symlink_metadata(place) {
            Ok(metadata) if metadata.is_dir() => memory("4k")?,
            Ok(metadata) if metadata.is_file() => subtree("/dev/null", false, READ_ONLY)?, // an open fails: the mount forbids devices
            _ => continue,
        };
        sys::set_mount_attributes(cover.as_fd(), READ_ONLY, false).attempt(|| format!("covering {place}"))?;
        trees.push((cover, format!("{HOST}{place}")));
    }
    for folder in writable {
        trees.push((subtree(folder, true, NO_DEVICES)?, format!("{HOST}{folder}")));
    }
    Ok(trees)
}

/// Parse a line of mountinfo into the mount point and the kind of a file system
/// (`proc_pid_mountinfo(5)`).
fn place_and_kind(line: &str) -> Option<(String, &str)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let place = mount.split(' ').nth(4)?;
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let place = escapes.iter().fold(place.to_owned(), |text, (code, meaning)| text.replace(code, meaning));
    Some((place, file_system.split(' ').next()?))
}

/// Return a detached copy of the mounts at `path`, with `attributes`.
fn subtree(path: &str, recursive: bool, attributes: MountAttrFlags) -> Result<OwnedFd, Failure> {
    let deep = if recursive { OpenTreeFlags::AT_RECURSIVE } else { OpenTreeFlags::empty() };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | deep;
    let tree =
        rustix::mount::open_tree(CWD, path, flags).attempt(|| format!("copying the mount of {path}"))?;
    sys::set_mount_attributes(tree.as_fd(), attributes, recursive)
        .attempt(|| format!("setting the attributes of the mount of {path}"))?;
    Ok(tree)
}

/// Return a detached file system in memory.
fn memory(size: &str) -> Result<OwnedFd, Failure> {
    let context = || "creating a file system in memory";
    let tmpfs = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).attempt(context)?;
    rustix::mount::fsconfig_set_string(tmpfs.as_fd(), "size", size).attempt(context)?;
    rustix::mount::fsconfig_set_string(tmpfs.as_fd(), "mode", "0755").attempt(context)?;
    rustix::mount::fsconfig_create(tmpfs.as_fd()).attempt(context)?;
    rustix::mount::fsmount(tmpfs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES).attempt(context)
}

fn attach(tree: &OwnedFd, place: &str) -> Result<(), Failure> {
    rustix::mount::move_mount(tree.as_fd(), "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .attempt(|| format!("mounting /{place}"))
}

fn make_mount_point(path: &Path, is_folder: bool) -> Result<(), Failure> {
    let context = || format!("creating {}", path.display());
    if is_folder {
        return fs::create_dir(path).attempt(context);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::RUSR).attempt(context).map(drop)
}

/// Copy a file, or a folder of files.
fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    if !source.is_dir() {
        return fs::copy(source, target).map(drop);
    }
    fs::create_dir(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        copy(&entry.path(), &target.join(entry.file_name()))?;
    }
    Ok(())
}

/// Return the entry of the first processor in /proc/cpuinfo.
fn first_processor() -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;
    let context = || "reading /proc/cpuinfo";
    let mut text = vec![0; CPUINFO_BYTES];
    let length =
        fs::File::open("/proc/cpuinfo").and_then(|mut file| file.read(&mut text)).attempt(context)?;
    text.truncate(length);
    let end = text.windows(2).position(|pair| pair == b"\n\n").map_or(text.len(), |at| at + 2);
    text.truncate(end);
    Ok(text)
}
