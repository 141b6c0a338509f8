//! Bulk traffic: send as fast as possible for a time, or until all other flows have ended.

use super::Kind;
use crate::plan::Bulk;
use crate::traffic::side::FlowSide;

impl Kind for Bulk {
    fn check(&self, _: &[crate::plan::Flow]) -> Result<(), &'static str> {
        if self.duration_us.is_some_and(|us| us < 1) { Err("its duration is not positive") } else { Ok(()) }
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        side.send(u64::MAX)
    }

    fn lasts_us(&self) -> Option<i64> {
        self.duration_us
    }

    fn is_background(&self) -> bool {
        self.duration_us.is_none()
    }

    fn is_cut_off(&self) -> bool {
        true
    }
}
