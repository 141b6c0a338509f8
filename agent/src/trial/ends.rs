//! When flows begin and end by their plan, and whether their threads have come to an end.

use crate::plan::{Application, Bulk, SideName, Udp};
use crate::traffic::FlowState;

/// When the time of a flow is over, where it has one and has begun.
pub(super) fn deadline(flow: &FlowState) -> Option<i64> {
    match &flow.plan.application {
        Application::Bulk(Bulk { duration_us }) => Some(begin(flow)? + (*duration_us)?),
        Application::Udp(Udp { drain_us, .. }) => Some(sending_ends(flow)? + drain_us),
        _ => None,
    }
}

/// When the last interval of a UDP flow is over.
pub(super) fn sending_ends(flow: &FlowState) -> Option<i64> {
    match &flow.plan.application {
        Application::Udp(Udp { interval_ns, count, .. }) => {
            let lasts_ns = interval_ns.saturating_mul(i64::try_from(*count).unwrap_or(i64::MAX));
            Some(begin(flow)? + lasts_ns.div_euclid(1000))
        }
        _ => None,
    }
}

/// When a flow begins; None while that is not known, because it follows others.
pub(super) fn begin(flow: &FlowState) -> Option<i64> {
    if answers(flow) {
        flow.progress().begin_us
    } else if flow.plan.after.is_empty() && flow.plan.after_programs.is_empty() {
        Some(flow.plan.start_us)
    } else {
        flow.progress().begin_us
    }
}

/// Whether a flow sends UDP packets to where those of another one came from.
fn answers(flow: &FlowState) -> bool {
    flow.plan.connection.is_some() && matches!(flow.plan.application, Application::Udp(_))
}

/// Whether a flow uses its connection, or will: one that answers only when there was something to answer.
pub(super) fn goes_on(flow: &FlowState) -> bool {
    !answers(flow) || flow.progress().begin_us.is_some()
}

/// A connected flow whose threads have not yet come back from their last system calls.
pub(super) fn still_counting(flow: &FlowState) -> bool {
    let progress = flow.progress();
    let (sender, receiver) = match flow.plan.sender {
        SideName::Client => (&progress.client, &progress.server),
        SideName::Server => (&progress.server, &progress.client),
    };
    sender.is_some() && progress.sent_bytes.is_none()
        || receiver.is_some() && progress.received_bytes.is_none()
}
