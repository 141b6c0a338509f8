//! What the agent reports to the host during and after the trial: `progress`, `status.json`, the
//! console.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde::Serialize;

use crate::clock;
use crate::error::{Attempt, Result};
use crate::job;
use crate::machine;
use crate::modules::ModuleOffers;
use crate::shared::Shared;

const US_PER_S: i64 = 1_000_000;
/// The name of status.json until it is complete, and the space reserved for it.
const UNFINISHED: &str = "status.json.new";
const RESERVED_BYTES: usize = 2048;

static PHASE: Shared<&'static str> = Shared::new("boot");
static BOOT_US: AtomicI64 = AtomicI64::new(0);
static SENT_BYTES: Shared<Option<u64>> = Shared::new(None);
static BROUGHT: Shared<Option<ModuleOffers>> = Shared::new(None);
static WRITTEN: AtomicBool = AtomicBool::new(false);

#[derive(Serialize)]
struct Status<'a> {
    ok: bool,
    phase: &'a str,
    error: Option<&'a str>,
    virtual_us: i64,
    boot_us: i64,
    /// What this machine has sent on the lines of real hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_bytes: Option<u64>,
    brought: ModuleOffers,
}

/// Return the agent's phase: boot, plan, modules, network, traffic, run, write, done.
pub fn phase() -> &'static str {
    *PHASE.lock()
}

/// Enter the next phase.
pub fn enter_phase(phase: &'static str) {
    *PHASE.lock() = phase;
}

/// Record when the trial's zero was, in ns after the guest's boot.
pub fn booted(zero_ns: i64) {
    BOOT_US.store(zero_ns / 1000, Ordering::Relaxed);
}

/// Record what the plan's modules added.
pub fn brought(names: ModuleOffers) {
    *BROUGHT.lock() = Some(names);
}

/// Record how many bytes this machine has sent.
pub fn sent(bytes: u64) {
    *SENT_BYTES.lock() = Some(bytes);
}

/// Write status.json once, atomically. The agent calls this last.
pub fn write(error: Option<&str>) {
    if WRITTEN.swap(true, Ordering::SeqCst) {
        return;
    }
    let (ok, phase) = if error.is_none() { (true, "done") } else { (false, phase()) };
    let status = Status {
        ok,
        phase,
        error,
        virtual_us: clock::trial_us().max(0),
        boot_us: BOOT_US.load(Ordering::Relaxed),
        sent_bytes: *SENT_BYTES.lock(),
        brought: BROUGHT.lock().take().unwrap_or_default(),
    };
    if let Some(error) = error {
        console(&format!("{phase}: {error}"));
    }
    if let Err(error) = save(&status) {
        console(&error.to_string());
    }
}

/// Reserve space for status.json, so that the agent can still report a full disk.
pub fn reserve() -> Result<()> {
    std::fs::write(job::path(UNFINISHED), [b' '; RESERVED_BYTES])
        .attempt(|| "reserving space for status.json")
}

fn save(status: &Status<'_>) -> Result<()> {
    let context = || "writing status.json";
    let mut json = serde_json::to_vec(status).attempt(context)?;
    // Pad to the reserved length: truncation would free the space before the agent uses it.
    json.resize(json.len().max(RESERVED_BYTES - 1), b' ');
    json.push(b'\n');
    let path = job::path(UNFINISHED);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).open(&path).attempt(context)?;
    file.write_all(&json).attempt(context)?;
    std::fs::rename(path, job::path("status.json")).attempt(context)
}

/// Write to the guest's console, which the host keeps as a log.
pub fn console(text: &str) {
    // Nothing can report a failure of the console.
    let _ = writeln!(std::io::stderr(), "plait-agent: {text}");
}

/// The file `progress`: one line per virtual second. A watchdog distinguishes a slow guest from a
/// hanging one by it.
pub struct Progress {
    file: File,
    next_us: i64,
}

impl Progress {
    /// Create the file, or truncate it.
    pub fn create() -> Result<Self> {
        let file = if machine::is_this_one() {
            machine::progress()?
        } else {
            File::create(job::path("progress")).attempt(|| "creating progress")?
        };
        Ok(Self { file, next_us: 0 })
    }

    /// Add a line if a new virtual second has begun.
    pub fn report(&mut self, t_us: i64) -> Result<()> {
        if t_us < self.next_us {
            return Ok(());
        }
        self.next_us = (t_us / US_PER_S + 1) * US_PER_S;
        self.file.write_all(format!("{t_us} {}\n", phase()).as_bytes()).attempt(|| "writing progress")
    }
}
