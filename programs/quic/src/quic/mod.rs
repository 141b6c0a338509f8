//! QUIC over UDP sockets.

mod client;
mod driver;
mod server;

pub use client::run as client;
pub use server::run as server;
