//! Format a netlink error message: errno, the kernel's extended ack, and the offending attribute.

use netlink_bindings::builtin::{NlmsgerrAttrs, Nlmsghdr};
use netlink_bindings::traits::LookupFn;
use rustix::io::Errno;

use crate::error::describe;

/// The size of `struct nlmsghdr`.
pub const HEADER_BYTES: usize = 16;

/// Return the error number of an `NLMSG_ERROR` or `NLMSG_DONE` message; None if it reports success.
pub fn errno(payload: &[u8]) -> Option<Errno> {
    let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    (code < 0).then(|| Errno::from_raw_os_error(-code))
}

/// Format `EINVAL (Invalid argument): Specified qdisc kind is unknown [attribute Kind]`.
pub fn failure(header: &Nlmsghdr, payload: &[u8], errno: Errno, lookup: LookupFn) -> String {
    let mut text = describe(errno);
    let Some((request, attributes)) = split(header, payload) else {
        return text;
    };
    let ack = NlmsgerrAttrs::new(attributes);
    if let Ok(message) = ack.get_msg() {
        text += ": ";
        text += &message.to_string_lossy();
    }
    let missing = ack.get_missing_type().ok();
    let offset = ack.get_offset().or_else(|_| ack.get_missing_nest()).ok();
    if let Some(offset) = offset.map(|offset| offset as usize).filter(|offset| *offset >= HEADER_BYTES) {
        let (trace, missing) = lookup(request, offset - HEADER_BYTES, missing);
        let names: Vec<_> = trace.iter().map(|(name, _)| *name).collect();
        if let Some(missing) = missing {
            text += &[" [", missing, " is missing in ", &names.join(" in "), "]"].concat();
        } else if !names.is_empty() {
            text += &[" [attribute ", &names.join(" in "), "]"].concat();
        }
    }
    text
}

/// Split the payload of an error into the echoed request (without its header) and the kernel's
/// attributes.
fn split<'a>(header: &Nlmsghdr, payload: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    if i32::from(header.flags) & libc::NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let body = payload.get(4..)?;
    if i32::from(header.r#type) == libc::NLMSG_DONE {
        return Some((&[], body));
    }
    let echo = Nlmsghdr::new_from_slice(body.get(..HEADER_BYTES)?)?;
    let capped = i32::from(header.flags) & libc::NLM_F_CAPPED != 0;
    let end = if capped { HEADER_BYTES } else { echo.len as usize };
    Some((body.get(HEADER_BYTES..end)?, body.get(end.next_multiple_of(4)..)?))
}
