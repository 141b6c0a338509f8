//! The report to plait: one line of JSON on the report's socket. A space before it carries the descriptor
//! of the guest's folder, while system calls are not filtered yet.

use rustix::fd::BorrowedFd;
use serde_json::{Value, json};

use crate::failure::{Attempt, Failure};
use crate::layers::Layers;
use crate::spec::Spec;
use crate::sys;

/// Pass plait the guest's folder.
pub fn folder(spec: &Spec, folder: BorrowedFd<'_>) -> Result<(), Failure> {
    sys::send_descriptor(spec.report, b' ', folder).attempt(|| "passing the guest's folder to plait")
}

/// Report that the guest runs as process `pid` of the host.
pub fn started(spec: &Spec, pid: i32, layers: &Layers<'_>) {
    send(spec, &json!({"pid": pid, "layers": layers.held, "missing": layers.missing}));
}

/// Report that the guest did not start.
pub fn failed(spec: &Spec, failure: &Failure) {
    send(spec, &json!({"error": failure.reason, "layer": failure.layer}));
}

fn send(spec: &Spec, line: &Value) {
    // plait notices the missing report when this fails
    sys::write_and_close(spec.report, format!("{line}\n").as_bytes());
}
