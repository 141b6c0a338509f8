//! The command of a program, for trials and for sessions.

use std::process::Command;

use crate::error::{Error, Result};
use crate::process::require_guest;

/// Return the command with these words, and with this environment alone.
pub fn command(argv: &[String], environment: &[(String, String)]) -> Result<Command> {
    require_guest("a program")?;
    let (program, arguments) = argv.split_first().ok_or_else(|| Error::new("the command is empty"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    Ok(command)
}
