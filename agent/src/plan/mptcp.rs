//! What belongs to MPTCP: endpoints, limits, joins, and boxes that strip its options; `src/plait/plan/model/mptcp.py` says
//! what each field means.

use std::net::IpAddr;

use serde::Deserialize;

use super::record::records;

/// As `ip mptcp endpoint` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointFlag {
    Signal,
    Subflow,
    Backup,
    Fullmesh,
}

/// The segments of a TCP connection that a middlebox tells apart: those with SYN, with SYN and ACK, without either
/// and without payload, and with payload.
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

    /// The path manager of one namespace.
    Mptcp {
        netns: String,
        subflows: u32,
        add_addr_accepted: u32,
        #[serde(default)]
        endpoints: Vec<Endpoint>,
    }

    /// An endpoint comes.
    AddEndpoint {
        netns: String,
        endpoint: Endpoint,
    }

    /// An endpoint gets other flags.
    ChangeEndpoint {
        netns: String,
        address: IpAddr,
        id: u8,
        backup: bool,
        fullmesh: bool,
    }

    /// An endpoint goes.
    RemoveEndpoint {
        netns: String,
        address: IpAddr,
        id: u8,
    }

    /// Other limits.
    SetLimits {
        netns: String,
        subflows: u32,
        add_addr_accepted: u32,
    }

    /// Another kernel setting.
    SetSysctl {
        netns: String,
        path: String,
        value: String,
    }

    /// What arrives on `source` is changed, and leaves through `target`.
    Middlebox {
        netns: String,
        source: String,
        target: String,
        #[serde(default)]
        strip: Vec<Segment>,
        #[serde(default)]
        rewrite: bool,
    }

    /// Subflows that the agent opens for a client.
    Join {
        client_address: IpAddr,
        server_address: IpAddr,
        id: u8,
        #[serde(default)]
        backup: bool,
        count: u32,
    }
}
