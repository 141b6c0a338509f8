//! What this kernel has, for whoever wants to know before a plan is made: algorithms, sysctls, and which of some
//! settings it refuses. A guest is booted for this alone.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::apply::{enter, namespace, write_sysctl};
use crate::error::{Attempt, Error, Result};
use crate::job::JOB;
use crate::sys;

/// The question, in the job's folder; a trial has none.
const REQUEST: &str = "inventory-request.json";
const ANSWER: &str = "inventory.json";
const ROOT: &str = "/proc/sys";
/// Only names below this folder are told.
const PART: &str = "net";

/// Settings to try, one after the other, in a namespace made for that.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    settings: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Inventory {
    congestion_controls: Vec<String>,
    schedulers: Vec<String>,
    /// Of a new namespace.
    sysctls: BTreeMap<String, Sysctl>,
    /// Those that only the first namespace has, because there is one value for all.
    shared_sysctls: BTreeMap<String, Sysctl>,
    refused: Vec<Refusal>,
}

#[derive(Debug, Serialize)]
struct Sysctl {
    /// None: it cannot be read.
    value: Option<String>,
    writable: bool,
}

#[derive(Debug, Serialize)]
struct Refusal {
    path: String,
    value: String,
    why: String,
}

/// Whether this guest was booted to be asked.
pub fn is_asked_for() -> bool {
    Path::new(JOB).join(REQUEST).exists()
}

/// Answers.
pub fn answer() -> Result<()> {
    let json = std::fs::read(format!("{JOB}/{REQUEST}")).attempt(|| format!("reading {REQUEST}"))?;
    let request: Request =
        serde_json::from_slice(&json).map_err(|error| Error::because(format!("reading {REQUEST}"), error))?;
    let home = namespace::current()?;
    let shared = sysctls()?;
    sys::unshare_network().attempt(|| "making a namespace")?;
    let own = sysctls()?;
    let words = |path: &str| {
        let value = own.get(path).and_then(|sysctl| sysctl.value.as_deref());
        value.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    let inventory = Inventory {
        congestion_controls: words("net/ipv4/tcp_available_congestion_control"),
        schedulers: words("net/mptcp/available_schedulers"),
        shared_sysctls: shared.into_iter().filter(|(path, _)| !own.contains_key(path)).collect(),
        refused: request.settings.iter().filter_map(refusal).collect(),
        sysctls: own,
    };
    enter(&home)?;
    let what = || format!("writing {ANSWER}");
    let json = serde_json::to_vec(&inventory).map_err(std::io::Error::from).attempt(what)?;
    std::fs::write(format!("{JOB}/{ANSWER}.new"), json).attempt(what)?;
    std::fs::rename(format!("{JOB}/{ANSWER}.new"), format!("{JOB}/{ANSWER}")).attempt(what)
}

fn refusal((path, value): &(String, String)) -> Option<Refusal> {
    let why = write_sysctl(path, value).err()?.to_string();
    Some(Refusal { path: path.clone(), value: value.clone(), why })
}

/// All sysctls below [`PART`] that the calling thread's namespace shows.
fn sysctls() -> Result<BTreeMap<String, Sysctl>> {
    let mut found = BTreeMap::new();
    collect(&Path::new(ROOT).join(PART), PART, &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, name: &str, found: &mut BTreeMap<String, Sysctl>) -> Result<()> {
    let what = || format!("listing {}", folder.display());
    for entry in std::fs::read_dir(folder).attempt(what)? {
        let entry = entry.attempt(what)?;
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        let metadata = entry.metadata().attempt(what)?;
        if metadata.is_dir() {
            collect(&entry.path(), &path, found)?;
        } else {
            let value = std::fs::read_to_string(entry.path()).ok().map(|text| text.trim_end().to_owned());
            found.insert(path, Sysctl { value, writable: metadata.permissions().mode() & 0o200 != 0 });
        }
    }
    Ok(())
}
