//! The privileges that the guest's process gives up for good before it becomes the guest's kernel.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::failure::{Attempt, Failure};
use crate::filter;
use crate::layer::Layer;
use crate::layers::Layers;
use crate::root::KERNEL;
use crate::spec::Spec;
use crate::sys;

/// The newest Landlock ABI that this program uses; an older kernel enforces what it supports.
const LANDLOCK: ABI = ABI::V6;
/// The OOM score that makes this process a preferred victim when the host runs out of memory.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// With this limit Linux neither writes a core dump nor starts the host's program for core dumps, which would run as
/// root outside of the sandbox. With a limit of 0 it starts that program: core(5).
const NO_CORE_DUMP: u64 = 1;

/// Give up all privileges. `confined`: the process has a root of its own.
pub fn give_up(spec: &Spec, layers: &mut Layers<'_>, confined: bool) -> Result<(), Failure> {
    layers.add(Layer::ResourceLimits, || limit_resources(spec))?;
    layers.add(Layer::NoNewPrivileges, || {
        rustix::thread::set_no_new_privs(true).attempt(|| "giving up new privileges")
    })?;
    if confined {
        layers.add(Layer::Landlock, || restrict_files(spec))?;
    }
    layers.add(Layer::NoCapabilities, drop_capabilities)?;
    sys::fix_addresses().attempt(|| "turning address-space randomisation off")?;
    layers.add(Layer::Seccomp, || filter::install(spec))?;
    Ok(())
}

/// Make this process and its descendants preferred victims of the OOM killer.
pub fn go_first_without_memory() -> Result<(), Failure> {
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, OUT_OF_MEMORY_SCORE).attempt(|| format!("writing {path}"))
}

fn limit_resources(spec: &Spec) -> Result<(), Failure> {
    let bounds = [
        (Resource::Core, NO_CORE_DUMP, "core dumps"),
        (Resource::Fsize, spec.limits.file_bytes, "the size of files"),
        (Resource::Nofile, spec.limits.descriptors, "descriptors"),
        (Resource::Nproc, spec.limits.processes, "processes"),
        (Resource::Memlock, 0, "locked memory"),
        (Resource::Msgqueue, 0, "message queues"),
    ];
    for (resource, most, name) in bounds {
        let present = rustix::process::getrlimit(resource);
        let most = present.maximum.map_or(most, |maximum| maximum.min(most));
        let bound = Rlimit { current: Some(most), maximum: Some(most) };
        rustix::process::setrlimit(resource, bound).attempt(|| format!("limiting {name}"))?;
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), Failure> {
    for capability in CapabilitySet::all() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel has fewer capabilities than this program lists, or the process lacks the
            // right to drop them.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            other => return other.attempt(|| "emptying the bounding set"),
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).attempt(|| "giving up capabilities")
}

/// Restrict the files that the process can access. Mounts already protect most of them; Landlock
/// adds FIFOs.
fn restrict_files(spec: &Spec) -> Result<(), Failure> {
    let context = "restricting access to files";
    let all = AccessFs::from_all(LANDLOCK);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = all & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut rules = vec![
        ("/", read),
        ("/job", change),
        (KERNEL, AccessFs::Execute | AccessFs::ReadFile),
        ("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile),
    ];
    let writable: Vec<String> = spec.writable.iter().map(|folder| format!("/plait/host{folder}")).collect();
    rules.extend(writable.iter().map(|folder| (folder.as_str(), change)));
    let enforce = || -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?;
        for (path, access) in rules {
            ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match enforce() {
        Ok(RulesetStatus::NotEnforced) => Err(Failure::new(context, "this kernel has no Landlock")),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(context, error)),
    }
}
