//! Columns under construction, and the types of their cells.

use std::borrow::Cow;

use arrow_array::builder::{ArrayBuilder, BooleanBuilder, Int64Builder, StringBuilder};
use arrow_schema::DataType;

/// A text cell. Most texts are names in the plan, which live as long as the agent.
pub type Text = Cow<'static, str>;

/// A column under construction.
pub type Column = Box<dyn ArrayBuilder>;

/// A type of a cell; None is null.
pub trait Cell: Sized {
    const TYPE: DataType;
    fn column() -> Column;
    fn append(value: Option<Self>, column: &mut Column);
}

macro_rules! cell {
    ($kind:ty, $type:ident, $builder:ty) => {
        impl Cell for $kind {
            const TYPE: DataType = DataType::$type;
            fn column() -> Column {
                Box::new(<$builder>::new())
            }
            fn append(value: Option<Self>, column: &mut Column) {
                if let Some(builder) = column.as_any_mut().downcast_mut::<$builder>() {
                    builder.append_option(value);
                }
            }
        }
    };
}

cell!(i64, Int64, Int64Builder);
cell!(Text, Utf8, StringBuilder);
cell!(bool, Boolean, BooleanBuilder);

/// A row of one table. `schema.rs` implements it for each table.
pub trait Row {
    /// The name of the table and of its file.
    const NAME: &'static str;
    /// Return the name and the type of each column, in order.
    fn columns() -> Vec<(&'static str, DataType, Column)>;
    /// Append the row's cells, in order.
    fn append(self, columns: &mut [Column]);
}
