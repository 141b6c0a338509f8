//! The tables that a trial leaves behind: Arrow IPC streams below /job/data, one file each, flushed as they grow.
//!
//! `rows.rs` lists the columns; this file turns rows into record batches and record batches into files.

mod rows;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use rows::{
    Connection, Counter, CounterChange, Event, Flow, Interface, Link, Message, Probe, Program, ProgramFigure,
    ProgramFlow, Queue, Subflow,
};

use crate::error::{Attempt, Error, Result};

/// Text of a cell: mostly names from the plan, which live as long as the agent.
pub type Text = Cow<'static, str>;

/// More rows than this are written without waiting for the end of the interval.
const ROWS_MAX: usize = 16 * 1024;
/// A record batch goes to the host in as few writes as possible.
const BUFFER_BYTES: usize = 256 * 1024;

/// A column under construction.
pub enum Column {
    Integer(Int64Builder),
    Text(StringBuilder),
    Boolean(BooleanBuilder),
}

impl Column {
    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
        }
    }
}

/// A type that can stand in a cell; None is null.
pub trait Cell {
    const TYPE: DataType;
    fn column() -> Column;
    fn append(value: Option<Self>, column: &mut Column)
    where
        Self: Sized;
}

impl Cell for i64 {
    const TYPE: DataType = DataType::Int64;
    fn column() -> Column {
        Column::Integer(Int64Builder::new())
    }
    fn append(value: Option<Self>, column: &mut Column) {
        if let Column::Integer(builder) = column {
            builder.append_option(value);
        }
    }
}

impl Cell for Text {
    const TYPE: DataType = DataType::Utf8;
    fn column() -> Column {
        Column::Text(StringBuilder::new())
    }
    fn append(value: Option<Self>, column: &mut Column) {
        if let Column::Text(builder) = column {
            builder.append_option(value);
        }
    }
}

impl Cell for bool {
    const TYPE: DataType = DataType::Boolean;
    fn column() -> Column {
        Column::Boolean(BooleanBuilder::new())
    }
    fn append(value: Option<Self>, column: &mut Column) {
        if let Column::Boolean(builder) = column {
            builder.append_option(value);
        }
    }
}

/// A row of one table; `rows.rs` implements it for each.
pub trait Row {
    /// The name of the table and of its file.
    const NAME: &'static str;
    /// Name and type of each column, in order.
    fn columns() -> Vec<(&'static str, DataType, Column)>;
    /// Appends the row's cells, in order.
    fn append(self, columns: &mut [Column]);
}

/// One table: rows not yet written, and the file.
pub struct Table<R> {
    columns: Vec<Column>,
    rows: usize,
    schema: SchemaRef,
    writer: StreamWriter<BufWriter<File>>,
    row: std::marker::PhantomData<R>,
}

impl<R: Row> Table<R> {
    /// Creates `folder/NAME.arrow` with the schema and no rows.
    pub fn create(folder: &Path) -> Result<Self> {
        let what = || format!("creating table {}", R::NAME);
        let columns = R::columns();
        let fields: Vec<_> =
            columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(folder.join(format!("{}.arrow", R::NAME))).attempt(what)?;
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
        let writer =
            StreamWriter::try_new(buffered, &schema).map_err(|error| Error::because(what(), error))?;
        let columns = columns.into_iter().map(|(_, _, column)| column).collect();
        Ok(Self { columns, rows: 0, schema, writer, row: std::marker::PhantomData })
    }

    /// Adds a row; it reaches the host with the next flush.
    pub fn push(&mut self, row: R) -> Result<()> {
        row.append(&mut self.columns);
        self.rows += 1;
        if self.rows >= ROWS_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes the rows that wait, if any, as one record batch.
    pub fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let what = || format!("writing table {}", R::NAME);
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)
            .map_err(|error| Error::because(what(), error))?;
        self.writer.write(&batch).map_err(|error| Error::because(what(), error))?;
        self.writer.get_mut().flush().attempt(what)
    }

    /// Writes what waits, and the mark of a complete stream.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        let what = || format!("finishing table {}", R::NAME);
        self.writer.finish().map_err(|error| Error::because(what(), error))?;
        self.writer.get_mut().flush().attempt(what)
    }
}
