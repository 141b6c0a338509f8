//! Pseudo-terminals of the guest, for interactive programs.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::{ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};

use super::orders::Size;
use crate::error::{Attempt, Result};
use crate::program::root::ROOT;

/// Open a pseudo-terminal: the master and the slave.
pub fn open(size: Size) -> Result<(OwnedFd, OwnedFd)> {
    let context = || "opening a pseudo-terminal";
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let person = rustix::fs::open(format!("{ROOT}/dev/pts/ptmx"), flags, Mode::empty()).attempt(context)?;
    unlockpt(&person).attempt(context)?;
    let name = ptsname(&person, Vec::new()).attempt(context)?;
    let path = format!("{ROOT}{}", name.to_string_lossy());
    let program = rustix::fs::open(path, flags, Mode::empty()).attempt(context)?;
    resize(&person, size);
    Ok((person, program))
}

/// Set the window size; the kernel notifies the program.
pub fn resize(person: impl AsFd, size: Size) {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    let _ = tcsetwinsize(person, size); // the program may have ended
}

/// Return the process group in the foreground.
pub fn foreground(person: impl AsFd) -> Option<Pid> {
    tcgetpgrp(person).ok()
}
