//! The state that the connections of a web page share: which objects remain to request.

use crate::clock::Latch;
use crate::shared::Shared;

/// The state that the connections of one page share.
#[derive(Debug, Default)]
pub struct Loading {
    next: Shared<usize>,
    /// Set when the document has arrived, or when the first connection has ended without it.
    pub document: Latch,
}

impl Loading {
    /// Take the next of `count` objects that no connection has requested.
    pub fn take(&self, count: usize) -> Option<usize> {
        let mut next = self.next.lock();
        let taken = Some(*next).filter(|number| *number < count);
        *next += 1;
        taken
    }

    /// Note that the first connection has ended at `t_us`. Without its document the page requests no
    /// other object.
    pub fn end_at(&self, t_us: i64) {
        if self.document.set(t_us) {
            *self.next.lock() = usize::MAX / 2;
        }
    }
}
