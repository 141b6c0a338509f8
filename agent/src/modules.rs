//! Kernel modules with schedulers and congestion controls that the user added (`plait kernel add`).

use std::collections::BTreeSet;
use std::fs::File;

use serde::Serialize;

use crate::error::{Attempt, Result};
use crate::job::JOB;
use crate::plan::Module;

const SCHEDULERS: &str = "/proc/sys/net/mptcp/available_schedulers";
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The names of what modules added to the kernel.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Brought {
    schedulers: BTreeSet<String>,
    congestion_controls: BTreeSet<String>,
}

impl Brought {
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
pub fn load(modules: &[Module]) -> Result<Brought> {
    if modules.is_empty() {
        return Ok(Brought::default());
    }
    let before = Brought::available()?;
    for module in modules {
        let path = format!("{JOB}/modules/{}.ko", module.name);
        let file = File::open(&path).attempt(|| format!("opening {path}"))?;
        rustix::system::finit_module(file, c"", 0).attempt(|| {
            format!(
                "loading the module {} (EEXIST: it takes a name that the kernel has already)",
                module.name
            )
        })?;
    }
    Ok(Brought::available()?.without(&before))
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
    fn what_was_there_before_was_not_brought() {
        let before = Brought { schedulers: set(&["default"]), congestion_controls: set(&["reno", "cubic"]) };
        let after =
            Brought { schedulers: set(&["default", "mine"]), congestion_controls: set(&["cubic", "reno"]) };
        let brought = after.without(&before);
        assert_eq!(brought, Brought { schedulers: set(&["mine"]), congestion_controls: set(&[]) });
    }
}
