//! Packet captures: one ring per interface. The agent empties the rings on its schedule, not per
//! packet: a return to user space costs more wall time than the kernel needs for a thousand
//! packets.

use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::pcapng::Writer;
use crate::apply::{Applied, enter};
use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::plan::Capture;
use crate::sys::PacketRing;

/// Packets per second that a capture keeps up with: more than 6 Gbit/s of full-size frames.
const PACKETS_PER_SECOND: i64 = 520_000;

/// All captures of a trial.
pub struct Captures {
    captures: Vec<Running>,
}

struct Running {
    plan: &'static Capture,
    file: Writer,
    ring: Option<PacketRing>,
}

impl Captures {
    /// Create the files in `folder`.
    pub fn create(folder: &Path, planned: &'static [Capture]) -> Result<Self> {
        if !planned.is_empty() {
            std::fs::create_dir_all(folder).attempt(|| "creating the folder for captures")?;
        }
        let start = |plan: &'static Capture| {
            let path = folder.join(&plan.file);
            Ok(Running {
                plan,
                file: Writer::create(&path, &plan.ifname, plan.packet_bytes.into())?,
                ring: None,
            })
        };
        Ok(Self { captures: planned.iter().map(start).collect::<Result<_>>()? })
    }

    /// Start the captures. The calling thread ends in the namespace in which the agent began.
    pub fn attach(&mut self, network: &Applied) -> Result<()> {
        for running in &mut self.captures {
            let plan = running.plan;
            let context = || format!("capturing {} in {}", plan.ifname, plan.netns);
            let namespace = network.namespace(&plan.netns).attempt(context)?;
            enter(&namespace.fd)?;
            // The socket has no protocol until it is bound, so it takes no packets of other
            // interfaces.
            let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
            let socket = socket.attempt(context)?;
            let ifindex = namespace.ifindex(&plan.ifname)?;
            running.ring =
                Some(PacketRing::new(socket, ifindex, plan.packet_bytes as usize).attempt(context)?);
        }
        enter(&network.home)
    }

    /// Return how often to read: before the smallest ring is full, unless more than that many
    /// packets come per second.
    pub fn interval_us(&self) -> i64 {
        let frames =
            self.captures.iter().filter_map(|running| running.ring.as_ref()).map(PacketRing::frames).min();
        frames.map_or(i64::MAX, |frames| {
            i64::try_from(frames).unwrap_or(i64::MAX) * 1_000_000 / PACKETS_PER_SECOND
        })
    }

    /// Write all pending packets.
    pub fn read(&mut self) -> Result<()> {
        let zero_ns = clock::realtime_zero_ns();
        for running in &mut self.captures {
            let Some(ring) = &mut running.ring else { continue };
            let context = || format!("capturing {} in {}", running.plan.ifname, running.plan.netns);
            let mut written = Ok(());
            ring.take(|packet| {
                let pushed = running.file.push(packet, packet.realtime_ns - zero_ns);
                if written.is_ok() {
                    written = pushed;
                }
            });
            written.attempt(context)?;
        }
        Ok(())
    }

    /// Flush the files to the host. Fail if the kernel dropped packets, because a capture with gaps
    /// misleads.
    pub fn flush(&mut self) -> Result<()> {
        for running in &mut self.captures {
            running.file.flush().attempt(|| format!("writing {}", running.plan.file))?;
            let Some(ring) = &running.ring else { continue };
            let context = || format!("capturing {} in {}", running.plan.ifname, running.plan.netns);
            let lost = ring.lost().attempt(context)?;
            if lost > 0 {
                let remedy = "capture fewer bytes per packet, or fewer interfaces";
                return Err(Error::because(
                    context(),
                    format!("the kernel dropped {lost} packets; {remedy}"),
                ));
            }
        }
        Ok(())
    }

    /// Whether there are captures.
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }
}
