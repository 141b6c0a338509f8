//! The server: answers the requests of one connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{Connection, ConnectionError, Dir, Event, ServerConfig, StreamEvent, StreamId};

use super::driver::{Application, Driver, read, transport, write_zeros};
use crate::exchange::Arriving;
use crate::keys;
use crate::options::Options;
use crate::report;
use crate::sockets::Sockets;

/// How much longer than the client the server waits for a silent path. The client acknowledges over its first path what
/// arrives over others. When that path fails, the others are silent for the server until the client gives it up.
const PATIENCE: u32 = 4;

enum Stream {
    Arriving(Arriving),
    Answering(u64),
}

#[derive(Default)]
struct Server {
    streams: BTreeMap<StreamId, Stream>,
    answered: u64,
}

/// Serve one connection until its client closes it; print what was measured.
pub fn run(options: &Options, at: &[SocketAddr]) -> Result<ExitCode, String> {
    let crypto = keys::server().map_err(|error| format!("preparing TLS: {error}"))?;
    let crypto = QuicServerConfig::try_from(crypto).map_err(|error| format!("preparing TLS: {error}"))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(options, PATIENCE));
    let sockets = Sockets::bind(at.iter().copied())?;
    eprintln!("ready");
    let mut driver = Driver::new(sockets, Some(Arc::new(config)));
    let mut server = Server::default();
    let outcome = driver.drive(&mut server, options.timeout);
    let mut figures = report::paths(&driver.paths());
    figures.push(("requests".to_owned(), server.answered));
    figures.push(("refused_datagrams".to_owned(), driver.sockets.refused));
    Ok(report::print(figures, outcome))
}

impl Server {
    fn advance(&mut self, connection: &mut Connection, id: StreamId) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if let Stream::Arriving(arriving) = stream {
            let mut size = None;
            read(connection, id, |bytes| size = arriving.take(bytes).or(size))?;
            let Some(size) = size else { return Ok(()) };
            *stream = Stream::Answering(size);
        }
        if let Stream::Answering(left) = stream {
            *left = write_zeros(connection, id, *left)?;
            if *left == 0 {
                self.streams.remove(&id);
                self.answered += 1;
            }
        }
        Ok(())
    }
}

impl Application for Server {
    fn on_event(&mut self, event: Event, connection: &mut Connection, _now: Instant) -> Result<bool, String> {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    self.streams.insert(id, Stream::Arriving(Arriving::default()));
                    self.advance(connection, id)?;
                }
            }
            Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id }) => {
                self.advance(connection, id)?;
            }
            Event::ConnectionLost { reason: ConnectionError::ApplicationClosed(_) } => return Ok(true),
            // The client's last packet may be lost.
            Event::ConnectionLost { reason: ConnectionError::TimedOut } if self.answered > 0 => {
                return Ok(true);
            }
            Event::ConnectionLost { reason } => return Err(format!("the connection was lost: {reason}")),
            _ => {}
        }
        Ok(false)
    }

    fn accepts(&self) -> bool {
        true
    }
}
