//! Carries datagrams between the sockets of this host and a prototype's program.
//!
//! Each path has a thread for each direction. The budget sees every datagram before it leaves.
//! A server takes datagrams only from the client's address of the path, and answers the port that
//! the latest one came from.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, getsockname, ipproto, recv,
    recvfrom, send, sendto, socket_with, socketpair, sockopt,
};

use crate::error::{Attempt, Error, Result, describe};
use crate::plan::{Flow, SideName};

/// The largest datagram of the transport, and more.
const LARGEST: usize = 2048;
/// The receive buffer of a socket, if the machine allows as much.
const BUFFER_BYTES: usize = 16 << 20;
const STACK_BYTES: usize = 128 * 1024;

/// One path of a flow.
struct PathRelay {
    /// The socket of this host; paths of a server can share one.
    outside: Arc<OwnedFd>,
    /// The end of the pair that the agent keeps.
    inside: Arc<OwnedFd>,
    peer: IpAddr,
    /// The client's port; 0 while it is unknown.
    client_port: AtomicU16,
}

/// The relay of one end of a flow.
pub struct Relay {
    paths: Arc<Vec<PathRelay>>,
    side: SideName,
    /// The ends of the pairs for the program, until it has started.
    program: Mutex<Vec<OwnedFd>>,
}

/// Whether a datagram of this size in bytes may leave.
pub type Admit = dyn Fn(usize) -> bool + Send + Sync;

impl Relay {
    /// Open the sockets of an end.
    pub fn open(flow: &Flow, side: SideName) -> Result<Self> {
        let mut paths: Vec<PathRelay> = Vec::new();
        let mut program = Vec::new();
        for path in &flow.paths {
            let client = address(&path.client_address)?;
            let server = SocketAddr::new(address(&path.server_address)?, flow.server.port);
            let outside = match side {
                SideName::Client => Arc::new(client_socket(client, server)?),
                SideName::Server => {
                    let shared = paths.iter().find(|other| local(&other.outside) == Some(server));
                    shared
                        .map_or_else(|| bound(server).map(Arc::new), |other| Ok(Arc::clone(&other.outside)))?
                }
            };
            let port = match side {
                SideName::Client => local(&outside).map_or(0, |address| address.port()),
                SideName::Server => 0,
            };
            let (inside, other) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .attempt(|| "creating a pair of sockets")?;
            program.push(other);
            paths.push(PathRelay {
                outside,
                inside: Arc::new(inside),
                peer: client,
                client_port: AtomicU16::new(port),
            });
        }
        Ok(Self { paths: Arc::new(paths), side, program: Mutex::new(program) })
    }

    /// Return the descriptors of the program, by path.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.program().iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Close the agent's copies of the program's descriptors, so that the end of the program shows.
    pub fn close_copies(&self) {
        self.program().clear();
    }

    fn program(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return the client's port on each path; 0 while it is unknown.
    pub fn client_ports(&self) -> Vec<u16> {
        self.paths.iter().map(|path| path.client_port.load(Ordering::Relaxed)).collect()
    }

    /// Return the client's port on a path, once it is known.
    pub fn client_port(&self, path: usize) -> Option<u16> {
        let port = self.paths.get(path)?.client_port.load(Ordering::Relaxed);
        (port != 0).then_some(port)
    }

    /// Start the threads. They send what `admit` admits, and end at the first datagram that it does not.
    pub fn start(&self, admit: &Arc<Admit>) -> Result<()> {
        let side = self.side;
        for number in 0..self.paths.len() {
            let (paths, admit) = (Arc::clone(&self.paths), Arc::clone(admit));
            spawn(move || carry_out(&paths[number], side, &*admit))?;
            let first = |other: &PathRelay| Arc::ptr_eq(&other.outside, &self.paths[number].outside);
            if side == SideName::Client || self.paths.iter().position(first) == Some(number) {
                let paths = Arc::clone(&self.paths);
                spawn(move || carry_in(&paths, number, side))?;
            }
        }
        Ok(())
    }
}

/// Carry what the program sends on a path out of this host, until the program closes its end.
fn carry_out(path: &PathRelay, side: SideName, admit: &Admit) {
    let mut buffer = [0; LARGEST];
    loop {
        let length = match recv(&path.inside, &mut buffer, RecvFlags::empty()) {
            Ok((_, length)) if length > 0 => length,
            Err(Errno::INTR) => continue,
            _ => return,
        };
        let data = &buffer[..length];
        let port = path.client_port.load(Ordering::Relaxed);
        if port == 0 {
            continue; // nobody to answer
        }
        if !admit(length) {
            return;
        }
        // The network or its queue can lose a datagram at any time, so no error matters.
        let _ = match side {
            SideName::Client => send(&path.outside, data, SendFlags::DONTWAIT),
            SideName::Server => {
                sendto(&path.outside, data, SendFlags::DONTWAIT, &SocketAddr::new(path.peer, port))
            }
        };
    }
}

/// Carry what arrives at the socket of path `number` to the program. A waiting program fills the
/// socket's buffer.
fn carry_in(paths: &[PathRelay], number: usize, side: SideName) {
    let mut buffer = [0; LARGEST];
    loop {
        let (length, from) = match recvfrom(&paths[number].outside, &mut buffer, RecvFlags::empty()) {
            Ok((_, length, from)) => (length, from),
            // Errors of datagrams that this socket sent.
            Err(Errno::INTR | Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH) => continue,
            Err(_) => return,
        };
        let data = &buffer[..length];
        let path = match side {
            SideName::Client => &paths[number],
            SideName::Server => {
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                let Some((path, port)) = sender(paths, number, data, from) else { continue };
                path.client_port.store(port, Ordering::Relaxed);
                path
            }
        };
        if length > 0 && send(&path.inside, data, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

/// Return the path of a datagram at a server, and the port it came from; None if it is a stranger's.
fn sender<'a>(
    paths: &'a [PathRelay],
    number: usize,
    data: &[u8],
    from: Option<SocketAddr>,
) -> Option<(&'a PathRelay, u16)> {
    let path = paths.get(usize::from(*data.get(1)?))?;
    let from = from?;
    let right = path.peer == from.ip().to_canonical() && Arc::ptr_eq(&path.outside, &paths[number].outside);
    right.then_some((path, from.port()))
}

fn client_socket(client: IpAddr, server: SocketAddr) -> Result<OwnedFd> {
    let socket = bound(SocketAddr::new(client, 0))?;
    connect(&socket, &server).attempt(|| format!("connecting a UDP socket of {client} to {server}"))?;
    Ok(socket)
}

fn bound(at: SocketAddr) -> Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP))
        .attempt(|| "creating a UDP socket")?;
    // An ordinary user gets as much as the machine allows.
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES))
        .attempt(|| "setting SO_RCVBUF")?;
    bind(&socket, &at).attempt(|| format!("binding a UDP socket to {at}"))?;
    Ok(socket)
}

fn local(socket: &OwnedFd) -> Option<SocketAddr> {
    getsockname(socket).ok().and_then(|address| SocketAddr::try_from(address).ok())
}

fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|error| Error::because(format!("reading the address {text:?}"), error))
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(body)
        .map(|_| ())
        .map_err(|error| Error::because("starting a thread of a relay", describe_io(&error)))
}

fn describe_io(error: &std::io::Error) -> String {
    Errno::from_io_error(error).map_or_else(|| error.to_string(), describe)
}
