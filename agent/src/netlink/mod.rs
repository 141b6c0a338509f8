//! Netlink sockets of the agent's own, around messages that `netlink-bindings` encodes and decodes.
//!
//! `netlink-socket2`, the bindings' companion, would do for a tool; here it costs too much or hides too much:
//! it sends one message for each system call and waits for each answer (in the guest a system call costs some
//! 50 us of wall time, and a network is hundreds of messages), it reads dumps in pieces of 8 KiB, and it does not
//! show its descriptor, so that each multicast socket would need a thread of its own.

mod batch;
mod explain;
pub mod sockets;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use netlink_bindings::builtin::Nlmsghdr;
use netlink_bindings::nlctrl;
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

pub use batch::Batch;

use crate::error::{Attempt, Error, Result};
use crate::sys;

const HEADER_BYTES: usize = 16;
/// Flags of a message (`linux/netlink.h`).
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// The largest piece in which the kernel hands out a dump.
const RECEIVE_BYTES: usize = 32 * 1024;

/// The number (`nl_pid`) of the next socket. Low numbers are those of processes.
static NUMBER: AtomicU32 = AtomicU32::new(1 << 30);

/// The families that the agent talks to.
#[derive(Debug, Clone, Copy)]
pub enum Family {
    /// Links, addresses, routes, rules, traffic control.
    Route,
    /// Generic netlink: the MPTCP path manager.
    Generic,
    /// What becomes of sockets.
    Sockets,
    /// Packet filters and address translation.
    Netfilter,
}

/// A netlink socket, bound to the network namespace in which it was opened.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    number: u32,
    seq: u32,
    /// Never filled in advance: most of its pages are never touched, and a page costs two changes of context.
    buffer: Vec<u8>,
}

/// What an answer of the kernel holds.
enum Answer<'a> {
    Data(u16, &'a [u8]),
    Done,
    Failed(String),
}

impl Socket {
    /// Opens a socket in the namespace of the calling thread.
    pub fn open(family: Family) -> Result<Self> {
        let protocol = match family {
            Family::Route => None,
            Family::Generic => Some(rustix::net::netlink::GENERIC),
            Family::Sockets => Some(rustix::net::netlink::SOCK_DIAG),
            Family::Netfilter => Some(rustix::net::netlink::NETFILTER),
        };
        let what = || format!("opening a netlink socket ({family:?})");
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .attempt(what)?;
        sys::enable_extended_acks(&fd).attempt(what)?;
        // Left alone, the kernel draws a random number for each socket but the first: what is watched would then
        // decide which ports and keys the flows draw after it.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        bind(&fd, &SocketAddrNetlink::new(number, 0)).attempt(what)?;
        Ok(Self { fd, number, seq: 0, buffer: Vec::with_capacity(RECEIVE_BYTES) })
    }

    /// The descriptor, for waiting until there is something to read.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Asks one question and hands each part of the answer (without message header) to `each`.
    /// `kernel_type` is the message type on the wire: the request's own, or the id of a generic family.
    pub fn ask<R: NetlinkRequest>(
        &mut self,
        request: &R,
        kernel_type: u16,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.seq += 1;
        let mut message = Vec::with_capacity(HEADER_BYTES + request.payload().len());
        push_message(&mut message, request, kernel_type, true, self.seq);
        send(&self.fd, &message, SendFlags::empty()).attempt(|| "asking the kernel by netlink")?;
        loop {
            self.receive(RecvFlags::empty()).attempt(|| "reading an answer by netlink")?;
            for (seq, answer) in answers(&self.buffer, R::lookup) {
                if seq != self.seq {
                    continue;
                }
                match answer {
                    Answer::Data(_, payload) => each(payload),
                    Answer::Done => return Ok(()),
                    Answer::Failed(why) => return Err(Error::new(why)),
                }
            }
        }
    }

