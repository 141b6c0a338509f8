//! What a session is asked to do: the shape of `session.json`, and of the lines on the console.

use serde::Deserialize;

/// The first orders, which a session is booted with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct First {
    /// Folders of the host that may be written to; each is an absolute path without links.
    pub writable: Vec<String>,
    /// No more processes than this may there be at once.
    pub processes_max: u32,
    /// Whether the plan's network is made first.
    pub network: bool,
    /// Run one after the other before anything else; each must succeed.
    pub before: Vec<Service>,
    /// The session ends with this run. None: it lasts until it is told to stop.
    pub start: Option<Start>,
    /// The run is ended after so much of the guest's time.
    pub time_limit_us: Option<i64>,
}

/// A step of what is made ready before.
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
    /// The number by which later orders and its output name it.
    pub run: u32,
    /// None: the guest's first namespace.
    pub netns: Option<String>,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub directory: String,
    pub input: Input,
    /// Standard error goes where standard output goes, in the order of writing.
    pub merged: bool,
    /// The size of the terminal in which it runs. None: it runs in none.
    pub terminal: Option<Size>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Nothing,
    /// The file `input/stdin` of the job's folder.
    File,
    /// What comes by [`Order::Input`].
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
    /// Bytes for its standard input, each as the character with its number; or, when there are many, the name of a
    /// file of the job's folder `input` that holds them. Neither: no more.
    Input {
        run: u32,
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        file: Option<String>,
    },
    /// Its terminal has another size.
    Size {
        run: u32,
        size: Size,
    },
    /// A signal for its foreground processes.
    Signal {
        run: u32,
        number: i32,
    },
    /// The session is over.
    Stop,
}
