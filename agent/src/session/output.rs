//! What a session tells the host: the file `output`, a sequence of frames that the host reads while it grows.
//!
//! A frame is a header of three little-endian 32-bit numbers (run, kind, bytes) and so many bytes. hostfs keeps what is
//! written in the guest's memory until something asks for it to be written, so every frame asks.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::error::{Attempt, Result};
use crate::job::JOB;
use crate::sys;

/// What a frame holds.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Kind {
    Stdout = 1,
    Stderr = 2,
    /// How a run has ended, as JSON.
    End = 3,
    /// It listens; a trial's clock stands until it is told more.
    Ready = 4,
    /// It has read the next file of input, which the host may remove.
    Taken = 5,
}

/// How a run has ended.
#[derive(Serialize, Default)]
pub struct End {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that has ended it.
    pub signal: Option<i32>,
    /// It did not start: why, and the number of the error.
    pub error: Option<String>,
    pub errno: Option<i32>,
    /// The session's time was over.
    pub timed_out: bool,
    /// So often a new process was refused, because there were as many as may be.
    pub refused_processes: u64,
    /// Private file systems on which nothing is left.
    pub full: Vec<&'static str>,
    /// Devices of which a program that failed spoke, and that are not there.
    pub missing_devices: Vec<String>,
    /// The session's time at the end.
    pub t_us: i64,
}

/// The file, shared by all runs.
#[derive(Clone)]
pub struct Output(Arc<Mutex<File>>);

impl Output {
    /// Starts the file anew.
    pub fn create() -> Result<Self> {
        let file = File::create(format!("{JOB}/output")).attempt(|| "creating output")?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Adds a frame.
    pub fn frame(&self, run: u32, kind: Kind, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut frame = Vec::with_capacity(12 + bytes.len());
        for number in [run, kind as u32, length] {
            frame.extend_from_slice(&number.to_le_bytes());
        }
        frame.extend_from_slice(bytes);
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&frame).attempt(|| "writing output")?;
        sys::write_back(&*file).attempt(|| "writing output")
    }

    /// Tells how a run has ended.
    pub fn end(&self, run: u32, end: &End) -> Result<()> {
        let json = serde_json::to_vec(end).map_err(std::io::Error::from).attempt(|| "writing output")?;
        self.frame(run, Kind::End, &json)
    }
}
