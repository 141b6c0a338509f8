//! What plait changed to stay, what was there before, and how it returns; nothing here touches the kernel.
//!
//! The record is written before a change, so each of its changes may have happened or not. A value of plait's is taken
//! back; one that somebody else has set since stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ingress::Ingress;
use super::qdiscs::Qdisc;
use super::state::{Endpoint, Limits, State, Steps};
use super::steps::{ALLOWED_CONGESTION_CONTROL, DEFAULT_CONGESTION_CONTROL};

/// A value before plait's first change, and those that plait has set since.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub before: String,
    pub made: Vec<String>,
}

impl Changed {
    /// Note a change from `now` to `new`. A value of somebody else's is what returns later.
    fn note(&mut self, now: &str, new: &str) {
        if !self.made.iter().any(|made| made == now) {
            now.clone_into(&mut self.before);
            self.made.clear();
        }
        self.made.push(new.to_owned());
    }

    /// Forget all values but the last one, if that is there.
    fn finish(&mut self, now: &str) {
        if self.made.last().is_some_and(|last| last == now) {
            self.made.drain(..self.made.len() - 1);
        }
    }
}

/// An endpoint that plait added, and the one whose place it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub before: Option<Endpoint>,
    pub made: Vec<Endpoint>,
    /// Whether the last one has been there, so that somebody removed it if it is missing.
    pub whole: bool,
}

impl Placed {
    fn is_at(&self, other: &Endpoint) -> bool {
        self.made.iter().any(|made| (made.address, made.port) == (other.address, other.port))
    }
}

/// A queueing discipline of plait's or a shaper of what an interface receives, and the line of `tc` once all of it was
/// there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shaped<T> {
    pub wanted: T,
    pub line: Option<String>,
}

/// Everything that plait changed to stay in a network namespace.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// By path below /proc/sys.
    pub sysctls: BTreeMap<String, Changed>,
    pub subflows: Option<Changed>,
    pub add_addr_accepted: Option<Changed>,
    pub endpoints: Vec<Placed>,
    /// By interface.
    pub qdiscs: BTreeMap<String, Shaped<Qdisc>>,
    /// By interface.
    #[serde(default)]
    pub ingress: BTreeMap<String, Shaped<Ingress>>,
}

/// The steps back, and what stays and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Return {
    pub steps: Steps,
    /// The interfaces whose queueing discipline is plait's.
    pub shapers: Vec<String>,
    /// Those of which something of a shaper of what they receive is there, and plait's.
    pub received: Vec<String>,
    pub left: Vec<String>,
}

impl Record {
    /// Note the steps that follow from the state `now`.
    pub fn note(&mut self, now: &State, steps: &Steps) {
        for (path, value) in &steps.sysctls {
            let present = now.sysctls.get(path).map_or("", String::as_str);
            self.sysctls.entry(path.clone()).or_default().note(present, value);
            if let (DEFAULT_CONGESTION_CONTROL, Some(allowed)) =
                (path.as_str(), now.sysctls.get(ALLOWED_CONGESTION_CONTROL))
            {
                let fresh = || Changed { before: allowed.clone(), made: Vec::new() };
                let noted = self.sysctls.entry(ALLOWED_CONGESTION_CONTROL.to_owned()).or_insert_with(fresh);
                noted.made.push(value.clone());
            }
        }
        if let Some(limits) = steps.limits {
            note_number(&mut self.subflows, now.limits.subflows, limits.subflows);
            note_number(&mut self.add_addr_accepted, now.limits.add_addr_accepted, limits.add_addr_accepted);
        }
        for added in &steps.added {
            let removed = steps.removed.iter().find(|removed| removed.is_same(added));
            let earlier = self.endpoints.iter_mut().find(|placed| match removed {
                Some(own) => placed.made.contains(own),
                None => !placed.whole && placed.is_at(added), // a cut between the removal and this
            });
            if let Some(placed) = earlier {
                placed.made.push(added.clone());
                placed.whole = false;
            } else {
                self.endpoints.retain(|placed| !placed.is_at(added));
                let made = vec![added.clone()];
                self.endpoints.push(Placed { before: removed.cloned(), made, whole: false });
            }
        }
    }

    /// Note which changes the state `now` has.
    pub fn finish(&mut self, now: &State) {
        for (path, changed) in &mut self.sysctls {
            if path != ALLOWED_CONGESTION_CONTROL {
                changed.finish(now.sysctls.get(path).map_or("", String::as_str));
            }
        }
        let Limits { subflows, add_addr_accepted } = now.limits;
        for (changed, value) in
            [(&mut self.subflows, subflows), (&mut self.add_addr_accepted, add_addr_accepted)]
        {
            if let Some(changed) = changed {
                changed.finish(&value.to_string());
            }
        }
        for placed in &mut self.endpoints {
            if placed.made.last().is_some_and(|last| now.endpoints.contains(last)) {
                placed.made.drain(..placed.made.len() - 1);
                placed.whole = true;
            }
        }
    }

