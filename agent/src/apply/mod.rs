//! Makes the network of a plan: namespaces first, then per namespace one batch of everything in it.
//!
//! The work grows linearly with the network: a namespace costs about a dozen system calls, everything in it
//! shares one netlink batch, and interface numbers are chosen here, so that nothing has to be asked back.

pub mod datapath;
mod events;
mod links;
mod middlebox;
mod mptcp;
pub mod namespace;
mod nat;
mod offloads;
mod qdisc_options;
mod routing;
mod shaping;
mod traces;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

pub use events::Schedule;
pub use links::bring_up_loopback;
pub use namespace::{Namespace, enter};
pub use shaping::ROOT;

use crate::error::{Attempt, Error, Result};
use crate::netlink::{Batch, GenericFamily};
use crate::plan::{Distribution, Network, Plan, Role};

/// The network as it stands, with the handles through which it is watched.
pub struct Applied {
    /// In the order of the plan.
    pub namespaces: Vec<Namespace>,
    /// The namespace in which the agent started.
    pub home: OwnedFd,
    /// The MPTCP path manager's numbers; None when no namespace is watched for its events.
    pub path_manager: Option<GenericFamily>,
    /// The events of the plan, ready to be carried out.
    pub events: Schedule,
    /// The datapaths of Open vSwitch.
    pub switches: Vec<datapath::Switch>,
}

impl Applied {
    /// Takes out the namespace that carries all links, which is nobody's host.
    pub fn take_wire(&mut self) -> Option<Namespace> {
        let place = self.namespaces.iter().position(|namespace| namespace.role == Role::Wire)?;
        Some(self.namespaces.remove(place))
    }

    /// The namespace called `name`.
    pub fn all(&self) -> &[Namespace] {
        &self.namespaces
    }

    pub fn namespace(&self, name: &str) -> Result<&Namespace> {
        self.namespaces
            .iter()
            .find(|namespace| namespace.name == name)
            .ok_or_else(|| Error::new(format!("the plan has no namespace {name}")))
    }
}

/// Makes the network of `plan`. The calling thread ends in the namespace in which it began.
pub fn apply(plan: &'static Plan) -> Result<Applied> {
    let network = &plan.network;
    let home = namespace::current()?;
    for (path, value) in &plan.machine.sysctls {
        write_sysctl(path, value)?;
    }
    let mut namespaces = Vec::with_capacity(network.namespaces.len());
    for planned in &network.namespaces {
        namespaces.push(Namespace::create(planned)?);
    }
    enter(&home)?;
    let mut build = Build::new(network, namespaces)?;

    links::add_veths(&mut build, &network.veths, &home)?;
    offloads::turn_off(&mut build, &network.veths)?;
    links::add_loopbacks(&mut build);
    links::add_bridges(&mut build, &network.bridges)?;
    links::add_ifbs(&mut build, &network.ifbs)?;
    links::add_addresses(&mut build, &network.veths)?;
    shaping::add_qdiscs(&mut build, &network.qdiscs)?;
    shaping::add_redirects(&mut build, &network.redirects)?;
    routing::add_routes(&mut build, &network.routes)?;
    routing::add_rules(&mut build, &network.rules)?;
    build.run()?;
    nat::add_nats(&mut build, &network.nats)?;
    let switches = datapath::add_datapaths(&mut build, &network.datapaths)?;
    enter(&home)?;
    middlebox::add_middleboxes(&mut build, &network.middleboxes)?;
    enter(&home)?;
    let path_manager = mptcp::configure(&mut build, &network.mptcp)?;
    let events = Schedule::prepare(&mut build, &plan.events, path_manager.as_ref(), &home)?;
    Ok(Applied { namespaces: build.namespaces, home, path_manager, events, switches })
}

/// A network being made: its namespaces, and for each the changes that will be sent to it.
struct Build {
    namespaces: Vec<Namespace>,
    batches: Vec<Batch>,
    by_name: BTreeMap<&'static str, usize>,
    distributions: &'static [Distribution],
    /// What waits for the trial's zero.
    traces: Vec<traces::Waiting>,
}

