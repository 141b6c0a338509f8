//! What the two sides of a flow do with their sockets; `src/plait/plan/model/applications.py` says what each field means.

use serde::Deserialize;

use super::record::records;

/// What the application does.
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
    #[serde(rename = "program")]
    #[allow(dead_code)] // a plan with one is refused
    Connection(Connection),
}

impl Application {
    /// As it stands in the plan and in the tables.
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
            Self::Connection(_) => "program",
        }
    }

    /// Whether its messages have rows of their own.
    pub fn has_messages(&self) -> bool {
        match self {
            Self::Bulk(_) | Self::Transfer(_) | Self::Connection(_) => false,
            Self::OnOff(job) => job.message_bytes.is_some(),
            Self::Stream(_) | Self::Request(_) | Self::Page(_) | Self::PageConnection(_) | Self::Udp(_) => {
                true
            }
        }
    }
}

/// What the application asks of `socket()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Mptcp,
    Udp,
}

impl Transport {
    /// As it stands in the plan and in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
        }
    }
}

/// How the requests of a connection follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loop {
    Closed,
    Open,
}

records! {
    /// What programs send over a connection of their own; never planned.
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

    /// How long something lasts each time.
    Gap {
        mean_us: u64,
        #[serde(default)]
        exponential: bool,
    }

    /// As fast as the sender can, for a time.
    Bulk {
        duration_us: Option<i64>,
    }

    /// So many bytes before a pause.
    First {
        bytes: u64,
        pause_us: i64,
    }

    /// So many bytes.
    Transfer {
        bytes: u64,
        #[serde(default)]
        file: Option<File>,
        #[serde(default)]
        first: Option<First>,
    }

    /// Messages at a steady pace.
    Stream {
        message_bytes: u64,
        interval_ns: i64,
        count: u64,
    }

    /// Sending and silence in turn.
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

    /// Requests and answers.
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

    /// The first connection of a page.
    Page {
        request_bytes: u64,
        objects: Vec<u64>,
    }

    /// A further connection of a page.
    PageConnection {
        page: i64,
    }

    /// UDP packets at a steady pace.
    Udp {
        packet_bytes: u64,
        interval_ns: i64,
        count: u64,
        drain_us: i64,
    }

    /// What a flow asks of its sockets.
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