    /// Note that the endpoints and the parts of shapers of what interfaces receive, which `back` removes, are missing
    /// from now on.
    pub fn begin_return(&mut self, back: &Return) {
        for (device, received) in &mut self.ingress {
            if back.received.contains(device) {
                received.line = None;
            }
        }
        for placed in &mut self.endpoints {
            if placed.made.iter().any(|made| back.steps.removed.contains(made)) {
                placed.whole = false;
            }
        }
    }

    /// Return the steps from the state `now` to what was there before the changes.
    pub fn reversal(&self, now: &State) -> Return {
        let mut back = Return::default();
        self.return_sysctls(now, &mut back);
        let Limits { subflows, add_addr_accepted } = now.limits;
        let accepted = self.add_addr_accepted.as_ref();
        let limits = Limits {
            subflows: number(self.subflows.as_ref(), subflows, "subflows", &mut back.left),
            add_addr_accepted: number(accepted, add_addr_accepted, "add_addr_accepted", &mut back.left),
        };
        back.steps.limits = (limits != now.limits).then_some(limits);
        for placed in &self.endpoints {
            return_endpoint(placed, now, &mut back);
        }
        back
    }

    fn return_sysctls(&self, now: &State, back: &mut Return) {
        for (path, changed) in self.sysctls.iter().filter(|(path, _)| *path != ALLOWED_CONGESTION_CONTROL) {
            let Some(present) = now.sysctls.get(path) else {
                back.left.push(format!("sysctl {}: this kernel has it no more", dotted(path)));
                continue;
            };
            if let Some(value) =
                returned(changed, present, &format!("sysctl {}", dotted(path)), &mut back.left)
            {
                back.steps.sysctls.push((path.clone(), value));
            }
        }
        let (Some(changed), Some(present)) =
            (self.sysctls.get(ALLOWED_CONGESTION_CONTROL), now.sysctls.get(ALLOWED_CONGESTION_CONTROL))
        else {
            return;
        };
        let restored = back.steps.sysctls.iter().find(|(path, _)| path == DEFAULT_CONGESTION_CONTROL);
        let default =
            restored.map(|(_, value)| value).or_else(|| now.sysctls.get(DEFAULT_CONGESTION_CONTROL));
        let former: Vec<&str> = changed.before.split(' ').collect();
        let stays = |word: &&str| {
            former.contains(word)
                || !changed.made.iter().any(|made| made == word)
                || default.is_some_and(|default| default == word)
        };
        let allowed = present.split(' ').filter(stays).collect::<Vec<_>>().join(" ");
        if restored.is_some() || allowed != *present {
            // the kernel allows to everybody what becomes the default, so this follows
            back.steps.sysctls.push((ALLOWED_CONGESTION_CONTROL.to_owned(), allowed));
        }
    }
}

fn note_number(noted: &mut Option<Changed>, now: u32, new: u32) {
    if now != new {
        noted.get_or_insert_default().note(&now.to_string(), &new.to_string());
    }
}

/// Return the value to set; None: the present one stays, and if it is somebody else's, `left` says so.
fn returned(changed: &Changed, present: &str, what: &str, left: &mut Vec<String>) -> Option<String> {
    if changed.before == present {
        return None;
    }
    if changed.made.iter().any(|made| made == present) {
        return Some(changed.before.clone());
    }
    let made = changed.made.last().map_or("", String::as_str);
    left.push(format!("{what} = {present}: it was changed after plait had set {made}"));
    None
}

fn number(changed: Option<&Changed>, now: u32, name: &str, left: &mut Vec<String>) -> u32 {
    let what = format!("MPTCP limit {name}");
    let back = changed.and_then(|changed| returned(changed, &now.to_string(), &what, left));
    back.and_then(|value| value.parse().ok()).unwrap_or(now)
}

fn return_endpoint(placed: &Placed, now: &State, back: &mut Return) {
    let Some(last) = placed.made.last() else { return };
    let name = format!("MPTCP endpoint {} ({})", last.id, last.address);
    let present = now.endpoints.iter().find(|one| {
        !one.is_implicit() && (one.id == last.id || (one.address, one.port) == (last.address, last.port))
    });
    match present {
        Some(own) if placed.made.contains(own) => back.steps.removed.push(own.clone()),
        Some(own) if placed.before.as_ref() == Some(own) => return,
        Some(_) => {
            back.left.push(format!("{name}: it was changed after plait had added it"));
            return;
        }
        None if placed.whole => {
            back.left.push(format!("{name}: it was removed after plait had added it"));
            return;
        }
        None => {}
    }
    if let Some(before) = &placed.before {
        let kernels =
            |one: &&Endpoint| one.is_implicit() && (one.address == before.address || one.id == before.id);
        back.steps.removed.extend(now.endpoints.iter().filter(kernels).cloned());
        back.steps.added.push(before.clone());
    }
}

