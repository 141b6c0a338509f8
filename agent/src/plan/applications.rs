//! What the two sides of a flow do with their sockets. `src/plait/plan/model/applications.py`
//! documents each field.

use serde::{Deserialize, Serialize};

use super::record::records;

/// What the application does, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Application {
    Bulk(Bulk),
    Transfer(Transfer),
    Stream(Stream),
    OnOff(OnOff),
    Request(Request),
    Page(Page),
    PageConnection(PageConnection),
    Udp(Udp),
    Prototype(Prototype),
    #[serde(rename = "program")]
    #[allow(dead_code)] // `parse` refuses a plan with one
    Connection(Connection),
}

impl Application {
    /// Return the name in the plan and in the tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bulk(_) => "bulk",
            Self::Transfer(_) => "transfer",
            Self::Stream(_) => "stream",
            Self::OnOff(_) => "on_off",
            Self::Request(_) => "request",
            Self::Page(_) => "page",
            Self::PageConnection(_) => "page_connection",
            Self::Udp(_) => "udp",
            Self::Prototype(_) => "prototype",
            Self::Connection(_) => "program",
        }
    }

    /// Whether each message has a row in the table of messages.
    pub fn has_messages(&self) -> bool {
        match self {
            Self::Bulk(_) | Self::Transfer(_) | Self::Connection(_) => false,
            Self::OnOff(job) => job.message_bytes.is_some(),
            Self::Prototype(job) => job.message_bytes.is_some(),
            Self::Stream(_) | Self::Request(_) | Self::Page(_) | Self::PageConnection(_) | Self::Udp(_) => {
                true
            }
        }
    }
}

/// The transport protocol that the application requests from `socket()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Mptcp,
    Udp,
    /// The multipath transport of `plait.prototype`, over UDP.
    Prototype,
}

impl Transport {
    /// Return the name in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
            Self::Prototype => "prototype",
        }
    }
}

/// When a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loop {
    Closed,
    Open,
}

records! {
    /// Data on a connection that a program opened. A plan never has one.
    Connection {
        program: Option<String>,
        server_program: Option<String>,
    }

    /// A real file to transfer, at `input/NAME`.
    File {
        name: String,
        bytes: u64,
        sha256: String,
    }

    /// The length of a pause or a burst.
    Gap {
        mean_us: u64,
        #[serde(default)]
        exponential: bool,
    }

    /// As much data as the sender can send, for a time.
    Bulk {
        duration_us: Option<i64>,
    }

    /// The first bytes of a transfer, with a pause after them.
    First {
        bytes: u64,
        pause_us: i64,
    }

    /// A number of bytes.
    Transfer {
        bytes: u64,
        #[serde(default)]
        file: Option<File>,
        #[serde(default)]
        first: Option<First>,
    }

    /// Messages at a constant rate.
    Stream {
        message_bytes: u64,
        interval_ns: i64,
        count: u64,
    }

    /// Alternating periods of sending and silence.
    OnOff {
        on: Gap,
        off: Gap,
        duration_us: i64,
        #[serde(default)]
        message_bytes: Option<u64>,
        #[serde(default)]
        interval_ns: Option<i64>,
        #[serde(default)]
        seed: u64,
    }

    /// Requests and responses.
    Request {
        request_bytes: u64,
        response_bytes: u64,
        r#loop: Loop,
        #[serde(default)]
        gap: Option<Gap>,
        #[serde(default)]
        count: Option<u64>,
        #[serde(default)]
        duration_us: Option<i64>,
        #[serde(default)]
        seed: u64,
    }

    /// The first connection of a web page.
    Page {
        request_bytes: u64,
        objects: Vec<u64>,
    }

    /// A further connection of a web page.
    PageConnection {
        page: i64,
    }

    /// UDP packets at a constant rate.
    Udp {
        packet_bytes: u64,
        interval_ns: i64,
        count: u64,
        drain_us: i64,
    }

    /// What a prototype connection carries, and how.
    #[derive(Serialize)]
    Prototype {
        scheduler: String,
        #[serde(default)]
        source: Option<String>,
        coupling: String,
        receive_window_bytes: u64,
        #[serde(default)]
        duration_us: Option<i64>,
        #[serde(default)]
        bytes: Option<u64>,
        #[serde(default)]
        message_bytes: Option<u64>,
        #[serde(default)]
        interval_us: Option<i64>,
        #[serde(default)]
        count: Option<u64>,
        #[serde(default)]
        seed: u64,
    }

    /// Socket options of a flow.
    #[derive(Default)]
    SocketOptions {
        #[serde(default)]
        scheduler: Option<String>,
        #[serde(default)]
        congestion_control: Option<String>,
        #[serde(default)]
        send_buffer: Option<usize>,
        #[serde(default)]
        receive_buffer: Option<usize>,
        #[serde(default)]
        mark: Option<u32>,
        #[serde(default)]
        dscp: Option<u8>,
        #[serde(default)]
        nodelay: bool,
        #[serde(default)]
        notsent_lowat: Option<u32>,
        #[serde(default)]
        mss: Option<u32>,
    }
}
