//! What a session reports to the host: the file `output`, a sequence of frames, which the host
//! reads while the file grows.
//!
//! A frame is a header of three little-endian 32-bit numbers (run, kind, length) and `length`
//! bytes. hostfs keeps written data in the guest's memory until a program asks to write it back, so
//! the agent asks after every frame.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use serde::Serialize;

use crate::error::{Attempt, Result};
use crate::job;
use crate::shared::Shared;
use crate::sys;

/// The content of a frame.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Kind {
    Stdout = 1,
    Stderr = 2,
    /// How a run ended, as JSON.
    End = 3,
    /// The agent accepts orders. During a pause, the trial's clock stops until the next order.
    Ready = 4,
    /// The agent has read the next file of input; the host may remove it.
    InputRead = 5,
}

/// How a run ended.
#[derive(Serialize, Default)]
pub struct End {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Why the program did not start, and the error number.
    pub error: Option<String>,
    pub errno: Option<i32>,
    /// The session reached its time limit.
    pub timed_out: bool,
    /// How often the limit on processes refused a new one.
    pub refused_processes: u64,
    /// Private file systems that are full.
    pub full: Vec<&'static str>,
    /// Devices that a failed program mentioned and the guest lacks.
    pub missing_devices: Vec<String>,
    /// The session's time at the end of the run.
    pub t_us: i64,
}

/// The file `output`, shared by all runs.
#[derive(Clone)]
pub struct Output(Arc<Shared<File>>);

impl Output {
    /// Create the file, or truncate it.
    pub fn create() -> Result<Self> {
        let file = File::create(job::path("output")).attempt(|| "creating output")?;
        Ok(Self(Arc::new(Shared::new(file))))
    }

    /// Append a frame.
    pub fn frame(&self, run: u32, kind: Kind, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut frame = Vec::with_capacity(12 + bytes.len());
        for number in [run, kind as u32, length] {
            frame.extend_from_slice(&number.to_le_bytes());
        }
        frame.extend_from_slice(bytes);
        let mut file = self.0.lock();
        file.write_all(&frame).attempt(|| "writing output")?;
        sys::write_back(&*file).attempt(|| "writing output")
    }

    /// Report how a run ended.
    pub fn end(&self, run: u32, end: &End) -> Result<()> {
        let json = serde_json::to_vec(end).attempt(|| "writing output")?;
        self.frame(run, Kind::End, &json)
    }
}
