//! Packet captures: one ring per interface. The agent empties the rings on its schedule, not per
//! packet: a return to user space costs more wall time than the kernel needs for a thousand
//! packets.

use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::pcapng::{Recording, Writer};
use crate::apply::{Applied, enter};
use crate::clock;
use crate::error::{Attempt, Result};
use crate::plan::Capture;
use crate::sys::PacketRing;

/// Packets per second that a capture keeps up with: more than 6 Gbit/s of full-size frames.
const PACKETS_PER_SECOND: i64 = 520_000;

/// All captures of a trial: those that have begun, and the files of the others.
pub struct Captures {
    planned: Vec<(&'static Capture, Writer)>,
    begun: Vec<Recording>,
}

impl Captures {
    /// Create the files in `folder`.
    pub fn create(folder: &Path, planned: &'static [Capture]) -> Result<Self> {
        if !planned.is_empty() {
            std::fs::create_dir_all(folder).attempt(|| "creating the folder for captures")?;
        }
        let start = |plan: &'static Capture| {
            let path = folder.join(&plan.file);
            Ok((plan, Writer::create(&path, &plan.ifname, plan.packet_bytes.into())?))
        };
        Ok(Self { planned: planned.iter().map(start).collect::<Result<_>>()?, begun: Vec::new() })
    }

    /// Start the captures. The calling thread ends in the namespace in which the agent began.
    pub fn attach(&mut self, network: &Applied) -> Result<()> {
        for (plan, file) in self.planned.drain(..) {
            let subject = format!("{} in {}", plan.ifname, plan.netns);
            let context = || format!("capturing {subject}");
            let namespace = network.namespace(&plan.netns).attempt(context)?;
            enter(&namespace.fd)?;
            // The socket has no protocol until it is bound, so it takes no packets of other
            // interfaces.
            let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
            let ifindex = namespace.ifindex(&plan.ifname)?;
            let ring = PacketRing::new(socket.attempt(context)?, ifindex, plan.packet_bytes as usize);
            self.begun.push(Recording::new(file, ring.attempt(context)?, subject));
        }
        enter(&network.home)
    }

    /// Return how often to read: before the smallest ring is full, unless more than that many
    /// packets come per second.
    pub fn interval_us(&self) -> i64 {
        let frames = self.begun.iter().map(Recording::frames).min();
        frames.map_or(i64::MAX, |frames| {
            i64::try_from(frames).unwrap_or(i64::MAX) * 1_000_000 / PACKETS_PER_SECOND
        })
    }

    /// Write all pending packets.
    pub fn read(&mut self) -> Result<()> {
        let zero_ns = clock::realtime_zero_ns();
        self.begun.iter_mut().try_for_each(|recording| recording.read(zero_ns))
    }

    /// Flush the files to the host. Fail if a capture has gaps.
    pub fn flush(&mut self) -> Result<()> {
        self.begun.iter_mut().try_for_each(Recording::flush)
    }

    /// Whether there are captures.
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }
}
