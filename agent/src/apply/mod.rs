//! Build the network of a plan: first the namespaces, then one batch of netlink requests for each.
//!
//! The cost grows linearly with the network. A namespace takes about a dozen system calls. The
//! agent chooses interface numbers itself, so it never asks the kernel for one.

mod addresses;
mod build;
pub mod datapath;
mod devices;
mod links;
mod middlebox;
mod mptcp;
pub mod namespace;
mod nat;
mod offloads;
mod packet_filter;
mod qdiscs;
mod routing;
mod scheduled_events;
mod sysctl;

use std::os::fd::OwnedFd;

pub use addresses::kernel_address;
pub use links::bring_up_loopback;
pub use mptcp::{endpoint_flags, endpoint_request, limits_request, push_endpoint_address};
pub use namespace::{Namespace, enter};
pub use qdiscs::ROOT;
pub use scheduled_events::Schedule;
pub use sysctl::{ONLY_SCHEDULER, SCHEDULER, write_sysctl};

use build::Build;

use crate::error::{Error, Result};
use crate::netlink::GenericFamily;
use crate::plan::{Plan, Role};
use crate::process;

/// A network that exists in the kernel, with the handles through which the agent observes it.
pub struct Applied {
    /// In the order of the plan.
    pub namespaces: Vec<Namespace>,
    /// The namespace in which the agent started.
    pub home: OwnedFd,
    /// The path manager's generic netlink family; None if the plan configures no path manager.
    pub path_manager: Option<GenericFamily>,
    /// The plan's events, encoded.
    pub events: Schedule,
    /// The Open vSwitch datapaths.
    pub switches: Vec<datapath::Switch>,
}

impl Applied {
    /// Remove and return the namespace that carries all links; no host runs in it.
    pub fn take_wire(&mut self) -> Option<Namespace> {
        let place = self.namespaces.iter().position(|namespace| namespace.role == Role::Wire)?;
        Some(self.namespaces.remove(place))
    }

    pub fn namespace(&self, name: &str) -> Result<&Namespace> {
        self.namespaces
            .iter()
            .find(|namespace| namespace.name == name)
            .ok_or_else(|| Error::new(format!("the plan has no namespace {name}")))
    }
}

/// Build the network of `plan`. The calling thread ends in the namespace in which it began.
pub fn apply(plan: &'static Plan) -> Result<Applied> {
    let network = &plan.network;
    let home = namespace::current()?;
    let shared = plan.machine.sysctls.iter().filter(|_| !process::is_ordinary());
    for (path, value) in shared {
        write_sysctl(path, value)?;
    }
    let mut namespaces = Vec::with_capacity(network.namespaces.len());
    for planned in &network.namespaces {
        namespaces.push(match process::node() {
            Some(node) => Namespace::adopt(planned, node)?,
            None => Namespace::create(planned)?,
        });
    }
    enter(&home)?;
    let mut build = Build::new(plan, namespaces)?;

    links::add_veths(&mut build, &network.veths, &home)?;
    devices::add(&mut build, plan, &home)?;
    if !plan.machine.offloads {
        offloads::turn_off(&mut build, &network.veths)?;
    }
    if process::node().is_none() {
        links::add_loopbacks(&mut build);
    }
    links::add_bridges(&mut build, &network.bridges)?;
    links::add_ifbs(&mut build, &network.ifbs)?;
    links::add_addresses(&mut build, plan.ends())?;
    qdiscs::add_qdiscs(&mut build, &network.qdiscs)?;
    qdiscs::add_redirects(&mut build, &network.redirects)?;
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
    let Build { namespaces, .. } = build;
    Ok(Applied { namespaces, home, path_manager, events, switches })
}
