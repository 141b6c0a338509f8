//! Network namespaces with their sysctls. A descriptor keeps each of them alive. In a guest, a file
//! below /run/netns names it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::mount_bind;
use rustix::net::netdevice::name_to_index;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::sysctl::write_sysctl;
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Family, Socket};
use crate::plan::{self, Role};
use crate::process;
use crate::sys;

/// The folder in which `ip netns` looks for namespaces.
const NAMED: &str = "/run/netns";
const OWN: &str = "/proc/thread-self/ns/net";
/// Interface numbers that the kernel may use itself in a new namespace (lo, a tunnel of each
/// protocol).
const NUMBERS_BELOW: i32 = 99;

/// A namespace of the plan, and the sockets opened in it.
pub struct Namespace {
    pub name: &'static str,
    pub role: Role,
    /// For entering the namespace or moving an interface into it.
    pub fd: OwnedFd,
    /// For links, addresses, routes, rules and traffic control.
    pub route: Socket,
    /// For offloads and path-manager settings, later for path-manager events. Only hosts have one.
    pub generic: Option<Socket>,
    links: BTreeMap<&'static str, i32>,
}

impl Namespace {
    /// Create the namespace, set its sysctls, and leave the calling thread in it.
    pub fn create(planned: &'static plan::Namespace) -> Result<Self> {
        let name = planned.name.as_str();
        if name.is_empty() || name.contains('/') || matches!(name, "." | "..") {
            return Err(Error::new(format!("{name:?} is not a valid name of a namespace")));
        }
        let context = || format!("creating namespace {name}");
        sys::unshare(UnshareFlags::NEWNET).attempt(context)?;
        if !process::is_ordinary() {
            let path = format!("{NAMED}/{name}");
            rustix::fs::open(&path, OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, Mode::RUSR)
                .attempt(context)?;
            mount_bind(OWN, &path).attempt(context)?;
        }
        Self::of_thread(planned)
    }

    /// Use the namespace of the process as `node`, which must be the only one of the plan.
    pub fn adopt(planned: &'static plan::Namespace, node: &str) -> Result<Self> {
        if planned.name != node {
            let why = format!("this agent is {node} (--node), so it cannot create {}", planned.name);
            return Err(Error::new(why));
        }
        Self::of_thread(planned)
    }

    /// Set the sysctls of the calling thread's namespace, and open its sockets.
    fn of_thread(planned: &'static plan::Namespace) -> Result<Self> {
        let name = planned.name.as_str();
        let context = || format!("preparing namespace {name}");
        let fd = current().attempt(context)?;
        for (path, value) in &planned.sysctls {
            write_sysctl(path, value).attempt(|| format!("namespace {name}"))?;
        }
        let route = Socket::open(Family::Route).attempt(context)?;
        let generic = match planned.role {
            Role::Host => Some(Socket::open(Family::Generic).attempt(context)?),
            _ => None,
        };
        Ok(Self { name, role: planned.role, fd, route, generic, links: BTreeMap::from([("lo", 1)]) })
    }

    /// Return the number of interface `ifname`.
    pub fn ifindex(&self, ifname: &str) -> Result<i32> {
        let missing = || Error::new(format!("the plan has no interface {ifname} in {}", self.name));
        let real = || name_to_index(self.route.fd(), ifname).ok().filter(|_| process::node().is_some());
        let number = || real().and_then(|number| i32::try_from(number).ok());
        self.links.get(ifname).copied().or_else(number).ok_or_else(missing)
    }

    /// Choose the number of a new interface, counting up in the order of the plan.
    pub fn number(&mut self, ifname: &'static str) -> Result<i32> {
        let index = i32::try_from(self.links.len()).unwrap_or(i32::MAX).saturating_add(NUMBERS_BELOW);
        match self.links.insert(ifname, index) {
            None => Ok(index),
            Some(_) => Err(Error::new(format!("the plan has two interfaces {ifname} in {}", self.name))),
        }
    }
}

/// Open the namespace of the calling thread.
pub fn current() -> Result<OwnedFd> {
    rustix::fs::open(OWN, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .attempt(|| "opening the current namespace")
}

/// Move the calling thread into the namespace of `fd`. An agent with `--node` has only one, and may
/// lack the privilege for the call.
pub fn enter(fd: &impl AsFd) -> Result<()> {
    if process::node().is_some() {
        return Ok(());
    }
    move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network))
        .attempt(|| "entering a network namespace")
}
