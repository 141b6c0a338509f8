//! Measurements during the traffic: connections and subflows, links, path-manager events, counters.

pub mod counters;
pub mod datapath_flows;
mod delays;
mod devices;
pub mod flows;
pub mod links;
pub mod mptcp_events;
mod mptcp_info;
pub mod programs;
mod queues;
mod tcp_info;

/// Convert a counter of the kernel into a cell.
fn cell(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

/// The integers of a C structure, by offset; None if the kernel's structure is shorter.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u8(self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    fn u32(self, offset: usize) -> Option<u32> {
        let bytes = self.0.get(offset..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    }

    fn u64(self, offset: usize) -> Option<u64> {
        let bytes = self.0.get(offset..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    }

    fn cell32(self, offset: usize) -> Option<i64> {
        self.u32(offset).map(i64::from)
    }

    fn cell64(self, offset: usize) -> Option<i64> {
        self.u64(offset).and_then(cell)
    }
}
