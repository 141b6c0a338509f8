//! Streams: messages of one size at a constant rate.

use super::Kind;
use crate::clock;
use crate::plan::Stream;
use crate::traffic::side::FlowSide;

impl Kind for Stream {
    fn has_messages(&self) -> bool {
        true
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        let mut due_ns = clock::trial_ns();
        for _ in 0..self.count {
            side.send_when_due(due_ns, self.message_bytes)?;
            due_ns += self.interval_ns;
        }
        Ok(())
    }

    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        side.receive_messages(self.message_bytes)
    }
}
