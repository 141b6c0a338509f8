//! An inventory of the kernel, taken before the engine makes a plan: its algorithms, its sysctls,
//! its trace events, and which of given settings it refuses. The engine boots a guest only for this.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::apply::{ONLY_SCHEDULER, SCHEDULER, enter, namespace, write_sysctl};
use crate::error::{Attempt, Result};
use crate::job;
use crate::monitor::available_trace_events;
use crate::process;
use crate::sys;

/// The request, in the job's folder; a trial has none.
const REQUEST: &str = "inventory-request.json";
const ANSWER: &str = "inventory.json";
const ROOT: &str = "/proc/sys";
/// The inventory covers only names below this folder.
const PART: &str = "net";
/// What the kernel says of its types (BTF); one without BPF has none.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Settings to try, one after the other, in a namespace of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    settings: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Sysctl {
    /// None: the agent cannot read the value.
    value: Option<String>,
    writable: bool,
}

/// Whether the host booted this guest for an inventory.
pub fn is_requested() -> bool {
    job::folder().join(REQUEST).exists()
}

/// Take the inventory and write it.
pub fn answer() -> Result<()> {
    let request: Request = job::read(REQUEST)?;
    let home = namespace::current()?;
    let shared = sysctls()?;
    sys::unshare(UnshareFlags::NEWNET).attempt(|| "creating a namespace")?;
    let private = sysctls()?;
    // The sysctls that only the first namespace has, because one value holds for all.
    let shared: BTreeMap<_, _> = shared.into_iter().filter(|(path, _)| !private.contains_key(path)).collect();
    let inventory = json!({
        "congestion_controls": words(&private, "net/ipv4/tcp_available_congestion_control"),
        "schedulers": schedulers(&private),
        "shared_sysctls": shared,
        "refused": request.settings.iter().filter_map(refusal).collect::<Vec<_>>(),
        "sysctls": private,
        // An ordinary process must not mount file systems of its host's kernel.
        "trace_events": if process::is_ordinary() { Vec::new() } else { available_trace_events() },
        "takes_schedulers": takes_schedulers(),
    });
    enter(&home)?;
    let context = || format!("writing {ANSWER}");
    std::fs::write(job::path(&format!("{ANSWER}.new")), inventory.to_string()).attempt(context)?;
    std::fs::rename(job::path(&format!("{ANSWER}.new")), job::path(ANSWER)).attempt(context)
}

/// Return the schedulers of MPTCP. Linux lists them since 6.10. Before, it has one, which 6.6 and later kernels name.
fn schedulers(sysctls: &BTreeMap<String, Sysctl>) -> Vec<String> {
    let listed = words(sysctls, "net/mptcp/available_schedulers");
    if !listed.is_empty() || !sysctls.contains_key("net/mptcp/enabled") {
        return listed;
    }
    let named = words(sysctls, SCHEDULER);
    if named.is_empty() { vec![ONLY_SCHEDULER.to_owned()] } else { named }
}

/// Whether the kernel takes schedulers of MPTCP as BPF programs.
fn takes_schedulers() -> bool {
    let name = b"\0bpf_struct_ops_mptcp_sched_ops\0";
    std::fs::read(TYPES).is_ok_and(|types| types.windows(name.len()).any(|part| part == name))
}

fn words(sysctls: &BTreeMap<String, Sysctl>, path: &str) -> Vec<String> {
    let value = sysctls.get(path).and_then(|sysctl| sysctl.value.as_deref());
    value.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn refusal((path, value): &(String, String)) -> Option<Value> {
    let why = write_sysctl(path, value).err()?.to_string();
    Some(json!({"path": path, "value": value, "why": why}))
}

/// Return all sysctls below [`PART`] that the calling thread's namespace has.
fn sysctls() -> Result<BTreeMap<String, Sysctl>> {
    let mut listed = BTreeMap::new();
    collect(&Path::new(ROOT).join(PART), PART, &mut listed)?;
    Ok(listed)
}

fn collect(folder: &Path, name: &str, listed: &mut BTreeMap<String, Sysctl>) -> Result<()> {
    let context = || format!("listing {}", folder.display());
    for entry in std::fs::read_dir(folder).attempt(context)? {
        let entry = entry.attempt(context)?;
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        let metadata = entry.metadata().attempt(context)?;
        if metadata.is_dir() {
            collect(&entry.path(), &path, listed)?;
        } else {
            let value = std::fs::read_to_string(entry.path()).ok().map(|text| text.trim_end().to_owned());
            listed.insert(path, Sysctl { value, writable: metadata.permissions().mode() & 0o200 != 0 });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(settings: &[(&str, &str)]) -> Vec<String> {
        let listed = |value: &str| Sysctl { value: Some(value.to_owned()), writable: true };
        schedulers(&settings.iter().map(|(path, value)| ((*path).to_owned(), listed(value))).collect())
    }

    #[test]
    fn kernels_that_list_no_schedulers_have_one() {
        let enabled = ("net/mptcp/enabled", "1");
        assert_eq!(offered(&[enabled]), ["default"]); // Linux before 6.6
        assert_eq!(offered(&[enabled, (SCHEDULER, "default")]), ["default"]); // before 6.10
        let listed = ("net/mptcp/available_schedulers", "default bpf_rr");
        assert_eq!(offered(&[enabled, (SCHEDULER, "bpf_rr"), listed]), ["default", "bpf_rr"]);
        assert!(offered(&[]).is_empty()); // a kernel without MPTCP
    }
}
