//! What flows of a datapath match.

use netlink_bindings::ovs_flow::{OvsKeyEthernet, PushKeyAttrs};
use netlink_bindings::utils::Pusher;

/// Every bit of a field counts.
pub const EXACT_ADDRESS: [u8; 6] = [0xff; 6];
/// `OVS_HASH_ALG_SYM_L4`: computed from the headers, always; `OVS_HASH_ALG_L4` would take what the sender left.
pub const HASH_SYMMETRIC_L4: u32 = 1;

/// The fields of a packet that flows match here; what is None is left out, and any value matches.
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
