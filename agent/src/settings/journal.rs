//! The journal of changed settings, which outlives every process but no reboot.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::net::{AddressFamily, SocketType, socket};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::state::{State, Steps};
use crate::error::{Attempt, Result};
use crate::sys;

const FOLDER: &str = "/run/plait";
const BOOT_DIGITS: usize = 12;
/// The journal of a session.
pub const SESSION: &str = "settings";
/// The journal of changes that stay.
pub const LASTING: &str = "applied";

/// What makes the pipe of a session another one than a pipe that somebody makes in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    pub device: u64,
    pub inode: u64,
    pub owner: u32,
}

/// What one session changes, written before the first change.
#[derive(Debug, Serialize, Deserialize)]
pub struct Journal {
    /// The folder of the session.
    pub folder: PathBuf,
    /// Its pipe `alive`; None: an agent wrote the journal that did not note it.
    #[serde(default)]
    pub pipe: Option<Pipe>,
    pub before: State,
    /// The steps of `configure`, each of which may have happened or not.
    pub steps: Steps,
}

/// Read FOLDER/wanted.json, which a journal's changes follow from.
pub fn read_wanted<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let path = folder.join("wanted.json");
    let context = || format!("reading {}", path.display());
    serde_json::from_slice(&std::fs::read(&path).attempt(context)?).attempt(context)
}

/// Return the journal `name` of this network namespace; None: nothing is changed.
pub fn read<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    let path = path(name)?;
    let json = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        json => json.attempt(|| format!("reading {}", path.display()))?,
    };
    serde_json::from_slice(&json).attempt(|| format!("reading {}", path.display())).map(Some)
}

/// Write the journal `name` in one piece.
pub fn write<T: Serialize>(name: &str, journal: &T) -> Result<()> {
    let path = path(name)?;
    let context = || format!("writing {}", path.display());
    let json = serde_json::to_vec(journal).attempt(context)?;
    let new = path.with_extension("new");
    let mut file = File::create(&new).attempt(context)?;
    file.write_all(&json).and_then(|()| file.sync_all()).attempt(context)?;
    std::fs::rename(&new, &path).attempt(context)?;
    File::open(FOLDER).and_then(|folder| folder.sync_all()).attempt(context)
}

/// Remove the journal `name` of this network namespace.
pub fn remove(name: &str) -> Result<()> {
    let path = path(name)?;
    std::fs::remove_file(&path).attempt(|| format!("removing {}", path.display()))
}

/// Keep other processes of plait from changing settings until the result is dropped.
pub fn lock() -> Result<OwnedFd> {
    let context = || format!("locking {FOLDER}");
    std::fs::create_dir_all(FOLDER).attempt(context)?;
    std::fs::set_permissions(FOLDER, Permissions::from_mode(0o700)).attempt(context)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(FOLDER, flags, Mode::empty()).attempt(context)?;
    flock(&folder, FlockOperation::LockExclusive).attempt(context)?;
    Ok(folder)
}

/// Return the path of a journal. Its name has what no other network namespace has, before or after a reboot: the number
/// of the file of a namespace is soon that of another one.
fn path(name: &str) -> Result<PathBuf> {
    let namespace = std::fs::read_link("/proc/self/ns/net").attempt(|| "reading the network namespace")?;
    let number: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    let boot =
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").attempt(|| "reading the boot's id")?;
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(BOOT_DIGITS).collect();
    let cookie = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .and_then(sys::namespace_number)
        .map_or_else(|_| String::new(), |cookie| format!("-{cookie:x}")); // none before Linux 5.14
    Ok(PathBuf::from(format!("{FOLDER}/{name}-{number}{cookie}-{boot}.json")))
}
