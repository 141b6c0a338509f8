//! MPTCP: endpoints, limits, joins, and middleboxes that strip its options.
//! `src/plait/plan/model/mptcp.py` documents each field.

use std::net::IpAddr;

use serde::Deserialize;

use super::record::records;

/// The flags of `ip mptcp endpoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointFlag {
    Signal,
    Subflow,
    Backup,
    Fullmesh,
}

/// The TCP segments that a middlebox distinguishes: SYN, SYN and ACK, no payload, payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Segment {
    Syn,
    Synack,
    Ack,
    Data,
}

records! {
    /// An MPTCP endpoint.
    Endpoint {
        address: IpAddr,
        #[serde(default)]
        device: Option<String>,
        id: u8,
        flags: Vec<EndpointFlag>,
        #[serde(default)]
        port: Option<u16>,
    }

    /// The path manager of a namespace.
    Mptcp {
        netns: String,
        subflows: u32,
        add_addr_accepted: u32,
        #[serde(default)]
        endpoints: Vec<Endpoint>,
    }

    /// A new endpoint.
    AddEndpoint {
        netns: String,
        endpoint: Endpoint,
    }

    /// New flags for an endpoint.
    ChangeEndpoint {
        netns: String,
        address: IpAddr,
        id: u8,
        backup: bool,
        fullmesh: bool,
    }

    /// The removal of an endpoint.
    RemoveEndpoint {
        netns: String,
        address: IpAddr,
        id: u8,
    }

    /// New limits.
    SetLimits {
        netns: String,
        subflows: u32,
        add_addr_accepted: u32,
    }

    /// A new value of a sysctl.
    SetSysctl {
        netns: String,
        path: String,
        value: String,
    }

    /// A box that modifies the packets which arrive on `source` and forwards them to `target`.
    Middlebox {
        netns: String,
        source: String,
        target: String,
        #[serde(default)]
        strip: Vec<Segment>,
        #[serde(default)]
        rewrite: bool,
    }

    /// Additional subflows that the agent opens for a client.
    Join {
        client_address: IpAddr,
        server_address: IpAddr,
        id: u8,
        #[serde(default)]
        backup: bool,
        count: u32,
    }
}