    /// Reads what a multicast group has sent, without waiting: hands type and payload of each message to `each`.
    /// False: nothing was there.
    pub fn receive_events(&mut self, mut each: impl FnMut(u16, &[u8])) -> Result<bool> {
        match self.receive(RecvFlags::DONTWAIT) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(errno) => return Err(errno).attempt(|| "reading events by netlink"),
        }
        for (_, answer) in answers(&self.buffer, no_lookup) {
            if let Answer::Data(kind, payload) = answer {
                each(kind, payload);
            }
        }
        Ok(true)
    }

    /// Reads what the kernel hands out at once into the buffer.
    fn receive(&mut self, flags: RecvFlags) -> rustix::io::Result<()> {
        self.buffer.clear();
        recv(&self.fd, spare_capacity(&mut self.buffer), flags).map(drop)
    }

    /// The number under which the kernel reaches the socket.
    pub fn port_id(&self) -> u32 {
        self.number
    }

    /// Joins the multicast group `group`.
    pub fn join(&self, group: u32) -> Result<()> {
        sys::join_netlink_group(&self.fd, group).attempt(|| format!("joining netlink group {group}"))
    }
}

/// The numbers that the kernel gave to a generic netlink family when it booted.
#[derive(Debug, Clone)]
pub struct GenericFamily {
    /// The message type.
    pub id: u16,
    groups: BTreeMap<String, u32>,
}

impl GenericFamily {
    /// Looks up `family`.
    pub fn resolve(socket: &mut Socket, family: &str) -> Result<Self> {
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name_bytes(family.as_bytes());
        let mut found = None;
        let what = || format!("looking for generic netlink family {family}");
        socket
            .ask(&request, kernel_type(&request), |payload| {
                let reply = nlctrl::OpGetfamilyDo::decode_reply(payload);
                let groups = reply.get_mcast_groups().into_iter().flatten();
                let groups = groups.filter_map(|group| {
                    Some((group.get_name().ok()?.to_string_lossy().into_owned(), group.get_id().ok()?))
                });
                found = reply.get_family_id().ok().map(|id| Self { id, groups: groups.collect() });
            })
            .attempt(what)?;
        found.ok_or_else(|| Error::because(what(), "the kernel's answer has no number"))
    }

    /// The number of the multicast group called `name`.
    pub fn group(&self, name: &str) -> Result<u32> {
        let missing = || Error::new(format!("generic netlink family {} has no group {name}", self.id));
        self.groups.get(name).copied().ok_or_else(missing)
    }
}

/// The message type of a request whose number is fixed.
pub fn kernel_type(request: &impl NetlinkRequest) -> u16 {
    match request.protocol() {
        Protocol::Raw { request_type, .. } => request_type,
        // Generic families are numbered at boot; whoever asks them passes the number.
        Protocol::Generic(_) => 0,
    }
}

fn no_lookup(_: &[u8], _: usize, _: Option<u16>) -> (Vec<(&'static str, usize)>, Option<&'static str>) {
    (Vec::new(), None)
}

/// Appends one message: header, payload, padding.
fn push_message(out: &mut Vec<u8>, request: &impl NetlinkRequest, kernel_type: u16, ack: bool, seq: u32) {
    let payload = request.payload();
    let ack = if ack { NLM_F_ACK } else { 0 };
    let header = Nlmsghdr {
        len: u32::try_from(HEADER_BYTES + payload.len()).unwrap_or(u32::MAX),
        r#type: kernel_type,
        flags: request.flags() | NLM_F_REQUEST | ack,
        seq,
        pid: 0,
    };
    out.extend_from_slice(header.as_slice());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Splits what one read returned into answers, each with its sequence number.
fn answers(
    mut bytes: &[u8],
    lookup: netlink_bindings::traits::LookupFn,
) -> impl Iterator<Item = (u32, Answer<'_>)> {
    std::iter::from_fn(move || {
        let header = Nlmsghdr::new_from_slice(bytes.get(..HEADER_BYTES)?)?;
        let length = (header.len as usize).clamp(HEADER_BYTES, bytes.len());
        let payload = &bytes[HEADER_BYTES..length];
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        let answer = match i32::from(header.r#type) {
            libc::NLMSG_ERROR | libc::NLMSG_DONE => match explain::errno(payload) {
                None => Answer::Done,
                Some(errno) => Answer::Failed(explain::failure(&header, payload, errno, lookup)),
            },
            _ => Answer::Data(header.r#type, payload),
        };
        Some((header.seq, answer))
    })
}
