//! The kernel's present settings: read them, and carry out steps.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use netlink_bindings::mptcp_pm::{self, IterableAddress};
use netlink_bindings::traits::NetlinkRequest;
use serde::{Deserialize, Serialize};

use super::connections;
use super::qdiscs::program;
use crate::apply::{endpoint_request, kernel_address, limits_request, write_sysctl};
use crate::error::{Attempt, Error, Result};
use crate::netlink::sock_diag::{Kind, LISTEN};
use crate::netlink::{Family, GenericFamily, Socket};

/// `MPTCP_PM_ADDR_FLAG_IMPLICIT`: the kernel made the endpoint for a subflow from its address.
pub const IMPLICIT: u32 = 1 << 4;
/// The congestion controls and the schedulers that the kernel has. Only modules and BPF programs change these.
pub const AVAILABLE: [&str; 2] =
    ["net/ipv4/tcp_available_congestion_control", "net/mptcp/available_schedulers"];
/// The number of characters that the kernel keeps of an object's name.
const MOST_NAME: usize = 15;

/// An endpoint of the kernel's path manager.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Endpoint {
    pub id: u8,
    pub address: IpAddr,
    /// 0: none.
    pub port: u16,
    /// `MPTCP_PM_ADDR_FLAG_*`.
    pub flags: u32,
    /// The number of its interface; 0: none.
    pub interface: i32,
}

impl Endpoint {
    pub fn is_implicit(&self) -> bool {
        self.flags & IMPLICIT != 0
    }

    /// Whether both are the same object: the kernel has one endpoint for an id, and keeps its address.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.id, self.address, self.port) == (other.id, other.address, other.port)
    }
}

/// Limits of the path manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub subflows: u32,
    pub add_addr_accepted: u32,
}

/// The settings of a network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// By id.
    pub endpoints: Vec<Endpoint>,
    pub limits: Limits,
    /// By path below /proc/sys, with single spaces between words; those that the kernel lacks are missing.
    pub sysctls: BTreeMap<String, String>,
}

/// Changes of settings, in this order.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// Congestion controls and schedulers, and the objects with their BPF programs.
    #[serde(default)]
    pub loaded: Vec<(String, PathBuf)>,
    pub sysctls: Vec<(String, String)>,
    pub limits: Option<Limits>,
    pub removed: Vec<Endpoint>,
    pub added: Vec<Endpoint>,
    #[serde(default)]
    pub unloaded: Vec<String>,
}

impl Steps {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The present network namespace.
pub struct Host {
    generic: Socket,
    family: u16,
}

impl Host {
    pub fn open() -> Result<Self> {
        let mut generic = Socket::open(Family::Generic)?;
        let family = GenericFamily::resolve(&mut generic, "mptcp_pm")
            .attempt(|| "this kernel has no MPTCP, or does not allow this user to configure it")?
            .id;
        Ok(Self { generic, family })
    }

