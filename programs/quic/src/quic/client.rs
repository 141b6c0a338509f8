//! The client: opens paths, and sends one request after the other.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{ClientConfig, Connection, Dir, Event, FourTuple, PathStatus, StreamEvent, StreamId};

use super::driver::{Application, Driver, NO_ERROR, any_port, read, transport, write_zeros};
use crate::exchange::{Measured, header};
use crate::keys;
use crate::options::{Options, PathSpec, Protocol, Requests};
use crate::report;
use crate::sockets::Sockets;

struct Client {
    requests: Requests,
    unopened: Vec<PathSpec>,
    open: Option<(StreamId, u64)>,
    measured: Measured,
    end: Option<Instant>,
}

/// Send all requests over the first path and those that join it; print what was measured.
pub fn run(options: &Options, paths: &[PathSpec]) -> Result<ExitCode, String> {
    let crypto = keys::client().map_err(|error| format!("preparing TLS: {error}"))?;
    let crypto = QuicClientConfig::try_from(crypto).map_err(|error| format!("preparing TLS: {error}"))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport(options, 1));
    let used = if options.protocol == Protocol::MpQuic { paths } else { &paths[..1] };
    let sockets = Sockets::bind(used.iter().map(|path| any_port(path.local)))?;
    let mut driver = Driver::new(sockets, None);
    let now = Instant::now();
    let first = used[0].remote;
    let connection = driver.endpoint.connect(now, config, first, keys::NAME);
    driver.connection = Some(connection.map_err(|error| format!("connecting to {first}: {error}"))?);
    let mut client = Client {
        requests: options.requests,
        unopened: used[1..].iter().rev().copied().collect(),
        open: None,
        measured: Measured::new(now),
        end: None,
    };
    driver.transmit(now)?;
    let outcome = driver.drive(&mut client, options.timeout);
    let mut figures = client.measured.figures(client.end);
    figures.extend(report::paths(&driver.paths()));
    figures.push(("refused_datagrams".to_owned(), driver.sockets.refused));
    if let Some((_, connection)) = &mut driver.connection {
        connection.close(Instant::now(), NO_ERROR, Bytes::new());
    }
    let outcome = outcome.and(driver.transmit(Instant::now()));
    Ok(report::print(figures, outcome))
}

impl Client {
    /// Open the paths that are left, as far as the server has given identifiers for them.
    fn open_paths(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(path) = self.unopened.last() {
            let network_path = FourTuple::new(path.remote, Some(path.local));
            if connection.open_path(network_path, PathStatus::Available, now).is_err() {
                return; // the next event brings more identifiers
            }
            self.unopened.pop();
        }
    }

    fn ask(&mut self, connection: &mut Connection, now: Instant) -> Result<(), String> {
        let stream = connection.streams().open(Dir::Bi).ok_or("the server allows no further stream")?;
        self.measured.ask(now);
        let wrote = connection.send_stream(stream).write(&header(self.requests));
        wrote.map_err(|error| format!("writing a request: {error}"))?;
        self.open = Some((stream, self.requests.send));
        self.continue_sending(connection)
    }

    fn continue_sending(&mut self, connection: &mut Connection) -> Result<(), String> {
        if let Some((stream, left)) = &mut self.open
            && *left != u64::MAX
        {
            *left = write_zeros(connection, *stream, *left)?;
            if *left == 0 {
                *left = u64::MAX; // the stream is finished
            }
        }
        Ok(())
    }

    /// Read answers; ask again after each. Return whether that was the last.
    fn answered(&mut self, connection: &mut Connection, now: Instant) -> Result<bool, String> {
        let Some((stream, _)) = self.open else { return Ok(false) };
        if !read(connection, stream, |_| ())? {
            return Ok(false);
        }
        self.open = None;
        if self.measured.answered(now) < self.requests.count {
            self.ask(connection, now)?;
            return Ok(false);
        }
        self.end = Some(now);
        Ok(true)
    }
}

impl Application for Client {
    fn on_event(&mut self, event: Event, connection: &mut Connection, now: Instant) -> Result<bool, String> {
        match event {
            Event::Connected => {
                self.measured.connected(now);
                self.ask(connection, now)?;
            }
            Event::Stream(StreamEvent::Writable { .. }) => self.continue_sending(connection)?,
            Event::Stream(StreamEvent::Readable { id }) if self.open.is_some_and(|(open, _)| open == id) => {
                return self.answered(connection, now);
            }
            Event::ConnectionLost { reason } => return Err(format!("the connection was lost: {reason}")),
            _ => {}
        }
        if self.measured.handshake_us.is_some() {
            self.open_paths(connection, now);
        }
        Ok(false)
    }

    fn accepts(&self) -> bool {
        false
    }
}
