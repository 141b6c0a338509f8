//! The root of the sandbox: a small file system in memory with the guest's folder, its kernel, a
//! /proc of three names, and optionally some of the host's files, read-only.
//!
//! ```text
//! /job              the guest's folder, in memory, writable; its inputs are mounted over it, read-only
//! /proc/self/cwd    -> /job         (the kernel's command line names it, the same on every machine)
//! /proc/self/exe    -> /plait/linux (kernels since 7.0 execute themselves once more)
//! /proc/cpuinfo     the host's first processor
//! /dev/null         the output of the kernel's unused consoles
//! /plait/linux      the kernel, the one file that can be executed
//! /plait/host       what the guest's programs see of the host, without every file system of its kernel
//! ```

mod host;
mod mounts;

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags};

use self::host::HOST;
use self::mounts::{NO_DEVICES, READ_ONLY, memory, subtree};
use crate::failure::{Attempt, Failure};
use crate::layer::Layer;
use crate::layers::Layers;
use crate::spec::{Input, Spec};
use crate::sys;

/// The path of the guest's kernel in the sandbox.
pub const KERNEL: &str = "/plait/linux";
/// The input with an emulator's files.
pub const EMULATOR: &str = "emulator";
/// The length of /proc/cpuinfo that suffices: the guest's kernel needs only the first processor.
const CPUINFO_BYTES: usize = 8192;

/// Build and enter the new root, and return the guest's folder in it; none if the layer is inactive.
pub fn enter(spec: &Spec, layers: &mut Layers<'_>) -> Result<Option<OwnedFd>, Failure> {
    if layers.held.contains(&Layer::MinimalRoot) {
        // The layer counts as active since its namespace exists. A root that cannot be built in it
        // is always fatal.
        return build(spec)
            .map(Some)
            .map_err(|failure| Failure { layer: Some(Layer::MinimalRoot), ..failure });
    }
    for Input { source, name } in &spec.inputs {
        copy(Path::new(source), &Path::new(&spec.job).join(name))
            .attempt(|| format!("copying {name} to the job folder"))?;
    }
    rustix::process::chdir(&*spec.job).attempt(|| "entering the job folder")?;
    Ok(None)
}

fn build(spec: &Spec) -> Result<OwnedFd, Failure> {
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .attempt(|| "making mounts private")?;
    let cpuinfo = first_processor()?;
    let root = memory("1m", None)?;
    let (job, folder) = guest_folder(spec)?;
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
    // A device can be written to on a read-only mount, but its mode, owner and times, which are the
    // host's, cannot be changed there.
    let device = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let null = subtree("/dev/null", false, device)?;
    let host = spec.visible.as_ref().map(|visible| host::root(visible, spec)).transpose()?;

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
    if let Some(trees) = host {
        for (tree, place) in &trees {
            attach(tree, place)?;
        }
    }
    sys::set_mount_attributes(root.as_fd(), READ_ONLY, false).attempt(|| "making the new root read-only")?;
    rustix::process::pivot_root(".", ".").attempt(|| "changing the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).attempt(|| "unmounting the host's root")?;
    rustix::process::chdir("/job").attempt(|| "entering /job")?;
    Ok(folder)
}

/// Return the guest's folder as a detached mount, and a descriptor of it for plait. Its file system
/// limits space and names, whatever the guest does with them: with deleted files, or folders that
/// nobody may list.
fn guest_folder(spec: &Spec) -> Result<(OwnedFd, OwnedFd), Failure> {
    let context = || "creating the guest's folder";
    let job = memory(&spec.limits.folder_bytes.to_string(), Some(spec.limits.folder_files))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&job, ".", flags, Mode::empty()).attempt(context)?;
    for entry in fs::read_dir(&spec.job).attempt(context)? {
        let entry = entry.attempt(context)?;
        if let Ok(target) = fs::read_link(entry.path()) {
            rustix::fs::symlinkat(target, &folder, entry.file_name()).attempt(context)?;
        }
    }
    for input in &spec.inputs {
        make_mount_point(&folder, &input.name, Path::new(&input.source).is_dir())?;
    }
    Ok((job, folder))
}

fn attach(tree: &OwnedFd, place: &str) -> Result<(), Failure> {
    rustix::mount::move_mount(tree.as_fd(), "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .attempt(|| format!("mounting /{place}"))
}

fn make_mount_point(folder: &OwnedFd, name: &str, is_folder: bool) -> Result<(), Failure> {
    let context = || format!("creating /job/{name}");
    if is_folder {
        return rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)).attempt(context);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::RUSR).attempt(context).map(drop)
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
