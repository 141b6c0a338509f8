//! The shaper of what an interface receives: a filter sends its packets through a device of the kind `ifb`, which has
//! the queueing discipline.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::qdiscs::{self, Qdisc, program};
use crate::error::{Error, Result};

/// The preference of plait's filter, by which it is known again: 0x7a17.
const PREFERENCE: &str = "31255";

/// A wanted shaper of what `device` receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingress {
    pub device: String,
    /// The name of the `ifb`.
    pub through: String,
    pub kind: String,
    pub options: Vec<String>,
}

/// What there is of a shaper.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part may be there or not, wherever a process died")]
pub struct Present {
    pub has_through: bool,
    pub has_filter: bool,
    /// The interface has a queueing discipline for what it receives, `ingress` or `clsact`.
    pub has_ingress: bool,
    /// That discipline is `ingress`, and has no filter but plait's.
    pub is_unused: bool,
    /// The line of `tc` of the discipline on the `ifb`.
    pub line: Option<String>,
}

impl Present {
    /// Whether nothing is left that plait may remove. `was_whole`: a missing filter means that somebody has removed it.
    pub fn is_gone(&self, was_whole: bool) -> bool {
        !self.has_through && !self.has_filter && !self.removes_ingress(was_whole)
    }

    fn removes_ingress(&self, was_whole: bool) -> bool {
        self.has_ingress && self.is_unused && (self.has_filter || !was_whole)
    }
}

/// Return what there is of a shaper.
pub fn present(wanted: &Ingress) -> Result<Present> {
    let Ingress { device, through, .. } = wanted;
    let mut seen = Present {
        has_through: exists(through),
        has_filter: false,
        has_ingress: false,
        is_unused: false,
        line: None,
    };
    if seen.has_through {
        seen.line = qdiscs::root(through)?.map(|root| root.line);
    }
    if !exists(device) {
        return Ok(seen);
    }
    let kinds = program("tc", &["qdisc", "show", "dev", device])?;
    let mut kinds = kinds.lines().filter_map(|line| line.split_whitespace().nth(1));
    let kind = kinds.find(|kind| ["ingress", "clsact"].contains(kind));
    seen.has_ingress = kind.is_some();
    if seen.has_ingress {
        let preferences = preferences(&program("tc", &["filter", "show", "dev", device, "ingress"])?);
        seen.has_filter = preferences.iter().any(|seen| seen == PREFERENCE);
        seen.is_unused = kind == Some("ingress") && preferences.iter().all(|seen| seen == PREFERENCE);
    }
    Ok(seen)
}

/// Return the preferences of the filters in the words of `tc`.
fn preferences(text: &str) -> Vec<String> {
    let filters = text.lines().filter(|line| line.starts_with("filter"));
    let words = filters.map(|line| line.split_whitespace().skip_while(|word| *word != "pref").nth(1));
    words.flatten().map(str::to_owned).collect()
}

/// Report why plait could not restore what is there, before its first change.
pub fn refuse_if_not_restorable(wanted: &Ingress) -> Result<()> {
    let Ingress { device, through, .. } = wanted;
    if !exists(device) {
        return Err(Error::new(format!("there is no interface {device}")));
    }
    let seen = present(wanted)?;
    if seen.has_through {
        return Err(Error::new(format!(
            "there is an interface {through}, which plait did not make; remove it with `ip link delete {through}`"
        )));
    }
    if seen.has_ingress {
        return Err(Error::new(format!(
            "{device} has a queueing discipline for what it receives, which plait could not restore exactly; remove it \
             with `tc qdisc delete dev {device} ingress`, or change it yourself"
        )));
    }
    Ok(())
}

/// Make the shaper. The filter comes last, so that packets meet nothing that is not complete.
pub fn set(wanted: &Ingress) -> Result<()> {
    let Ingress { device, through, kind, options } = wanted;
    remove(wanted, false)?;
    program("ip", &["link", "add", through, "type", "ifb"])?;
    program("ip", &["link", "set", through, "up"])?;
    let shaper = Qdisc { device: through.clone(), kind: kind.clone(), options: options.clone() };
    qdiscs::set(&shaper)?;
    if !present(wanted)?.has_ingress {
        program("tc", &["qdisc", "add", "dev", device, "handle", "ffff:", "ingress"])?;
    }
    let filter =
        ["filter", "add", "dev", device, "ingress", "pref", PREFERENCE, "protocol", "all", "matchall"];
    let action = ["action", "mirred", "egress", "redirect", "dev", through];
    program("tc", &[filter.as_slice(), &action].concat()).map(drop)
}

/// Remove what is plait's: first the filter, so that packets are received directly again.
pub fn remove(wanted: &Ingress, was_whole: bool) -> Result<()> {
    let Ingress { device, through, .. } = wanted;
    let seen = present(wanted)?;
    if seen.has_filter {
        program("tc", &["filter", "delete", "dev", device, "ingress", "pref", PREFERENCE])?;
    }
    if seen.removes_ingress(was_whole) {
        program("tc", &["qdisc", "delete", "dev", device, "ingress"])?;
    }
    if seen.has_through {
        program("ip", &["link", "delete", through])?;
    }
    Ok(())
}

fn exists(device: &str) -> bool {
    Path::new("/sys/class/net").join(device).exists()
}

/// Return the words for a shaper.
pub fn named(wanted: &Ingress) -> String {
    format!("shaper of what {} receives: {} {}", wanted.device, wanted.kind, wanted.options.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_others_keep_the_discipline_and_plaits_filter_goes() {
        let text = "filter protocol all pref 31255 matchall chain 0 \nfilter protocol all pref 31255 matchall chain 0 \
                    handle 0x1 \n  not_in_hw\n\taction order 1: mirred (Egress Redirect to device plait-ifb1) stolen\n";
        assert_eq!(preferences(text), [PREFERENCE, PREFERENCE]);
        assert_eq!(preferences("filter protocol ip pref 10 u32 chain 0 \n"), ["10"]);
        let seen =
            Present { has_through: false, has_filter: false, has_ingress: true, is_unused: true, line: None };
        assert!(seen.is_gone(true) && !seen.is_gone(false));
    }
}
