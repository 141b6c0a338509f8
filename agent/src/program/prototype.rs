//! The program of a prototype flow: its code, which is part of the agent, and its settings.

use serde_json::{Value, json};

use super::root::ROOT;
use crate::error::{Attempt, Error, Result};
use crate::plan::{Application, Flow, Path, Program};

/// The environment variable with the trial's zero, in ns of `CLOCK_MONOTONIC`.
pub const ZERO: &str = "PLAIT_ZERO_NS";
/// The folders of `SOURCES`.
const FOLDERS: [&str; 2] = ["apart", "schedulers"];
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
    "apart/__init__.py",
    "apart/ends.py",
    "apart/farewell.py",
    "apart/lock.py",
    "apart/main.py",
    "apart/relay.py",
    "choice.py",
    "coupling.py",
    "main.py",
    "packets.py",
    "parity.py",
    "path.py",
    "receiver.py",
    "reorder.py",
    "reports.py",
    "scheduler.py",
    "segment.py",
    "sender.py",
    "sockets.py",
    "schedulers/__init__.py",
    "schedulers/balanced.py",
    "schedulers/bandit.py",
    "schedulers/blest.py",
    "schedulers/capped.py",
    "schedulers/ecf.py",
    "schedulers/minrtt.py",
    "schedulers/parity.py",
    "schedulers/redundant.py",
    "schedulers/roundrobin.py",
];

/// Write the code and the settings of a prototype to its program's directory.
pub fn write(program: &Program, flow: &Flow, sample_us: i64) -> Result<()> {
    let Application::Prototype(job) = &flow.application else {
        return Err(Error::new(format!("flow {} is no prototype", flow.id)));
    };
    let settings = json!({
        "connection": flow.id, "job": job, "paths": paths(flow), "port": flow.server.port,
        "sample_us": sample_us, "server_node": flow.server.netns,
    });
    write_files(&format!("{ROOT}{}", program.directory), &settings)
}

/// Return the paths of a flow, for its settings.
pub fn paths(flow: &Flow) -> Vec<Value> {
    let settings = |path: &Path| {
        json!({
            "name": path.name, "client": path.client_address, "server": path.server_address,
            "backup": path.backup,
        })
    };
    flow.paths.iter().map(settings).collect()
}

/// Write the code and the settings to a directory.
pub fn write_files(directory: &str, settings: &Value) -> Result<()> {
    let package = format!("{directory}/plait/prototype");
    let context = || format!("writing its code below {directory}");
    for folder in FOLDERS {
        std::fs::create_dir_all(format!("{package}/{folder}")).attempt(context)?;
    }
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

/// Return the error of a scheduler (`FILE:CLASS`) that ended in a call that did not return: its line in
/// what `faulthandler` printed.
pub fn stuck_error(printed: &str, scheduler: &str) -> Option<String> {
    let (file, class) = scheduler.rsplit_once(':')?;
    let (_, frames) = printed.split_once("Timeout (")?;
    let mark = format!("File \"{file}\", line ");
    let place = frames.lines().find_map(|line| line.trim_start().strip_prefix(&mark))?;
    let (line, function) = place.split_once(" in ")?;
    let short = file.rsplit('/').next()?;
    Some(format!("{short}:{line}: {function}() of {class} did not return"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_has_every_file_of_the_prototype_but_the_network_for_tests() {
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
        for part in FOLDERS {
            expected.extend(names(&format!("{folder}/{part}"), &format!("{part}/")));
        }
        expected.retain(|name| name != "network.py");
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

    #[test]
    fn a_call_that_did_not_return_has_the_innermost_line_of_the_scheduler() {
        let printed = concat!(
            "Timeout (0:00:20)!\nThread 0x00007f (most recent call first):\n",
            "  File \"<string>\", line 9 in inner\n  File \"my/mine.py\", line 6 in pick\n",
            "  File \"my/mine.py\", line 2 in other\n"
        );
        let error = stuck_error(printed, "my/mine.py:Mine");
        assert_eq!(error.as_deref(), Some("mine.py:6: pick() of Mine did not return"));
        assert_eq!(stuck_error("Traceback", "my/mine.py:Mine"), None);
        assert_eq!(stuck_error(printed, "minrtt"), None);
    }
}
