//! Which steps lead from one state to another; nothing here touches the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::state::{AVAILABLE, Endpoint, Limits, State, Steps};
use crate::apply::endpoint_flags;
use crate::error::{Error, Result};
use crate::plan::EndpointFlag;

/// The kernel holds this many endpoints (`MPTCP_PM_ADDR_MAX`).
const MOST_ENDPOINTS: usize = 8;
/// Ids of plait's endpoints begin here if they are free.
const FIRST_ID: u8 = 200;
pub const DEFAULT_CONGESTION_CONTROL: &str = "net/ipv4/tcp_congestion_control";
/// The kernel allows to everybody what it gets as the default.
pub const ALLOWED_CONGESTION_CONTROL: &str = "net/ipv4/tcp_allowed_congestion_control";

/// The settings for a trial.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    pub sysctls: BTreeMap<String, String>,
    /// None: the limits stay.
    pub limits: Option<Limits>,
    pub endpoints: Vec<WantedEndpoint>,
    /// Congestion controls and schedulers to load as BPF programs if the kernel lacks them.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The folder with the programs' objects.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// An endpoint for a trial; plait chooses its id.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedEndpoint {
    pub address: IpAddr,
    pub flags: Vec<EndpointFlag>,
    /// The number of the interface through which its subflows leave; 0: as the routes say.
    #[serde(skip)]
    pub interface: i32,
}

impl Wanted {
    /// Return the sysctls that change when these settings are made.
    pub fn sysctls_touched(&self) -> Vec<String> {
        let mut names = touched(self.sysctls.keys());
        if !self.programs.is_empty() {
            names.extend(AVAILABLE.map(str::to_owned));
        }
        names
    }
}

/// Return `names` and the sysctls that the kernel changes with them.
fn touched<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    if names.iter().any(|name| name == DEFAULT_CONGESTION_CONTROL) {
        names.push(ALLOWED_CONGESTION_CONTROL.to_owned());
    }
    names
}

/// Return the steps from `before` to what is `wanted`.
///
/// An endpoint of the host's own at a wanted address stays if its flags suit. Otherwise one of
/// plait's takes its place, and its id, for the trial. An error names an endpoint that cannot be
/// replaced and restored: one that the kernel made, or one that a connection uses (`in_use`).
pub fn changes(before: &State, wanted: &Wanted, in_use: &BTreeSet<IpAddr>) -> Result<Steps> {
    let missing = wanted.programs.iter().filter(|name| !has_algorithm(before, name));
    let loaded = missing.map(|name| (name.clone(), wanted.folder.join(format!("{name}.bpf.o")))).collect();
    let mut steps = Steps { loaded, ..Steps::default() };
    for (path, value) in &wanted.sysctls {
        match before.sysctls.get(path) {
            None => return Err(Error::new(format!("this kernel has no sysctl {}", path.replace('/', ".")))),
            Some(old) if old == value => {}
            Some(_) => steps.sysctls.push((path.clone(), value.clone())),
        }
    }
    steps.limits = wanted.limits.filter(|limits| *limits != before.limits);
    let mut taken: BTreeSet<u8> = before.endpoints.iter().map(|endpoint| endpoint.id).collect();
    for WantedEndpoint { address, flags, interface } in &wanted.endpoints {
        let flags = endpoint_flags(flags);
        if steps.added.iter().any(|endpoint| endpoint.address == *address) {
            continue;
        }
        let present =
            before.endpoints.iter().find(|endpoint| (endpoint.address, endpoint.port) == (*address, 0));
        let id = match present {
            Some(present) if present.flags == flags => continue,
            Some(present) => {
                refuse_if_not_restorable(present, in_use)?;
                steps.removed.push(present.clone());
                present.id
            }
            None => free_id(&taken)?,
        };
        taken.insert(id);
        steps.added.push(Endpoint { id, address: *address, port: 0, flags, interface: *interface });
    }
    let count = before.endpoints.len() - steps.removed.len() + steps.added.len();
    if count > MOST_ENDPOINTS {
        return Err(Error::new(format!(
            "the host has {} MPTCP endpoints, and the scenario needs {} more; the kernel holds {MOST_ENDPOINTS}. \
             Remove some of the host's own",
            before.endpoints.len(),
            count - before.endpoints.len()
        )));
    }
    Ok(steps)
}

/// Return the allowed algorithms of `value` without those that leave with `taken`, or that the kernel has no more: it
/// allows the programs of plait as long as they are loaded.
fn present(value: &str, taken: &Steps, now: &State) -> String {
    let leaves = |name: &str| taken.loaded.iter().any(|(loaded, _)| loaded == name);
    let is_known = now.sysctls.contains_key(AVAILABLE[0]);
    let stays = |name: &&str| !is_known || (has_algorithm(now, name) && !leaves(name));
    value.split_whitespace().filter(stays).collect::<Vec<_>>().join(" ")
}

fn has_algorithm(state: &State, name: &str) -> bool {
    let available = AVAILABLE.iter().filter_map(|path| state.sysctls.get(*path));
    available.flat_map(|names| names.split_whitespace()).any(|present| present == name)
}

