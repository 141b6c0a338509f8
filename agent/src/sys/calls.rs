//! Results of system calls, and socket options as plain data.

use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// Convert a size for the kernel.
#[allow(clippy::cast_possible_truncation)] // the sizes of a few structures
pub const fn size32(bytes: usize) -> u32 {
    bytes as u32
}

pub fn check(result: i32) -> Result<()> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

pub fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Call `getsockopt` for plain data. Return how many bytes of `value` the kernel filled.
pub fn getsockopt(fd: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> Result<usize> {
    let mut length = size32(value.len());
    // SAFETY: the kernel writes at most `length` bytes, the size of `value`; options of plain data hold no pointers.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    })?;
    Ok(length as usize)
}

/// Call `setsockopt` with plain data. The kernel copies what `value` points to, if it has pointers.
pub fn setsockopt<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> Result<()> {
    let bytes = std::ptr::from_ref(value).cast();
    // SAFETY: the kernel reads `value`, whose size it gets.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, bytes, size32(size_of::<T>())) })
}
