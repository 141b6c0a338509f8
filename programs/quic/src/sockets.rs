//! UDP sockets, one for each local address, and waiting for them.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Sockets at the given addresses.
pub struct Sockets {
    all: Vec<(IpAddr, UdpSocket)>,
    /// Datagrams that the kernel refused, for example because an interface is down. QUIC sees a loss.
    pub refused: u64,
}

impl Sockets {
    /// Bind one socket for each address.
    pub fn bind(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<Self, String> {
        let mut all: Vec<(IpAddr, UdpSocket)> = Vec::new();
        for address in addresses {
            if all.iter().any(|(ip, _)| *ip == address.ip()) {
                continue;
            }
            let socket = UdpSocket::bind(address).and_then(|socket| {
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            all.push((
                address.ip(),
                socket.map_err(|error| format!("binding a UDP socket to {address}: {error}"))?,
            ));
        }
        Ok(Self { all, refused: 0 })
    }

    /// Send a datagram from `source`, or from the first address.
    pub fn send(&mut self, source: Option<IpAddr>, to: SocketAddr, bytes: &[u8]) -> Result<(), String> {
        let socket = self.all.iter().find(|(ip, _)| source.is_none_or(|source| source == *ip));
        let Some((_, socket)) = socket else {
            return Err(format!("sending from {source:?}: there is no socket at this address"));
        };
        loop {
            match socket.send_to(bytes, to) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut waiting = [PollFd::new(socket, PollFlags::OUT)];
                    poll(&mut waiting, None).map_err(|error| format!("waiting to send to {to}: {error}"))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.refused += 1;
                    return Ok(());
                }
            }
        }
    }

    /// Receive a datagram that has arrived, from the first socket that has one: its length, the local and the
    /// remote address.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, IpAddr, SocketAddr)> {
        self.all.iter().find_map(|(ip, socket)| match socket.recv_from(buffer) {
            Ok((length, from)) => Some((length, *ip, from)),
            Err(_) => None,
        })
    }

    /// Wait until a datagram arrives, or until `deadline`.
    pub fn wait(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        // At least a microsecond: a timer that is due must not poll without time passing.
        let left = left.max(Duration::from_micros(1));
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut sockets: Vec<_> =
            self.all.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut sockets, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
