//! The driver of noq's state machines: one connection over UDP sockets, in one thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event, FourTuple, Incoming,
    PathEvent, PathId, PathStats, ServerConfig, StreamId, Transmit, TransportConfig, VarInt, WriteError,
};

use crate::options::{Congestion, Options, Protocol};
use crate::sockets::Sockets;

/// Most paths of a connection.
const MAX_PATHS: u32 = 16;
const LARGEST_DATAGRAM: usize = 65_535;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// What one end does with its connection.
pub trait Application {
    /// Act on an event. Return whether all is done.
    fn on_event(&mut self, event: Event, connection: &mut Connection, now: Instant) -> Result<bool, String>;
    /// Accept a connection, or ignore it.
    fn accepts(&self) -> bool;
}

/// An endpoint with its sockets and its only connection.
pub struct Driver {
    /// Makes and routes to connections.
    pub endpoint: Endpoint,
    /// What carries datagrams.
    pub sockets: Sockets,
    /// The only connection, once there is one.
    pub connection: Option<(ConnectionHandle, Connection)>,
    discarded: BTreeMap<PathId, PathStats>,
    buffer: Vec<u8>,
    datagram: Vec<u8>,
}

impl Driver {
    /// Make an endpoint; with a configuration it is a server.
    pub fn new(sockets: Sockets, server: Option<Arc<ServerConfig>>) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true),
            sockets,
            connection: None,
            discarded: BTreeMap::new(),
            buffer: Vec::new(),
            datagram: vec![0; LARGEST_DATAGRAM],
        }
    }

    /// Carry the connection until the application is done, at most `limit`.
    pub fn drive(&mut self, application: &mut impl Application, limit: Duration) -> Result<(), String> {
        let end = Instant::now() + limit;
        loop {
            self.receive(application)?;
            let now = Instant::now();
            let done = self.act(application, now)?;
            self.transmit(now)?;
            if done {
                return Ok(());
            }
            if now >= end {
                return Err(format!("it took longer than {limit:?}; see --timeout"));
            }
            let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            let deadline = timer.map_or(end, |timer| timer.min(end));
            self.sockets.wait(deadline).map_err(|error| format!("waiting for datagrams: {error}"))?;
        }
    }

    /// Take all datagrams that have arrived.
    fn receive(&mut self, application: &impl Application) -> Result<(), String> {
        while let Some((length, local, remote)) = self.sockets.receive(&mut self.datagram) {
            let now = Instant::now();
            let path = FourTuple::new(remote, Some(local));
            let data = BytesMut::from(&self.datagram[..length]);
            match self.endpoint.handle(now, path, None, data, &mut self.buffer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => match &mut self.connection {
                    Some((own, connection)) if *own == handle => connection.handle_event(event),
                    _ => {}
                },
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.accept(incoming, now, application.accepts())?;
                }
                Some(DatagramEvent::Response(transmit)) => self.send(&transmit)?,
                None => {}
            }
            self.buffer.clear();
        }
        Ok(())
    }

    fn accept(&mut self, incoming: Incoming, now: Instant, wanted: bool) -> Result<(), String> {
        if !wanted || self.connection.is_some() {
            self.endpoint.ignore(incoming);
            return Ok(());
        }
        match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                if let Some(transmit) = &error.response {
                    self.send(transmit)?;
                }
                return Err(format!("accepting the connection: {}", error.cause));
            }
        }
        Ok(())
    }

    /// Let timers expire, and the application act.
    fn act(&mut self, application: &mut impl Application, now: Instant) -> Result<bool, String> {
        let Some((handle, connection)) = &mut self.connection else { return Ok(false) };
        if connection.poll_timeout().is_some_and(|timer| timer <= now) {
            connection.handle_timeout(now);
        }
        let mut done = false;
        loop {
            while let Some(event) = connection.poll() {
                if let Event::Path(PathEvent::Discarded { id, path_stats, .. }) = &event {
                    self.discarded.insert(*id, **path_stats);
                }
                done |= application.on_event(event, connection, now)?;
            }
            let Some(event) = connection.poll_endpoint_events() else { return Ok(done) };
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    /// Send what the connection has to send.
    pub fn transmit(&mut self, now: Instant) -> Result<(), String> {
        while let Some((_, connection)) = &mut self.connection {
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut self.buffer) else {
                break;
            };
            self.send(&transmit)?;
        }
        Ok(())
    }

    fn send(&mut self, transmit: &Transmit) -> Result<(), String> {
        self.sockets.send(transmit.src_ip, transmit.destination, &self.buffer[..transmit.size])
    }

    /// Return the state of each path that the connection has had.
    pub fn paths(&mut self) -> Vec<(PathId, PathStats)> {
        let mut all = self.discarded.clone();
        if let Some((_, connection)) = &mut self.connection {
            for id in connection.paths() {
                all.extend(connection.path_stats(id).map(|stats| (id, stats)));
            }
        }
        all.into_iter().collect()
    }
}

/// Return the settings of an end that waits `patience` times the timeout for a silent path.
pub fn transport(options: &Options, patience: u32) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    match options.congestion {
        Congestion::Cubic => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Congestion::NewReno => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        Congestion::Bbr3 => config.congestion_controller_factory(Arc::new(Bbr3Config::default())),
    };
    config
        .stream_receive_window(options.window.into())
        .receive_window(options.window.into())
        .send_window(options.window.into())
        .enable_segmentation_offload(false);
    if options.protocol == Protocol::MpQuic {
        config
            .max_concurrent_multipath_paths(MAX_PATHS)
            .default_path_max_idle_timeout(options.path_timeout.map(|silence| silence * patience))
            .default_path_keep_alive_interval(options.path_timeout.map(|silence| silence / 3));
    }
    Arc::new(config)
}

/// Write zeros to a stream as far as its window allows; finish it after the last. Return how many are left.
pub fn write_zeros(connection: &mut Connection, stream: StreamId, mut left: u64) -> Result<u64, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("writing to {stream}: {error}");
    let mut send = connection.send_stream(stream);
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        match send.write_chunks(&mut &mut [Bytes::from_static(&ZEROS[..size])][..]) {
            Ok(written) => left -= written as u64,
            Err(WriteError::Blocked) => return Ok(left),
            Err(error) => return Err(wrong(&error)),
        }
    }
    send.finish().map_err(|error| wrong(&error))?;
    Ok(0)
}

/// Read what has arrived of a stream, and give each piece to `take`. Return whether the stream has ended.
pub fn read(
    connection: &mut Connection,
    stream: StreamId,
    mut take: impl FnMut(&[u8]),
) -> Result<bool, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("reading from {stream}: {error}");
    let mut receive = connection.recv_stream(stream);
    let mut chunks = receive.read(true).map_err(|error| wrong(&error))?;
    let ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes),
            Ok(None) => break true,
            Err(noq_proto::ReadError::Blocked) => break false,
            Err(error) => return Err(wrong(&error)),
        }
    };
    let _ = chunks.finalize(); // the driver transmits after each event anyway
    Ok(ended)
}

/// Return an address with any free port.
pub fn any_port(ip: IpAddr) -> SocketAddr {
    (ip, 0).into()
}

/// The code with which the client closes the connection.
pub const NO_ERROR: VarInt = VarInt::from_u32(0);
