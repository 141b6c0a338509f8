//! The trial's folder, which guest and host share.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::plan;

/// The trial's folder on the host, as the guest sees it.
pub const JOB: &str = "/job";

/// Return the path at which the engine has put an input file.
pub fn input_path(file: &plan::File) -> Result<PathBuf> {
    if file.name.is_empty() || file.name.contains('/') || matches!(file.name.as_str(), "." | "..") {
        return Err(Error::new(format!("{:?} is not a valid name of an input file", file.name)));
    }
    Ok(PathBuf::from(JOB).join("input").join(&file.name))
}
