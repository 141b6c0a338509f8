//! The limits of what an agent may send on the lines of a real host.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::process;

/// The time over which the agent takes the mean of the rate.
const WINDOW_US: i64 = 1_000_000;

/// What has been sent so far, and the limits.
pub(super) struct Limits {
    most_bytes: Option<i64>,
    most_bps: Option<i64>,
    /// (time in us, bytes sent until then) of the samples within the window, and of the last one
    /// before it.
    sent: VecDeque<(i64, i64)>,
}

impl Limits {
    /// Return the limits that the command line sets.
    pub fn new() -> Self {
        let (bytes, rate) = process::sending_limits();
        let signed = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        Self { most_bytes: signed(bytes), most_bps: signed(rate), sent: VecDeque::from([(0, 0)]) }
    }

    /// Note that `bytes` have been sent until `t_us`. Fail if that exceeds a limit.
    pub fn check(&mut self, t_us: i64, bytes: i64) -> Result<()> {
        if let Some(most) = self.most_bytes.filter(|most| bytes > *most) {
            let why =
                format!("the flows sent {bytes} bytes, and the limit was {most}; the agent ended the trial");
            return Err(Error::new(why));
        }
        self.sent.push_back((t_us, bytes));
        while self.sent.get(1).is_some_and(|(then, _)| *then <= t_us - WINDOW_US) {
            self.sent.pop_front();
        }
        let Some((then, before)) = self.sent.front().copied() else { return Ok(()) };
        let (lasted_us, sent) = (t_us - then, bytes - before);
        if lasted_us < WINDOW_US {
            return Ok(());
        }
        let rate = sent.saturating_mul(8_000_000) / lasted_us;
        match self.most_bps.filter(|most| rate > *most) {
            None => Ok(()),
            Some(most) => Err(Error::new(format!(
                "the flows sent {rate} bit/s over a second, and the limit was {most}; the agent ended the trial"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(most_bytes: Option<i64>, most_bps: Option<i64>) -> Limits {
        Limits { most_bytes, most_bps, sent: VecDeque::from([(0, 0)]) }
    }

    #[test]
    fn a_rate_counts_over_a_second() {
        let mut limits = limits(None, Some(8_000_000));
        assert!(limits.check(100_000, 900_000).is_ok(), "a burst within the first second");
        assert!(limits.check(1_000_000, 1_000_000).is_ok());
        assert!(limits.check(1_100_000, 1_900_000).is_ok(), "a second has 1 MB");
        assert!(limits.check(2_000_000, 2_100_000).is_err(), "1.1 MB in the second before");
    }

    #[test]
    fn bytes_count_from_the_start() {
        let mut limits = limits(Some(1000), None);
        assert!(limits.check(10, 1000).is_ok());
        assert!(limits.check(20, 1001).is_err());
    }
}
