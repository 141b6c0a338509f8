//! Prototypes: a program opens their sockets, and reports what they do (`program/reports.rs`).

use super::Kind;
use crate::plan::{Coupling, Prototype, Transport};

impl Kind for Prototype {
    fn suits(&self, transport: Transport) -> bool {
        transport == Transport::Prototype
    }

    fn has_messages(&self) -> bool {
        self.message_bytes.is_some()
    }

    fn congestion_control(&self) -> Option<&'static str> {
        Some(if self.coupling == Coupling::None { "reno" } else { self.coupling.name() })
    }
}
