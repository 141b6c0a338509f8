//! Recorded traces: the agent passes their delivery opportunities to the qdisc `plait_trace` and
//! starts them at the trial's zero.
//!
//! `kernel/queues/plait_trace.h` documents the attributes.

use netlink_bindings::tc::{self, OpNewqdiscDo, Tcmsg};
use netlink_bindings::utils::Pusher;

use crate::error::{Attempt, Error, Result};
use crate::job::input_path;
use crate::netlink::{Batch, push_attribute, push_nest};
use crate::plan::PlaitTrace;

/// `TCA_OPTIONS` of `linux/rtnetlink.h`.
const OPTIONS: u16 = 2;
/// Attributes of `plait_trace`.
const BYTES: u16 = 1;
const PERIOD: u16 = 2;
const TIMES: u16 = 3;
const START: u16 = 4;
/// Opportunities per message; an attribute holds less than 64 KiB.
const PIECE: usize = 8000;
const US_PER_MS: u32 = 1000;

/// A trace that the kernel has in full and that has not started.
pub struct PendingTrace {
    /// The index of its namespace.
    pub place: usize,
    header: Tcmsg,
    context: String,
}

/// Add the qdisc and, in pieces, its list of opportunities.
pub fn add(
    batch: &mut Batch,
    context: &str,
    trace: &PlaitTrace,
    place: usize,
    header: Tcmsg,
) -> Result<PendingTrace> {
    let times_us = read(trace)?;
    let period_us = if trace.repeated { times_us.last().copied().unwrap_or_default() } else { 0 };
    let mut request = tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
    push(
        &mut request,
        &[(BYTES, &trace.opportunity_bytes.to_ne_bytes()), (PERIOD, &period_us.to_ne_bytes())],
    );
    batch.add(&request, context);
    for piece in times_us.chunks(PIECE) {
        let bytes: Vec<u8> = piece.iter().flat_map(|time| time.to_ne_bytes()).collect();
        let mut request = tc::Request::new().op_newqdisc_do(&header);
        push(&mut request, &[(TIMES, &bytes)]);
        batch.add(&request, format_args!("{context}: sending {} to the kernel", trace.file.name));
    }
    Ok(PendingTrace { place, header, context: context.to_owned() })
}

impl PendingTrace {
    /// Add the request that starts the trace at `zero_ns` of `CLOCK_MONOTONIC`.
    pub fn start(&self, batch: &mut Batch, zero_ns: i64) {
        let mut request = tc::Request::new().op_newqdisc_do(&self.header);
        push(&mut request, &[(START, &zero_ns.to_ne_bytes())]);
        batch.add(&request, format_args!("{}: starting the trace", self.context));
    }
}

fn push(request: &mut OpNewqdiscDo<'_>, attributes: &[(u16, &[u8])]) {
    let mut message = request.encode().push_kind(c"plait_trace");
    push_nest(message.as_vec_mut(), OPTIONS, |bytes| {
        for (kind, value) in attributes {
            push_attribute(bytes, *kind, value);
        }
    });
}

/// Read the times of the opportunities, in us.
fn read(trace: &PlaitTrace) -> Result<Vec<u32>> {
    let name = &trace.file.name;
    let text =
        std::fs::read_to_string(input_path(&trace.file)?).attempt(|| format!("reading input/{name}"))?;
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let time = line.trim().parse().ok().and_then(|ms: u32| ms.checked_mul(US_PER_MS));
        let wrong = || Error::new(format!("input/{name}:{}: {line:?} is not a time in ms", number + 1));
        times.push(time.ok_or_else(wrong)?);
    }
    Ok(times)
}
