//! A machine whose kernel is a stock one: it shares no folder with the host.
//!
//! The initramfs carries the modules that every plan needs; what differs between trials comes after the boot ([`job`]).
//! Results leave through a virtio port when the trial has ended, and the lines of `progress` through another one
//! meanwhile.
//!
//! A frame on the port of results: the length of a path below the trial's folder and that of a part
//! of the file (u32, little-endian), the path, the part. Parts of a file follow each other. A frame
//! without a path ends the results.

mod archive;
mod job;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};

use crate::error::{Attempt, Error, Result};
use crate::job::MOUNTED;
use crate::modules::{self, ModuleOffers};

/// The modules to load, one `NAME PARAMETERS` a line.
const MODULES: &str = "/modules/order";
/// The algorithms to load as BPF programs, one a line, and the program that loads them.
const PROGRAMS: &str = "/bpf/order";
const LOADER: &str = "/bpf/loader";
const PROGRESS_PORT: &str = "/dev/vport0p1";
const RESULTS_PORT: &str = "/dev/vport0p2";
/// What the host put into the trial's folder, and need not get back.
const INPUTS: [&str; 4] = ["plan.json", "input", "modules", "inventory-request.json"];
/// How often a port is tried, and the time in between: ten seconds of the machine.
const MOST_WAITS: u32 = 1000;
const WAIT: Duration = Duration::from_millis(10);
const PART_BYTES: usize = 1 << 20;

/// Return whether the initramfs carries modules.
pub fn is_this_one() -> bool {
    rustix::process::getpid() == rustix::process::Pid::INIT && Path::new(MODULES).exists()
}

/// Make the devices visible, and load the kernel's modules.
pub fn prepare() -> Result<()> {
    mount("devtmpfs", "/dev", "devtmpfs", MountFlags::empty(), c"")
        .attempt(|| "mounting devtmpfs on /dev")?;
    load_modules()
}

/// Wait for the trial's folder, and load its modules and BPF programs.
pub fn receive_job() -> Result<()> {
    job::receive(progress()?)?;
    load_modules()?;
    load_programs()
}

fn load_modules() -> Result<()> {
    let order = std::fs::read_to_string(MODULES).attempt(|| format!("reading {MODULES}"))?;
    for line in order.lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let parameters = std::ffi::CString::new(parameters).attempt(|| format!("parameters of {name}"))?;
        match modules::insert(&format!("/modules/{name}.ko"), &parameters)? {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            other => other.attempt(|| format!("loading the kernel's module {name}"))?,
        }
    }
    Ok(())
}

/// Load the algorithms that the kernel does not have itself.
fn load_programs() -> Result<()> {
    if !Path::new(PROGRAMS).exists() {
        return Ok(());
    }
    let order = std::fs::read_to_string(PROGRAMS).attempt(|| format!("reading {PROGRAMS}"))?;
    let available = ModuleOffers::available()?;
    for name in order.lines().filter(|name| !available.has(name)) {
        let context = || format!("loading the BPF program of {name}");
        let object = format!("/bpf/{name}.bpf.o");
        let done =
            Command::new(LOADER).args(["struct_ops", "register", &object]).output().attempt(context)?;
        if !done.status.success() {
            return Err(Error::because(context(), String::from_utf8_lossy(&done.stderr).trim()));
        }
    }
    Ok(())
}

/// Open the port for the lines of `progress`.
pub fn progress() -> Result<File> {
    open_port(PROGRESS_PORT)
}

/// Open a virtio port. The host announces ports one by one, and Linux makes their devices in a work queue: so a short
/// run of the agent may come to a port before its device exists.
fn open_port(path: &str) -> Result<File> {
    let mut waits = 0;
    loop {
        match OpenOptions::new().write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && waits < MOST_WAITS => {
                waits += 1;
                std::thread::sleep(WAIT);
            }
            opened => return opened.attempt(|| format!("opening {path}")),
        }
    }
}

/// Send every result to the host.
pub fn send_results() -> Result<()> {
    let mut port = open_port(RESULTS_PORT)?;
    let mut folders = vec![PathBuf::from(MOUNTED)];
    while let Some(folder) = folders.pop() {
        let context = || format!("listing {}", folder.display());
        let mut entries: Vec<_> =
            std::fs::read_dir(&folder).attempt(context)?.collect::<std::io::Result<_>>().attempt(context)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let Ok(name) = path.strip_prefix(MOUNTED) else { continue };
            let metadata = entry.metadata().attempt(|| format!("reading {}", path.display()))?;
            if INPUTS.iter().any(|input| name == Path::new(input)) {
                continue;
            }
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() && metadata.nlink() == 1 {
                send_file(&mut port, &path, name)?;
            }
        }
    }
    send_frame(&mut port, Path::new(""), &[])
}

fn send_file(channel: &mut File, path: &Path, name: &Path) -> Result<()> {
    let context = || format!("reading {}", path.display());
    let mut file = File::open(path).attempt(context)?;
    let mut chunk = vec![0; PART_BYTES];
    let mut sent = false;
    loop {
        let length = file.read(&mut chunk).attempt(context)?;
        if length > 0 || !sent {
            send_frame(channel, name, &chunk[..length])?;
            sent = true;
        }
        if length == 0 {
            return Ok(());
        }
    }
}

fn send_frame(channel: &mut File, name: &Path, chunk: &[u8]) -> Result<()> {
    let context = || format!("sending {}", name.display());
    let name = name.as_os_str().as_encoded_bytes();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map(u32::to_le_bytes);
    let (Ok(name_length), Ok(chunk_length)) = (length(name), length(chunk)) else {
        return Err(Error::new("a frame is longer than 4 GiB"));
    };
    let header = [name_length, chunk_length].concat();
    for bytes in [&header, name, chunk] {
        channel.write_all(bytes).attempt(context)?;
    }
    Ok(())
}