fn refuse_if_not_restorable(present: &Endpoint, in_use: &BTreeSet<IpAddr>) -> Result<()> {
    let Endpoint { id, address, .. } = present;
    let remedy = format!("remove it with `ip mptcp endpoint delete id {id}`");
    if present.is_implicit() {
        return Err(Error::new(format!(
            "the kernel has made MPTCP endpoint {id} ({address}) itself for an earlier connection, and plait could \
             not make it again; {remedy}"
        )));
    }
    if in_use.contains(address) {
        return Err(Error::new(format!(
            "MPTCP endpoint {id} ({address}) of this host has other flags than the scenario, and a connection of \
             another program uses it; end that connection"
        )));
    }
    Ok(())
}

fn free_id(taken: &BTreeSet<u8>) -> Result<u8> {
    let mut ids = (FIRST_ID..=u8::MAX).chain((1..FIRST_ID).rev());
    ids.find(|id| !taken.contains(id)).ok_or_else(|| Error::new("no id for an MPTCP endpoint is free"))
}

/// Return the steps from the state `now` back to `before`, after some or all of the steps `taken`.
///
/// Endpoints that neither plait nor the kernel made stay. Of the kernel's own (implicit ones), those
/// stay that are as old as `before`, and those that a connection still uses (`in_use`).
pub fn reversal(before: &State, taken: &Steps, now: &State, in_use: &BTreeSet<IpAddr>) -> Steps {
    let is_old = |endpoint: &Endpoint| before.endpoints.contains(endpoint);
    let is_of_plait = |endpoint: &Endpoint| taken.added.iter().any(|added| added.is_same(endpoint));
    let is_left = |endpoint: &Endpoint| endpoint.is_implicit() && !in_use.contains(&endpoint.address);
    let touched = touched(taken.sysctls.iter().map(|(path, _)| path));
    let sysctls =
        before.sysctls.iter().filter(|(path, _)| touched.contains(path)).filter_map(|(path, old)| {
            let kept = |value: &str| {
                if path == ALLOWED_CONGESTION_CONTROL { present(value, taken, now) } else { value.into() }
            };
            let (old, value) = (kept(old), now.sysctls.get(path).map(|value| kept(value)));
            (value.as_ref() != Some(&old)).then(|| (path.clone(), old))
        });
    Steps {
        sysctls: sysctls.collect(),
        limits: (taken.limits.is_some() && now.limits != before.limits).then_some(before.limits),
        removed: now
            .endpoints
            .iter()
            .filter(|endpoint| !is_old(endpoint) && (is_of_plait(endpoint) || is_left(endpoint)))
            .cloned()
            .collect(),
        added: taken.removed.iter().filter(|endpoint| !now.endpoints.contains(endpoint)).cloned().collect(),
        loaded: Vec::new(),
        unloaded: taken
            .loaded
            .iter()
            .map(|(name, _)| name)
            .filter(|name| has_algorithm(now, name))
            .cloned()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::IMPLICIT;
    use super::*;

    const SIGNAL: u32 = 1;
    const SUBFLOW: u32 = 2;

    fn endpoint(id: u8, address: &str, flags: u32) -> Endpoint {
        Endpoint { id, address: address.parse().unwrap(), port: 0, flags, interface: 0 }
    }

    fn state(endpoints: &[Endpoint]) -> State {
        State {
            endpoints: endpoints.to_vec(),
            limits: Limits { subflows: 2, add_addr_accepted: 0 },
            sysctls: BTreeMap::new(),
        }
    }

    fn wanted(address: &str) -> Wanted {
        let endpoint = WantedEndpoint {
            address: address.parse().unwrap(),
            flags: vec![EndpointFlag::Subflow],
            interface: 0,
        };
        Wanted { endpoints: vec![endpoint], ..Default::default() }
    }

    fn steps(before: &[Endpoint], address: &str) -> Result<Steps> {
        changes(&state(before), &wanted(address), &BTreeSet::new())
    }

    #[test]
    fn an_endpoint_of_the_host_whose_flags_suit_is_used_as_it_is() {
        assert!(steps(&[endpoint(7, "10.0.0.1", SUBFLOW)], "10.0.0.1").unwrap().is_empty());
    }

    #[test]
    fn ids_of_the_host_are_left_alone() {
        let steps = steps(&[endpoint(200, "10.0.0.9", SIGNAL)], "10.0.0.1").unwrap();
        assert_eq!(steps.added, [endpoint(201, "10.0.0.1", SUBFLOW)]);
        assert!(steps.removed.is_empty());
    }

    #[test]
    fn an_endpoint_with_other_flags_returns_after_the_trial() {
        let own = endpoint(7, "10.0.0.1", SIGNAL);
        let before = state(std::slice::from_ref(&own));
        let steps = changes(&before, &wanted("10.0.0.1"), &BTreeSet::new()).unwrap();
        let plaits = endpoint(7, "10.0.0.1", SUBFLOW);
        assert_eq!((&steps.removed[..], &steps.added[..]), (&[own.clone()][..], &[plaits.clone()][..]));
        for now in [vec![plaits.clone()], vec![], vec![own.clone()]] {
            let back = reversal(&before, &steps, &state(&now), &BTreeSet::new());
            let removed: &[Endpoint] = if now == [plaits.clone()] { &now } else { &[] };
            let added: &[Endpoint] = if now == [own.clone()] { &[] } else { &before.endpoints };
            assert_eq!((&back.removed[..], &back.added[..]), (removed, added), "{now:?}");
        }
    }

    #[test]
    fn an_endpoint_that_cannot_return_is_refused() {
        let implicit = steps(&[endpoint(3, "10.0.0.1", IMPLICIT)], "10.0.0.1").unwrap_err().to_string();
        assert!(implicit.contains("ip mptcp endpoint delete id 3"), "{implicit}");
        let used = BTreeSet::from(["10.0.0.1".parse().unwrap()]);
        let before = state(&[endpoint(3, "10.0.0.1", SIGNAL)]);
        assert!(changes(&before, &wanted("10.0.0.1"), &used).is_err());
    }

    #[test]
    fn only_new_endpoints_of_the_kernel_that_nothing_uses_are_removed() {
        let old = endpoint(1, "10.0.0.1", IMPLICIT);
        let (new, used) = (endpoint(2, "10.0.0.2", IMPLICIT), endpoint(3, "10.0.0.3", IMPLICIT));
        let users = endpoint(4, "10.0.0.4", SUBFLOW);
        let before = state(std::slice::from_ref(&old));
        let now = state(&[old, new.clone(), used.clone(), users]);
        let in_use = BTreeSet::from([used.address]);
        assert_eq!(reversal(&before, &Steps::default(), &now, &in_use).removed, [new]);
    }

    #[test]
    fn a_program_is_loaded_if_the_kernel_lacks_it_and_leaves_if_it_was_loaded() {
        let with = |names: &str| State {
            sysctls: AVAILABLE
                .map(str::to_owned)
                .into_iter()
                .zip([names.to_owned(), "default blest".into()])
                .collect(),
            ..state(&[])
        };
        let programs = ["lia", "olia", "blest"].map(str::to_owned).into();
        let wanted = Wanted { programs, folder: PathBuf::from("/s"), ..Default::default() };
        assert_eq!(wanted.sysctls_touched(), AVAILABLE);
        let before = with("reno cubic lia");
        let steps = changes(&before, &wanted, &BTreeSet::new()).unwrap();
        assert_eq!(steps.loaded, [("olia".to_owned(), PathBuf::from("/s/olia.bpf.o"))]);
        let back = |now: &State| reversal(&before, &steps, now, &BTreeSet::new());
        assert_eq!(back(&with("reno cubic lia olia")).unloaded, ["olia"]);
        assert!(back(&before).is_empty());
    }

    #[test]
    fn the_allowed_algorithms_return_but_for_programs_that_come_and_go() {
        let with = |available: &str, allowed: &str, default: &str| State {
            sysctls: [
                (AVAILABLE[0], available),
                (ALLOWED_CONGESTION_CONTROL, allowed),
                (DEFAULT_CONGESTION_CONTROL, default),
            ]
            .map(|(path, value)| (path.to_owned(), value.to_owned()))
            .into(),
            ..state(&[])
        };
        let sysctls = [(DEFAULT_CONGESTION_CONTROL.to_owned(), "olia".to_owned())];
        let wanted = Wanted { sysctls: sysctls.into(), programs: vec!["olia".into()], ..Default::default() };
        let back = |before: &State, now: &State| {
            let steps = changes(before, &wanted, &BTreeSet::new()).unwrap();
            reversal(before, &steps, now, &BTreeSet::new()).sysctls
        };
        let default = [(DEFAULT_CONGESTION_CONTROL.to_owned(), "cubic".to_owned())];
        let before = with("reno cubic", "reno", "cubic");
        assert_eq!(back(&before, &with("reno cubic olia", "reno olia", "olia")), default);
        // Another namespace of the same kernel had loaded the program, and takes it away.
        let earlier = with("reno cubic olia", "reno olia", "cubic");
        assert_eq!(back(&earlier, &with("reno cubic", "reno", "olia")), default);
        let changed = back(&before, &with("reno cubic olia", "reno cubic olia", "cubic"));
        assert_eq!(changed, [(ALLOWED_CONGESTION_CONTROL.to_owned(), "reno".to_owned())]);
    }

    #[test]
    fn more_endpoints_than_the_kernel_holds_are_refused() {
        let own: Vec<Endpoint> = (1..=8).map(|id| endpoint(id, &format!("10.0.0.{id}"), SUBFLOW)).collect();
        assert!(steps(&own, "10.0.1.1").unwrap_err().to_string().contains("holds 8"));
        assert!(steps(&own, "10.0.0.8").unwrap().is_empty());
    }
}
