//! Which links of a plan are devices.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Hook, LinksAs, Plan, QdiscOptions, Veth, VethEnd};

/// The links of a plan that are devices.
#[derive(Default)]
pub struct Devices {
    pub(super) pairs: Vec<Pair>,
    /// The end from which a direction leaves, by the interface in `wire` that would shape it.
    senders: BTreeMap<&'static str, &'static VethEnd>,
    /// The interfaces in `wire` that do not exist.
    absent: BTreeSet<&'static str>,
}

/// The two chains' ends that a device connects.
pub(super) struct Pair {
    pub a: &'static Veth,
    pub b: &'static Veth,
}

impl Devices {
    /// Choose the links of `plan` that are devices.
    pub fn of(plan: &'static Plan) -> Self {
        let mut chosen = Self::default();
        if plan.machine.links != LinksAs::Device {
            return chosen;
        }
        let network = &plan.network;
        let veths: BTreeMap<_, _> = network.veths.iter().map(|veth| (veth.b.ifname.as_str(), veth)).collect();
        let targets: BTreeMap<_, _> = network
            .redirects
            .iter()
            .filter(|redirect| redirect.hook == Hook::Ingress)
            .map(|redirect| (redirect.source.as_str(), redirect.target.as_str()))
            .collect();
        let mut kept: BTreeSet<_> = network
            .redirects
            .iter()
            .filter(|redirect| redirect.hook == Hook::Egress)
            .map(|redirect| redirect.source.as_str())
            .collect();
        let traced = network.qdiscs.iter().filter(|q| matches!(q.options, QdiscOptions::PlaitTrace(_)));
        kept.extend(traced.map(|qdisc| qdisc.ifname.as_str()));
        for (source, target) in &targets {
            let (Some(a), Some(b)) = (veths.get(source), veths.get(target)) else { continue };
            let both = targets.get(target) == Some(source);
            if !both || source >= target || kept.contains(source) || kept.contains(target) {
                continue;
            }
            chosen.absent.extend([*source, *target]);
            // The qdiscs of an interface of `wire` treat what leaves towards its node.
            chosen.senders.insert(target, &a.a);
            chosen.senders.insert(source, &b.a);
            chosen.pairs.push(Pair { a, b });
        }
        chosen
    }

    /// Return the end from which the direction leaves that `ifname` in `wire` would shape.
    pub fn sender(&self, ifname: &str) -> Option<&'static VethEnd> {
        self.senders.get(ifname).copied()
    }

    /// Whether `ifname` is an interface in `wire` that does not exist.
    pub fn replace(&self, ifname: &str) -> bool {
        self.absent.contains(ifname)
    }

    /// Whether the plan has no such link.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}
