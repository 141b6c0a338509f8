//! Middleboxes on links: nftables rules in `wire` that modify packets and forward them to the other
//! end.
//!
//! A middlebox replaces the redirect of its link. It cannot come after a redirect: a packet that a
//! redirect takes on ingress never reaches the egress hook.

use netlink_bindings::nftables::{self, PushExprListAttrs};
use netlink_bindings::utils::Pusher;

use super::build::Build;
use super::packet_filter::{REGISTER, TABLE, compared, install, meta, transaction};
use crate::error::{Attempt, Result};
use crate::netlink::{Batch, push_attribute, push_nest};
use crate::plan::{Middlebox, Segment};

/// `NFPROTO_NETDEV`, `NF_NETDEV_INGRESS`.
const NFPROTO_NETDEV: u8 = 5;
const INGRESS: u32 = 0;
/// `linux/netfilter/nf_tables.h`: keys, payload bases, operations.
const PROTOCOL: u32 = 16;
const TRANSPORT_HEADER: u32 = 2;
const INNER_HEADER: u32 = 3;
const CHECKSUM_INET: u32 = 1;
/// `NFTA_EXPR_DATA`, `NFTA_FWD_SREG_DEV`, `NFTA_EXTHDR_TYPE`, `NFTA_EXTHDR_OP`,
/// `NFT_EXTHDR_OP_TCPOPT`: the bindings lack them.
const EXPRESSION_DATA: u16 = 2;
const DEVICE_REGISTER: u16 = 1;
const OPTION_TYPE: u16 = 2;
const OPTION_OPERATION: u16 = 6;
const TCP_OPTION: u32 = 1;
/// The kind of the MPTCP option (RFC 8684), and how many of them fit into a TCP header. Each rule
/// removes the first one.
const MPTCP: u8 = 30;
const MOST_OPTIONS: usize = 4;
/// Offsets in a TCP header, and its flags.
const FLAGS_OFFSET: u32 = 13;
const CHECKSUM_OFFSET: u32 = 16;
const TCP: u8 = 6;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Offset that lies in the payload of any segment that is long enough: the longest TCP header has
/// 60 bytes.
const REWRITTEN_OFFSET: u32 = 100;

/// Install every middlebox of the plan.
pub fn add_middleboxes(build: &mut Build, middleboxes: &'static [Middlebox]) -> Result<()> {
    for middlebox in middleboxes {
        let Middlebox { netns, source, target, .. } = middlebox;
        let batch = batch(middlebox, build.ifindex(netns, target)?);
        install(build, netns, batch)
            .attempt(|| format!("adding a middlebox between {source} and {target} in {netns}"))?;
    }
    Ok(())
}

fn batch(middlebox: &Middlebox, target: i32) -> Batch {
    let name = middlebox.source.as_bytes();
    transaction(NFPROTO_NETDEV, |batch, header| {
        let mut chain = nftables::Request::new().set_create().set_excl().op_newchain_do(header);
        let attributes = chain.encode().push_table_bytes(TABLE).push_name_bytes(name).push_type(c"filter");
        attributes.nested_hook().push_num(INGRESS).push_priority(0).push_dev_bytes(name);
        batch.add(&chain, "adding the chain");
        for rule in rules(middlebox) {
            let mut request = nftables::Request::new().set_create().set_append().op_newrule_do(header);
            {
                let attributes = request.encode().push_table_bytes(TABLE).push_chain_bytes(name);
                rule.push(attributes.nested_expressions(), target);
            }
            batch.add(&request, "adding a rule");
        }
    })
}

/// Which segments a rule matches, and what it does with them.
#[allow(clippy::struct_excessive_bools)] // independent properties
struct Rule {
    /// These bits of the TCP header have these values. None: the rule matches any packet, also
    /// without TCP.
    flags: Option<(u8, u8)>,
    /// The rule matches only segments with payload.
    payload: bool,
    strip: bool,
    rewrite: bool,
    /// The rule forwards the segment to the other end; later rules do not see it.
    last: bool,
}

