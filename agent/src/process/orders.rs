//! Standard input: heartbeats, orders, and its end. A thread waits for them, and for signals.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;

use super::arguments::Arguments;
use super::current::{ARGUMENTS, ENDING, end};
use crate::clock::{self, Latch};
use crate::error::{Attempt, Result};
use crate::sys;

/// The longest line that the agent reads.
const LINE_BYTES: usize = 256;

static STARTED: Latch = Latch::new();
static CLOSING: Latch = Latch::new();
static OVER: AtomicBool = AtomicBool::new(false);

/// Start the thread that ends the agent at the end of its input, after a missed heartbeat, and on a
/// signal.
pub fn watch(arguments: &'static Arguments) -> Result<()> {
    let signals = sys::block_signals(&ENDING).attempt(|| "blocking signals")?;
    let body = move || {
        let why = listen(&signals, arguments.heartbeat);
        end(Some(&why));
    };
    thread::Builder::new().spawn(body).attempt(|| "starting the thread that reads orders")?;
    Ok(())
}

/// Wait for the order to start, if the command line asks for that.
pub fn wait_for_start() {
    if ARGUMENTS.get().is_some_and(|arguments| arguments.on_order) {
        answer("ready");
        STARTED.wait();
    }
}

/// With `--on-order`, say that the trial is done, wait until that is so on all hosts, and return true.
pub fn wait_for_close() -> bool {
    let is_ordered = ARGUMENTS.get().is_some_and(|arguments| arguments.on_order);
    if is_ordered {
        answer("done");
        CLOSING.wait();
    }
    is_ordered
}

/// Whether an order has ended the trial, which then completes its tables.
pub fn is_told_to_end() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// Report the trial's zero, for which an order asked.
pub fn announce_zero() {
    if ARGUMENTS.get().is_some_and(|arguments| arguments.on_order) {
        answer(&format!("zero {}", clock::realtime_zero_ns()));
    }
}

/// Read orders until the agent must end, and return the reason.
fn listen(signals: &OwnedFd, heartbeat: Option<Duration>) -> String {
    let mut line = Vec::new();
    let mut heard = Instant::now();
    loop {
        let left = heartbeat.map(|beat| (heard + beat).saturating_duration_since(Instant::now()));
        if let (Some(left), Some(beat)) = (left, heartbeat)
            && left.is_zero()
        {
            return format!("no heartbeat arrived for {} s, so the agent ended", beat.as_secs());
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let input = stdin();
        let mut ready = [PollFd::new(signals, PollFlags::IN), PollFd::new(&input, PollFlags::IN)];
        if let Err(errno) = poll(&mut ready, left.as_ref())
            && errno != Errno::INTR
        {
            return format!("waiting for orders: {}", crate::error::describe(errno));
        }
        let readable = !ready[1].revents().is_empty();
        if let Some(number) = sys::read_signal(signals) {
            return format!("signal {number} ended the agent");
        }
        if readable {
            let mut bytes = [0; LINE_BYTES];
            match rustix::io::read(input, &mut bytes) {
                Ok(0) => return "the input of the agent ended: its caller has gone".to_owned(),
                Ok(length) => {
                    heard = Instant::now();
                    if obey(&mut line, &bytes[..length]) {
                        return "its caller stopped it".to_owned();
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return format!("reading orders: {}", crate::error::describe(errno)),
            }
        }
    }
}

/// Add `bytes` to the pending line, and carry out each line that is complete. Return whether the
/// agent must end.
fn obey(line: &mut Vec<u8>, bytes: &[u8]) -> bool {
    for byte in bytes {
        if *byte != b'\n' {
            if line.len() < LINE_BYTES {
                line.push(*byte);
            }
            continue;
        }
        match line.as_slice() {
            b"start" => {
                STARTED.set(0);
            }
            b"close" => {
                CLOSING.set(0);
            }
            b"stop" => return true,
            b"end" => OVER.store(true, Ordering::Relaxed),
            b"time" => answer(&format!("time {}", clock::realtime_ns())),
            _ => {} // a heartbeat
        }
        line.clear();
    }
    false
}

fn answer(text: &str) {
    let mut output = std::io::stdout().lock();
    // If nobody reads the answers, the end of the input follows.
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}
