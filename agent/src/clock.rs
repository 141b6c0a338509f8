//! The agent's time: nanoseconds of `CLOCK_MONOTONIC`, and microseconds from the trial's zero.
//!
//! In a User-Mode Linux guest computing takes no time, and a thread wakes up exactly when it planned
//! to. The clock of an ordinary process is real, and that of a machine counts instructions: there a
//! thread can be late, so the agent reads the clock after each sleep.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::error::{Attempt, Result};
use crate::machine;

const NS_PER_S: i64 = 1_000_000_000;
const NS_PER_MS: i64 = 1_000_000;
/// How often to read two clocks together where other programs may run in between.
const READINGS: usize = 9;

static COMPUTING_TAKES_TIME: AtomicBool = AtomicBool::new(false);
/// Set together with the zero, for threads that can run before it.
static ZERO_SET: Latch = Latch::new();
static ZERO_NS: OnceLock<i64> = OnceLock::new();
static REALTIME_ZERO_NS: OnceLock<i64> = OnceLock::new();

/// Declare that computing takes time, so threads can be late.
pub fn let_computing_take_time() {
    COMPUTING_TAKES_TIME.store(true, Ordering::Relaxed);
}

/// Whether computing takes time.
fn computing_takes_time() -> bool {
    COMPUTING_TAKES_TIME.load(Ordering::Relaxed)
}

/// Return when a thread acts that planned to wake up at `planned_us`, in us of the trial. If
/// computing takes no time, this is the planned time.
pub fn reached(planned_us: i64) -> i64 {
    if computing_takes_time() { trial_us().max(planned_us) } else { planned_us }
}

/// Return `CLOCK_MONOTONIC` in ns. Each call costs a system call and a little virtual time.
pub fn monotonic_ns() -> i64 {
    now_ns(ClockId::Monotonic)
}

/// Return `CLOCK_REALTIME` in ns.
pub fn realtime_ns() -> i64 {
    now_ns(ClockId::Realtime)
}

fn now_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// Wait until one second after boot: ping treats zero seconds as a clock that it never read, and
/// then sends without its interval. In real time the agent skips this wait, because it would delay
/// the user.
pub fn leave_first_second() -> Result<()> {
    let parameters = std::fs::read_to_string("/proc/cmdline").attempt(|| "reading /proc/cmdline")?;
    if parameters.contains("time-travel=") || machine::is_this_one() {
        let left = u64::try_from(NS_PER_S - monotonic_ns()).unwrap_or(0); // negative after the first second
        std::thread::sleep(Duration::from_nanos(left));
    }
    Ok(())
}

/// Set the trial's zero to a full millisecond, and return it in ns of `CLOCK_MONOTONIC`.
///
/// At least one whole millisecond lies before it, so every thread can be asleep by then.
pub fn set_zero() -> i64 {
    let zero_ns = *ZERO_NS.get_or_init(|| (monotonic_ns() / NS_PER_MS + 2) * NS_PER_MS);
    if computing_takes_time() {
        ZERO_SET.set(0);
    }
    zero_ns
}

/// Return the trial's zero in ns of `CLOCK_REALTIME`, with which the kernel time-stamps packets. No
/// program sets that clock, so this is read once; call it early.
pub fn realtime_zero_ns() -> i64 {
    *REALTIME_ZERO_NS.get_or_init(|| {
        if computing_takes_time() {
            ZERO_SET.wait(); // a packet can arrive before this machine's zero
        }
        // Where computing takes time, other programs may run between two readings.
        let readings = if computing_takes_time() { READINGS } else { 1 };
        zero_ns() + closest((0..readings).map(|_| (monotonic_ns(), realtime_ns(), monotonic_ns())))
    })
}

/// Return by how much a clock is ahead of another one, from readings of the other, of it, and of the
/// other again: they differ by a constant. All readings cost the same, so the midpoint of the outer
/// two is the time of the inner one, if nothing else ran in between. That is so where they are
/// closest together.
fn closest(readings: impl Iterator<Item = (i64, i64, i64)>) -> i64 {
    readings
        .min_by_key(|(before, _, after)| after - before)
        .map_or(0, |(before, inner, after)| inner - before.midpoint(after))
}

/// Return the time since the trial's zero in whole us: 0 before the zero is set, negative shortly
/// before the zero.
pub fn trial_us() -> i64 {
    ZERO_NS.get().map_or(0, |zero| (monotonic_ns() - zero).div_euclid(1000))
}

