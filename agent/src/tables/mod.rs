//! The tables of a trial: Arrow IPC streams below /job/data, one file each, flushed as they grow.
//!
//! `schema.rs` lists the columns. `table.rs` converts rows into record batches and writes them.

mod column;
mod rows;
mod schema;
mod table;

pub use schema::{
    Connection, Counter, CounterSeries, Event, Flow, Interface, Link, Message, Probe, Program, ProgramFigure,
    ProgramFlow, Queue, QueueingDelay, Subflow, Trace,
};
pub use table::{Table, TableSet};
