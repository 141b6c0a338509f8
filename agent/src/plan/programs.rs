//! Programs of the host that run in nodes. `src/plait/plan/model/programs.py` documents each field.

use serde::Deserialize;

use super::applications::Transport;
use super::record::records;

/// The format of a program's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    Iperf3,
    Json,
}

records! {
    /// The sign that a program is ready.
    Ready {
        #[serde(default)]
        tcp: Option<u16>,
        #[serde(default)]
        udp: Option<u16>,
        #[serde(default)]
        file: Option<String>,
        #[serde(default)]
        log: Option<String>,
        within_us: i64,
    }

    /// A file that the agent writes before a program starts.
    ProgramFile {
        path: String,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        input: Option<String>,
    }

    /// When and how the agent stops a program.
    Stop {
        #[serde(default)]
        at_us: Option<i64>,
        signal: i32,
        grace_us: i64,
    }

    /// A program of the host that runs in a node.
    Program {
        name: String,
        netns: String,
        argv: Vec<String>,
        #[serde(default)]
        environment: Vec<(String, String)>,
        start_us: i64,
        #[serde(default)]
        after: Vec<String>,
        #[serde(default = "default_directory")]
        directory: String,
        #[serde(default)]
        files: Vec<ProgramFile>,
        #[serde(default)]
        collect: Vec<String>,
        #[serde(default)]
        ready: Option<Ready>,
        #[serde(default)]
        awaited: bool,
        #[serde(default = "default_stop")]
        stop: Stop,
        #[serde(default)]
        exit_code: Option<i64>,
        #[serde(default = "default_transport")]
        transport: Transport,
        #[serde(default)]
        result: Option<ResultKind>,
        #[serde(default)]
        flow: Option<i64>,
    }
}

fn default_directory() -> String {
    "/".to_owned()
}

fn default_stop() -> Stop {
    Stop { at_us: None, signal: 9, grace_us: 1 }
}

fn default_transport() -> Transport {
    Transport::Tcp
}
