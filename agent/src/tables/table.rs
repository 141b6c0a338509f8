//! Tables and their files.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::ArrayBuilder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::column::{Column, Row};
use crate::error::{Attempt, Result};

/// The number of pending rows after which the table writes them before the next flush.
const ROWS_MAX: usize = 16 * 1024;
/// The size of the write buffer: a record batch should reach the host in few writes.
const BUFFER_BYTES: usize = 256 * 1024;

/// All tables of a trial, which it writes together.
pub struct TableSet {
    folder: PathBuf,
    streams: RefCell<Vec<Rc<RefCell<Stream>>>>,
}

impl TableSet {
    /// Create an empty set, whose tables have their files in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, streams: RefCell::default() }
    }

    /// Write the pending rows of all tables.
    pub fn flush(&self) -> Result<()> {
        self.streams.borrow().iter().try_for_each(|stream| stream.borrow_mut().flush())
    }

    /// Write the pending rows of all tables and the ends of the files. Return the first failure.
    pub fn finish(self) -> Result<()> {
        let done: Vec<_> = self.streams.take().iter().map(|stream| stream.borrow_mut().finish()).collect();
        done.into_iter().collect()
    }
}

/// A table of a set.
pub struct Table<R> {
    stream: Rc<RefCell<Stream>>,
    row: PhantomData<R>,
}

impl<R: Row> Table<R> {
    /// Create `NAME.arrow` with the schema and no rows, as a part of `set`.
    pub fn create(set: &TableSet) -> Result<Self> {
        let stream = Rc::new(RefCell::new(Stream::create(&set.folder, R::NAME, R::columns())?));
        set.streams.borrow_mut().push(Rc::clone(&stream));
        Ok(Self { stream, row: PhantomData })
    }

    /// Add a row. The next flush writes it to the host.
    pub fn push(&mut self, row: R) -> Result<()> {
        let mut stream = self.stream.borrow_mut();
        row.append(&mut stream.columns);
        stream.rows += 1;
        if stream.rows >= ROWS_MAX { stream.flush() } else { Ok(()) }
    }
}

/// The pending rows of a table, and its file.
struct Stream {
    name: &'static str,
    columns: Vec<Column>,
    rows: usize,
    schema: SchemaRef,
    writer: StreamWriter<BufWriter<File>>,
}

impl Stream {
    fn create(
        folder: &Path,
        name: &'static str,
        columns: Vec<(&'static str, DataType, Column)>,
    ) -> Result<Self> {
        let context = || format!("creating table {name}");
        let fields: Vec<_> =
            columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(folder.join(format!("{name}.arrow"))).attempt(context)?;
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
        let writer = StreamWriter::try_new(buffered, &schema).attempt(context)?;
        let columns = columns.into_iter().map(|(_, _, column)| column).collect();
        Ok(Self { name, columns, rows: 0, schema, writer })
    }

    /// Write the pending rows, if any, as one record batch.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let context = || format!("writing table {}", self.name);
        let arrays = self.columns.iter_mut().map(ArrayBuilder::finish).collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).attempt(context)?;
        self.writer.write(&batch).attempt(context)?;
        self.writer.get_mut().flush().attempt(context)
    }

    /// Write the pending rows and the end of the stream.
    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        let context = || format!("finishing table {}", self.name);
        self.writer.finish().attempt(context)?;
        self.writer.get_mut().flush().attempt(context)
    }
}
