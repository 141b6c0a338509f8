//! The state that the connections of a web page share: which objects remain to request.

use std::sync::{Mutex, PoisonError};

use crate::clock::Latch;

/// The state that the connections of one page share.
#[derive(Debug, Default)]
pub struct Loading {
    next: Mutex<usize>,
    /// Set when the document has arrived, or when the first connection has ended without it.
    pub document: Latch,
}

impl Loading {
    /// Take the next of `count` objects that no connection has requested.
    pub fn take(&self, count: usize) -> Option<usize> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = Some(*next).filter(|number| *number < count);
        *next += 1;
        taken
    }

    /// Leave no object to request.
    pub fn give_up(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = usize::MAX / 2;
    }
}
