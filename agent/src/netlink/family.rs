//! Generic netlink families. The kernel chooses their numbers when it boots.

use std::collections::BTreeMap;

use netlink_bindings::nlctrl;
use netlink_bindings::traits::NetlinkRequest;

use super::message::kernel_type;
use super::socket::Socket;
use crate::error::{Attempt, Error, Result};

/// The numbers of a generic netlink family.
#[derive(Debug, Clone)]
pub struct GenericFamily {
    /// The message type.
    pub id: u16,
    /// The version of the family's messages.
    pub version: u32,
    groups: BTreeMap<String, u32>,
}

impl GenericFamily {
    /// Look up `family`.
    pub fn resolve(socket: &mut Socket, family: &str) -> Result<Self> {
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name_bytes(family.as_bytes());
        let mut resolved = None;
        let context = || format!("resolving generic netlink family {family}");
        socket
            .ask(&request, kernel_type(&request), |payload| {
                let reply = nlctrl::OpGetfamilyDo::decode_reply(payload);
                let groups = reply.get_mcast_groups().into_iter().flatten();
                let groups = groups.filter_map(|group| {
                    Some((group.get_name().ok()?.to_string_lossy().into_owned(), group.get_id().ok()?))
                });
                resolved = reply.get_family_id().ok().map(|id| Self {
                    id,
                    version: reply.get_version().unwrap_or_default(),
                    groups: groups.collect(),
                });
            })
            .attempt(context)?;
        resolved.ok_or_else(|| Error::because(context(), "the kernel's answer has no family id"))
    }

    /// Return the number of the multicast group called `name`.
    pub fn group(&self, name: &str) -> Result<u32> {
        let missing = || Error::new(format!("generic netlink family {} has no group {name}", self.id));
        self.groups.get(name).copied().ok_or_else(missing)
    }
}
