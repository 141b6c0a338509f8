//! Columns under construction, and the types of their cells.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_schema::DataType;

/// A text cell. Most texts are names in the plan, which live as long as the agent.
pub type Text = Cow<'static, str>;

/// A column under construction.
pub enum Column {
    Integer(Int64Builder),
    Text(StringBuilder),
    Boolean(BooleanBuilder),
}

impl Column {
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
        }
    }
}

/// A type of a cell; None is null.
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

/// A row of one table. `schema.rs` implements it for each table.
pub trait Row {
    /// The name of the table and of its file.
    const NAME: &'static str;
    /// Return the name and the type of each column, in order.
    fn columns() -> Vec<(&'static str, DataType, Column)>;
    /// Append the row's cells, in order.
    fn append(self, columns: &mut [Column]);
}
