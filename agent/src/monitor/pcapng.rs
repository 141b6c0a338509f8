//! A pcapng file of one interface (draft-ietf-opsawg-pcapng): section header, interface
//! description, packets.
//!
//! Times count from the trial's zero, as in the tables.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Attempt, Error, Result};
use crate::sys::{Packet, PacketRing};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LENGTH_UNKNOWN: u64 = u64::MAX;
const LINKTYPE_ETHERNET: u16 = 1;
/// Options: the end of options, the name of an interface, the resolution of times, the flags of a
/// packet.
const OPT_END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// The unit of times is 10^-9 s.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
const BUFFER_BYTES: usize = 256 * 1024;

/// The ring of one interface or namespace, and the file that gets its packets.
pub struct Recording {
    file: Writer,
    ring: PacketRing,
    subject: String,
}

impl Recording {
    /// Begin a recording of `subject`, which error messages name.
    pub fn new(file: Writer, ring: PacketRing, subject: String) -> Self {
        Self { file, ring, subject }
    }

    /// Return how many packets fit into the ring.
    pub fn frames(&self) -> usize {
        self.ring.frames()
    }

    /// Write all pending packets. Their times count from `zero_ns` of `CLOCK_REALTIME`.
    pub fn read(&mut self, zero_ns: i64) -> Result<()> {
        let mut written = Ok(());
        self.ring.take(|packet| {
            let pushed = self.file.push(packet, packet.realtime_ns - zero_ns);
            if written.is_ok() {
                written = pushed;
            }
        });
        written.attempt(|| format!("capturing {}", self.subject))
    }

    /// Flush the file to the host. Fail if the kernel dropped packets, because a capture with gaps
    /// misleads.
    pub fn flush(&mut self) -> Result<()> {
        let context = || format!("capturing {}", self.subject);
        self.file.flush().attempt(context)?;
        match self.ring.lost().attempt(context)? {
            0 => Ok(()),
            lost => Err(Error::because(
                context(),
                format!(
                    "the kernel dropped {lost} packets; capture fewer bytes per packet, or fewer interfaces"
                ),
            )),
        }
    }
}

/// A file under construction.
pub struct Writer {
    file: BufWriter<File>,
    block: Vec<u8>,
}

impl Writer {
    /// Create the file for `interface`, with `packet_bytes` bytes of each packet.
    pub fn create(path: &Path, interface: &str, packet_bytes: u32) -> Result<Self> {
        let context = || format!("creating {}", path.display());
        let file = File::create(path).attempt(context)?;
        Self::begin(file, interface, packet_bytes).attempt(context)
    }

    /// Begin an empty file.
    pub fn begin(file: File, interface: &str, packet_bytes: u32) -> std::io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut writer = Self { file, block: Vec::new() };
        writer.block.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend([1, 0, 0, 0]); // version 1.0
        writer.block.extend(LENGTH_UNKNOWN.to_le_bytes());
        writer.end_block(SECTION_HEADER)?;
        writer.block.extend(LINKTYPE_ETHERNET.to_le_bytes());
        writer.block.extend([0, 0]);
        writer.block.extend(packet_bytes.to_le_bytes());
        writer.option(IF_NAME, interface.as_bytes());
        writer.option(IF_TSRESOL, &[NANOSECONDS]);
        writer.option(OPT_END, &[]);
        writer.end_block(INTERFACE_DESCRIPTION)?;
        Ok(writer)
    }

    /// Add a packet with its time, `t_ns` after the trial's zero. Earlier times become zero.
    fn push(&mut self, packet: &Packet<'_>, t_ns: i64) -> std::io::Result<()> {
        let t_ns = u64::try_from(t_ns).unwrap_or_default();
        self.block.extend([0; 4]); // of the first and only interface
        let t_ns = t_ns.to_le_bytes();
        let (lower, upper) = t_ns.split_at(4);
        self.block.extend(upper);
        self.block.extend(lower);
        for length in [packet.bytes.len(), packet.length] {
            self.block.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        }
        self.block.extend(packet.bytes);
        self.pad();
        let flags = if packet.outgoing { OUTBOUND } else { INBOUND };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.option(OPT_END, &[]);
        self.end_block(ENHANCED_PACKET)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Write the current block between its type and its length, which comes at both ends.
    fn end_block(&mut self, kind: u32) -> std::io::Result<()> {
        let length = u32::try_from(self.block.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
        self.file.write_all(&kind.to_le_bytes())?;
        self.file.write_all(&length)?;
        self.file.write_all(&self.block)?;
        self.file.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}
