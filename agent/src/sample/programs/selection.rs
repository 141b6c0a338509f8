//! Which connections a plan observes of programs that the agent did not start, and who holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use crate::plan::ConnectionMonitor;
use crate::program::held_sockets;

/// The connections to observe. An empty list restricts nothing.
pub struct Selection {
    monitor: &'static ConnectionMonitor,
    /// The sockets of the processes of the monitor, by inode.
    held: BTreeSet<u32>,
    /// The name of a program that holds a socket, by inode.
    owners: BTreeMap<u32, String>,
    /// Whether this sample has read what all processes hold.
    has_looked: bool,
}

impl Selection {
    pub fn new(monitor: &'static ConnectionMonitor) -> Self {
        Self { monitor, held: BTreeSet::new(), owners: BTreeMap::new(), has_looked: false }
    }

    /// Begin a sample: read which sockets the processes of the monitor hold now.
    pub fn look_at_processes(&mut self) {
        self.has_looked = false;
        for pid in &self.monitor.processes {
            self.held.extend(held_sockets(pid));
        }
    }

    /// Whether the connection with these ends and this inode is observed.
    pub fn has(&self, local: SocketAddr, remote: SocketAddr, inode: u32) -> bool {
        let ConnectionMonitor { ports, peers, processes, .. } = self.monitor;
        let any = |place: IpAddr| peers.contains(&place);
        (ports.is_empty() || ports.contains(&local.port()) || ports.contains(&remote.port()))
            && (peers.is_empty() || any(remote.ip()))
            && (processes.is_empty() || self.held.contains(&inode))
    }

    /// Return the name of a program that holds the socket with this inode; None: none does, or it
    /// belongs to another user.
    pub fn owner(&mut self, inode: u32) -> Option<String> {
        if inode != 0 && !self.owners.contains_key(&inode) && !self.has_looked {
            self.look_at_all();
        }
        self.owners.get(&inode).cloned()
    }

    /// Read which sockets all processes hold: those of other users only as root. Once a sample, because it takes long.
    fn look_at_all(&mut self) {
        self.has_looked = true;
        let Ok(folders) = std::fs::read_dir("/proc") else { return };
        let names = folders.flatten().filter_map(|folder| folder.file_name().into_string().ok());
        for pid in names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            let mut sockets = held_sockets(&pid).peekable();
            if sockets.peek().is_none() {
                continue;
            }
            let Ok(name) = std::fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
            for inode in sockets {
                self.owners.entry(inode).or_insert_with(|| name.trim_end().to_owned());
            }
        }
    }
}
