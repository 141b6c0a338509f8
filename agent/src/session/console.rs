//! The session's console, from which the agent reads orders.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::thread;

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::run::Runs;
use crate::error::{Attempt, Result};
use crate::program::root::ROOT;

/// Start a thread that carries out each order on the console.
pub fn listen(runs: &Arc<Runs>) -> Result<()> {
    let path = format!("{ROOT}/dev/tty1");
    let context = || format!("opening the session's console {path}");
    let console = File::options().read(true).write(true).open(&path).attempt(context)?;
    let mut settings = tcgetattr(&console).attempt(context)?;
    settings.make_raw();
    tcsetattr(&console, OptionalActions::Now, &settings).attempt(context)?;
    let runs = Arc::clone(runs);
    let carry_out = move || {
        for line in BufReader::new(console).lines() {
            let order = line.map_err(|error| error.to_string());
            match order.and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string())) {
                Ok(order) => runs.carry_out(order),
                Err(error) => return crate::status::console(&format!("reading orders: {error}")),
            }
        }
    };
    thread::Builder::new().spawn(carry_out).attempt(context)?;
    Ok(())
}
