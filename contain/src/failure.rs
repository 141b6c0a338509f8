//! The error type of this program.

use crate::layer::Layer;

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    /// The layer that the step belongs to.
    pub layer: Option<Layer>,
    /// The attempted step, its object, and the kernel's reason.
    pub reason: String,
}

impl Failure {
    /// Create the failure of `attempt` because of `cause`.
    pub fn new(attempt: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self { layer: None, reason: format!("{attempt}: {cause}") }
    }
}

/// Adds the attempted step to an error of the kernel.
pub trait Attempt<T> {
    /// Convert the error into a [`Failure`].
    fn attempt<D: std::fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Failure>;
}

impl<T, E: Into<std::io::Error>> Attempt<T> for Result<T, E> {
    fn attempt<D: std::fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(context(), error.into()))
    }
}
