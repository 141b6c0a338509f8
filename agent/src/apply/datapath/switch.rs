//! The flows of a datapath, in the format of `ovs-dpctl dump-flows`.

use netlink_bindings::ovs_flow::{
    ActionAttrs, IterableActionAttrs, IterableFlowAttrs, IterableKeyAttrs, OpGetDump,
};
use netlink_bindings::traits::NetlinkRequest;

use super::fields::{EXACT_ADDRESS, HASH_SYMMETRIC_L4};
use super::request::{Command, GENERIC_HEADER_BYTES, Request};
use crate::error::{Attempt, Result};
use crate::netlink::Socket;

/// A datapath, and the socket through which the agent reads its flows.
pub struct Switch {
    pub name: &'static str,
    pub(super) socket: Socket,
    pub(super) ifindex: u32,
    pub(super) flow_family: u16,
}

impl Switch {
    /// Return the kernel's flows, sorted: the text of each, and the number of packets that it
    /// matched.
    pub fn flows(&mut self) -> Result<Vec<(String, i64)>> {
        let mut flows = Vec::new();
        let mut request = Request::new(Command::Get, self.ifindex);
        drop(request.flow());
        self.socket
            .ask(&request.0, self.flow_family, |payload| {
                let (_, flow) =
                    OpGetDump::decode_reply(payload.get(GENERIC_HEADER_BYTES..).unwrap_or_default());
                flows.push(describe(&flow));
            })
            .attempt(|| format!("reading the flows of {}", self.name))?;
        flows.sort();
        Ok(flows)
    }
}

fn describe(flow: &IterableFlowAttrs<'_>) -> (String, i64) {
    let packets = flow.get_stats().map_or(0, |stats| stats.n_packets);
    let matched = match (flow.get_key(), flow.get_mask()) {
        (Ok(key), Ok(mask)) => describe_match(&key, &mask),
        _ => String::from("?"),
    };
    let actions = flow.get_actions().map_or_else(|_| String::from("drop"), describe_actions);
    (format!("{matched},actions:{actions}"), i64::try_from(packets).unwrap_or(i64::MAX))
}

fn describe_match(key: &IterableKeyAttrs<'_>, mask: &IterableKeyAttrs<'_>) -> String {
    let mut parts = vec![format!("recirc_id({})", hexadecimal(key.get_recirc_id().unwrap_or(0)))];
    // The kernel always reports the upper half as set.
    if mask.get_in_port().is_ok_and(|mask| mask & 0xffff != 0) {
        parts.push(format!("in_port({})", key.get_in_port().unwrap_or(0)));
    }
    if let Ok(mask @ 1..) = mask.get_dp_hash() {
        let value = hexadecimal(key.get_dp_hash().unwrap_or(0));
        parts.push(format!("dp_hash({value}/{})", hexadecimal(mask)));
    }
    if let (Ok(key), Ok(mask)) = (key.get_ethernet(), mask.get_ethernet()) {
        let source = address("src", key.eth_src, mask.eth_src);
        let destination = address("dst", key.eth_dst, mask.eth_dst);
        let fields: Vec<_> = source.into_iter().chain(destination).collect();
        if !fields.is_empty() {
            parts.push(format!("eth({})", fields.join(",")));
        }
    }
    parts.join(",")
}

fn address(name: &str, value: [u8; 6], mask: [u8; 6]) -> Option<String> {
    match mask {
        [0, 0, 0, 0, 0, 0] => None,
        EXACT_ADDRESS => Some(format!("{name}={}", mac(value))),
        _ => Some(format!("{name}={}/{}", mac(value), mac(mask))),
    }
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn describe_actions(actions: IterableActionAttrs<'_>) -> String {
    let parts: Vec<_> = actions
        .flatten()
        .map(|action| match action {
            ActionAttrs::Output(port) => port.to_string(),
            ActionAttrs::Hash(hash) if hash.hash_alg == HASH_SYMMETRIC_L4 => {
                format!("hash(sym_l4({}))", hash.hash_basis)
            }
            ActionAttrs::Recirc(id) => format!("recirc({})", hexadecimal(id)),
            _ => String::from("?"),
        })
        .collect();
    if parts.is_empty() { String::from("drop") } else { parts.join(",") }
}

/// Format an identifier as ovs-dpctl does: 0, 0x1, ...
fn hexadecimal(value: u32) -> String {
    if value == 0 { String::from("0") } else { format!("{value:#x}") }
}
