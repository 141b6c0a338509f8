//! Netlink sockets of the agent's own, around messages that `netlink-bindings` encodes and decodes.
//!
//! `netlink-socket2`, the bindings' companion, would do for a tool; here it costs too much or hides too much:
//! it sends one message for each system call and waits for each answer (in the guest a system call costs some
//! 50 us of wall time, and a network is hundreds of messages), it reads dumps in pieces of 8 KiB, and it does not
//! show its descriptor, so that each multicast socket would need a thread of its own.

mod batch;
pub mod closed;
mod explain;
mod family;
mod message;
pub mod sock_diag;
mod socket;

pub use batch::Batch;
pub use family::GenericFamily;
pub use message::kernel_type;
pub use socket::{Family, Socket};
