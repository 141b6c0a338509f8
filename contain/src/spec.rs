//! The specification of a sandbox (`src/plait/engine/virtual/containment.py` writes it).

use serde::Deserialize;

use crate::layer::Layer;

/// A guest to start.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The process that started this one. The sandbox ends with it.
    pub parent: i32,
    /// The socket for the report.
    pub report: i32,
    /// The absolute path of the guest's kernel.
    pub kernel: String,
    /// The kernel's command line.
    pub arguments: Vec<String>,
    /// The folder on this machine in whose place the guest gets a file system in memory, which it sees as
    /// /job and can write to. The guest gets the links in it.
    pub job: String,
    /// Files and folders that the guest sees below /job, read-only.
    pub inputs: Vec<Input>,
    /// Whether the guest's kernel runs in an emulator: the executed file is its loader, and the input
    /// `emulator` holds its program, libraries and modules.
    #[serde(default)]
    pub emulator: bool,
    /// Whether the guest's kernel runs a program that it has written into memory, as User-Mode Linux
    /// does since 6.13 to start each process.
    #[serde(default)]
    pub executes_memory: bool,
    /// Files, folders and links of this machine that the guest sees, read-only; none: the guest has no programs.
    pub visible: Option<Vec<String>>,
    /// Folders that the guest has beside them; those that it does not see are empty.
    pub empty: Vec<String>,
    /// Folders of this machine that the guest can write to. They require `visible`.
    pub writable: Vec<String>,
    /// Resource limits of each of the guest's processes.
    pub limits: Limits,
    /// Layers without which the guest must not start.
    pub required: Vec<Layer>,
    /// Layers to leave out, so a test can show what each of them stops.
    pub without: Vec<Layer>,
}

/// A file or folder that the guest can read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The path on this machine.
    pub source: String,
    /// The name below /job.
    pub name: String,
}

/// Resource limits of each process of the guest (setrlimit(2)).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// What the guest's folder can hold, in bytes.
    pub folder_bytes: u64,
    /// How many files and folders the guest's folder can hold.
    pub folder_files: u64,
    /// The largest file that a process can write, in bytes.
    pub file_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Processes and threads of the user in the sandbox. Linux counts them per user namespace since
    /// 5.14.
    pub processes: u64,
}
