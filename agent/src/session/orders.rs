//! The orders of a session: the format of `session.json` and of the lines on the console.

use serde::Deserialize;

/// `session.json`, with which a session starts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// Folders of the host that programs may write to. Each is an absolute path without symbolic
    /// links.
    pub writable: Vec<String>,
    /// Limit on the number of processes.
    pub processes_max: u32,
    /// Whether to build the plan's network first.
    pub network: bool,
    /// Services to run first, one after the other. The session fails unless each succeeds.
    pub before: Vec<Service>,
    /// The session ends with this run. None: the session lasts until [`Order::Stop`].
    pub start: Option<Start>,
    /// The agent ends the run after this much time of the guest.
    pub time_limit_us: Option<i64>,
    /// How much to capture of each packet in named namespaces, in bytes. None: capture nothing.
    #[serde(default)]
    pub capture_bytes: Option<u32>,
}

/// A step of the preparation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// A program to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The number by which later orders and the output refer to the run.
    pub run: u32,
    /// The node to run in. None: the guest's first namespace.
    pub netns: Option<String>,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub directory: String,
    pub input: Input,
    /// Whether standard error goes where standard output goes, in the order of writing.
    pub merged: bool,
    /// The size of the program's terminal. None: the program has no terminal.
    pub terminal: Option<Size>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Nothing,
    /// The file `input/stdin` in the trial's folder.
    File,
    /// The data of [`Order::Input`].
    Orders,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

/// A line on the console.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    Start(Start),
    /// Data for standard input: the bytes, each as the character with that code point, or, for
    /// large data, the name of a file in the trial's folder `input`. Neither: the end of the input.
    Input {
        run: u32,
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        file: Option<String>,
    },
    /// A new size of the terminal.
    Size {
        run: u32,
        size: Size,
    },
    /// A signal for the foreground processes.
    Signal {
        run: u32,
        number: i32,
    },
    /// The end of the session.
    Stop,
}
