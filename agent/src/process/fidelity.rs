//! How well the machine keeps real time during a trial: the lateness of timers, and what the kernel
//! counts of its own delays. The record is `fidelity.json`; the engine judges it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::ClockId;
use serde_json::json;

use super::current::{is_ordinary, node};
use crate::error::{Attempt, Error, Result};
use crate::plan::Plan;
use crate::{clock, job};

/// The least time between two timers, and the number of timers at most.
const INTERVAL_US: i64 = 1000;
const TIMERS_MAX: i64 = 200_000;
const FILE: &str = "fidelity.json";

/// The watch over one trial.
pub struct Fidelity {
    ending: Arc<AtomicBool>,
    timers: JoinHandle<Vec<u32>>,
    begun_ns: i64,
    before: Readings,
}

/// The kernel's counters; None: this kernel or this container has none.
struct Readings {
    counts: [(&'static str, Option<i64>); 6],
    load: Option<f64>,
}

impl Fidelity {
    /// Start to watch; None in a guest, whose time is virtual, and for one node, whose links are none of the agent's.
    pub fn watch(plan: &Plan) -> Result<Option<Self>> {
        if !is_ordinary() || node().is_some() {
            return Ok(None);
        }
        let interval_ns = INTERVAL_US.max(plan.end_us / TIMERS_MAX) * 1000;
        let ending = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ending);
        let timers = thread::Builder::new()
            .spawn(move || lateness(interval_ns, &stop))
            .attempt(|| "starting the thread that measures timers")?;
        Ok(Some(Self { ending, timers, begun_ns: clock::monotonic_ns(), before: Readings::now() }))
    }

    /// Stop, and write the record.
    pub fn write(self) -> Result<()> {
        let span_us = (clock::monotonic_ns() - self.begun_ns) / 1000;
        let after = Readings::now();
        self.ending.store(true, Ordering::Relaxed);
        let mut late = self
            .timers
            .join()
            .map_err(|_| Error::new("the thread that measures timers ended unexpectedly"))?;
        late.sort_unstable();
        let mut record = json!({
            "span_us": span_us,
            "timers": late.len(),
            "lateness_median_us": late.get(late.len() / 2),
            "lateness_p99_us": late.get(late.len() * 99 / 100),
            "lateness_max_us": late.last(),
            "load_before": self.before.load,
            "load_after": after.load,
        });
        for ((name, before), (_, after)) in self.before.counts.into_iter().zip(after.counts) {
            record[name] = before.zip(after).map(|(before, after)| after - before).into();
        }
        std::fs::write(job::path(FILE), record.to_string()).attempt(|| format!("writing {FILE}"))
    }
}

/// Set one timer after the other, and return how late each fired, in us.
fn lateness(interval_ns: i64, ending: &AtomicBool) -> Vec<u32> {
    let mut late = Vec::new();
    let mut due_ns = clock::monotonic_ns() + interval_ns;
    while !ending.load(Ordering::Relaxed) {
        if rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &clock::timespec(due_ns)).is_err() {
            // A signal ended the wait, or the kernel refused it: then this pause keeps the thread from
            // computing without end, and `ending` ends it.
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        let now_ns = clock::monotonic_ns();
        late.push(u32::try_from((now_ns - due_ns) / 1000).unwrap_or(u32::MAX));
        due_ns = (due_ns + interval_ns).max(now_ns + 1);
    }
    late
}

impl Readings {
    fn now() -> Self {
        let softnet = read("/proc/net/softnet_stat");
        let column = |place| softnet.as_deref().and_then(|text| hexadecimal_sum(text, place));
        let counts = [
            ("cpu_pressure_us", pressure("cpu")),
            ("memory_pressure_us", pressure("memory")),
            ("io_pressure_us", pressure("io")),
            ("backlog_drops", column(1)), // packets that found the queue between two namespaces full
            ("time_squeezes", column(2)),
            ("steal_ticks", read("/proc/stat").as_deref().and_then(steal)),
        ];
        let load = read("/proc/loadavg").and_then(|text| text.split_whitespace().next()?.parse().ok());
        Self { counts, load }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(path)).ok()
}

/// Return the total of the line `some` in /proc/pressure, in us.
fn pressure(resource: &str) -> Option<i64> {
    total(&read(&format!("/proc/pressure/{resource}"))?)
}

fn total(text: &str) -> Option<i64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Return the sum over processors of a column of `/proc/net/softnet_stat`.
fn hexadecimal_sum(text: &str, column: usize) -> Option<i64> {
    text.lines().map(|line| i64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok()).sum()
}

/// Return the processor time that the hypervisor took, in ticks (`proc_stat(5)`).
fn steal(text: &str) -> Option<i64> {
    text.lines().next()?.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(total("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n"), Some(1234));
        assert_eq!(hexadecimal_sum("01 02 0a\n01 03 10\n", 2), Some(26));
        assert_eq!(steal("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some(8));
        assert_eq!(total(""), None);
    }
}
