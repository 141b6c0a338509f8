//! What a machine gets after its boot: the trial's folder, further modules, and files of programs.
//!
//! plait boots a machine once, keeps its state when it asks for its job, and continues from there for each trial. The
//! emulator (QEMU) has two devices for this that need no driver. A byte at the port of `pvpanic` pauses the machine, at
//! this instruction on each host. `fw_cfg` copies a file of the host into a page of the machine, within the instruction
//! that asks for it (`docs/specs/fw_cfg.rst` and `pvpanic.rst` of QEMU).

use std::fs::{File, OpenOptions};
use std::io::Write;

use super::archive;
use crate::error::{Attempt, Error, Result};
use crate::job;
use crate::sys::{PAGE_BYTES, Page, allow_ports, draw_anew, write_port_8_with_time, write_port_32};

/// The port of `pvpanic`, and the event that pauses the machine.
const PAUSE_PORT: u16 = 0x505;
const PAUSE: u8 = 1;
/// plait finds the registers in the state by this value: the emulator saves them with their highest byte first, and no
/// other part of the state has it in this order (src/plait/engine/machine/boots.py).
const MARK: u64 = u64::from_be_bytes(*b"plait@\x05\x05");
/// The register with the address of a request, both halves big-endian; writing the lower half starts the request.
const REQUEST_PORT: u16 = 0x514;
/// The first of each range of ports, and their number.
const PORTS: [(u16, u16); 2] = [(PAUSE_PORT, 1), (REQUEST_PORT, 8)];
const READ: u32 = 1 << 1;
const SELECT: u32 = 1 << 3;
const REQUEST_BYTES: usize = 16;
/// The list of files: their number, then size, selector, two unused bytes, and name of each.
const FILES: u16 = 0x19;
const FILE_BYTES: usize = 64;
const JOB: &[u8] = b"opt/plait/job";
/// The line of `progress` that says that the machine is ready.
const READY: &[u8] = b"ready\n";
const URANDOM: &str = "/dev/urandom";

/// Announce on the port `progress` that the machine is ready, and wait for the job. The machine stops here once it has
/// booted, and continues with each trial.
pub fn receive(mut progress: File) -> Result<()> {
    let context = || "receiving the trial's folder";
    let mut emulator = Emulator::find()?;
    progress.write_all(READY).attempt(context)?;
    write_port_8_with_time(PAUSE_PORT, PAUSE, MARK);
    let size = emulator.find_job()?;
    archive::unpack(&emulator.read(size)?)?;
    drop(emulator);
    // All machines that continue from one boot have drawn the same random numbers up to here.
    let plan = std::fs::read(job::path("plan.json")).attempt(context)?;
    let mut urandom = OpenOptions::new().write(true).open(URANDOM).attempt(context)?;
    urandom.write_all(&plan).attempt(context)?;
    draw_anew(&urandom).attempt(context)
}

/// The files of the emulator, and the pages through which it gives them.
struct Emulator {
    request: Box<Page>,
    request_at: u64,
    page: Box<Page>,
    page_at: u64,
}

impl Emulator {
    fn find() -> Result<Self> {
        let context = || "finding memory for the trial's folder";
        for (first, count) in PORTS {
            allow_ports(first, count, true).attempt(context)?;
        }
        let (request, page) = (Page::locked().attempt(context)?, Page::locked().attempt(context)?);
        let (request_at, page_at) = (request.physical().attempt(context)?, page.physical().attempt(context)?);
        Ok(Self { request, request_at, page, page_at })
    }

    /// Select the job, and return its size.
    fn find_job(&mut self) -> Result<usize> {
        let count = self.ask(SELECT | u32::from(FILES) << 16, 4).to_vec();
        for _ in 0..number(&count) {
            let file = self.ask(0, FILE_BYTES);
            if file[8..].split(|byte| *byte == 0).next() == Some(JOB) {
                let (size, selector) = (number(&file[..4]), number(&file[4..6]));
                self.ask(SELECT | selector << 16, 0);
                return Ok(size as usize);
            }
        }
        Err(Error::new("the emulator has no file with the trial's folder"))
    }

    /// Return the next `size` bytes of the selected file.
    fn read(&mut self, size: usize) -> Result<Vec<u8>> {
        let mut content = Vec::with_capacity(size);
        while content.len() < size {
            let part = self.ask(0, PAGE_BYTES.min(size - content.len()));
            content.extend_from_slice(part);
        }
        let again = || "looking for the memory of the trial's folder again";
        let places = [self.request.physical().attempt(again)?, self.page.physical().attempt(again)?];
        if places != [self.request_at, self.page_at] {
            return Err(Error::new(
                "the kernel moved the memory while the emulator filled it; run the trial again",
            ));
        }
        Ok(content)
    }

    /// Return what one request reads.
    fn ask(&mut self, control: u32, length: usize) -> &[u8] {
        let length = length.min(PAGE_BYTES);
        let read = if length > 0 { READ } else { 0 };
        let words = [(control | read).to_be_bytes(), u32::try_from(length).unwrap_or_default().to_be_bytes()];
        self.request.0[..8].copy_from_slice(words.as_flattened());
        self.request.0[8..REQUEST_BYTES].copy_from_slice(&self.page_at.to_be_bytes());
        let at = self.request_at.to_be_bytes();
        for (port, half) in [(REQUEST_PORT, &at[..4]), (REQUEST_PORT + 4, &at[4..])] {
            write_port_32(port, u32::from_le_bytes([half[0], half[1], half[2], half[3]]));
        }
        &self.page.0[..length]
    }
}

/// No program of the trial may use the ports: it could overwrite the kernel.
impl Drop for Emulator {
    fn drop(&mut self) {
        for (first, count) in PORTS {
            allow_ports(first, count, false).expect("whoever may use ports may stop using them");
        }
    }
}

/// Return a big-endian number of at most four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
