//! Devices of an emulated machine that need no driver: two ports, and memory that the emulator fills.

use std::arch::asm;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::io::Result;

use super::calls::check;

/// The size of a page of x86.
pub const PAGE_BYTES: usize = 4096;
/// An entry of `/proc/self/pagemap`: the number of the frame below, and whether there is one.
const ENTRY_BYTES: u64 = 8;
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;
/// `_IO('R', 7)` of `linux/random.h`.
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// A page at a place in the machine's memory that the emulator can be told.
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// Return a page that stays in memory.
    pub fn locked() -> Result<Box<Self>> {
        let page = Box::new(Self([0; PAGE_BYTES]));
        // SAFETY: the call changes no memory, and the page exists.
        check(unsafe { libc::mlock(page.0.as_ptr().cast(), PAGE_BYTES) })?;
        Ok(page)
    }

    /// Return the page's address in the machine's memory. The kernel may move the page.
    pub fn physical(&self) -> std::io::Result<u64> {
        let number = self.0.as_ptr() as u64 / PAGE_BYTES as u64;
        let mut entry = [0; 8];
        File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, number * ENTRY_BYTES)?;
        match u64::from_ne_bytes(entry) {
            entry if entry & PRESENT != 0 && entry & FRAME != 0 => Ok((entry & FRAME) * PAGE_BYTES as u64),
            _ => Err(std::io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// Let this thread use `count` ports from `first` on, or no longer. Programs that it starts may do as it may.
pub fn allow_ports(first: u16, count: u16, allowed: bool) -> Result<()> {
    // SAFETY: the call changes no memory; only the functions below use the ports.
    check(unsafe { libc::ioperm(first.into(), count.into(), allowed.into()) })
}

/// Write `value` to a port that the thread may use, with `mark` in R8 and the time stamp counter, as it was six
/// instructions earlier, in R9. The emulator saves the registers.
pub fn write_port_8_with_time(port: u16, value: u8, mark: u64) {
    // SAFETY: a port of the emulator changes the machine's memory only as its caller has told it.
    unsafe {
        asm!(
            "rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            "mov r9, rax",
            "mov edx, {port:e}",
            "mov eax, {value:e}",
            "out dx, al",
            port = in(reg) u32::from(port),
            value = in(reg) u32::from(value),
            out("rax") _,
            out("rdx") _,
            inlateout("r8") mark => _,
            out("r9") _,
            options(nostack)
        );
    }
}

/// Write four bytes to a port that the thread may use.
pub fn write_port_32(port: u16, value: u32) {
    // SAFETY: as for `write_port_8_with_time`.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)) }
}

/// Let the kernel draw random numbers from what was written to `/dev/urandom`, from now on.
pub fn draw_anew(urandom: &File) -> Result<()> {
    // SAFETY: the request has no argument.
    check(unsafe { libc::ioctl(urandom.as_raw_fd(), RNDRESEEDCRNG) })
}
