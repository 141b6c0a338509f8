//! Whether a subflow is a backup, put together from what the path managers of both ends tell.
//!
//! No socket option tells it. An event tells at each end what *the other* end has asked for, so a subflow is a backup
//! when either event says so, and is none only when both have been heard.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// By the two ends of a subflow, seen from one of them: whether the other end wants it as a backup.
#[derive(Debug, Default)]
pub struct Priorities(BTreeMap<(SocketAddr, SocketAddr), bool>);

impl Priorities {
    /// An event at `local` told that `remote` wants the subflow between them as a backup, or not.
    pub fn told(&mut self, local: SocketAddr, remote: SocketAddr, backup: bool) {
        self.0.insert((local, remote), backup);
    }

    /// Whether the subflow between `local` and `remote` is a backup; None while that is not known.
    ///
    /// An `initial` subflow has no event of its own when it is established, and is no backup until one says so.
    pub fn backup(&self, local: SocketAddr, remote: SocketAddr, initial: bool) -> Option<bool> {
        let unheard = initial.then_some(false);
        let here = self.0.get(&(local, remote)).copied().or(unheard);
        let there = self.0.get(&(remote, local)).copied().or(unheard);
        match (here, there) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_is_a_backup_when_either_end_wants_it_so() {
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let mut priorities = Priorities::default();
        assert_eq!(priorities.backup(a, b, false), None);
        assert_eq!(priorities.backup(a, b, true), Some(false));
        priorities.told(a, b, false);
        assert_eq!(priorities.backup(a, b, false), None, "the other end has not been heard");
        priorities.told(b, a, true);
        assert_eq!(
            (priorities.backup(a, b, false), priorities.backup(b, a, false)),
            (Some(true), Some(true))
        );
        priorities.told(b, a, false);
        assert_eq!(priorities.backup(a, b, false), Some(false));
    }
}
