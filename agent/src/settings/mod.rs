//! The settings of a real host that a study may change: MPTCP endpoints and limits, and sysctls.
//!
//! ```text
//! plait-agent --settings configure FOLDER   make the settings of FOLDER/wanted.json
//! plait-agent --settings restore FOLDER     make them equal to those before `configure`
//! plait-agent --settings watch FOLDER       the same once standard input ends
//! plait-agent --settings show               print them
//! plait-agent --settings apply FOLDER       make those of FOLDER/wanted.json until `undo` or a reboot
//! plait-agent --settings undo FOLDER        make what `apply` changed as it was found
//! plait-agent --settings preview FOLDER     print what `undo` would do
//! ```
//!
//! `configure` computes every step first. It writes a journal with the state before and these steps,
//! and only then changes anything. `restore` compares the present state with the journal and makes
//! the difference go away, so it may run at any time, again, and after any process was killed.
//!
//! The journal lies in `/run`, which a reboot empties as it empties the kernel's settings, and has
//! the numbers of the network namespace and of the boot in its name. If a whole session was killed with everything
//! that watched over it, the next `configure` on the host finds its journal and restores first.

mod connections;
mod ingress;
mod journal;
mod lasting;
mod qdiscs;
mod record;
mod state;
mod steps;

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

use crate::error::{Attempt, Error, Result};
use crate::process;
use crate::status::console;
use crate::sys;

use journal::{Journal, Pipe, SESSION, read_wanted};
use state::Host;
use steps::{Wanted, changes, reversal};

/// How often `restore` compares and changes, before it reports what differs.
const ROUNDS: usize = 3;

/// Obey the command line, and return the exit code; None: it does not ask for settings.
pub fn requested(line: impl IntoIterator<Item = String>) -> Option<i32> {
    let words: Vec<String> = line.into_iter().skip(1).collect();
    if words.first().is_none_or(|first| first != "--settings") {
        return None;
    }
    process::share_namespace();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let done = match words.as_slice() {
        ["configure", folder] => configure(Path::new(folder)),
        ["restore", folder] => restore(Path::new(folder)),
        ["watch", folder] => watch(Path::new(folder)),
        ["show"] => show(),
        ["apply", folder] => lasting(|host| lasting::apply(host, Path::new(folder))),
        ["undo", _] => lasting(lasting::undo),
        ["preview", _] => preview(),
        _ => Err(Error::new(
            "--settings needs configure, restore, watch, apply, undo or preview with a folder, or show",
        )),
    };
    match done {
        Ok(()) => Some(0),
        Err(error) => {
            console(&error.to_string());
            Some(1)
        }
    }
}

fn configure(folder: &Path) -> Result<()> {
    let _lock = journal::lock()?;
    let Some(pipe) = living_pipe(folder) else {
        return Err(Error::new("the session has ended"));
    };
    let mut host = Host::open()?;
    settle(&mut host, Some(folder))?;
    let wanted = Wanted { folder: folder.to_owned(), ..read_wanted(folder)? };
    let before = host.state(&wanted.sysctls_touched())?;
    let steps = changes(&before, &wanted, &Host::addresses_in_use()?)?;
    let journal = Journal { folder: PathBuf::from(folder), pipe: Some(pipe), before, steps };
    journal::write(SESSION, &journal)?;
    host.carry_out(&journal.steps)
}

/// Restore what an earlier session left, if all of its processes were killed (error: one of another session lives).
fn settle(host: &mut Host, folder: Option<&Path>) -> Result<()> {
    let Some(earlier) = journal::read::<Journal>(SESSION)? else { return Ok(()) };
    if folder != Some(&earlier.folder) && is_alive(&earlier) {
        return Err(Error::new(format!(
            "another session of plait ({}) has changed the settings of this host and still runs; wait for its end",
            earlier.folder.display()
        )));
    }
    undo(host, &earlier)
}

/// Let `act` work on changes that stay, while no session of plait changes any.
fn lasting(act: impl FnOnce(&mut Host) -> Result<()>) -> Result<()> {
    let _lock = journal::lock()?;
    let mut host = Host::open()?;
    settle(&mut host, None)?;
    act(&mut host)
}

/// Print what `undo` would do, and change nothing.
fn preview() -> Result<()> {
    let _lock = journal::lock()?;
    if let Some(earlier) = journal::read::<Journal>(SESSION)? {
        let folder = earlier.folder.display();
        println!(
            "left a session of plait changed settings ({folder}); if it has ended, undo restores these first"
        );
    }
    lasting::preview(&mut Host::open()?)
}

fn restore(folder: &Path) -> Result<()> {
    let _lock = journal::lock()?;
    let journal: Option<Journal> = journal::read(SESSION)?;
    journal
        .filter(|journal| journal.folder == folder)
        .map_or(Ok(()), |journal| undo(&mut Host::open()?, &journal))
}

/// Make the settings equal to those before the steps of `journal`, and remove it.
fn undo(host: &mut Host, journal: &Journal) -> Result<()> {
    let names: Vec<String> = journal.before.sysctls.keys().cloned().collect();
    let mut failed = None;
    for _ in 0..=ROUNDS {
        connections::await_joins()?;
        let steps =
            reversal(&journal.before, &journal.steps, &host.state(&names)?, &Host::addresses_in_use()?);
        if steps.is_empty() {
            return journal::remove(SESSION);
        }
        failed = host.carry_out(&steps).err().or(failed);
    }
    Err(failed.unwrap_or_else(|| Error::new("the settings of this host change while plait restores them")))
}

/// Wait until no process of the session holds standard input, and restore.
fn watch(folder: &Path) -> Result<()> {
    let signals = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
    let _blocked = sys::block_signals(&signals).attempt(|| "blocking signals")?;
    let mut bytes = [0; 64];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Ok(0) => {
                // Without a reader the pipe shows that the session has ended.
                let nothing = std::fs::File::open("/dev/null").attempt(|| "opening /dev/null")?;
                rustix::stdio::dup2_stdin(nothing).attempt(|| "closing the session's pipe")?;
                return restore(folder);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).attempt(|| "waiting for the end of the session"),
        }
    }
}

/// Whether a process of the session of `journal` exists. Another user who makes its folder again, to delay `undo`, has
/// another pipe there.
fn is_alive(journal: &Journal) -> bool {
    let pipe = living_pipe(&journal.folder);
    pipe.is_some_and(|pipe| journal.pipe.as_ref().is_none_or(|noted| *noted == pipe))
}

/// Return the pipe `alive` of `folder`; None: no process reads it, so that its session has ended.
fn living_pipe(folder: &Path) -> Option<Pipe> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let pipe = open(folder.join("alive"), flags, Mode::empty()).ok()?;
    let seen = fstat(&pipe).ok()?;
    let is_pipe = FileType::from_raw_mode(seen.st_mode) == FileType::Fifo;
    is_pipe.then_some(Pipe { device: seen.st_dev, inode: seen.st_ino, owner: seen.st_uid })
}

fn show() -> Result<()> {
    let state = Host::open()?.state(&[])?;
    println!("{}", serde_json::to_string(&state).attempt(|| "writing the settings")?);
    Ok(())
}
