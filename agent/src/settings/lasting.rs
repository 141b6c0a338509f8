//! Changes that stay until `undo` or a reboot: `apply`, `undo` and `preview`.

use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;

use super::ingress::{self, Ingress};
use super::journal::{self, LASTING};
use super::qdiscs::{self, Qdisc};
use super::record::{Record, Return, Shaped, dotted};
use super::state::{Endpoint, Host, Limits, State, Steps};
use super::steps::{Wanted, WantedEndpoint, changes};
use crate::error::{Attempt, Error, Result};
use crate::plan::EndpointFlag;

/// How often `undo` compares and changes, before it reports what differs.
const ROUNDS: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    sysctls: std::collections::BTreeMap<String, String>,
    subflows: Option<u32>,
    add_addr_accepted: Option<u32>,
    endpoints: Vec<LastingEndpoint>,
    qdiscs: Vec<Qdisc>,
    #[serde(default)]
    ingress: Vec<Ingress>,
}

/// An endpoint, with the interface through which its subflows leave if the routes alone do not decide that.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastingEndpoint {
    address: IpAddr,
    flags: Vec<EndpointFlag>,
    device: Option<String>,
}

impl LastingEndpoint {
    fn wanted(self) -> Result<WantedEndpoint> {
        let number = self.device.map_or(Ok(0), |device| {
            let context = || format!("reading the number of the interface {device}");
            let text =
                std::fs::read_to_string(format!("/sys/class/net/{device}/ifindex")).attempt(context)?;
            text.trim().parse::<i32>().attempt(context)
        });
        Ok(WantedEndpoint { address: self.address, flags: self.flags, interface: number? })
    }
}

/// Make the changes of FOLDER/wanted.json, and print each.
pub fn apply(host: &mut Host, folder: &Path) -> Result<()> {
    let Changes { sysctls, subflows, add_addr_accepted, endpoints, qdiscs, ingress } =
        journal::read_wanted(folder)?;
    let endpoints = endpoints.into_iter().map(LastingEndpoint::wanted).collect::<Result<_>>()?;
    let mut wanted = Wanted { sysctls, endpoints, ..Wanted::default() };
    let now = host.state(&wanted.sysctls_touched())?;
    wanted.limits = Some(Limits {
        subflows: subflows.unwrap_or(now.limits.subflows),
        add_addr_accepted: add_addr_accepted.unwrap_or(now.limits.add_addr_accepted),
    });
    let steps = changes(&now, &wanted, &Host::addresses_in_use()?)?;
    let mut record: Record = journal::read(LASTING)?.unwrap_or_default();
    let mut shapers = Vec::new();
    for wanted in qdiscs {
        qdiscs::refuse_if_not_restorable(&wanted)?;
        let root = qdiscs::root(&wanted.device)?;
        let is_there = record.qdiscs.get(&wanted.device).is_some_and(|shaped| {
            shaped.wanted == wanted && root.is_some_and(|root| shaped.line.as_ref() == Some(&root.line))
        });
        if !is_there {
            record.qdiscs.insert(wanted.device.clone(), Shaped { wanted: wanted.clone(), line: None });
            shapers.push(wanted);
        }
    }
    let received = record_received(&mut record, ingress)?;
    if steps.is_empty() && shapers.is_empty() && received.is_empty() && record == Record::default() {
        return Ok(());
    }
    record.note(&now, &steps);
    journal::write(LASTING, &record)?;
    host.carry_out(&steps)?;
    for line in told(&now, &steps) {
        println!("{line}");
    }
    for wanted in &shapers {
        qdiscs::set(wanted)?;
        println!("qdisc of {}: {} {}", wanted.device, wanted.kind, wanted.options.join(" "));
        if let Some(shaped) = record.qdiscs.get_mut(&wanted.device) {
            shaped.line = qdiscs::root(&wanted.device)?.map(|root| root.line);
        }
    }
    for wanted in &received {
        ingress::set(wanted)?;
        println!("{}", ingress::named(wanted));
        if let Some(noted) = record.ingress.get_mut(&wanted.device) {
            noted.line = ingress::present(wanted)?.line;
        }
    }
    record.finish(&host.state(&names(&record))?);
    journal::write(LASTING, &record)
}

