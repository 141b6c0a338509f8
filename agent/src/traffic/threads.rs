//! Threads of flows.

use std::thread;

use crate::error::{Attempt, Result};

/// Flow threads need little stack.
pub const STACK_BYTES: usize = 128 * 1024;

/// Starts a thread.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    // Nobody joins: threads end by themselves, or with the machine.
    thread::Builder::new().stack_size(STACK_BYTES).spawn(body).attempt(|| "starting a thread")?;
    Ok(())
}
