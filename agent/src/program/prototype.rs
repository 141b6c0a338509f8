//! The program of a prototype flow: its code, which is part of the agent, and its settings.

use serde_json::json;

use super::root::ROOT;
use crate::error::{Attempt, Error, Result};
use crate::plan::{Application, Flow, Path, Program};

/// The environment variable with the trial's zero, in ns of `CLOCK_MONOTONIC`.
pub const ZERO: &str = "PLAIT_ZERO_NS";
/// The mark of the line that says what is wrong with a scheduler.
const ERROR: &str = "scheduler error: ";

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        /// The files of `src/plait/prototype`, by their paths there.
        const SOURCES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../src/plait/prototype/", $name))),)*];
    };
}

sources![
    "__init__.py",
    "application.py",
    "choice.py",
    "coupling.py",
    "main.py",
    "packets.py",
    "parity.py",
    "path.py",
    "receiver.py",
    "reports.py",
    "scheduler.py",
    "schedulers.py",
    "segment.py",
    "sender.py",
    "sockets.py",
];

/// Write the code and the settings of a prototype to its program's directory.
pub fn write(program: &Program, flow: &Flow, sample_us: i64) -> Result<()> {
    let Application::Prototype(job) = &flow.application else {
        return Err(Error::new(format!("flow {} is no prototype", flow.id)));
    };
    let path_settings = |path: &Path| {
        json!({
            "name": path.name, "client": path.client_address, "server": path.server_address,
            "backup": path.backup,
        })
    };
    let settings = json!({
        "connection": flow.id, "job": job, "port": flow.server.port, "sample_us": sample_us,
        "paths": flow.paths.iter().map(path_settings).collect::<Vec<_>>(), "server_node": flow.server.netns,
    });
    let directory = format!("{ROOT}{}", program.directory);
    let package = format!("{directory}/plait/prototype");
    let context = || format!("writing its code below {directory}");
    std::fs::create_dir_all(&package).attempt(context)?;
    std::fs::write(format!("{directory}/plait/__init__.py"), "").attempt(context)?;
    for (name, source) in SOURCES {
        std::fs::write(format!("{package}/{name}"), source).attempt(context)?;
    }
    std::fs::write(format!("{directory}/settings.json"), settings.to_string()).attempt(context)
}

/// Return the error of a scheduler in the last lines of the log.
pub fn located_error(printed: &str) -> Option<&str> {
    printed.lines().rev().find_map(|line| line.trim_start().strip_prefix(ERROR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_has_every_file_of_the_prototype() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/plait/prototype");
        let names = |folder: &str, prefix: &str| {
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            let names = entries.map(|entry| entry.file_name().into_string().unwrap());
            names
                .filter(|name| std::path::Path::new(name).extension().is_some_and(|end| end == "py"))
                .map(|name| format!("{prefix}{name}"))
                .collect::<Vec<_>>()
        };
        let mut expected = names(folder, "");
        expected.sort_unstable();
        let mut embedded: Vec<_> = SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, expected);
    }

    #[test]
    fn the_error_of_a_scheduler_is_the_last_marked_line() {
        assert_eq!(
            located_error("  x\n  scheduler error: mine.py:3: it failed"),
            Some("mine.py:3: it failed")
        );
        assert_eq!(located_error("  Traceback"), None);
    }
}
