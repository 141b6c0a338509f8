//! Connections of programs, which the tables name as a kind of traffic.

use super::Kind;
use crate::plan::{Connection, Flow};

impl Kind for Connection {
    fn check(&self, _: &[Flow]) -> Result<(), &'static str> {
        Err("a plan cannot contain connections of programs")
    }
}
