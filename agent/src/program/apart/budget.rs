//! What the prototypes of this machine may send on its lines: bytes in all, and bytes in any second.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::clock;
use crate::process;
use crate::status;

const WINDOW_US: i64 = 1_000_000;

/// The limits, and what counts against them.
pub struct Budget {
    most_bytes: Option<u64>,
    most_bps: Option<u64>,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    bytes: u64,
    /// What the connections of the kernel have sent, at their latest sample.
    others: u64,
    /// (time in us, bytes) of what was sent in the past second.
    recent: VecDeque<(i64, u64)>,
    recent_bytes: u64,
}

impl Budget {
    /// Return the limits that the command line sets.
    pub fn new() -> Self {
        let (most_bytes, most_bps) = process::sending_limits();
        Self { most_bytes, most_bps, spent: Mutex::default() }
    }

    /// Take `bytes` before they are sent. An error means that they must not be.
    pub fn take(&self, bytes: u64) -> Result<(), String> {
        self.take_at(clock::trial_us(), bytes)
    }

    fn take_at(&self, now_us: i64, bytes: u64) -> Result<(), String> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let total = spent.bytes + spent.others + bytes;
        if let Some(most) = self.most_bytes.filter(|most| total > *most) {
            return Err(format!(
                "the flows want to send {total} bytes, and the limit is {most}; the agent ended the trial"
            ));
        }
        while let Some((then, old)) =
            spent.recent.front().copied().filter(|(then, _)| then + WINDOW_US <= now_us)
        {
            debug_assert!(then <= now_us);
            spent.recent.pop_front();
            spent.recent_bytes -= old;
        }
        let rate = (spent.recent_bytes + bytes).saturating_mul(8);
        if let Some(most) = self.most_bps.filter(|most| rate > *most) {
            return Err(format!(
                "the prototypes want to send {rate} bits in a second, and the limit is {most} bit/s; \
                 the agent ended the trial"
            ));
        }
        status::sent(total);
        spent.bytes += bytes;
        spent.recent.push_back((now_us, bytes));
        spent.recent_bytes += bytes;
        Ok(())
    }

    /// Note what the connections of the kernel have sent.
    pub fn note_others(&self, bytes: u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.others = bytes;
        status::sent(spent.bytes + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(most_bytes: Option<u64>, most_bps: Option<u64>) -> Budget {
        Budget { most_bytes, most_bps, spent: Mutex::default() }
    }

    #[test]
    fn no_byte_beyond_the_limit_is_sent_whoever_sent_the_others() {
        let budget = budget(Some(1000), None);
        assert_eq!(budget.take_at(0, 600), Ok(()));
        budget.note_others(300);
        assert!(budget.take_at(1, 101).is_err());
        assert_eq!(budget.take_at(2, 100), Ok(()));
    }

    #[test]
    fn no_second_has_more_than_the_rate_allows() {
        let budget = budget(None, Some(8000));
        assert_eq!(budget.take_at(100, 600), Ok(()));
        assert_eq!(budget.take_at(500_000, 400), Ok(()));
        assert!(budget.take_at(1_000_000, 1).is_err());
        assert_eq!(budget.take_at(1_000_100, 600), Ok(()));
        assert!(budget.take_at(1_000_101, 1).is_err());
    }
}
