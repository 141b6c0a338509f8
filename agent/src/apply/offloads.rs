//! Offloads: no interface may carry more than one frame per skb, because queues, rates and losses
//! count skbs.
//!
//! On hosts the devices lose all transmit segmentation offloads. TCP still builds large buffers,
//! and the kernel splits them into frames in front of the device, as with a network card that lacks
//! segmentation. This costs a quarter less work per byte than a limit of one segment, which forbids
//! large buffers. The other namespaces only forward frames; they get that limit when the agent
//! creates the interface.

use netlink_bindings::ethtool::PushFeatures;

use super::build::Build;
use crate::error::Result;
use crate::netlink::{Batch, GenericFamily, RawRequest};
use crate::plan::Veth;

const FAMILY: &str = "ethtool";
/// All transmit segmentation offloads of a veth, as `ethtool -k` names them.
const SEGMENTATION: [&str; 13] = [
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-sctp-segmentation",
    "tx-gso-list",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
];
/// `ETHTOOL_FLAG_OMIT_REPLY`: an acknowledgement suffices.
const OMIT_REPLY: u32 = 2;
/// `linux/ethtool_netlink.h`.
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const FAMILY_VERSION: u8 = 1;

/// Turn segmentation off on every veth end of a host.
pub fn turn_off(build: &mut Build, veths: &'static [Veth]) -> Result<()> {
    if veths.is_empty() {
        return Ok(());
    }
    let Some(socket) = build.namespaces.iter_mut().find_map(|namespace| namespace.generic.as_mut()) else {
        return Ok(());
    };
    let family = GenericFamily::resolve(socket, FAMILY)?;
    let mut batches: Vec<_> = build.namespaces.iter().map(|_| Batch::default()).collect();
    for end in veths.iter().flat_map(|veth| [&veth.a, &veth.b]) {
        let place = build.index(&end.netns)?;
        if build.namespaces[place].generic.is_none() {
            continue;
        }
        let index = build.ifindex(&end.netns, &end.ifname)?;
        let request = clear_segmentation(index.cast_unsigned());
        let context = format_args!("turning segmentation off on {} in {}", end.ifname, end.netns);
        batches[place].add_as(&request, family.id, context);
    }
    for (namespace, batch) in build.namespaces.iter_mut().zip(batches) {
        if let Some(socket) = &mut namespace.generic {
            socket.apply(batch)?;
        }
    }
    Ok(())
}

/// Return a request to change features, with the command number that the kernel expects. The bindings
/// (0.3.5) number requests and replies of this family together and would set ring sizes.
fn clear_segmentation(ifindex: u32) -> RawRequest {
    let mut payload = vec![ETHTOOL_MSG_FEATURES_SET, FAMILY_VERSION, 0, 0];
    {
        let attributes = PushFeatures::new(&mut payload);
        let header = attributes.nested_header().push_dev_index(ifindex).push_flags(OMIT_REPLY);
        // A bit with a name but no value is cleared.
        let mut bits = header.end_nested().nested_wanted().nested_bits();
        for name in SEGMENTATION {
            bits = bits.nested_bit().push_name_bytes(name.as_bytes()).end_nested();
        }
    }
    RawRequest { flags: 0, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_says_set_features() {
        let request = clear_segmentation(7);
        assert_eq!(request.payload[..4], [12, 1, 0, 0]);
        // ETHTOOL_A_FEATURES_HEADER (nested) with ETHTOOL_A_HEADER_DEV_INDEX = 7 comes first.
        assert_eq!(request.payload[8..16], [8, 0, 1, 0, 7, 0, 0, 0]);
    }
}
