//! A table and its file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema, SchemaRef};

use super::column::{Column, Row};
use crate::error::{Attempt, Error, Result};

/// The number of pending rows after which the table writes them before the next flush.
const ROWS_MAX: usize = 16 * 1024;
/// The size of the write buffer: a record batch should reach the host in few writes.
const BUFFER_BYTES: usize = 256 * 1024;

/// One table: its pending rows and its file.
pub struct Table<R> {
    columns: Vec<Column>,
    rows: usize,
    schema: SchemaRef,
    writer: StreamWriter<BufWriter<File>>,
    row: std::marker::PhantomData<R>,
}

impl<R: Row> Table<R> {
    /// Create `folder/NAME.arrow` with the schema and no rows.
    pub fn create(folder: &Path) -> Result<Self> {
        let context = || format!("creating table {}", R::NAME);
        let columns = R::columns();
        let fields: Vec<_> =
            columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(folder.join(format!("{}.arrow", R::NAME))).attempt(context)?;
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
        let writer =
            StreamWriter::try_new(buffered, &schema).map_err(|error| Error::because(context(), error))?;
        let columns = columns.into_iter().map(|(_, _, column)| column).collect();
        Ok(Self { columns, rows: 0, schema, writer, row: std::marker::PhantomData })
    }

    /// Add a row. The next flush writes it to the host.
    pub fn push(&mut self, row: R) -> Result<()> {
        row.append(&mut self.columns);
        self.rows += 1;
        if self.rows >= ROWS_MAX { self.flush() } else { Ok(()) }
    }

    /// Write the pending rows, if any, as one record batch.
    pub fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let context = || format!("writing table {}", R::NAME);
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)
            .map_err(|error| Error::because(context(), error))?;
        self.writer.write(&batch).map_err(|error| Error::because(context(), error))?;
        self.writer.get_mut().flush().attempt(context)
    }

    /// Write the pending rows and the end of the stream.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        let context = || format!("finishing table {}", R::NAME);
        self.writer.finish().map_err(|error| Error::because(context(), error))?;
        self.writer.get_mut().flush().attempt(context)
    }
}
