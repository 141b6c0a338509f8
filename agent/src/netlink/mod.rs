//! Netlink sockets, with messages that `netlink-bindings` encodes and decodes.
//!
//! The agent does not use `netlink-socket2`, the companion of the bindings. It sends one message
//! per system call and waits for each answer, while a system call costs about 50 us of wall time in
//! the guest and a network takes hundreds of messages. It reads dumps in pieces of 8 KiB. It hides
//! its descriptor, so each multicast socket would need a thread of its own.

mod batch;
pub mod closed;
mod explain;
mod family;
mod message;
pub mod sock_diag;
mod socket;

pub use batch::Batch;
pub use family::GenericFamily;
pub use message::{NLM_F_DUMP, RawRequest, kernel_type, push_attribute, push_nest};
pub use socket::{Family, Socket};
