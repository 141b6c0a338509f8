//! Sysctls, through /proc/sys.

use std::fs::File;
use std::path::Path;

use crate::error::{Attempt, Error, Result};
use crate::process;

/// The scheduler of new MPTCP sockets. Linux before 6.6 has no such setting, and one scheduler only.
pub const SCHEDULER: &str = "net/mptcp/scheduler";
pub const ONLY_SCHEDULER: &str = "default";

/// Write a sysctl of the calling thread's namespace.
pub fn write_sysctl(path: &str, value: &str) -> Result<()> {
    let file = sysctl_file(path, value)?;
    if (path, value) == (SCHEDULER, ONLY_SCHEDULER) && !Path::new(&file).exists() {
        return Ok(());
    }
    std::fs::write(file, value).attempt(|| describe(path, value))
}

/// Open a sysctl of the calling thread's namespace, to write `value` later. The file keeps
/// referring to that namespace.
pub fn open_sysctl(path: &str, value: &str) -> Result<File> {
    let file = sysctl_file(path, value)?;
    File::options().write(true).open(file).attempt(|| describe(path, value))
}

fn describe(path: &str, value: &str) -> String {
    format!("setting sysctl {path} to {value:?}")
}

fn sysctl_file(path: &str, value: &str) -> Result<String> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(Error::because(describe(path, value), "not a path below /proc/sys"));
    }
    // Only settings below `net` belong to a namespace; any other would change the machine.
    if process::is_ordinary() && !path.starts_with("net/") {
        return Err(Error::because(
            describe(path, value),
            "it is a setting of this machine, not of a namespace",
        ));
    }
    Ok(format!("/proc/sys/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_cannot_leave_its_folder() {
        assert!(write_sysctl("net/../../etc/passwd", "1").is_err());
    }
}
