//! The records themselves, as the build derives them.

include!(concat!(env!("OUT_DIR"), "/plan.rs"));
