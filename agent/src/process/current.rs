//! What the agent is: its arguments as an ordinary process, none as PID 1 of a guest; and its end.

use std::sync::OnceLock;

use super::arguments::Arguments;
use crate::error::{Error, Result};
use crate::status;

pub(super) static ARGUMENTS: OnceLock<Arguments> = OnceLock::new();
/// The signals that end the agent.
pub(super) const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Whether the agent is an ordinary process, not PID 1 of a guest.
pub fn is_ordinary() -> bool {
    ARGUMENTS.get().is_some()
}

/// Report that `what` needs a guest around it, if there is none.
///
/// plait sends an ordinary process neither programs nor modules. If root runs plait in a folder of another user, that
/// user can replace the plan.
pub fn require_guest(what: &str) -> Result<()> {
    if is_ordinary() {
        return Err(Error::new(format!("{what} needs a guest around it, and this machine is none")));
    }
    Ok(())
}

/// Be an ordinary process that shares its network namespace with others.
pub fn share_namespace() {
    ARGUMENTS.get_or_init(|| Arguments { node: Some(String::new()), ..Default::default() });
}

/// Return the node as which the agent acts in its present network namespace, if it does.
pub fn node() -> Option<&'static str> {
    ARGUMENTS.get()?.node.as_deref()
}

/// Return the limits of what this machine may send: bytes, and bit/s.
pub fn sending_limits() -> (Option<u64>, Option<u64>) {
    ARGUMENTS.get().map_or((None, None), |arguments| (arguments.most_bytes, arguments.most_rate))
}

/// Report the outcome and end the process. None: success.
pub fn end(error: Option<&str>) -> ! {
    status::write(error);
    std::process::exit(i32::from(error.is_some()))
}
