//! What rules of nftables share: their table, the transaction that makes it, and two expressions.

use netlink_bindings::nftables::{self, Nfgenmsg, PushExprListAttrs};
use netlink_bindings::utils::Pusher;

use super::build::Build;
use super::namespace::enter;
use crate::error::Result;
use crate::netlink::{Batch, Family, Socket};

pub const TABLE: &[u8] = b"plait";
/// `linux/netfilter/nf_tables.h`: a register.
pub const REGISTER: u32 = 1;
/// `NFNL_SUBSYS_NFTABLES` of `linux/netfilter/nfnetlink.h`: the subsystem of a batch.
const SUBSYSTEM: u16 = 10;
const EQUAL: u32 = 0;

/// Send a transaction in a namespace, in which the calling thread ends.
pub fn install(build: &mut Build, netns: &str, transaction: Batch) -> Result<()> {
    enter(&build.namespace(netns)?.fd)?;
    Socket::open(Family::Netfilter)?.apply(transaction)
}

/// Return a transaction that makes the table of an address family, and what `fill` adds.
pub fn transaction(family: u8, fill: impl FnOnce(&mut Batch, &Nfgenmsg)) -> Batch {
    let mut batch = Batch::default();
    let transaction = Nfgenmsg { _res_id_be: SUBSYSTEM.to_be(), ..Default::default() };
    let header = Nfgenmsg { nfgen_family: family, ..Default::default() };
    batch.add(&nftables::Request::new().op_batch_begin_do(&transaction), "beginning the transaction");
    let mut table = nftables::Request::new().set_create().op_newtable_do(&header);
    table.encode().push_name_bytes(TABLE);
    batch.add(&table, "adding the table");
    fill(&mut batch, &header);
    batch.add(&nftables::Request::new().op_batch_end_do(&transaction), "committing the transaction");
    batch
}

/// Load a property of the packet into the register.
pub fn meta<P: Pusher>(list: PushExprListAttrs<P>, key: u32) -> PushExprListAttrs<P> {
    list.nested_elem().nested_data_meta().push_dreg(REGISTER).push_key(key).end_nested().end_nested()
}

/// Match if the register has this value.
pub fn compared<P: Pusher>(list: PushExprListAttrs<P>, value: &[u8]) -> PushExprListAttrs<P> {
    let compare = list.nested_elem().nested_data_cmp().push_sreg(REGISTER).push_op(EQUAL);
    compare.nested_data().push_value(value).end_nested().end_nested().end_nested()
}
