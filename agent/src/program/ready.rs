//! Readiness of a program: an open port, a file, or a line in its log.

use std::path::Path;
use std::process::Child;

use super::log::Log;
use super::root::ROOT;
use crate::clock;
use crate::error::Result;
use crate::netlink::sock_diag::{Kind, LISTEN, dump};
use crate::netlink::{Family, Socket};
use crate::plan::Ready;

/// How often the agent checks, in virtual time.
const INTERVAL_US: i64 = 10_000;

/// Wait until `ready` holds in the namespace of the calling thread. Fail with the reason when this
/// takes too long or the program has ended.
pub fn wait(ready: &Ready, log: &Log, child: &mut Child) -> std::result::Result<(), String> {
    let begun_us = clock::trial_us();
    if let Some(text) = &ready.log {
        log.look_for(text);
    }
    let mut socket = Socket::open(Family::Sockets).map_err(|error| error.to_string())?;
    loop {
        if holds(ready, log, &mut socket).map_err(|error| error.to_string())? {
            return Ok(());
        }
        let condition = describe(ready);
        if matches!(child.try_wait(), Ok(Some(_))) {
            return Err(format!("it ended before it was ready: it needs {condition}"));
        }
        let waited_us = clock::trial_us() - begun_us;
        if waited_us >= ready.within_us {
            return Err(format!(
                "it was not ready {:.3} s after its start: it needs {condition}",
                clock::seconds(waited_us)
            ));
        }
        clock::sleep_until(clock::trial_us() + INTERVAL_US);
    }
}

fn holds(ready: &Ready, log: &Log, socket: &mut Socket) -> Result<bool> {
    if let Some(port) = ready.tcp {
        return listens(socket, Kind::Tcp, port);
    }
    if let Some(port) = ready.udp {
        return listens(socket, Kind::Udp, port);
    }
    if let Some(file) = &ready.file {
        return Ok(Path::new(&format!("{ROOT}{file}")).exists());
    }
    Ok(log.has_match())
}

fn listens(socket: &mut Socket, kind: Kind, port: u16) -> Result<bool> {
    let fits = |state| matches!(kind, Kind::Udp) || state == LISTEN;
    let [sockets] = dump(socket, [kind])?;
    let mut local = sockets.into_iter().filter(|listed| fits(listed.state));
    Ok(local.any(|listed| listed.ends.is_some_and(|(local, _)| local.port() == port)))
}

fn describe(ready: &Ready) -> String {
    match ready {
        Ready { tcp: Some(port), .. } => format!("a listener on TCP port {port}"),
        Ready { udp: Some(port), .. } => format!("a socket on UDP port {port}"),
        Ready { file: Some(file), .. } => format!("the file {file}"),
        Ready { log, .. } => format!("a line with {:?}", log.as_deref().unwrap_or_default()),
    }
}
