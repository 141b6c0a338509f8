//! The columns of every table, which `tools/contract.py` derives from `src/plait/dataset/model.py` when the agent is
//! built. A field of None becomes null: a missing measurement is never zero.

use arrow_schema::DataType;

use super::column::{Cell, Column, Row, Text};

macro_rules! row {
    ($(#[$doc:meta])* $name:ident = $table:literal { $($field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[allow(missing_docs, clippy::struct_field_names)] // the columns are named in the contract
        pub struct $name {
            $(pub $field: Option<$kind>,)*
        }

        impl Row for $name {
            const NAME: &'static str = $table;

            fn columns() -> Vec<(&'static str, DataType, Column)> {
                vec![$((stringify!($field), <$kind as Cell>::TYPE, <$kind as Cell>::column()),)*]
            }

            fn append(self, columns: &mut [Column]) {
                let mut columns = columns.iter_mut();
                $(
                    if let Some(column) = columns.next() {
                        <$kind as Cell>::append(self.$field, column);
                    }
                )*
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
