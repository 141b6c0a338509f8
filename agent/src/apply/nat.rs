//! Network address translation: a packet that leaves a router through an outside interface gets the
//! address of that interface.

use netlink_bindings::nftables;

use super::build::Build;
use super::packet_filter::{TABLE, compared, install, meta, transaction};
use crate::error::{Attempt, Result};
use crate::netlink::Batch;
use crate::plan::Nat;

const CHAIN: &[u8] = b"masquerade";
const NFPROTO_IPV4: u8 = 2;
/// `NF_INET_POST_ROUTING`, and `NF_IP_PRI_NAT_SRC`.
const POST_ROUTING: u32 = 4;
const PRIORITY_SOURCE_NAT: i32 = 100;
/// `NFT_META_OIFNAME` of `linux/netfilter/nf_tables.h`.
const OUTPUT_NAME: u32 = 7;
/// `IFNAMSIZ`.
const NAME_BYTES: usize = 16;

/// Masquerade what leaves each router through its outside interfaces.
pub fn add_nats(build: &mut Build, nats: &'static [Nat]) -> Result<()> {
    for nat in nats {
        install(build, &nat.netns, batch(nat))
            .attempt(|| format!("translating addresses in {}", nat.netns))?;
    }
    Ok(())
}

fn batch(nat: &Nat) -> Batch {
    transaction(NFPROTO_IPV4, |batch, header| {
        let mut chain = nftables::Request::new().set_create().set_excl().op_newchain_do(header);
        let attributes = chain.encode().push_table_bytes(TABLE).push_name_bytes(CHAIN).push_type(c"nat");
        attributes.nested_hook().push_num(POST_ROUTING).push_priority(PRIORITY_SOURCE_NAT);
        batch.add(&chain, "adding the chain");
        for ifname in &nat.outside {
            let mut name = [0; NAME_BYTES];
            name[..ifname.len()].copy_from_slice(ifname.as_bytes());
            let mut rule = nftables::Request::new().set_create().set_append().op_newrule_do(header);
            {
                let attributes = rule.encode().push_table_bytes(TABLE).push_chain_bytes(CHAIN);
                let list = compared(meta(attributes.nested_expressions(), OUTPUT_NAME), &name);
                list.nested_elem().push_name(c"masq");
            }
            batch.add(&rule, format_args!("masquerading behind {ifname}"));
        }
    })
}
