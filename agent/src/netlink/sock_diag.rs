//! The sockets of a namespace as `sock_diag` reports them: TCP sockets with their MPTCP attributes,
//! and MPTCP sockets.
//!
//! The numbers are offsets and constants of `linux/inet_diag.h`, `linux/sock_diag.h` and
//! `linux/mptcp.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::message::{RawRequest, push_attribute};
use super::socket::Socket;
use crate::error::{Attempt, Result};

/// `SOCK_DIAG_BY_FAMILY`, the type of requests and answers.
pub const BY_FAMILY: u16 = 20;
/// The size of `struct inet_diag_msg`.
pub const MESSAGE_BYTES: usize = 72;
/// `INET_DIAG_INFO`.
pub const INFO: u16 = 2;

const REQUEST_BYTES: usize = 56;
const REQ_PROTOCOL: u16 = 3;
const CONG: u16 = 4;
const MEMORY: u16 = 7;
const ULP: u16 = 19;
const ULP_NAME: u16 = 1;
const ULP_MPTCP: u16 = 3;
const ATTRIBUTE_HEADER: usize = 4;
/// The bits of the requested attributes.
const EXTENSIONS: u8 = 1 << (INFO - 1) | 1 << (CONG - 1) | 1 << (MEMORY - 1);
const IPPROTO_MPTCP: u32 = 262;

/// States of a socket (`net/tcp_states.h`).
pub const ESTABLISHED: u8 = 1;
pub const CLOSE_WAIT: u8 = 8;
pub const LISTEN: u8 = 10;
const SYN_SENT: u8 = 2;
const SYN_RECV: u8 = 3;
const TIME_WAIT: u8 = 6;
const NEW_SYN_RECV: u8 = 12;
/// Listening sockets, and those that are or were connected and still exist.
const INTERESTING: u32 = 0xfff & !(1 << SYN_SENT | 1 << SYN_RECV | 1 << TIME_WAIT | 1 << NEW_SYN_RECV);

/// The local and the remote end of a socket.
pub type FourTuple = (SocketAddr, SocketAddr);

/// The kind of sockets to list.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// TCP sockets, including the subflows of MPTCP connections.
    Tcp,
    /// TCP sockets that wait for the answer to their SYN.
    Connecting,
    /// MPTCP connections.
    Mptcp,
    /// UDP sockets.
    Udp,
}

/// The MPTCP attributes of a TCP socket that is a subflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ulp {
    /// The token of the connection at the other end; 0: none.
    pub remote_token: u32,
    /// The token of the connection at this end; 0: none, because the other end does not support
    /// MPTCP.
    pub token: u32,
    flags: u32,
}

impl Ulp {
    /// Return the attributes of a subflow of which only the connection is known.
    pub fn of_connection(token: u32) -> Self {
        Self { token, ..Self::default() }
    }

    /// Whether either end requested it as a backup.
    pub fn is_backup(self) -> bool {
        self.flags & (1 << 4 | 1 << 5) != 0
    }

    /// Whether it joined an existing connection.
    pub fn has_joined(self) -> bool {
        self.flags & (1 << 2 | 1 << 3) != 0
    }
}

/// A socket as the kernel reports it.
#[derive(Debug, Default)]
pub struct SocketInfo {
    pub state: u8,
    /// The local and the remote end.
    pub ends: Option<FourTuple>,
    /// The inode of the descriptor that a program holds; 0: no program holds one.
    pub inode: u32,
    /// `struct tcp_info` or `struct mptcp_info`.
    pub info: Vec<u8>,
    /// `SK_MEMINFO_*`.
    pub memory: Vec<u32>,
    pub congestion_control: Option<String>,
    /// None: not an MPTCP socket.
    pub ulp: Option<Ulp>,
}

/// List all sockets of some kinds in the namespace of `socket`. Those of one address family are read
/// one kind right after the other, because packets may arrive meanwhile: a connection has no more
/// than its subflows, which come first.
pub fn dump<const N: usize>(socket: &mut Socket, kinds: [Kind; N]) -> Result<[Vec<SocketInfo>; N]> {
    let mut sockets = [const { Vec::new() }; N];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for (kind, list) in kinds.iter().zip(&mut sockets) {
            socket
                .ask(&request(*kind, family), BY_FAMILY, |payload| list.extend(decode(payload)))
                .attempt(|| format!("listing the {kind:?} sockets"))?;
        }
    }
    Ok(sockets)
}

