//! Signals as a descriptor.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Result;

use super::calls::check;

/// Block `signals` in this thread and in all threads and processes that it starts later. Return a
/// descriptor from which [`read_signal`] reads them.
pub fn block_signals(signals: &[i32]) -> Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, and the other calls only read or change it.
    unsafe {
        check(libc::sigemptyset(set.as_mut_ptr()))?;
        for signal in signals {
            check(libc::sigaddset(set.as_mut_ptr(), *signal))?;
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()))?;
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Return the number of the next pending signal of a descriptor of [`block_signals`]; None: there
/// is none.
pub fn read_signal(fd: &OwnedFd) -> Option<i32> {
    let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
    let length = rustix::io::read(fd, &mut bytes).ok()?;
    let number = bytes.get(..length)?.first_chunk()?; // ssi_signo comes first
    i32::try_from(u32::from_ne_bytes(*number)).ok()
}
