//! Which MPTCP connections live, and which are the rest of one that its program has closed.

use std::collections::BTreeSet;
use std::fs::read_dir;
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::netlink::sock_diag::{CLOSE_WAIT, ESTABLISHED, Kind, SocketInfo, dump};
use crate::netlink::{Family, Socket};
use crate::program::held_sockets;

/// How often, and how long after each other, to look for subflows that wait: 8 s in all, in which a
/// SYN has been sent four times.
const ROUNDS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(20);

/// List the sockets of a kind.
pub fn all(kind: Kind) -> Result<Vec<SocketInfo>> {
    let [sockets] = dump(&mut Socket::open(Family::Sockets)?, [kind])?;
    Ok(sockets)
}

/// Return the inodes of the MPTCP connections that live; their subflows have the same. A program has
/// not closed them, or holds a descriptor of them.
pub fn living() -> Result<BTreeSet<u32>> {
    let processes = read_dir("/proc").into_iter().flatten().flatten();
    let held: BTreeSet<u32> =
        processes.flat_map(|entry| held_sockets(entry.file_name().to_string_lossy().into_owned())).collect();
    let connections = all(Kind::Mptcp)?.into_iter();
    let living = connections
        .filter(|seen| matches!(seen.state, ESTABLISHED | CLOSE_WAIT) || held.contains(&seen.inode));
    Ok(living.map(|seen| seen.inode).filter(|inode| *inode != 0).collect())
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
