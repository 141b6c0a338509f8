//! Makes the network of a plan: namespaces first, then per namespace one batch of everything in it.
//!
//! The work grows linearly with the network: a namespace costs about a dozen system calls, everything in it
//! shares one netlink batch, and interface numbers are chosen here, so that nothing has to be asked back.

mod addresses;
mod build;
pub mod datapath;
mod events;
mod links;
mod middlebox;
mod mptcp;
pub mod namespace;
mod nat;
mod offloads;
mod qdiscs;
mod routing;
mod sysctl;

use std::os::fd::OwnedFd;

pub use addresses::address_family;
pub use events::Schedule;
pub use links::bring_up_loopback;
pub use namespace::{Namespace, enter};
pub use qdiscs::ROOT;
pub use sysctl::write_sysctl;

use build::Build;

use crate::error::{Error, Result};
use crate::netlink::GenericFamily;
use crate::plan::{Plan, Role};

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
    Ok(Applied { namespaces: build.namespaces, home, path_manager, events, switches })
}
