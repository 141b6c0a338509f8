//! The standard streams of a session's program.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;

use super::orders::{Input, Start};
use super::output::{Kind, Output};
use super::terminal;
use crate::error::{Attempt, Result};
use crate::job;
use crate::program::{self, root::ROOT};

/// A piece of a program's input.
pub enum Piece {
    Bytes(Vec<u8>),
    File(String),
}

/// A stream that a program writes to.
pub struct Source {
    pub fd: OwnedFd,
    pub kind: Kind,
}

/// A command, the streams that it writes to, its terminal, and the descriptor for its input.
pub type Prepared = (Command, Vec<Source>, Option<OwnedFd>, Option<OwnedFd>);

/// Build the command with its standard streams, and return the agent's ends of them.
pub fn prepare(start: &Start) -> Result<Prepared> {
    let context = || format!("starting {}", start.argv.join(" "));
    let mut command = program::command(&start.argv, &start.environment).attempt(context)?;
    if let Some(size) = start.terminal {
        let (person, program) = terminal::open(size)?;
        let again = || program.try_clone().attempt(context);
        command.stdin(again()?).stdout(again()?).stderr(program);
        let source = Source { fd: person.try_clone().attempt(context)?, kind: Kind::Stdout };
        let feeding = Some(person.try_clone().attempt(context)?);
        return Ok((command, vec![source], Some(person), feeding));
    }
    command.process_group(0);
    let (out, to_out) = pipe(context)?;
    let mut sources = vec![Source { fd: out, kind: Kind::Stdout }];
    if start.merged {
        command.stderr(to_out.try_clone().attempt(context)?);
    } else {
        let (err, to_err) = pipe(context)?;
        sources.push(Source { fd: err, kind: Kind::Stderr });
        command.stderr(to_err);
    }
    command.stdout(to_out);
    let mut feeding = None;
    command.stdin(match start.input {
        Input::Nothing => nothing().attempt(context)?,
        Input::File => Stdio::from(File::open(job::path("input/stdin")).attempt(context)?),
        Input::Orders => {
            let (from, to) = pipe(context)?;
            feeding = Some(to);
            Stdio::from(from)
        }
    });
    Ok((command, sources, None, feeding))
}

pub fn nothing() -> std::io::Result<Stdio> {
    File::open(format!("{ROOT}/dev/null")).map(Stdio::from)
}

fn pipe(context: impl FnOnce() -> String) -> Result<(OwnedFd, OwnedFd)> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    rustix::pipe::pipe_with(flags).attempt(context)
}

/// Start a thread that writes the input of a program. A program that does not read blocks only this
/// thread.
pub fn feed(to: OwnedFd, orders: Receiver<Piece>, output: Output, run: u32) -> std::io::Result<()> {
    let write = move || {
        let mut to = File::from(to);
        for piece in orders {
            let bytes = match piece {
                Piece::Bytes(bytes) => Ok(bytes),
                Piece::File(path) => {
                    let bytes = std::fs::read(&path);
                    if let Err(error) = output.frame(run, Kind::InputRead, &[]) {
                        return crate::status::console(&error.to_string());
                    }
                    bytes
                }
            };
            match bytes {
                Ok(bytes) => {
                    if std::io::Write::write_all(&mut to, &bytes).is_err() {
                        return; // it has closed its input
                    }
                }
                Err(error) => {
                    return crate::status::console(&format!("reading input for a program: {error}"));
                }
            }
        }
    };
    thread::Builder::new().spawn(write).map(drop)
}
