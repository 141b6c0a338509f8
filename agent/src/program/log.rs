//! The output of a program. A thread writes it to a file in the trial's folder, up to a limit.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::thread;

use crate::error::{Attempt, Result};
use crate::shared::Shared;

/// Limit on the output of a program.
pub const MAX_BYTES: usize = 16 << 20;
/// The size of the tail, which error messages quote.
const TAIL_BYTES: usize = 1000;
const TAIL_LINES: usize = 8;
const READ_BYTES: usize = 64 * 1024;

/// The log of one program.
pub struct Log {
    path: String,
    writer: Shared<Option<PipeWriter>>,
    state: Arc<Shared<State>>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    tail: VecDeque<u8>,
    /// The text to look for, and whether a line contained it.
    wanted: Option<String>,
    line: Vec<u8>,
    matched: bool,
}

impl Log {
    /// Create `folder/NAME.log`, and the thread that fills it.
    pub fn create(folder: &str, name: &str) -> Result<Self> {
        let path = format!("{folder}/{name}.log");
        let file = File::create(&path).attempt(|| format!("creating {path}"))?;
        let (reader, writer) = pipe().attempt(|| format!("creating the pipe to {path}"))?;
        let state = Arc::new(Shared::new(State::default()));
        let filled = Arc::clone(&state);
        let body = move || copy(reader, file, &filled);
        thread::Builder::new().spawn(body).attempt(|| format!("starting the thread that fills {path}"))?;
        Ok(Self { path, writer: Shared::new(Some(writer)), state })
    }

    /// Take the end of the pipe into which the program prints. Only the first call succeeds.
    pub fn writer(&self) -> std::io::Result<PipeWriter> {
        let writer = self.writer.lock().take();
        writer.ok_or_else(|| std::io::Error::other("the program has already started"))
    }

    /// Look for a line that contains `text` from now on.
    pub fn look_for(&self, text: &str) {
        let mut state = self.state.lock();
        state.wanted = Some(text.to_owned());
        state.matched = String::from_utf8_lossy(&state.line).contains(text)
            || String::from_utf8_lossy(state.tail.make_contiguous()).contains(text);
    }

    /// Whether a line contained the text.
    pub fn has_match(&self) -> bool {
        self.state.lock().matched
    }

    /// Whether the program printed more than the limit.
    pub fn is_full(&self) -> bool {
        self.state.lock().bytes > MAX_BYTES
    }

    /// Read the whole log.
    pub fn text(&self) -> Result<String> {
        let bytes = std::fs::read(&self.path).attempt(|| format!("reading {}", self.path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Return the last lines.
    pub fn tail(&self) -> String {
        let mut state = self.state.lock();
        let text = String::from_utf8_lossy(state.tail.make_contiguous()).into_owned();
        let lines: Vec<_> = text.lines().rev().take(TAIL_LINES).map(|line| format!("  {line}")).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        if let Some(wanted) = self.wanted.as_deref().filter(|_| !self.matched) {
            self.line.extend(bytes);
            self.matched = String::from_utf8_lossy(&self.line).contains(wanted);
            // The text never spans two lines.
            if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
                self.line.drain(..=end);
            }
            let surplus = self.line.len().saturating_sub(READ_BYTES);
            self.line.drain(..surplus);
        }
    }
}

/// Copy until all writers have closed the pipe. A program that exceeds the limit loses its reader.
fn copy(mut from: PipeReader, mut to: File, state: &Shared<State>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(got) => got,
            Err(error) => {
                return crate::status::console(&format!("reading the output of a program: {error}"));
            }
        };
        let mut state = state.lock();
        let room = MAX_BYTES.saturating_sub(state.bytes).min(got);
        state.take(&buffer[..got]);
        drop(state);
        if let Err(error) = to.write_all(&buffer[..room]) {
            return crate::status::console(&format!("writing the output of a program: {error}"));
        }
        if room < got {
            return;
        }
    }
}
