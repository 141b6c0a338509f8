//! Random durations, the same for a seed on every machine.

use crate::plan::Gap;

/// The random generator `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
pub struct Draw(u64);

impl Draw {
    /// Start the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Return a uniform number in (0, 1].
    #[allow(clippy::cast_precision_loss)] // 53 bits are exact
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draw a duration of `gap` in ns: whole us, at least 1 us.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // an hour times 37 at most
    pub fn ns(&mut self, gap: &Gap) -> i64 {
        let mean = gap.mean_us as f64;
        // libm computes the same bits everywhere; processors and C libraries differ in the last
        // bit.
        let us = if gap.exponential { -libm::log(self.unit()) * mean } else { mean };
        (us as i64).max(1) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_precision_loss)] // small numbers
    fn exponential_gaps_have_their_mean_and_its_spread() {
        let mut draw = Draw::new(7);
        let gap = Gap { mean_us: 100_000, exponential: true };
        let draws: Vec<_> = (0..20_000).map(|_| draw.ns(&gap) as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 100.0).abs() < 3.0, "mean {mean} ms");
        assert!((variance.sqrt() - 100.0).abs() < 4.0, "deviation {} ms", variance.sqrt());
    }

    #[test]
    fn a_seed_gives_the_known_sequence() {
        // The first outputs of the published SplitMix64 for seed 1234567.
        let mut draw = Draw::new(1_234_567);
        assert_eq!([draw.next(), draw.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
