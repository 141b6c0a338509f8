//! The generic netlink families of Open vSwitch.

use crate::error::Result;
use crate::netlink::{GenericFamily, Socket};

/// The ids of these families.
#[derive(Debug, Clone, Copy)]
pub struct Families {
    pub datapath: u16,
    pub vport: u16,
    pub flow: u16,
    pub packet: u16,
}

impl Families {
    pub fn resolve(socket: &mut Socket) -> Result<Self> {
        Ok(Self {
            datapath: GenericFamily::resolve(socket, "ovs_datapath")?.id,
            vport: GenericFamily::resolve(socket, "ovs_vport")?.id,
            flow: GenericFamily::resolve(socket, "ovs_flow")?.id,
            packet: GenericFamily::resolve(socket, "ovs_packet")?.id,
        })
    }
}
