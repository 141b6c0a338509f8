//! The macro that declares the plan's records.

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            // The agent reads the whole contract, also fields that only other engines use.
            #[allow(dead_code, clippy::struct_field_names)]
            pub struct $name {
                $($(#[$attr])* pub $field: $kind,)*
            }
        )+

        /// The names of all records and of their fields, for the comparison with the Python side.
        #[cfg(test)]
        pub(in crate::plan) const RECORDS: &[(&str, &[&str])] = &[$((stringify!($name), &[$(stringify!($field),)*]),)+];
    };
}

pub(super) use records;