fn rules(middlebox: &Middlebox) -> Vec<Rule> {
    let strips = |segment| middlebox.strip.contains(&segment);
    let rule = |flags, payload, strip| Rule { flags, payload, strip, rewrite: false, last: payload };
    let (syn, synack, neither) = ((SYN | ACK, SYN), (SYN | ACK, SYN | ACK), (SYN, 0));
    vec![
        rule(Some(syn), false, strips(Segment::Syn)),
        rule(Some(synack), false, strips(Segment::Synack)),
        Rule { last: false, rewrite: middlebox.rewrite, ..rule(Some(neither), true, false) },
        rule(Some(neither), true, strips(Segment::Data)),
        rule(Some(neither), false, strips(Segment::Ack)),
        Rule { last: true, ..rule(None, false, false) },
    ]
}

impl Rule {
    fn push<P: Pusher>(&self, mut list: PushExprListAttrs<P>, target: i32) {
        if let Some((bits, values)) = self.flags {
            list = compared(meta(list, PROTOCOL), &[TCP]);
            list = masked(loaded(list, TRANSPORT_HEADER, FLAGS_OFFSET, 1), &[bits], &[0]);
            list = compared(list, &[values]);
        }
        if self.payload {
            // A rule does not match if the packet is too short for its bytes.
            list = loaded(list, INNER_HEADER, 0, 1);
        }
        if self.rewrite {
            // Inverting both bytes would leave a one's complement checksum unchanged.
            list = masked(loaded(list, TRANSPORT_HEADER, REWRITTEN_OFFSET, 2), &[0xff; 2], &[0xff, 0]);
            list = stored(list, REWRITTEN_OFFSET, 2);
        }
        for _ in 0..if self.strip { MOST_OPTIONS } else { 0 } {
            list = stripped(list);
        }
        if self.last {
            forwarded(list, target);
        }
    }
}

fn loaded<P: Pusher>(
    list: PushExprListAttrs<P>,
    base: u32,
    offset: u32,
    length: u32,
) -> PushExprListAttrs<P> {
    let payload = list.nested_elem().nested_data_payload().push_dreg(REGISTER).push_base(base);
    payload.push_offset(offset).push_len(length).end_nested().end_nested()
}

fn stored<P: Pusher>(list: PushExprListAttrs<P>, offset: u32, length: u32) -> PushExprListAttrs<P> {
    let payload = list.nested_elem().nested_data_payload().push_sreg(REGISTER).push_base(TRANSPORT_HEADER);
    let payload = payload.push_offset(offset).push_len(length).push_csum_type(CHECKSUM_INET);
    payload.push_csum_offset(CHECKSUM_OFFSET).end_nested().end_nested()
}

/// Mask the register with `mask`, and invert the bits in `flip`.
fn masked<P: Pusher>(list: PushExprListAttrs<P>, mask: &[u8], flip: &[u8]) -> PushExprListAttrs<P> {
    let length = u32::try_from(mask.len()).unwrap_or_default();
    let bitwise = list.nested_elem().nested_data_bitwise().push_sreg(REGISTER).push_dreg(REGISTER);
    let bitwise = bitwise.push_len(length).nested_mask().push_value(mask).end_nested();
    bitwise.nested_xor().push_value(flip).end_nested().end_nested().end_nested()
}

/// Overwrite the first MPTCP option, if any, with NOPs.
fn stripped<P: Pusher>(list: PushExprListAttrs<P>) -> PushExprListAttrs<P> {
    let mut element = list.nested_elem().push_name(c"exthdr");
    push_nest(element.as_vec_mut(), EXPRESSION_DATA, |bytes| {
        push_attribute(bytes, OPTION_TYPE, &[MPTCP]);
        push_attribute(bytes, OPTION_OPERATION, &TCP_OPTION.to_be_bytes());
    });
    element.end_nested()
}

/// Send the frame out of an interface.
fn forwarded<P: Pusher>(list: PushExprListAttrs<P>, target: i32) {
    let immediate = list.nested_elem().nested_data_immediate().push_dreg(REGISTER);
    let list =
        immediate.nested_data().push_value(&target.to_ne_bytes()).end_nested().end_nested().end_nested();
    let mut element = list.nested_elem().push_name(c"fwd");
    push_nest(element.as_vec_mut(), EXPRESSION_DATA, |bytes| {
        push_attribute(bytes, DEVICE_REGISTER, &REGISTER.to_be_bytes());
    });
}