/// Return the name of a sysctl as people write it.
pub fn dotted(path: &str) -> String {
    path.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn endpoint(id: u8, flags: u32) -> Endpoint {
        Endpoint { id, address: "10.0.0.1".parse().unwrap(), port: 0, flags, interface: 0 }
    }

    fn state(value: &str, endpoints: &[Endpoint]) -> State {
        State {
            endpoints: endpoints.to_vec(),
            limits: Limits { subflows: 2, add_addr_accepted: 0 },
            sysctls: BTreeMap::from([("net/ipv4/tcp_sack".to_owned(), value.to_owned())]),
        }
    }

    fn steps(value: &str, removed: &[Endpoint], added: &[Endpoint]) -> Steps {
        Steps {
            sysctls: vec![("net/ipv4/tcp_sack".to_owned(), value.to_owned())],
            removed: removed.to_vec(),
            added: added.to_vec(),
            ..Steps::default()
        }
    }

    #[test]
    fn each_value_of_plaits_returns_to_the_one_found_wherever_a_second_change_was_cut() {
        let mut record = Record::default();
        record.note(&state("1", &[]), &steps("0", &[], &[]));
        record.finish(&state("0", &[]));
        record.note(&state("0", &[]), &steps("2", &[], &[]));
        for now in ["0", "2"] {
            let back = record.reversal(&state(now, &[]));
            assert_eq!(back, Return { steps: steps("1", &[], &[]), ..Return::default() });
        }
        assert_eq!(record.reversal(&state("1", &[])), Return::default());
        let users = record.reversal(&state("3", &[]));
        assert!(users.steps.is_empty() && users.left[0].contains("net.ipv4.tcp_sack = 3"), "{users:?}");
    }

    #[test]
    fn an_endpoint_in_whose_place_plaits_was_returns_unless_somebody_removed_plaits() {
        let (found, made) = (endpoint(7, 1), endpoint(7, 2));
        let mut record = Record::default();
        record.note(&state("1", from_ref(&found)), &steps("1", from_ref(&found), from_ref(&made)));
        let cut = record.reversal(&state("1", &[]));
        assert_eq!(cut.steps.added, from_ref(&found));
        record.finish(&state("1", from_ref(&made)));
        let back = record.reversal(&state("1", from_ref(&made)));
        assert_eq!((&back.steps.removed[..], &back.steps.added[..]), (&[made][..], &[found][..]));
        let removed = record.reversal(&state("1", &[]));
        assert!(removed.steps.is_empty() && removed.left[0].contains("was removed"), "{removed:?}");
        record.begin_return(&back);
        assert_eq!(record.reversal(&state("1", &[])).steps.added.len(), 1);
    }

    #[test]
    fn an_endpoint_that_somebody_changed_since_stays() {
        let mut record = Record::default();
        record.note(&state("1", &[]), &steps("1", &[], &[endpoint(200, 2)]));
        record.finish(&state("1", &[endpoint(200, 2)]));
        let back = record.reversal(&state("1", &[endpoint(200, 6)]));
        assert!(back.steps.is_empty() && back.left[0].contains("was changed"), "{back:?}");
    }

    #[test]
    fn a_congestion_control_that_plait_allowed_is_allowed_no_more_once_it_is_not_the_default() {
        let plain = state("1", &[]);
        let state = |default: &str, allowed: &str| {
            let sysctls = [(DEFAULT_CONGESTION_CONTROL, default), (ALLOWED_CONGESTION_CONTROL, allowed)];
            let sysctls = sysctls.map(|(path, value)| (path.to_owned(), value.to_owned()));
            State { sysctls: BTreeMap::from(sysctls), ..plain.clone() }
        };
        let mut record = Record::default();
        let sysctls = vec![(DEFAULT_CONGESTION_CONTROL.to_owned(), "bbr".to_owned())];
        record.note(&state("cubic", "reno cubic"), &Steps { sysctls, ..Steps::default() });
        record.finish(&state("bbr", "reno cubic bbr"));
        let values = |now: &State| record.reversal(now).steps.sysctls.into_iter().map(|(_, value)| value);
        assert_eq!(values(&state("bbr", "reno cubic bbr")).collect::<Vec<_>>(), ["cubic", "reno cubic"]);
        assert_eq!(values(&state("reno", "reno cubic bbr")).collect::<Vec<_>>(), ["reno cubic"]);
        assert_eq!(values(&state("cubic", "reno cubic")).count(), 0);
    }
}