/// Note shapers of what interfaces receive, and return those that are not there.
fn record_received(record: &mut Record, ingress: Vec<Ingress>) -> Result<Vec<Ingress>> {
    let mut missing = Vec::new();
    for wanted in ingress {
        let earlier = record.ingress.get(&wanted.device);
        if let Some(earlier) = earlier.filter(|earlier| earlier.wanted.through == wanted.through) {
            let seen = ingress::present(&wanted)?;
            if earlier.wanted == wanted
                && earlier.line.is_some()
                && seen.has_filter
                && seen.line == earlier.line
            {
                continue;
            }
        } else {
            ingress::refuse_if_not_restorable(&wanted)?;
        }
        record.ingress.insert(wanted.device.clone(), Shaped { wanted: wanted.clone(), line: None });
        missing.push(wanted);
    }
    Ok(missing)
}

/// Print what `undo` would do.
pub fn preview(host: &mut Host) -> Result<()> {
    let Some(record) = journal::read::<Record>(LASTING)? else { return Ok(()) };
    let (now, back) = way_back(host, &record)?;
    print(&now, &back);
    Ok(())
}

/// Make everything that `apply` changed, and nobody else since, as it was found; print it.
pub fn undo(host: &mut Host) -> Result<()> {
    let Some(mut record) = journal::read::<Record>(LASTING)? else { return Ok(()) };
    let mut failed = None;
    for round in 0..=ROUNDS {
        let (now, back) = way_back(host, &record)?;
        if round == 0 {
            print(&now, &back);
            record.begin_return(&back);
            journal::write(LASTING, &record)?;
        }
        if back.steps.is_empty() && back.shapers.is_empty() && back.received.is_empty() {
            return journal::remove(LASTING);
        }
        let removed = back.shapers.iter().try_for_each(|device| qdiscs::remove(device)).and_then(|()| {
            let mut noted = back.received.iter().filter_map(|device| record.ingress.get(device));
            noted.try_for_each(|noted| ingress::remove(&noted.wanted, noted.line.is_some()))
        });
        failed = host.carry_out(&back.steps).and(removed).err().or(failed);
    }
    Err(failed
        .unwrap_or_else(|| Error::new("the settings of this host change while plait takes its own back")))
}

fn names(record: &Record) -> Vec<String> {
    record.sysctls.keys().cloned().collect()
}

/// Return the present state, and what leads from there to the one before the changes.
fn way_back(host: &mut Host, record: &Record) -> Result<(State, Return)> {
    let now = host.state(&names(record))?;
    let mut back = record.reversal(&now);
    for (device, shaped) in &record.qdiscs {
        let Some(root) = qdiscs::root(device)? else { continue };
        let kind = &shaped.wanted.kind;
        if root.is_of_plait() && shaped.line.as_ref().is_none_or(|line| *line == root.line) {
            back.shapers.push(device.clone());
        } else if !root.is_of_kernel() {
            back.left.push(format!("qdisc of {device}: it was changed after plait had set {kind}"));
        }
    }
    for (device, received) in &record.ingress {
        if !ingress::present(&received.wanted)?.is_gone(received.line.is_some()) {
            back.received.push(device.clone());
        }
    }
    Ok((now, back))
}

fn print(now: &State, back: &Return) {
    for line in told(now, &back.steps) {
        println!("{line}");
    }
    for device in &back.shapers {
        println!("qdisc of {device}: the kernel's own returns");
    }
    for device in &back.received {
        println!("shaper of what {device} receives: removed");
    }
    for line in &back.left {
        println!("left {line}");
    }
}

/// Return a line for each step.
fn told(now: &State, steps: &Steps) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, value) in &steps.sysctls {
        let present = now.sysctls.get(path).map_or("?", String::as_str);
        if present != value {
            lines.push(format!("sysctl {}: {present} -> {value}", dotted(path)));
        }
    }
    if let Some(Limits { subflows, add_addr_accepted }) = steps.limits {
        let Limits { subflows: s, add_addr_accepted: a } = now.limits;
        lines.push(format!(
            "MPTCP limits: subflows {s} -> {subflows}, add_addr_accepted {a} -> {add_addr_accepted}"
        ));
    }
    let named = |what: &str, one: &Endpoint| format!("MPTCP endpoint {} ({}): {what}", one.id, one.address);
    lines.extend(steps.removed.iter().map(|one| named("removed", one)));
    lines.extend(steps.added.iter().map(|one| named("added", one)));
    lines
}
