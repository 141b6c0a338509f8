//! Subflows that close while their connection continues. The kernel reports each TCP socket that it
//! frees with its last `tcp_info`, so the data between the latest sample and the end is not lost.

use super::sock_diag::{BY_FAMILY, FourTuple, INFO, MESSAGE_BYTES, attributes_of, ends};
use super::socket::{Family, Socket};
use crate::error::{Attempt, Result};

/// A freed TCP socket.
pub struct Closed {
    /// When the kernel's report arrived.
    pub t_us: i64,
    /// Its namespace.
    pub node: &'static str,
    /// Its two ends.
    pub ends: FourTuple,
    /// Its last `struct tcp_info`.
    pub info: Vec<u8>,
}

/// `SKNLGRP_INET_TCP_DESTROY` and its IPv6 counterpart (`linux/sock_diag.h`).
const GROUPS: [u32; 2] = [1, 3];

/// Open a socket that receives a report of every TCP socket that the kernel frees in the calling
/// thread's namespace.
pub fn listen() -> Result<Socket> {
    let socket = Socket::open(Family::Sockets)?;
    for group in GROUPS {
        socket.join(group).attempt(|| format!("joining netlink group {group}"))?;
    }
    Ok(socket)
}

/// Decode the ends and the `tcp_info` of a freed socket.
pub fn decode(kind: u16, payload: &[u8]) -> Option<(FourTuple, Vec<u8>)> {
    let (message, attributes) = payload.split_at_checked(MESSAGE_BYTES)?;
    if kind != BY_FAMILY {
        return None;
    }
    let (_, info) = attributes_of(attributes).find(|(kind, _)| *kind == INFO)?;
    Some((ends(message)?, info.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_freed_socket_has_its_ends_and_its_last_counters() {
        let mut payload = vec![0; MESSAGE_BYTES];
        payload[0] = u8::try_from(libc::AF_INET).unwrap();
        payload[4..8].copy_from_slice(&[0x13, 0x89, 0, 7]);
        payload[8..12].copy_from_slice(&[10, 0, 0, 1]);
        payload[24..28].copy_from_slice(&[10, 0, 0, 2]);
        payload.extend([5, 0, 10, 0, 6, 0, 0, 0]); // one byte of another attribute, and padding
        payload.extend([8, 0, 2, 0, 1, 2, 3, 4]);
        let (ends, info) = decode(BY_FAMILY, &payload).unwrap();
        assert_eq!(ends, ("10.0.0.1:5001".parse().unwrap(), "10.0.0.2:7".parse().unwrap()));
        assert_eq!(info, [1, 2, 3, 4]);
        assert!(decode(BY_FAMILY, &payload[..MESSAGE_BYTES + 8]).is_none());
        assert!(decode(1, &payload).is_none());
    }
}