/// Convert a time to seconds, for messages.
#[allow(clippy::cast_precision_loss)] // a trial lasts far less than 2^53 us
pub fn seconds(t_us: i64) -> f64 {
    t_us as f64 / 1e6
}

/// Return the trial's zero in ns of `CLOCK_MONOTONIC`; 0 before it is set.
pub fn zero_ns() -> i64 {
    ZERO_NS.get().copied().unwrap_or_default()
}

/// Return the time since the trial's zero in ns.
pub fn trial_ns() -> i64 {
    ZERO_NS.get().map_or(0, |zero| monotonic_ns() - zero)
}

/// Convert `t_ns` of the trial to an absolute time, for calls that sleep.
fn deadline(t_ns: i64) -> Timespec {
    timespec(zero_ns() + t_ns)
}

/// Convert ns of a clock for calls that sleep.
pub fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / NS_PER_S, tv_nsec: ns % NS_PER_S }
}

/// Sleep until `t_us` of the trial.
pub fn sleep_until(t_us: i64) {
    sleep_until_ns(t_us * 1000);
}

/// Sleep until `t_ns` of the trial.
///
/// A thread that starts before the zero is set first waits for that. If computing takes no time, no
/// thread runs before: the main thread sets the zero before it sleeps.
pub fn sleep_until_ns(t_ns: i64) {
    if computing_takes_time() {
        ZERO_SET.wait();
    }
    let until = deadline(t_ns);
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR)
    {
    }
}

/// An event that happens once, at a time, and for which threads can wait.
#[derive(Debug, Default)]
pub struct Latch {
    time: Mutex<Option<i64>>,
    happened: Condvar,
}

impl Latch {
    /// Create a latch whose event has not happened.
    pub const fn new() -> Self {
        Self { time: Mutex::new(None), happened: Condvar::new() }
    }

    /// Record the event at `t_us`. Return true the first time, which is the one that counts.
    pub fn set(&self, t_us: i64) -> bool {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let first = time.is_none();
        time.get_or_insert(t_us);
        self.happened.notify_all();
        first
    }

    /// Return when the event happened, in µs of the trial; None: not yet.
    pub fn time(&self) -> Option<i64> {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for the event, and return when it happened, in µs of the trial.
    pub fn wait(&self) -> i64 {
        let time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let time = self.happened.wait_while(time, |time| time.is_none());
        time.unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
    }
}

/// A bell that threads ring to wake the main thread, which otherwise sleeps until the next point of
/// its schedule.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// Return how often the bell has rung. Read this before looking for work, and pass it to
    /// [`Bell::wait_until_ns`].
    pub fn rings(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleep while `holds`, but not beyond `t_us` of the trial. The bell rings when that may change.
    pub fn wait_while(&self, t_us: i64, holds: impl Fn() -> bool) {
        while holds() {
            let rings = self.rings();
            if holds() && self.wait_until_ns(t_us * 1000, rings) {
                return;
            }
        }
    }

    /// Wake the main thread.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        // A wake-up fails only if no thread sleeps.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Sleep until `t_ns` of the trial, or until the bell has rung more often than `seen`. Return
    /// true if the time has come, false if the bell rang.
    pub fn wait_until_ns(&self, t_ns: i64, seen: u32) -> bool {
        let until = deadline(t_ns);
        loop {
            let woken = futex::wait_bitset(
                &self.0,
                futex::Flags::PRIVATE,
                seen,
                Some(&until),
                std::num::NonZeroU32::MAX,
            );
            match woken {
                Err(rustix::io::Errno::TIMEDOUT) => return true,
                Err(rustix::io::Errno::INTR) => {}
                _ if self.rings() != seen => return false,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn readings_that_another_program_interrupted_do_not_count() {
        let undisturbed = (1_000, 51_007, 1_014);
        let interrupted_before = (0, 2_050_007, 2_000_014);
        let interrupted_after = (3_000_000, 3_050_007, 5_000_014);
        for readings in [
            [undisturbed, interrupted_before, interrupted_after],
            [interrupted_before, interrupted_after, undisturbed],
        ] {
            assert_eq!(closest(readings.into_iter()), 50_000);
        }
        assert_eq!(closest([interrupted_after].into_iter()), 50_000 - 1_000_000);
    }
}
