//! When flows begin and end by their plan, and whether their threads have finished.

use crate::plan::{SideName, Transport};
use crate::traffic::FlowState;

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub t_us: i64,
    pub completed: bool,
    /// Bytes that the kernel had received in order by then.
    pub received_bytes: Option<i64>,
}

/// Return the planned end of a flow in µs of the trial, if it has one and the flow has begun.
pub(super) fn deadline_us(flow: &FlowState) -> Option<i64> {
    Some(begin_us(flow)? + flow.plan.application.job().lasts_us()?)
}

/// Return the end of the last interval of a flow at a planned rate, in µs of the trial.
pub(super) fn sending_end_us(flow: &FlowState) -> Option<i64> {
    Some(begin_us(flow)? + flow.plan.application.job().sends_us()?)
}

/// Return when a flow begins, in µs of the trial; None while this depends on the end of other flows.
pub(super) fn begin_us(flow: &FlowState) -> Option<i64> {
    let depends = answers(flow) || !flow.plan.after.is_empty() || !flow.plan.after_programs.is_empty();
    flow.progress().begin_us.or((!depends).then_some(flow.plan.start_us))
}

/// Whether a flow sends UDP packets back to the source of another flow's packets.
fn answers(flow: &FlowState) -> bool {
    flow.plan.connection.is_some() && flow.plan.transport == Transport::Udp
}

/// Whether a flow uses or will use its connection. A flow that answers does so only after a packet
/// has arrived.
pub(super) fn uses_connection(flow: &FlowState) -> bool {
    !answers(flow) || flow.progress().begin_us.is_some()
}

/// Whether a connected flow has threads that have not returned from their last system calls.
pub(super) fn still_counting(flow: &FlowState) -> bool {
    let progress = flow.progress();
    let is_connected = |side: SideName| progress.sockets[side.place()].is_some();
    is_connected(flow.plan.sender) && progress.sent_bytes.is_none()
        || is_connected(flow.plan.sender.other()) && progress.received_bytes.is_none()
}
