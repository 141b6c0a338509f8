//! A network under construction.

use std::collections::BTreeMap;

use super::namespace::Namespace;
use super::qdiscs::traces::PendingTrace;
use crate::error::{Error, Result};
use crate::netlink::Batch;
use crate::plan::{Distribution, LinkDirection, Plan, VethEnd};

/// The directions of devices by name: where each begins, and its conditions after the last event that was prepared.
pub type Lines = BTreeMap<&'static str, (&'static VethEnd, &'static LinkDirection)>;

/// A network under construction: its namespaces, and the pending requests for each.
pub struct Build {
    pub namespaces: Vec<Namespace>,
    pub batches: Vec<Batch>,
    by_name: BTreeMap<&'static str, usize>,
    pub distributions: &'static [Distribution],
    /// Traces that start at the trial's zero.
    pub traces: Vec<PendingTrace>,
    /// The directions of links that are devices.
    pub lines: Lines,
}

impl Build {
    pub fn new(plan: &'static Plan, namespaces: Vec<Namespace>) -> Result<Self> {
        let network = &plan.network;
        let mut by_name = BTreeMap::new();
        for (index, planned) in network.namespaces.iter().enumerate() {
            if by_name.insert(planned.name.as_str(), index).is_some() {
                return Err(Error::new(format!("the plan has two namespaces {}", planned.name)));
            }
        }
        let batches = namespaces.iter().map(|_| Batch::default()).collect();
        Ok(Self {
            namespaces,
            batches,
            by_name,
            distributions: &network.distributions,
            traces: Vec::new(),
            lines: Lines::new(),
        })
    }

    pub fn index(&self, netns: &str) -> Result<usize> {
        self.by_name
            .get(netns)
            .copied()
            .ok_or_else(|| Error::new(format!("the plan has no namespace {netns}")))
    }

    pub fn namespace(&mut self, netns: &str) -> Result<&mut Namespace> {
        let index = self.index(netns)?;
        Ok(&mut self.namespaces[index])
    }

    pub fn batch(&mut self, netns: &str) -> Result<&mut Batch> {
        let index = self.index(netns)?;
        Ok(&mut self.batches[index])
    }

    /// Return the number of interface `ifname` in `netns`.
    pub fn ifindex(&self, netns: &str, ifname: &str) -> Result<i32> {
        self.namespaces[self.index(netns)?].ifindex(ifname)
    }

    /// Take all pending requests, with the indices of their namespaces.
    pub fn take_batches(&mut self) -> impl Iterator<Item = (usize, Batch)> {
        let batches = self.batches.iter_mut().map(std::mem::take).enumerate();
        batches.filter(|(_, batch)| !batch.is_empty())
    }

    pub fn run(&mut self) -> Result<()> {
        for (namespace, batch) in self.namespaces.iter_mut().zip(self.batches.iter_mut()) {
            namespace.route.apply(std::mem::take(batch))?;
        }
        Ok(())
    }
}