fn request(kind: Kind, family: i32) -> RawRequest {
    let mut bytes = vec![0; REQUEST_BYTES];
    bytes[0] = u8::try_from(family).unwrap_or_default();
    let (protocol, states) = match kind {
        Kind::Tcp => (libc::IPPROTO_TCP, INTERESTING),
        Kind::Connecting => (libc::IPPROTO_TCP, 1 << SYN_SENT),
        Kind::Udp => (libc::IPPROTO_UDP, u32::MAX),
        Kind::Mptcp => (libc::IPPROTO_TCP, INTERESTING & !(1 << LISTEN)),
    };
    bytes[1] = u8::try_from(protocol).unwrap_or_default();
    bytes[2] = EXTENSIONS;
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    if matches!(kind, Kind::Mptcp) {
        // The protocol number does not fit into the request's own field.
        push_attribute(&mut bytes, REQ_PROTOCOL, &IPPROTO_MPTCP.to_ne_bytes());
    }
    RawRequest::dump(bytes)
}

/// Decode one answer.
pub fn decode(payload: &[u8]) -> Option<SocketInfo> {
    let (message, attributes) = payload.split_at_checked(MESSAGE_BYTES)?;
    let inode = u32::from_ne_bytes(*message[68..].first_chunk()?);
    let mut seen = SocketInfo { state: message[1], ends: ends(message), inode, ..Default::default() };
    for (kind, value) in attributes_of(attributes) {
        match kind {
            INFO => seen.info = value.to_vec(),
            CONG => seen.congestion_control = text(value),
            MEMORY => seen.memory = value.chunks_exact(4).filter_map(word).collect(),
            ULP => seen.ulp = ulp(value),
            _ => {}
        }
    }
    Some(seen)
}

/// Decode the two ends in a `struct inet_diag_msg`. Mapped addresses become IPv4 addresses.
pub fn ends(message: &[u8]) -> Option<FourTuple> {
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes(*message.get(port..)?.first_chunk()?);
        let address = if i32::from(*message.first()?) == libc::AF_INET6 {
            let address = Ipv6Addr::from(*message.get(address..)?.first_chunk::<16>()?);
            address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
        } else {
            IpAddr::V4(Ipv4Addr::from(*message.get(address..)?.first_chunk::<4>()?))
        };
        Some(SocketAddr::new(address, port))
    };
    Some((end(4, 8)?, end(6, 24)?))
}

/// Yield the type and the value of each attribute.
pub fn attributes_of(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: &[u8; ATTRIBUTE_HEADER] = bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]])).max(ATTRIBUTE_HEADER);
        // The two upper bits are flags.
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn ulp(nested: &[u8]) -> Option<Ulp> {
    let mut is_mptcp = false;
    let mut ulp = Ulp::default();
    for (kind, value) in attributes_of(nested) {
        match kind {
            ULP_NAME => is_mptcp = text(value).as_deref() == Some("mptcp"),
            ULP_MPTCP => {
                for (kind, value) in attributes_of(value) {
                    let word = word(value).unwrap_or_default();
                    match kind {
                        1 => ulp.remote_token = word,
                        2 => ulp.token = word,
                        8 => ulp.flags = word,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    is_mptcp.then_some(ulp)
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_subflow_has_its_ends_its_counters_and_its_tokens() {
        let mut payload = vec![0; MESSAGE_BYTES];
        payload[0] = u8::try_from(libc::AF_INET).unwrap();
        payload[1] = 1;
        payload[4..8].copy_from_slice(&[0x13, 0x89, 0, 7]);
        payload[8..12].copy_from_slice(&[10, 0, 0, 1]);
        payload[24..28].copy_from_slice(&[10, 0, 0, 2]);
        payload[68..72].copy_from_slice(&77_u32.to_ne_bytes());
        payload.extend([5, 0, 10, 0, 6, 0, 0, 0]); // one byte of another attribute, and padding
        payload.extend([8, 0, 2, 0, 1, 2, 3, 4]);
        let mut tokens = Vec::new();
        for (kind, value) in [(1_u16, 5_u32), (2, 6), (8, 0b1_0100)] {
            tokens.extend([8, 0]);
            tokens.extend(kind.to_ne_bytes());
            tokens.extend(value.to_ne_bytes());
        }
        payload.extend([44, 0, 19, 0, 10, 0, 1, 0]);
        payload.extend(*b"mptcp\0\0\0");
        payload.extend([28, 0, 3, 0]);
        payload.extend(tokens);
        let seen = decode(&payload).unwrap();
        assert_eq!(seen.ends, Some(("10.0.0.1:5001".parse().unwrap(), "10.0.0.2:7".parse().unwrap())));
        assert_eq!((seen.state, seen.inode, seen.info), (1, 77, vec![1, 2, 3, 4]));
        let ulp = seen.ulp.unwrap();
        assert_eq!((ulp.remote_token, ulp.token, ulp.is_backup(), ulp.has_joined()), (5, 6, true, true));
        assert!(decode(&payload[..MESSAGE_BYTES - 1]).is_none());
    }
}
