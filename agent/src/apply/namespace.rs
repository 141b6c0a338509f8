//! Network namespaces: made with their sysctls, held by a descriptor, and named below /run/netns.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::mount_bind;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::sysctl::write_sysctl;
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Family, Socket};
use crate::plan::{self, Role};
use crate::sys;

/// Where `ip netns` looks for namespaces, so that tools can enter them.
const NAMED: &str = "/run/netns";
const OWN: &str = "/proc/thread-self/ns/net";
/// Numbers that a kernel may have given to interfaces of its own (lo, tunnels of each protocol) in a new namespace.
const NUMBERS_BELOW: i32 = 99;

/// A namespace of the plan, and the sockets opened in it.
pub struct Namespace {
    pub name: &'static str,
    pub role: Role,
    /// To enter it, or to move an interface into it.
    pub fd: OwnedFd,
    /// For links, addresses, routes, rules and traffic control.
    pub route: Socket,
    /// For offloads and the MPTCP path manager: settings, then events. Only where applications run.
    pub generic: Option<Socket>,
    links: BTreeMap<&'static str, i32>,
}

impl Namespace {
    /// Makes the namespace, writes its sysctls, and leaves the calling thread in it.
    pub fn create(planned: &'static plan::Namespace) -> Result<Self> {
        let name = planned.name.as_str();
        if name.is_empty() || name.contains('/') || matches!(name, "." | "..") {
            return Err(Error::new(format!("{name:?} cannot be the name of a namespace")));
        }
        let what = || format!("making namespace {name}");
        sys::unshare_network().attempt(what)?;
        let path = format!("{NAMED}/{name}");
        rustix::fs::open(&path, OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, Mode::RUSR).attempt(what)?;
        mount_bind(OWN, &path).attempt(what)?;
        let fd = current().attempt(what)?;
        for (path, value) in &planned.sysctls {
            write_sysctl(path, value).attempt(|| format!("namespace {name}"))?;
        }
        let route = Socket::open(Family::Route).attempt(what)?;
        let generic = match planned.role {
            Role::Host => Some(Socket::open(Family::Generic).attempt(what)?),
            _ => None,
        };
        Ok(Self { name, role: planned.role, fd, route, generic, links: BTreeMap::from([("lo", 1)]) })
    }

    /// The number of interface `ifname`.
    pub fn ifindex(&self, ifname: &str) -> Result<i32> {
        let missing = || Error::new(format!("the plan has no interface {ifname} in {}", self.name));
        self.links.get(ifname).copied().ok_or_else(missing)
    }

    /// Chooses the number of a new interface, counting up in the order of the plan.
    pub fn number(&mut self, ifname: &'static str) -> Result<i32> {
        let index = i32::try_from(self.links.len()).unwrap_or(i32::MAX).saturating_add(NUMBERS_BELOW);
        match self.links.insert(ifname, index) {
            None => Ok(index),
            Some(_) => Err(Error::new(format!("the plan has two interfaces {ifname} in {}", self.name))),
        }
    }
}

/// The namespace of the calling thread.
pub fn current() -> Result<OwnedFd> {
    rustix::fs::open(OWN, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .attempt(|| "opening the current namespace")
}

/// Moves the calling thread into the namespace that `fd` stands for.
pub fn enter(fd: &impl AsFd) -> Result<()> {
    move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network))
        .attempt(|| "entering a network namespace")
}