    /// Return the present settings, with those of `sysctls` that the kernel has.
    pub fn state(&mut self, sysctls: &[String]) -> Result<State> {
        Ok(State { endpoints: self.endpoints()?, limits: self.limits()?, sysctls: read_sysctls(sysctls) })
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>> {
        let request = mptcp_pm::Request::new().op_get_addr_dump();
        let mut endpoints = Vec::new();
        self.generic
            .ask(&request, self.family, |payload| {
                let reply = mptcp_pm::OpGetAddrDump::decode_reply(payload);
                endpoints.extend(reply.get_addr().ok().and_then(|address| endpoint(&address)));
            })
            .attempt(|| "listing the MPTCP endpoints")?;
        endpoints.sort();
        Ok(endpoints)
    }

    fn limits(&mut self) -> Result<Limits> {
        let request = mptcp_pm::Request::new().op_get_limits_do();
        let mut limits = None;
        let context = || "reading the MPTCP limits";
        self.generic
            .ask(&request, self.family, |payload| {
                let reply = mptcp_pm::OpGetLimitsDo::decode_reply(payload);
                if let (Ok(subflows), Ok(add_addr_accepted)) =
                    (reply.get_subflows(), reply.get_rcv_add_addrs())
                {
                    limits = Some(Limits { subflows, add_addr_accepted });
                }
            })
            .attempt(context)?;
        limits.ok_or_else(|| Error::because(context(), "the kernel's answer has none"))
    }

    /// Return the local addresses of the subflows of living connections.
    pub fn addresses_in_use() -> Result<BTreeSet<IpAddr>> {
        let living = connections::living()?;
        let subflows = connections::all(Kind::Tcp)?
            .into_iter()
            .filter(|seen| seen.ulp.is_some() && seen.state != LISTEN && living.contains(&seen.inode));
        Ok(subflows.filter_map(|seen| seen.ends.map(|(local, _)| local.ip())).collect())
    }

    /// Carry out every step, also after a failure; return the first failure.
    pub fn carry_out(&mut self, steps: &Steps) -> Result<()> {
        let mut done: Vec<Result<()>> = Vec::new();
        done.extend(steps.loaded.iter().map(|(name, object)| load(name, object)));
        done.extend(steps.sysctls.iter().map(|(path, value)| write_sysctl(path, value)));
        done.extend(steps.limits.map(|limits| self.set_limits(limits)));
        done.extend(steps.removed.iter().map(|endpoint| self.remove(endpoint)));
        done.extend(steps.added.iter().map(|endpoint| self.add(endpoint)));
        done.extend(steps.unloaded.iter().map(|name| unload(name)));
        done.into_iter().collect()
    }

    fn set_limits(&mut self, limits: Limits) -> Result<()> {
        let Limits { subflows, add_addr_accepted } = limits;
        self.act(&limits_request(subflows, add_addr_accepted), || {
            format!("setting the MPTCP limits to {subflows} subflows, {add_addr_accepted} accepted addresses")
        })
    }

    fn add(&mut self, endpoint: &Endpoint) -> Result<()> {
        let Endpoint { id, address, port, flags, interface } = *endpoint;
        let (interface, port) = ((interface != 0).then_some(interface), (port != 0).then_some(port));
        let request = endpoint_request(id, flags & !IMPLICIT, interface, address, port);
        self.act(&request, || format!("adding MPTCP endpoint {id} ({address})"))
    }

    fn remove(&mut self, endpoint: &Endpoint) -> Result<()> {
        let mut request = mptcp_pm::Request::new().op_del_addr_do();
        drop(request.encode().nested_addr().push_id(endpoint.id));
        self.act(&request, || format!("removing MPTCP endpoint {} ({})", endpoint.id, endpoint.address))
    }

    fn act(&mut self, request: &impl NetlinkRequest, context: impl FnOnce() -> String) -> Result<()> {
        self.generic.ask(request, self.family, |_| {}).attempt(context)
    }
}

/// Give the kernel a congestion control or a scheduler, whose object registers as `plait_NAME`.
fn load(name: &str, object: &Path) -> Result<()> {
    let object = object.to_string_lossy();
    program("bpftool", &["struct_ops", "register", &object])
        .map(drop)
        .attempt(|| format!("loading the BPF program of {name}"))
}

/// Take an algorithm away. Connections that use it keep it.
fn unload(name: &str) -> Result<()> {
    let mark: String = "plait_".chars().chain(name.chars()).take(MOST_NAME).collect();
    let done = program("bpftool", &["struct_ops", "unregister", "name", &mark])
        .map(drop)
        .attempt(|| format!("taking the BPF program of {name} away"));
    // bpftool also fails for an earlier program of that name that an open connection keeps.
    let offered = read_sysctls(&AVAILABLE.map(str::to_owned));
    let is_offered = |names: &String| names.split(' ').any(|other| other == name);
    if offered.is_empty() || offered.values().any(is_offered) { done } else { Ok(()) }
}

fn endpoint(address: &IterableAddress<'_>) -> Option<Endpoint> {
    Some(Endpoint {
        id: address.get_id().ok()?,
        address: kernel_address(address.get_addr4().ok(), address.get_addr6().ok())?,
        port: address.get_port().unwrap_or_default(),
        flags: address.get_flags().unwrap_or_default(),
        interface: address.get_if_idx().unwrap_or_default(),
    })
}

fn read_sysctls(names: &[String]) -> BTreeMap<String, String> {
    let value = |name: &String| std::fs::read_to_string(format!("/proc/sys/{name}")).ok();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    names.iter().filter_map(|name| Some((name.clone(), words(value(name)?)))).collect()
}
