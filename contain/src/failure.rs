//! The one error of this program.

use rustix::io::Errno;

use crate::layer::Layer;

/// Something that could not be done.
#[derive(Debug)]
pub struct Failure {
    /// The layer that it belongs to.
    pub layer: Option<Layer>,
    /// What was attempted, on what, and the kernel's reason.
    pub reason: String,
}

impl Failure {
    /// `attempt` failed for `cause`.
    pub fn new(attempt: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self { layer: None, reason: format!("{attempt}: {cause}") }
    }
}

/// Adds what was attempted to an error of the kernel.
pub trait Attempt<T> {
    /// Turns the error into a [`Failure`].
    fn attempt<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T, Failure>;
}

impl<T> Attempt<T> for Result<T, Errno> {
    fn attempt<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T, Failure> {
        self.map_err(|errno| Failure::new(what(), std::io::Error::from(errno)))
    }
}

impl<T> Attempt<T> for std::io::Result<T> {
    fn attempt<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(what(), error))
    }
}
