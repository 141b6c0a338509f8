//! The macro that declares the plan's records.

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            // The contract is read whole, also what only other engines use, and its names are its own.
            #[allow(dead_code, clippy::struct_field_names)]
            pub struct $name {
                $($(#[$attr])* pub $field: $kind,)*
            }
        )+

        /// Every record with the names of its fields, for the comparison with the other side of the contract.
        #[cfg(test)]
        pub(in crate::plan) const RECORDS: &[(&str, &[&str])] = &[$((stringify!($name), &[$(stringify!($field),)*]),)+];
    };
}

pub(super) use records;
