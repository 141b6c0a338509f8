//! The kernel's schedulers and congestion controls, and modules with further ones that the user added
//! (`plait kernel add`).

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::File;
use std::io::ErrorKind;

use serde::Serialize;

use crate::error::{Attempt, Result};
use crate::job;
use crate::plan::Module;

/// Linux before 6.10 does not list its schedulers, and takes none as BPF programs.
const SCHEDULERS: &str = "/proc/sys/net/mptcp/available_schedulers";
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The names of what modules added to the kernel.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleOffers {
    schedulers: BTreeSet<String>,
    congestion_controls: BTreeSet<String>,
}

impl ModuleOffers {
    /// Return what the kernel has now.
    pub fn available() -> Result<Self> {
        Ok(Self { schedulers: words(SCHEDULERS)?, congestion_controls: words(CONGESTION_CONTROLS)? })
    }

    /// Whether one of its algorithms has this name.
    pub fn has(&self, name: &str) -> bool {
        self.schedulers.contains(name) || self.congestion_controls.contains(name)
    }

    fn without(&self, before: &Self) -> Self {
        let minus = |now: &BTreeSet<String>, then: &BTreeSet<String>| now.difference(then).cloned().collect();
        Self {
            schedulers: minus(&self.schedulers, &before.schedulers),
            congestion_controls: minus(&self.congestion_controls, &before.congestion_controls),
        }
    }
}

/// Load the modules, and return what they added to the kernel's offers.
pub fn load(modules: &[Module]) -> Result<ModuleOffers> {
    if modules.is_empty() {
        return Ok(ModuleOffers::default());
    }
    let before = ModuleOffers::available()?;
    for module in modules {
        insert(&job::path(&format!("modules/{}.ko", module.name)), c"")?.attempt(|| {
            format!("loading the module {} (EEXIST: the kernel already uses its name)", module.name)
        })?;
    }
    Ok(ModuleOffers::available()?.without(&before))
}

/// Open a module, and return the kernel's answer to it.
pub fn insert(path: &str, parameters: &CStr) -> Result<rustix::io::Result<()>> {
    let file = File::open(path).attempt(|| format!("opening {path}"))?;
    Ok(rustix::system::finit_module(file, parameters, 0))
}

fn words(path: &str) -> Result<BTreeSet<String>> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        text => {
            let text = text.attempt(|| format!("reading {path}"))?;
            Ok(text.split_whitespace().map(str::to_owned).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn modules_add_only_what_the_kernel_lacked() {
        let before =
            ModuleOffers { schedulers: set(&["default"]), congestion_controls: set(&["reno", "cubic"]) };
        let after = ModuleOffers {
            schedulers: set(&["default", "mine"]),
            congestion_controls: set(&["cubic", "reno"]),
        };
        let brought = after.without(&before);
        assert_eq!(brought, ModuleOffers { schedulers: set(&["mine"]), congestion_controls: set(&[]) });
    }
}
