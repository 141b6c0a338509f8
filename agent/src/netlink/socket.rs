//! A netlink socket: single requests, and the events of multicast groups.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use netlink_bindings::traits::NetlinkRequest;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recv, send, socket_with,
};

use super::message::{Answer, HEADER_BYTES, RawRequest, answers, push_message};
use crate::error::{Attempt, Error, Result};
use crate::process;
use crate::sys;

/// The largest piece in which the kernel returns a dump.
const RECEIVE_BYTES: usize = 32 * 1024;

/// The number (`nl_pid`) of the next socket. The kernel assigns low numbers to processes.
static NUMBER: AtomicU32 = AtomicU32::new(1 << 30);

/// The netlink families that the agent uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Links, addresses, routes, rules, traffic control.
    Route,
    /// Generic netlink: the MPTCP path manager.
    Generic,
    /// Socket diagnostics.
    Sockets,
    /// Packet filters and NAT.
    Netfilter,
}

/// A netlink socket, bound to the network namespace in which it was opened.
#[derive(Debug)]
pub struct Socket {
    pub(super) fd: OwnedFd,
    number: u32,
    pub(super) seq: u32,
    /// Never filled in advance: the agent touches few of its pages, and each page costs two context
    /// switches.
    pub(super) buffer: Vec<u8>,
}

/// Return the number that the kernel assigned to a socket.
fn assigned(fd: &OwnedFd) -> rustix::io::Result<u32> {
    Ok(SocketAddrNetlink::try_from(getsockname(fd)?)?.pid())
}

impl Socket {
    /// Open a socket in the namespace of the calling thread.
    pub fn open(family: Family) -> Result<Self> {
        let protocol = match family {
            Family::Route => None,
            Family::Generic => Some(rustix::net::netlink::GENERIC),
            Family::Sockets => Some(rustix::net::netlink::SOCK_DIAG),
            Family::Netfilter => Some(rustix::net::netlink::NETFILTER),
        };
        let context = || format!("opening a netlink socket ({family:?})");
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .attempt(context)?;
        sys::set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1).attempt(context)?;
        // Without a number the kernel draws a random one for each socket but the first, and the
        // number of monitors would change the ports and keys that it draws later for flows.
        // A namespace that the agent shares with others is different: another process may have the
        // number.
        let shared = process::node().is_some();
        let number = if shared { 0 } else { NUMBER.fetch_add(1, Ordering::Relaxed) };
        bind(&fd, &SocketAddrNetlink::new(number, 0)).attempt(context)?;
        let number = if shared { assigned(&fd).attempt(context)? } else { number };
        Ok(Self { fd, number, seq: 0, buffer: Vec::with_capacity(RECEIVE_BYTES) })
    }

    /// Return the descriptor, to poll it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Send one request and pass each part of the answer (without message header) to `each`.
    /// `kernel_type` is the message type on the wire: the request's own, or the id of a generic
    /// family.
    pub fn ask<R: NetlinkRequest>(
        &mut self,
        request: &R,
        kernel_type: u16,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.seq += 1;
        let mut message = Vec::with_capacity(HEADER_BYTES + request.payload().len());
        push_message(&mut message, request, kernel_type, true, self.seq);
        send(&self.fd, &message, SendFlags::empty()).attempt(|| "sending a netlink request")?;
        loop {
            self.receive(RecvFlags::empty()).attempt(|| "reading a netlink answer")?;
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

    /// Read the pending messages of a multicast group, without waiting, and pass the type and
    /// payload of each to `each`. Return false if there are none.
    pub fn receive_events(&mut self, mut each: impl FnMut(u16, &[u8])) -> Result<bool> {
        match self.receive(RecvFlags::DONTWAIT) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(errno) => return Err(errno).attempt(|| "reading netlink events"),
        }
        for (_, answer) in answers(&self.buffer, RawRequest::lookup) {
            if let Answer::Data(kind, payload) = answer {
                each(kind, payload);
            }
        }
        Ok(true)
    }

    /// Receive one piece into the buffer.
    pub(super) fn receive(&mut self, flags: RecvFlags) -> rustix::io::Result<()> {
        self.buffer.clear();
        recv(&self.fd, spare_capacity(&mut self.buffer), flags).map(drop)
    }

    /// Return the number to which the kernel addresses messages.
    pub fn port_id(&self) -> u32 {
        self.number
    }

    /// Join the multicast group `group`.
    pub fn join(&self, group: u32) -> rustix::io::Result<()> {
        sys::set_option(&self.fd, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)
    }
}
