//! Requests to the netlink families of Open vSwitch. The bindings (0.3.5) omit the generic netlink
//! header of these families and lack the command that removes a flow.

use netlink_bindings::ovs_datapath::PushDatapath;
use netlink_bindings::ovs_flow::PushFlowAttrs;
use netlink_bindings::ovs_packet::PushPacket;
use netlink_bindings::ovs_vport::PushVport;

use crate::netlink::{NLM_F_DUMP, RawRequest};

/// `linux/openvswitch.h`: datapaths, ports and flows use the same command numbers.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    New = 1,
    Delete = 2,
    Get = 3,
}

/// `OVS_PACKET_CMD_EXECUTE`.
const EXECUTE: u8 = 3;
/// `OVS_PACKET_CMD_MISS`, which the kernel sends.
pub const MISS: u8 = 1;
const VERSION: u8 = 1;
/// Command, version, padding. The number of the datapath follows.
pub const GENERIC_HEADER_BYTES: usize = 4;
const NLM_F_CREATE: u16 = 0x400;

/// A request: the generic netlink header, the number of its datapath (0: none yet), and attributes.
pub struct Request(pub RawRequest);

impl Request {
    pub fn new(command: Command, ifindex: u32) -> Self {
        let flags = match command {
            Command::New => NLM_F_CREATE,
            Command::Delete => 0,
            Command::Get => NLM_F_DUMP,
        };
        Self::with(command as u8, ifindex, flags)
    }

    /// Create a request that executes actions on a packet.
    pub fn execute(ifindex: u32) -> Self {
        Self::with(EXECUTE, ifindex, 0)
    }

    fn with(command: u8, ifindex: u32, flags: u16) -> Self {
        let mut payload = vec![command, VERSION, 0, 0];
        payload.extend_from_slice(&ifindex.to_ne_bytes());
        Self(RawRequest { flags, payload })
    }

    pub fn datapath(&mut self) -> PushDatapath<&mut Vec<u8>> {
        PushDatapath::new(&mut self.0.payload)
    }

    pub fn vport(&mut self) -> PushVport<&mut Vec<u8>> {
        PushVport::new(&mut self.0.payload)
    }

    pub fn flow(&mut self) -> PushFlowAttrs<&mut Vec<u8>> {
        PushFlowAttrs::new(&mut self.0.payload)
    }

    pub fn packet(&mut self) -> PushPacket<&mut Vec<u8>> {
        PushPacket::new(&mut self.0.payload)
    }
}
