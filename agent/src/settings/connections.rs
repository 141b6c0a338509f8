//! Which MPTCP connections live, and which are the rest of one that its program has closed.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_link};
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::netlink::sock_diag::{CLOSE_WAIT, ESTABLISHED, Kind, SocketInfo, dump};
use crate::netlink::{Family, Socket};

/// How often, and how long after each other, to look for subflows that wait: 8 s in all, in which a
/// SYN has been sent four times.
const ROUNDS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(20);

/// List the sockets of a kind.
pub fn all(kind: Kind) -> Result<Vec<SocketInfo>> {
    let mut sockets = Socket::open(Family::Sockets)?;
    let mut seen = dump(&mut sockets, kind, false)?;
    seen.extend(dump(&mut sockets, kind, true)?);
    Ok(seen)
}

/// Return the inodes of the MPTCP connections that live; their subflows have the same. A program has
/// not closed them, or holds a descriptor of them.
pub fn living() -> Result<BTreeSet<u32>> {
    let held = held_sockets();
    let connections = all(Kind::Mptcp)?.into_iter();
    let living = connections
        .filter(|seen| matches!(seen.state, ESTABLISHED | CLOSE_WAIT) || held.contains(&seen.inode));
    Ok(living.map(|seen| seen.inode).filter(|inode| *inode != 0).collect())
}

/// Return the inodes of the sockets of all processes that this one may look at.
fn held_sockets() -> BTreeSet<u32> {
    let processes = read_dir("/proc").into_iter().flatten().flatten();
    let folders = processes.filter_map(|entry| read_dir(entry.path().join("fd")).ok());
    let targets = folders.flatten().flatten().filter_map(|entry| read_link(entry.path()).ok());
    let inode = |target: &str| target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    targets.filter_map(|target| inode(&target.to_string_lossy())).collect()
}

/// Wait, for a bounded time, until no subflow of a closed connection waits for its peer's answer. With
/// that answer the kernel makes an implicit endpoint.
pub fn await_joins() -> Result<()> {
    for _ in 0..ROUNDS {
        let living = living()?;
        let connecting = all(Kind::Connecting)?;
        if connecting.iter().all(|seen| seen.ulp.is_none() || living.contains(&seen.inode)) {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
