//! The command line of the agent as an ordinary process.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Attempt, Error, Result};

/// What the command line asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The trial's folder.
    pub job: PathBuf,
    /// The longest time between two heartbeats; None: the agent expects none.
    pub heartbeat: Option<Duration>,
    /// Wait for the order to start.
    pub on_order: bool,
    pub node: Option<String>,
    /// The file of the network namespace that is this node; None: the present one.
    pub netns: Option<PathBuf>,
    /// How many bytes the connections of this machine may send; None: any number.
    pub most_bytes: Option<u64>,
    /// The rate in bit/s at which they may send, as a mean over a second; None: any rate.
    pub most_rate: Option<u64>,
    /// The PID of the process that started this one in its namespaces.
    pub parent: Option<i32>,
}

/// Parse the command line; None: it does not begin with `--job`, so this is PID 1 of a guest.
pub fn arguments(line: impl IntoIterator<Item = String>) -> Result<Option<Arguments>> {
    let mut line = line.into_iter().skip(1).peekable();
    if line.peek().is_none_or(|first| first != "--job") {
        return Ok(None); // a kernel passes words of its command line to PID 1
    }
    let mut arguments = Arguments::default();
    while let Some(option) = line.next() {
        let mut value = || line.next().ok_or_else(|| Error::new(format!("{option} needs a value")));
        match option.as_str() {
            "--job" => arguments.job = value()?.into(),
            "--heartbeat" => arguments.heartbeat = Some(seconds(&value()?)?),
            "--node" => arguments.node = Some(value()?),
            "--netns" => arguments.netns = Some(value()?.into()),
            "--parent" => arguments.parent = Some(number(&option, &value()?)?),
            "--most-bytes" => arguments.most_bytes = Some(number(&option, &value()?)?),
            "--most-rate" => arguments.most_rate = Some(number(&option, &value()?)?),
            "--on-order" => arguments.on_order = true,
            _ => return Err(Error::new(format!("{option}: unknown option"))),
        }
    }
    if !arguments.job.is_absolute() {
        return Err(Error::new("--job needs an absolute path"));
    }
    Ok(Some(arguments))
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds: u64 =
        text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds)).ok_or_else(|| {
            Error::new(format!("--heartbeat {text}: not a number of seconds from 1 to 86400"))
        })?;
    Ok(Duration::from_secs(seconds))
}

fn number<T: FromStr<Err = ParseIntError>>(option: &str, text: &str) -> Result<T> {
    text.parse().attempt(|| format!("{option} {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Arguments>> {
        arguments(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_of_a_kernels_command_line_are_no_arguments() {
        assert_eq!(parse("/init"), Ok(None));
        assert_eq!(parse("/init single --job /tmp"), Ok(None));
    }

    #[test]
    fn options_are_read_in_any_order() {
        let expected = Arguments {
            job: "/tmp/job".into(),
            heartbeat: Some(Duration::from_secs(3)),
            on_order: true,
            node: Some("h1".to_owned()),
            ..Default::default()
        };
        assert_eq!(
            parse("plait-agent --job /tmp/job --on-order --node h1 --heartbeat 3"),
            Ok(Some(expected))
        );
    }

    #[test]
    fn mistakes_are_refused() {
        for line in [
            "--job",
            "--job here",
            "--job /x --heartbeat 0",
            "--job /x --heartbeat 1s",
            "--job /x --y",
            "--job /x --most-bytes -1",
        ] {
            assert!(parse(&format!("plait-agent {line}")).is_err(), "{line}");
        }
    }
}
