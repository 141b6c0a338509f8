//! The report to plait: one line of JSON on the report's socket.

use rustix::fd::BorrowedFd;
use serde::Serialize;

use crate::failure::Failure;
use crate::layer::Layer;
use crate::layers::Layers;
use crate::spec::Spec;
use crate::sys;

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

/// Report that the guest runs as process `pid` of the host, and pass plait its `folder`.
pub fn started(spec: &Spec, pid: i32, layers: &Layers<'_>, folder: Option<BorrowedFd<'_>>) {
    send(spec, &Started { pid, layers: &layers.held, missing: &layers.missing }, folder);
}

/// Report that the guest did not start.
pub fn failed(spec: &Spec, failure: &Failure) {
    send(spec, &Failed { error: &failure.reason, layer: failure.layer }, None);
}

fn send(spec: &Spec, line: &impl Serialize, folder: Option<BorrowedFd<'_>>) {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    sys::send_and_close(spec.report, &text, folder); // plait notices the missing report when this fails
}
