//! `struct mptcp_info` and `struct mptcp_subflow_info` (`linux/mptcp.h`), read by offset.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Fields, cell};
use crate::tables::Connection;

/// `MPTCP_INFO_FLAG_FALLBACK`.
const FLAG_FALLBACK: u32 = 1;
/// The offsets of a subflow's two addresses; each has room for any socket address.
const LOCAL_OFFSET: usize = 8;
const REMOTE_OFFSET: usize = 136;

/// An `mptcp_info`, of the length that the kernel supports.
#[derive(Clone, Copy)]
pub struct MptcpInfo<'a>(Fields<'a>);

impl<'a> MptcpInfo<'a> {
    /// Wrap `bytes`, a `struct mptcp_info` or the beginning of one.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Fields(bytes))
    }

    /// Whether the connection has fallen back to TCP.
    pub fn fallback(self) -> Option<bool> {
        self.0.u32(8).map(|flags| flags & FLAG_FALLBACK != 0)
    }

    /// Return the local token, by which events name the connection.
    pub fn token(self) -> Option<u32> {
        self.0.u32(12)
    }

    /// `mptcpi_last_data_recv`: ms since the last data arrived.
    pub fn last_data_ms(self) -> Option<i64> {
        self.0.cell32(88)
    }

    /// Return the connection's row without identity. This kernel does not report the data-level
    /// windows.
    pub fn connection(self) -> Connection {
        let Self(info) = self;
        Connection {
            retransmitted_bytes: info.cell64(48),
            sent_bytes: info.cell64(56),
            received_bytes: info.cell64(64), // in order
            acked_bytes: info.cell64(72),
            subflows: info.u8(80).map(i64::from),
            unsent_bytes: self.unsent_bytes(),
            ..Default::default()
        }
    }

    /// Return by how much `write_seq` is ahead of `snd_nxt`. The kernel reports `snd_nxt` only by
    /// its distance from `snd_una`: the bytes sent and not acknowledged.
    fn unsent_bytes(self) -> Option<i64> {
        let Self(info) = self;
        let queued = info.u64(16)?.wrapping_sub(info.u64(24)?);
        let in_flight = info.u64(56)?.saturating_sub(info.u64(72)?);
        cell(queued.saturating_sub(in_flight))
    }
}

/// One `mptcp_subflow_info`.
#[derive(Debug, PartialEq, Eq)]
pub struct SubflowInfo {
    /// The kernel's number of the subflow: 1 for the initial one, then in order of appearance.
    pub id: u32,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

impl SubflowInfo {
    /// Parse a `struct mptcp_subflow_info`; None if it has no Internet addresses.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            id: Fields(bytes).u32(0)?,
            local: socket_address(bytes.get(LOCAL_OFFSET..REMOTE_OFFSET)?)?,
            remote: socket_address(bytes.get(REMOTE_OFFSET..)?)?,
        })
    }
}

/// Parse a `struct sockaddr_in` or `struct sockaddr_in6`.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let address = match family {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_is_read_with_both_addresses() {
        let mut bytes = [0; crate::sys::SUBFLOW_INFO_BYTES];
        bytes[0..4].copy_from_slice(&2_u32.to_ne_bytes());
        for (offset, last) in [(LOCAL_OFFSET, 1), (REMOTE_OFFSET, 2)] {
            bytes[offset..offset + 2].copy_from_slice(&2_u16.to_ne_bytes());
            bytes[offset + 2..offset + 4].copy_from_slice(&5001_u16.to_be_bytes());
            bytes[offset + 4..offset + 8].copy_from_slice(&[10, 0, 1, last]);
        }
        let expected = SubflowInfo {
            id: 2,
            local: "10.0.1.1:5001".parse().unwrap(),
            remote: "10.0.1.2:5001".parse().unwrap(),
        };
        assert_eq!(SubflowInfo::read(&bytes), Some(expected));
    }
}
