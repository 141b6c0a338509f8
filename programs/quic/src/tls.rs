//! TLS 1.3 over TCP, with blocking sockets. Over MPTCP where the kernel makes one of each TCP socket.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::exchange::{Arriving, Measured, header};
use crate::keys;
use crate::options::{Options, PathSpec};
use crate::report;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Send all requests over one connection that starts on the first path; print what was measured.
pub fn client(options: &Options, paths: &[PathSpec]) -> ExitCode {
    let path = paths[0];
    let mut measured = Measured::new(Instant::now());
    let outcome = ask(options, path, &mut measured);
    let figures = measured.figures(outcome.as_ref().ok().copied());
    report::print(
        figures,
        outcome.map(drop).map_err(|error| format!("exchanging with {}: {error}", path.remote)),
    )
}

/// Send all requests. Return the time of the last byte.
fn ask(options: &Options, path: PathSpec, measured: &mut Measured) -> Result<Instant, Box<dyn Error>> {
    let tcp = dial(path)?;
    tcp.set_nodelay(true)?;
    let tls = ClientConnection::new(Arc::new(keys::client()?), ServerName::try_from(keys::NAME)?)?;
    let mut stream = StreamOwned::new(tls, tcp);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    measured.connected(Instant::now());
    let mut buffer = vec![0; 1 << 16];
    let mut end = Instant::now();
    for _ in 0..options.requests.count {
        measured.ask(Instant::now());
        stream.write_all(&header(options.requests))?;
        write_zeros(&mut stream, options.requests.send)?;
        let mut left = options.requests.receive;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            match stream.read(&mut buffer[..size])? {
                0 => return Err("the server closed the connection".into()),
                read => left -= read as u64,
            }
        }
        end = Instant::now();
        measured.answered(end);
    }
    stream.conn.send_close_notify();
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(end)
}

/// Serve one connection until its client closes it. It listens at all addresses, because MPTCP's further subflows
/// arrive at others than the first.
pub fn server(at: &[SocketAddr]) -> Result<ExitCode, String> {
    let any = if at[0].is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let address = SocketAddr::new(any, at[0].port());
    let listener = TcpListener::bind(address).map_err(|error| format!("listening at {address}: {error}"))?;
    eprintln!("ready");
    let (tcp, from) = listener.accept().map_err(|error| format!("accepting a connection: {error}"))?;
    let mut requests = 0;
    let outcome = answer(tcp, &mut requests).map_err(|error| format!("exchanging with {from}: {error}"));
    Ok(report::print(vec![("requests".to_owned(), requests)], outcome))
}

fn answer(tcp: TcpStream, requests: &mut u64) -> Result<(), Box<dyn Error>> {
    tcp.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(keys::server()?))?, tcp);
    let mut arriving = Arriving::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        if let Some(size) = arriving.take(&buffer[..read]) {
            write_zeros(&mut stream, size)?;
            (arriving, *requests) = (Arriving::default(), *requests + 1);
        }
    }
}

/// Connect from the path's local address.
fn dial(path: PathSpec) -> std::io::Result<TcpStream> {
    let family = if path.remote.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let made = socket(family, SocketType::STREAM, None)?;
    bind(&made, &SocketAddr::new(path.local, 0))?;
    connect(&made, &path.remote)?;
    Ok(made.into())
}

fn write_zeros(stream: &mut impl Write, mut left: u64) -> std::io::Result<()> {
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        stream.write_all(&ZEROS[..size])?;
        left -= size as u64;
    }
    stream.flush()
}
