//! The tables that a trial leaves behind: Arrow IPC streams below /job/data, one file each, flushed as they grow.
//!
//! `rows.rs` lists the columns; `table.rs` turns rows into record batches and record batches into files.

mod column;
mod rows;
mod table;

pub use rows::{
    Connection, Counter, CounterChange, Event, Flow, Interface, Link, Message, Probe, Program, ProgramFigure,
    ProgramFlow, Queue, Subflow,
};
pub use table::Table;
