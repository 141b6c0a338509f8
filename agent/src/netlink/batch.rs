//! Many requests in few system calls: the agent sends all messages of a batch together, and the
//! kernel reports only failures.

use std::fmt;

use netlink_bindings::traits::{LookupFn, NetlinkRequest};
use rustix::net::{RecvFlags, SendFlags, send};

use super::message::{Answer, NLM_F_ACK, answers, kernel_type, push_message};
use super::socket::Socket;
use crate::error::{Attempt, Error, Result};

/// Bytes of messages per system call; well below the kernel's limit for one datagram (212 992).
const CHUNK_BYTES: usize = 32 * 1024;

/// Requests to send together, each with a description for errors.
#[derive(Default)]
pub struct Batch {
    chunks: Vec<Chunk>,
}

/// The messages of one system call.
struct Chunk {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    context: String,
    lookup: LookupFn,
    /// The offset of the message in its chunk.
    offset: usize,
}

impl Batch {
    /// Whether the batch has no requests.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Add a request of a family with fixed message types.
    pub fn add<R: NetlinkRequest>(&mut self, request: &R, context: impl fmt::Display) {
        self.add_as(request, kernel_type(request), context);
    }

    /// Add a request with the message type `kernel_type`, the id of a generic family.
    pub fn add_as<R: NetlinkRequest>(&mut self, request: &R, kernel_type: u16, context: impl fmt::Display) {
        if self.chunks.last().is_none_or(|chunk| chunk.bytes.len() > CHUNK_BYTES) {
            self.chunks.push(Chunk { bytes: Vec::with_capacity(CHUNK_BYTES + 1024), entries: Vec::new() });
        }
        let Chunk { bytes, entries } =
            self.chunks.last_mut().expect("a chunk was pushed when there was none");
        entries.push(Entry { context: context.to_string(), lookup: R::lookup, offset: bytes.len() });
        push_message(bytes, request, kernel_type, false, 0);
    }
}

impl Socket {
    /// Send all of `batch`. Fail with the first request that the kernel refused, and the kernel's
    /// reason.
    ///
    /// Each chunk takes two system calls. Only its last message requests an acknowledgement, so the
    /// kernel reports failures, in order, and then that acknowledgement.
    pub fn apply(&mut self, batch: Batch) -> Result<()> {
        for Chunk { mut bytes, entries } in batch.chunks {
            let first = self.seq + 1;
            self.seq += u32::try_from(entries.len()).unwrap_or(u32::MAX);
            for (entry, seq) in entries.iter().zip(first..) {
                bytes[entry.offset + 8..entry.offset + 12].copy_from_slice(&seq.to_ne_bytes());
            }
            if let Some(last) = entries.last() {
                let flags = last.offset + 6;
                let with_ack = u16::from_ne_bytes([bytes[flags], bytes[flags + 1]]) | NLM_F_ACK;
                bytes[flags..flags + 2].copy_from_slice(&with_ack.to_ne_bytes());
            }
            send(&self.fd, &bytes, SendFlags::empty())
                .attempt(|| format!("sending {} netlink requests", entries.len()))?;
            self.await_acks(&entries, first)?;
        }
        Ok(())
    }

    fn await_acks(&mut self, entries: &[Entry], first: u32) -> Result<()> {
        loop {
            self.receive(RecvFlags::empty()).attempt(|| "reading netlink acknowledgements")?;
            // The failed request decides which attribute names apply, so read the sequence number
            // first.
            let seq =
                self.buffer.get(8..12).and_then(|seq| seq.try_into().ok()).map_or(0, u32::from_ne_bytes);
            let Some(entry) = seq.checked_sub(first).and_then(|index| entries.get(index as usize)) else {
                continue;
            };
            for (_, answer) in answers(&self.buffer, entry.lookup) {
                match answer {
                    Answer::Failed(why) => return Err(Error::because(&entry.context, why)),
                    Answer::Done => return Ok(()),
                    Answer::Data(..) => {}
                }
            }
        }
    }
}
