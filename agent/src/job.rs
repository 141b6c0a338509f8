//! The trial's folder, which guest and host share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use crate::error::{Attempt, Error, Result};
use crate::plan;

/// The trial's folder on the host, as a guest sees it.
pub const MOUNTED: &str = "/job";

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Use `folder` instead of [`MOUNTED`]. Call this before anything reads or writes the folder.
pub fn use_folder(folder: PathBuf) {
    let _ = FOLDER.set(folder); // only the first call counts
}

/// Return the trial's folder.
pub fn folder() -> &'static Path {
    FOLDER.get().map_or(Path::new(MOUNTED), PathBuf::as_path)
}

/// Return the path of a file in the trial's folder.
pub fn path(name: &str) -> String {
    folder().join(name).to_string_lossy().into_owned()
}

/// Read a JSON file in the trial's folder.
pub fn read<T: DeserializeOwned>(name: &str) -> Result<T> {
    let context = || format!("reading {name}");
    serde_json::from_slice(&std::fs::read(path(name)).attempt(context)?).attempt(context)
}

/// Return the path at which the engine has put an input file.
pub fn input_path(file: &plan::File) -> Result<PathBuf> {
    if file.name.is_empty() || file.name.contains('/') || matches!(file.name.as_str(), "." | "..") {
        return Err(Error::new(format!("{:?} is not a valid name of an input file", file.name)));
    }
    Ok(folder().join("input").join(&file.name))
}
