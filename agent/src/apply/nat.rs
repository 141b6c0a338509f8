//! Network address translation: a packet that leaves a router through an outside interface gets the
//! address of that interface.

use netlink_bindings::nftables::{self, Nfgenmsg};

use super::build::Build;
use super::namespace::enter;
use crate::error::{Attempt, Result};
use crate::netlink::{Batch, Family, Socket};
use crate::plan::Nat;

const TABLE: &[u8] = b"plait";
const CHAIN: &[u8] = b"masquerade";
/// `NFNL_SUBSYS_NFTABLES` of `linux/netfilter/nfnetlink.h`: the subsystem of a batch.
const SUBSYSTEM: u16 = 10;
const NFPROTO_IPV4: u8 = 2;
/// `NF_INET_POST_ROUTING`, and `NF_IP_PRI_NAT_SRC`.
const POST_ROUTING: u32 = 4;
const PRIORITY_SOURCE_NAT: i32 = 100;
/// `NFT_REG_1`, `NFT_META_OIFNAME`, `NFT_CMP_EQ` of `linux/netfilter/nf_tables.h`.
const REGISTER: u32 = 1;
const OUTPUT_NAME: u32 = 7;
const EQUAL: u32 = 0;
/// `IFNAMSIZ`.
const NAME_BYTES: usize = 16;

/// Masquerade what leaves each router through its outside interfaces.
pub fn add_nats(build: &mut Build, nats: &'static [Nat]) -> Result<()> {
    for nat in nats {
        let context = || format!("translating addresses in {}", nat.netns);
        enter(&build.namespace(&nat.netns)?.fd)?;
        let mut socket = Socket::open(Family::Netfilter).attempt(context)?;
        socket.apply(batch(nat)).attempt(context)?;
    }
    Ok(())
}

fn batch(nat: &Nat) -> Batch {
    let mut batch = Batch::default();
    let transaction = Nfgenmsg { _res_id_be: SUBSYSTEM.to_be(), ..Default::default() };
    let header = Nfgenmsg { nfgen_family: NFPROTO_IPV4, ..Default::default() };
    batch.add(&nftables::Request::new().op_batch_begin_do(&transaction), "beginning the transaction");

    let mut table = nftables::Request::new().set_create().set_excl().op_newtable_do(&header);
    table.encode().push_name_bytes(TABLE);
    batch.add(&table, "adding the table");

    let mut chain = nftables::Request::new().set_create().set_excl().op_newchain_do(&header);
    let attributes = chain.encode().push_table_bytes(TABLE).push_name_bytes(CHAIN).push_type(c"nat");
    attributes.nested_hook().push_num(POST_ROUTING).push_priority(PRIORITY_SOURCE_NAT);
    batch.add(&chain, "adding the chain");

    for ifname in &nat.outside {
        let mut name = [0; NAME_BYTES];
        name[..ifname.len()].copy_from_slice(ifname.as_bytes());
        let mut rule = nftables::Request::new().set_create().set_append().op_newrule_do(&header);
        {
            let attributes = rule.encode().push_table_bytes(TABLE).push_chain_bytes(CHAIN);
            let list = attributes.nested_expressions();
            let meta = list.nested_elem().nested_data_meta();
            let list = meta.push_dreg(REGISTER).push_key(OUTPUT_NAME).end_nested().end_nested();
            let compare = list.nested_elem().nested_data_cmp().push_sreg(REGISTER).push_op(EQUAL);
            let list = compare.nested_data().push_value(&name).end_nested().end_nested().end_nested();
            list.nested_elem().push_name(c"masq");
        }
        batch.add(&rule, format_args!("masquerading behind {ifname}"));
    }
    batch.add(&nftables::Request::new().op_batch_end_do(&transaction), "committing the transaction");
    batch
}
