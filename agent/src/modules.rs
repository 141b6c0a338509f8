//! Kernel modules with schedulers and congestion controls that the user added (`plait kernel add`).

use std::collections::BTreeSet;
use std::fs::File;

use serde::Serialize;

use crate::error::{Attempt, Result};
use crate::job;
use crate::plan::Module;

const SCHEDULERS: &str = "/proc/sys/net/mptcp/available_schedulers";
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The names of what modules added to the kernel.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleOffers {
    schedulers: BTreeSet<String>,
    congestion_controls: BTreeSet<String>,
}

impl ModuleOffers {
    fn available() -> Result<Self> {
        Ok(Self { schedulers: words(SCHEDULERS)?, congestion_controls: words(CONGESTION_CONTROLS)? })
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
        let path = job::path(&format!("modules/{}.ko", module.name));
        let file = File::open(&path).attempt(|| format!("opening {path}"))?;
        rustix::system::finit_module(file, c"", 0).attempt(|| {
            format!("loading the module {} (EEXIST: the kernel already uses its name)", module.name)
        })?;
    }
    Ok(ModuleOffers::available()?.without(&before))
}

fn words(path: &str) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).attempt(|| format!("reading {path}"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
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
