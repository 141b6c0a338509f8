//! Virtual time as the agent sees it: nanoseconds of `CLOCK_MONOTONIC`, and microseconds from the trial's zero.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::error::{Attempt, Result};

const NS_PER_S: i64 = 1_000_000_000;
const NS_PER_MS: i64 = 1_000_000;

static ZERO_NS: OnceLock<i64> = OnceLock::new();
static REALTIME_ZERO_NS: OnceLock<i64> = OnceLock::new();

/// `CLOCK_MONOTONIC` in ns. Each call costs one system call, and a little virtual time.
pub fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * NS_PER_S + now.tv_nsec
}

/// Waits until a second has passed since boot: ping takes seconds of none to mean that its clock was never read, and
/// sends without its interval. In real time that second is not worth a person's while.
pub fn leave_first_second() -> Result<()> {
    let parameters = std::fs::read_to_string("/proc/cmdline").attempt(|| "reading /proc/cmdline")?;
    if parameters.contains("time-travel=") {
        let left = u64::try_from(NS_PER_S - monotonic_ns()).unwrap_or(0); // negative: it is over
        std::thread::sleep(Duration::from_nanos(left));
    }
    Ok(())
}

/// Fixes the trial's zero at the next full millisecond, and returns it in ns of `CLOCK_MONOTONIC`.
///
/// A full millisecond lies at least one whole millisecond ahead, so that every thread can be asleep by then.
pub fn set_zero() -> i64 {
    *ZERO_NS.get_or_init(|| (monotonic_ns() / NS_PER_MS + 2) * NS_PER_MS)
}

/// The trial's zero in ns of `CLOCK_REALTIME`, by which the kernel stamps packets. Nobody sets that clock, so it is
/// read once; call it early.
pub fn realtime_zero_ns() -> i64 {
    *REALTIME_ZERO_NS.get_or_init(|| {
        // The two clocks differ by a constant; each read costs the same, so the middle of two is the time of the third.
        let before = monotonic_ns();
        let now = clock_gettime(ClockId::Realtime);
        let after = monotonic_ns();
        let realtime = now.tv_sec * NS_PER_S + now.tv_nsec;
        ZERO_NS.get().copied().unwrap_or_default() + realtime - before.midpoint(after)
    })
}

/// The time since the trial's zero in whole us; 0 before there is a zero, negative shortly before it.
pub fn trial_us() -> i64 {
    ZERO_NS.get().map_or(0, |zero| (monotonic_ns() - zero).div_euclid(1000))
}

/// A time in seconds, for messages.
#[allow(clippy::cast_precision_loss)] // a trial lasts far less than 2^53 us
pub fn seconds(t_us: i64) -> f64 {
    t_us as f64 / 1e6
}

/// The time since the trial's zero in ns.
pub fn trial_ns() -> i64 {
    ZERO_NS.get().map_or(0, |zero| monotonic_ns() - zero)
}

/// The absolute time of `t_ns` of the trial, for calls that sleep.
fn deadline(t_ns: i64) -> Timespec {
    let ns = ZERO_NS.get().copied().unwrap_or_default() + t_ns;
    Timespec { tv_sec: ns / NS_PER_S, tv_nsec: ns % NS_PER_S }
}

/// Sleeps until `t_us` of the trial.
pub fn sleep_until(t_us: i64) {
    sleep_until_ns(t_us * 1000);
}

/// Sleeps until `t_ns` of the trial.
pub fn sleep_until_ns(t_ns: i64) {
    let until = deadline(t_ns);
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR)
    {
    }
}

/// Something that happens once, at a time, and that threads can wait for.
#[derive(Debug, Default)]
pub struct Latch {
    time: Mutex<Option<i64>>,
    happened: Condvar,
}

impl Latch {
    /// It has happened, at `t_us`. True: for the first time, which is the one that counts.
    pub fn set(&self, t_us: i64) -> bool {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let first = time.is_none();
        time.get_or_insert(t_us);
        self.happened.notify_all();
        first
    }

    /// When it happened; None: it has not yet.
    pub fn time(&self) -> Option<i64> {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has happened; returns when it did.
    pub fn wait(&self) -> i64 {
        let time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let time = self.happened.wait_while(time, |time| time.is_none());
        time.unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
    }
}

/// A bell that threads ring for the main thread, which otherwise sleeps until the next point of its schedule.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// How often the bell has rung. Read it before looking for work; hand it to [`Bell::wait_until`].
    pub fn rings(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Wakes the main thread.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        // A failure to wake means only that nobody sleeps.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Sleeps until `t_us` of the trial, or until the bell has rung more often than `seen`.
    /// True: the time has come. False: somebody rang.
    pub fn wait_until(&self, t_us: i64, seen: u32) -> bool {
        self.wait_until_ns(t_us * 1000, seen)
    }

    /// The same, until `t_ns` of the trial.
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
