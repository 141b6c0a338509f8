//! The header fields that flows of a datapath match.

use netlink_bindings::ovs_flow::{OvsKeyEthernet, PushKeyAttrs};
use netlink_bindings::utils::Pusher;

/// The mask under which every bit counts.
pub const EXACT_ADDRESS: [u8; 6] = [0xff; 6];
/// `OVS_HASH_ALG_SYM_L4` always hashes the headers; `OVS_HASH_ALG_L4` would use a hash that the
/// sender left in the packet.
pub const HASH_SYMMETRIC_L4: u32 = 1;

/// The fields of a key or of a mask. A field that is None is absent and matches any value.
pub struct Fields {
    pub recirculation: u32,
    pub in_port: Option<u32>,
    pub source: [u8; 6],
    pub destination: [u8; 6],
    pub hash: Option<u32>,
}

impl Fields {
    pub fn push<P: Pusher>(&self, attributes: PushKeyAttrs<P>) -> PushKeyAttrs<P> {
        let mut attributes = attributes.push_recirc_id(self.recirculation);
        if let Some(in_port) = self.in_port {
            attributes = attributes.push_in_port(in_port);
        }
        if let Some(hash) = self.hash {
            attributes = attributes.push_dp_hash(hash);
        }
        attributes.push_ethernet(OvsKeyEthernet { eth_src: self.source, eth_dst: self.destination })
    }
}
