//! Threads of flows.

use std::thread;

use crate::error::{Attempt, Result};

/// The stack of a flow's thread, which needs little.
pub const STACK_BYTES: usize = 128 * 1024;

/// Start a thread with a small stack.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    // No thread joins this one: it ends by itself or with the machine.
    thread::Builder::new().stack_size(STACK_BYTES).spawn(body).attempt(|| "starting a thread")?;
    Ok(())
}
