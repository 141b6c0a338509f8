//! The queueing discipline at the root of an interface, by the program `tc`.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::error::{Attempt, Error, Result};

/// The handle of plait's queueing disciplines, by which they are known again.
const HANDLE: &str = "7a17:";
const PATIENCE_S: &str = "20";
/// The kernel makes these itself, besides the one of `net.core.default_qdisc`.
const AUTOMATIC: [&str; 2] = ["noqueue", "mq"];

/// A wanted queueing discipline, in the words of `tc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    pub device: String,
    pub kind: String,
    pub options: Vec<String>,
}

/// What is at the root of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub kind: String,
    handle: String,
    /// The line of `tc`, without what changes by itself.
    pub line: String,
}

impl Root {
    pub fn is_of_plait(&self) -> bool {
        self.handle == HANDLE
    }

    /// Whether the kernel made it, so that it returns when another one is removed.
    pub fn is_of_kernel(&self) -> bool {
        self.handle == "0:"
    }
}

/// Return what is at the root of `device`; None: there is no such interface.
pub fn root(device: &str) -> Result<Option<Root>> {
    if !Path::new("/sys/class/net").join(device).exists() {
        return Ok(None);
    }
    Ok(parsed(&program("tc", &["qdisc", "show", "dev", device, "root"])?))
}

fn parsed(text: &str) -> Option<Root> {
    let words: Vec<&str> = text.lines().next()?.split_whitespace().collect();
    let ["qdisc", kind, handle, ..] = words[..] else { return None };
    let counted = words.iter().position(|word| *word == "refcnt");
    let kept = words.iter().enumerate().filter(|(at, _)| counted.is_none_or(|n| *at != n && *at != n + 1));
    let line = kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
    Some(Root { kind: kind.to_owned(), handle: handle.to_owned(), line })
}

/// Report why plait could not restore what is at the root of the interface of `wanted`.
pub fn refuse_if_not_restorable(wanted: &Qdisc) -> Result<()> {
    let device = &wanted.device;
    let Some(root) = root(device)? else {
        return Err(Error::new(format!("there is no interface {device}, or it has no queueing discipline")));
    };
    let default = std::fs::read_to_string("/proc/sys/net/core/default_qdisc").unwrap_or_default();
    let returns = root.is_of_kernel() && (AUTOMATIC.contains(&&*root.kind) || root.kind == default.trim());
    if root.is_of_plait() || returns {
        return Ok(());
    }
    Err(Error::new(format!(
        "{device} has the queueing discipline {}, which plait could not restore exactly; remove it with `tc qdisc \
         delete dev {device} root`, or change it yourself",
        root.kind
    )))
}

/// Put a queueing discipline at the root of its interface.
pub fn set(wanted: &Qdisc) -> Result<()> {
    let Qdisc { device, kind, options } = wanted;
    if root(device)?.is_some_and(|root| root.is_of_plait()) {
        remove(device)?; // one handle has one kind
    }
    let words = ["qdisc", "replace", "dev", device, "root", "handle", HANDLE, kind];
    let options = options.iter().map(String::as_str);
    program("tc", &words.into_iter().chain(options).collect::<Vec<_>>()).map(drop)
}

/// Remove what is at the root of an interface, so that the kernel's own returns.
pub fn remove(device: &str) -> Result<()> {
    program("tc", &["qdisc", "delete", "dev", device, "root"]).map(drop)
}

/// Run a program of the host, and return what it says.
pub fn program(name: &str, words: &[&str]) -> Result<String> {
    let context = || format!("{name} {}", words.join(" "));
    let done = Command::new("timeout").arg(PATIENCE_S).arg(name).args(words).output().attempt(context)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = if reason.is_empty() { done.status.to_string() } else { reason };
    Err(Error::because(context(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_tc_is_read_without_its_reference_count() {
        let root = parsed("qdisc cake 7a17: root refcnt 2 bandwidth 9Mbit diffserv3\n").unwrap();
        assert_eq!(root.line, "qdisc cake 7a17: root bandwidth 9Mbit diffserv3");
        assert!(root.is_of_plait() && !root.is_of_kernel());
        assert!(parsed("qdisc noqueue 0: root refcnt 2 \n").unwrap().is_of_kernel());
        assert_eq!(parsed(""), None);
    }
}
