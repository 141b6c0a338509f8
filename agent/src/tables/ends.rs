//! The two ends of a subflow, as the table of subflows has them.

use std::net::SocketAddr;

use super::schema::Subflow;

/// Complete a subflow's row with its number and its two ends.
pub fn with_ends(row: Subflow, number: usize, local: SocketAddr, remote: SocketAddr) -> Subflow {
    Subflow {
        subflow: i64::try_from(number).ok(),
        local_address: Some(local.ip().to_string().into()),
        local_port: Some(i64::from(local.port())),
        remote_address: Some(remote.ip().to_string().into()),
        remote_port: Some(i64::from(remote.port())),
        ..row
    }
}
