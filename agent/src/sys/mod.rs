//! The agent's only unsafe code: system calls without a safe wrapper.
//!
//! Every function here is safe to call with any argument. A comment at each `unsafe` gives the
//! reason.
#![allow(unsafe_code)]

mod bpf;
mod calls;
mod datagrams;
mod mptcp;
mod packets;
mod ports;
mod processes;
mod signals;
mod sockets;

pub use bpf::modify_return;
pub use datagrams::{Datagram, Datagrams, stamp_arrivals};
pub use mptcp::FullInfo;
#[cfg(test)]
pub use mptcp::SUBFLOW_INFO_BYTES;
pub use packets::{Packet, PacketRing};
pub use ports::{PAGE_BYTES, Page, allow_ports, draw_anew, write_port_8_with_time, write_port_32};
pub use processes::{
    bury_orphans, kill_everything, run_confined, run_in_place, share_one_heap, unshare, write_back,
};
pub use signals::{block_signals, read_signal};
pub use sockets::{TCP_INFO_BYTES, memory_info, namespace_number, receive_discarding, set_option, tcp_info};
