//! Whether a subflow is a backup, derived from the events of the path managers at both ends.
//!
//! No socket option reports it. An event at one end reports what the *other* end requested. A
//! subflow is therefore a backup if either event says so, and is not one only if both events say
//! so.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// For the two ends of a subflow, as one of them sees it: whether the other end requested a backup.
#[derive(Debug, Default)]
pub struct Priorities(BTreeMap<(SocketAddr, SocketAddr), bool>);

impl Priorities {
    /// Record an event at `local`: whether `remote` requested the subflow as a backup.
    pub fn record(&mut self, local: SocketAddr, remote: SocketAddr, backup: bool) {
        self.0.insert((local, remote), backup);
    }

    /// Whether the subflow between `local` and `remote` is a backup; None while this is unknown.
    ///
    /// No event reports the establishment of an `initial` subflow. It is not a backup until an
    /// event says so.
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
    fn a_subflow_is_a_backup_when_either_end_requests_it() {
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let mut priorities = Priorities::default();
        assert_eq!(priorities.backup(a, b, false), None);
        assert_eq!(priorities.backup(a, b, true), Some(false));
        priorities.record(a, b, false);
        assert_eq!(priorities.backup(a, b, false), None, "the other end has not been heard");
        priorities.record(b, a, true);
        assert_eq!(
            (priorities.backup(a, b, false), priorities.backup(b, a, false)),
            (Some(true), Some(true))
        );
        priorities.record(b, a, false);
        assert_eq!(priorities.backup(a, b, false), Some(false));
    }
}