impl Build {
    fn new(network: &'static Network, namespaces: Vec<Namespace>) -> Result<Self> {
        let mut by_name = BTreeMap::new();
        for (index, planned) in network.namespaces.iter().enumerate() {
            if by_name.insert(planned.name.as_str(), index).is_some() {
                return Err(Error::new(format!("the plan has two namespaces {}", planned.name)));
            }
        }
        let batches = namespaces.iter().map(|_| Batch::default()).collect();
        Ok(Self { namespaces, batches, by_name, distributions: &network.distributions, traces: Vec::new() })
    }

    fn index(&self, netns: &str) -> Result<usize> {
        self.by_name
            .get(netns)
            .copied()
            .ok_or_else(|| Error::new(format!("the plan has no namespace {netns}")))
    }

    fn namespace(&mut self, netns: &str) -> Result<&mut Namespace> {
        let index = self.index(netns)?;
        Ok(&mut self.namespaces[index])
    }

    fn batch(&mut self, netns: &str) -> Result<&mut Batch> {
        let index = self.index(netns)?;
        Ok(&mut self.batches[index])
    }

    /// The number of interface `ifname` in `netns`.
    fn ifindex(&self, netns: &str, ifname: &str) -> Result<i32> {
        self.namespaces[self.index(netns)?].ifindex(ifname)
    }

    /// Takes out the changes so far, by the place of their namespace.
    fn take_batches(&mut self) -> impl Iterator<Item = (usize, Batch)> {
        let batches = self.batches.iter_mut().map(std::mem::take).enumerate();
        batches.filter(|(_, batch)| !batch.is_empty())
    }

    fn run(&mut self) -> Result<()> {
        for (namespace, batch) in self.namespaces.iter_mut().zip(self.batches.iter_mut()) {
            namespace.route.apply(std::mem::take(batch))?;
        }
        Ok(())
    }
}

/// `02:00:00:00:00:01` as bytes.
fn parse_mac(text: &str) -> Result<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().unwrap_or_default();
        *byte = u8::from_str_radix(part, 16)
            .map_err(|_| Error::new(format!("{text:?} is not an Ethernet address")))?;
    }
    if parts.next().is_some() {
        return Err(Error::new(format!("{text:?} is not an Ethernet address")));
    }
    Ok(mac)
}

/// `10.0.0.1/24` as address and prefix length.
fn parse_prefix(text: &str) -> Result<(IpAddr, u8)> {
    let wrong = || Error::new(format!("{text:?} is not an address with a prefix length"));
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length > most { Err(wrong()) } else { Ok((address, length)) }
}

/// `AF_INET` or `AF_INET6`.
pub fn address_family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    u8::try_from(family).unwrap_or_default()
}

/// Writes a file below /proc/sys of the calling thread's namespace.
pub fn write_sysctl(path: &str, value: &str) -> Result<()> {
    std::fs::write(sysctl_file(path, value)?, value).attempt(|| sysctl_words(path, value))
}

/// Opens a file below /proc/sys of the calling thread's namespace, to write `value` later; it stays that namespace's.
fn open_sysctl(path: &str, value: &str) -> Result<File> {
    let file = sysctl_file(path, value)?;
    File::options().write(true).open(file).attempt(|| sysctl_words(path, value))
}

fn sysctl_words(path: &str, value: &str) -> String {
    format!("setting sysctl {path} to {value:?}")
}

fn sysctl_file(path: &str, value: &str) -> Result<String> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(Error::because(sysctl_words(path, value), "not a path below /proc/sys"));
    }
    Ok(format!("/proc/sys/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_has_exactly_six_bytes() {
        assert_eq!(parse_mac("02:00:00:00:0a:ff").unwrap(), [2, 0, 0, 0, 10, 255]);
        assert!(parse_mac("02:00:00:00:0a").is_err());
        assert!(parse_mac("02:00:00:00:0a:ff:00").is_err());
    }

    #[test]
    fn a_prefix_length_must_fit_the_family() {
        assert_eq!(parse_prefix("10.0.0.1/24").unwrap(), ("10.0.0.1".parse().unwrap(), 24));
        assert_eq!(parse_prefix("fd00::1/64").unwrap(), ("fd00::1".parse().unwrap(), 64));
        assert!(parse_prefix("10.0.0.1/33").is_err());
        assert!(parse_prefix("10.0.0.1").is_err());
    }

    #[test]
    fn a_sysctl_cannot_leave_its_folder() {
        assert!(write_sysctl("net/../../etc/passwd", "1").is_err());
    }
}
