//! How long packets waited for the rate of a link: the kernel's histogram of each direction.
//!
//! `kernel/links/plait_link_rules.h` defines the bins: 1 ns wide below 16 ns, then eight of equal width for each
//! power of two, so a bin is at most an eighth of its lower bound wide. The last one has everything from 2^40 ns.

use crate::tables::QueueingDelay;

/// The last bin.
const LAST: u64 = 304;

/// Return a row for each bin that has packets; `counts` are the kernel's integers.
pub fn rows<'a>(link: &'static str, counts: &'a [u8]) -> impl Iterator<Item = QueueingDelay> + 'a {
    let counts = counts.chunks_exact(8).filter_map(|count| count.try_into().ok().map(u64::from_ne_bytes));
    (0..).zip(counts).filter(|(_, packets)| *packets > 0).map(move |(bin, packets)| {
        let (at_least, below) = bounds(bin);
        QueueingDelay {
            link: Some(link.into()),
            at_least_ns: super::cell(at_least),
            below_ns: below.and_then(super::cell),
            packets: super::cell(packets),
        }
    })
}

/// Return where a bin begins and ends, in ns. The last one has no end.
fn bounds(bin: u64) -> (u64, Option<u64>) {
    if bin < 8 {
        return (bin, Some(bin + 1));
    }
    let shift = bin.min(LAST) / 8 - 1;
    let at_least = (8 + bin.min(LAST) % 8) << shift;
    (at_least, (bin < LAST).then(|| at_least + (1 << shift)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_and_are_at_most_an_eighth_wide() {
        for bin in 0..LAST {
            let (at_least, below) = bounds(bin);
            let below = below.unwrap();
            assert_eq!(below, bounds(bin + 1).0);
            assert!(below - at_least == 1 || (below - at_least) * 8 <= at_least, "{bin}");
        }
        assert_eq!(bounds(LAST), (1 << 40, None));
    }

    #[test]
    fn empty_bins_have_no_row() {
        let counts: Vec<u8> =
            [7_u64, 0, 0, 0, 0, 0, 0, 0, 0, 3].into_iter().flat_map(u64::to_ne_bytes).collect();
        let rows: Vec<_> = rows("a->b", &counts).collect();
        let cells = |row: &QueueingDelay| (row.at_least_ns, row.below_ns, row.packets);
        assert_eq!(
            rows.iter().map(cells).collect::<Vec<_>>(),
            [(Some(0), Some(1), Some(7)), (Some(9), Some(10), Some(3)),]
        );
        assert!(rows.iter().all(|row| row.link == Some("a->b".into())));
    }
}
