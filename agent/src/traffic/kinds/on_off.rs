//! On-off traffic: send and pause alternately, messages at a rate or as fast as possible.

use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::Kind;
use crate::clock;
use crate::error::describe;
use crate::plan::{Flow, OnOff};
use crate::traffic::draw::Draw;
use crate::traffic::side::FlowSide;

impl Kind for OnOff {
    fn check(&self, _: &[Flow]) -> Result<(), &'static str> {
        let is_complete = self.message_bytes.is_some() == self.interval_ns.is_some();
        if is_complete { Ok(()) } else { Err("messages need both a size and an interval") }
    }

    fn has_messages(&self) -> bool {
        self.message_bytes.is_some()
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        let mut draw = Draw::new(self.seed);
        let mut on_ns = clock::trial_ns();
        let end_ns = on_ns + self.duration_us * 1000;
        while on_ns < end_ns {
            let off_ns = (on_ns + draw.ns(&self.on)).min(end_ns);
            match (self.message_bytes, self.interval_ns) {
                (Some(bytes), Some(interval_ns)) => {
                    let mut due_ns = on_ns;
                    while due_ns < off_ns {
                        side.send_when_due(due_ns, bytes)?;
                        due_ns += interval_ns;
                    }
                }
                _ => send_until(side, on_ns, off_ns)?,
            }
            on_ns = off_ns + draw.ns(&self.off);
        }
        clock::sleep_until_ns(end_ns);
        Ok(())
    }

    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        if let Some(bytes) = self.message_bytes {
            return side.receive_messages(bytes);
        }
        // The end of the stream is the last byte: its length is unknown.
        side.receive_anything(None)?;
        Ok(Some(clock::trial_us()))
    }
}

/// Send as fast as possible between two times.
fn send_until(side: &mut FlowSide<'_>, from_ns: i64, to_ns: i64) -> Result<(), String> {
    clock::sleep_until_ns(from_ns);
    loop {
        let left_ns = to_ns - clock::trial_ns();
        // The kernel counts timeouts in ticks.
        let Some(left) = u64::try_from(left_ns).ok().filter(|left| *left > 1_000_000) else { return Ok(()) };
        set_socket_timeout(side.socket, Timeout::Send, Some(Duration::from_nanos(left)))
            .map_err(|errno| format!("setting the send timeout: {}", describe(errno)))?;
        side.send_some(u64::MAX)?;
    }
}
