//! What the connections of one page share: which objects are still to be asked for.

use std::sync::{Mutex, PoisonError};

use crate::clock::Latch;

/// What the connections of one page share.
#[derive(Debug, Default)]
pub struct Loading {
    next: Mutex<usize>,
    /// Set when the document has arrived, or the first connection has ended without it.
    pub document: Latch,
}

impl Loading {
    /// The next object that nobody has asked for, of `count`.
    pub fn take(&self, count: usize) -> Option<usize> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = Some(*next).filter(|number| *number < count);
        *next += 1;
        taken
    }

    /// Leaves nothing to ask for.
    pub fn give_up(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = usize::MAX / 2;
    }
}
