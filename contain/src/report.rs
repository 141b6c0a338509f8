//! What plait learns: one line of JSON on the descriptor of the report.

use rustix::io::Errno;
use serde::Serialize;

use crate::layers::{Layer, Layers};
use crate::spec::Spec;
use crate::sys;

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

#[derive(Serialize)]
struct Started<'a> {
    pid: i32,
    layers: &'a [Layer],
    missing: &'a [(Layer, String)],
}

#[derive(Serialize)]
struct Failed<'a> {
    error: &'a str,
    layer: Option<Layer>,
}

/// The guest runs as process `pid` of the host.
pub fn started(spec: &Spec, pid: i32, layers: &Layers<'_>) {
    send(spec, &Started { pid, layers: &layers.held, missing: &layers.missing });
}

/// The guest was not started.
pub fn failed(spec: &Spec, failure: &Failure) {
    send(spec, &Failed { error: &failure.reason, layer: failure.layer });
}

fn send(spec: &Spec, line: &impl Serialize) {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    sys::write_and_close(spec.report, &text); // plait notices the missing report when this fails
}
