//! Files of programs: the inputs that the agent writes before the start, and the outputs that it
//! collects.

use std::fmt::Write as _;
use std::path::Path;

use rustix::mount::mount_bind;

use super::root::{ROOT, mount_covered};
use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::plan::{HostName, Program, ProgramFile};

/// Limit on the size of a collected file.
const MAX_BYTES: u64 = 64 << 20;

/// Create the program's directory and its files.
pub fn write(plan: &Program) -> Result<()> {
    let directory = format!("{ROOT}{}", plan.directory);
    std::fs::create_dir_all(&directory).attempt(|| format!("creating its directory {}", plan.directory))?;
    for ProgramFile { path, text, input } in &plan.files {
        let context = || format!("writing its file {path}");
        let target = format!("{ROOT}{path}");
        if let Some(folder) = Path::new(&target).parent() {
            std::fs::create_dir_all(folder).attempt(context)?;
        }
        match (text, input) {
            (Some(text), None) => std::fs::write(&target, text).attempt(context)?,
            (None, Some(name)) => {
                std::fs::copy(job::path(&format!("input/{name}")), &target).attempt(context)?;
            }
            _ => return Err(Error::because(context(), "the plan must give either a text or an input")),
        }
    }
    Ok(())
}

/// Copy the program's output files to `programs/NAME/` in the trial's folder.
pub fn collect(plan: &Program) -> Result<()> {
    if plan.collect.is_empty() {
        return Ok(());
    }
    let folder = job::path(&format!("programs/{}", plan.name));
    std::fs::create_dir_all(&folder).attempt(|| format!("creating {folder}"))?;
    for path in &plan.collect {
        let context = || format!("collecting {path}");
        let source = format!("{ROOT}{path}");
        let metadata = std::fs::metadata(&source).attempt(context)?;
        if !metadata.is_file() {
            return Err(Error::because(context(), "it is not a file"));
        }
        if metadata.len() > MAX_BYTES {
            let why = format!("it has {} bytes; the limit is {} MiB", metadata.len(), MAX_BYTES >> 20);
            return Err(Error::because(context(), why));
        }
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::copy(&source, format!("{folder}/{name}")).attempt(context)?;
    }
    Ok(())
}

/// Mount the npm packages in the user's cache, if there are any, on /mnt/npm.
pub fn mount_packages() -> Result<()> {
    let Ok(packages) = std::fs::read_link(job::path("npm")) else { return Ok(()) };
    let context = || format!("mounting {} on /mnt/npm", packages.display());
    let target = format!("{ROOT}/mnt/npm");
    std::fs::create_dir(&target).attempt(context)?;
    mount_covered(&packages.to_string_lossy(), &target)
}

/// Write the names of the nodes to /etc/hosts.
pub fn name_hosts(names: &[HostName]) -> Result<()> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for HostName { address, name } in names {
        let _ = writeln!(text, "{address} {name}"); // to a String: cannot fail
    }
    let context = || "naming the nodes in /etc/hosts";
    std::fs::write("/run/hosts", text).attempt(context)?;
    mount_bind("/run/hosts", format!("{ROOT}/etc/hosts")).attempt(context)
}
