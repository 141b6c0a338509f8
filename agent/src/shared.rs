//! State that threads share. A panic ends the whole agent, so no lock is ever left poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value behind a lock.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Put `value` behind a lock.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Wait for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Shared<Vec<T>> {
    /// Append an item.
    pub fn push(&self, item: T) {
        self.lock().push(item);
    }

    /// Take all items.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.lock())
    }
}
