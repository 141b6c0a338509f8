//! What plait asks for (written by `src/plait/engine/uml/containment.py`).

use serde::Deserialize;

use crate::layer::Layer;

/// One guest to start.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The process that started this one; the sandbox dies with it.
    pub parent: i32,
    /// The descriptor that takes the report.
    pub report: i32,
    /// The guest's kernel, an absolute path.
    pub kernel: String,
    /// The kernel's command line.
    pub arguments: Vec<String>,
    /// The folder that the guest sees as /job and may write to.
    pub job: String,
    /// Files and folders that the guest sees below /job and may only read.
    pub inputs: Vec<Input>,
    /// Whether the guest sees this machine's files, read-only.
    pub host_files: bool,
    /// Folders of this machine that the guest may write to. They need `host_files`.
    pub writable: Vec<String>,
    /// Resource limits of each of the guest's processes.
    pub limits: Limits,
    /// Layers without which the guest must not start.
    pub required: Vec<Layer>,
    /// Layers to leave out, so that a test can show what each of them stops.
    pub without: Vec<Layer>,
}

/// A file or folder that the guest may read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Where it is on this machine.
    pub source: String,
    /// Its name below /job.
    pub name: String,
}

/// Bounds of one process of the guest (setrlimit(2)).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of the largest file that it may write.
    pub file_bytes: u64,
    /// Descriptors that it may have open.
    pub descriptors: u64,
    /// Processes and threads of its user in the sandbox. Linux counts them for each user namespace since 5.14.
    pub processes: u64,
}
