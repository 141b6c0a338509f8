//! Netlink messages: frame requests, and split the kernel's data into answers.

use netlink_bindings::builtin::Nlmsghdr;
use netlink_bindings::traits::{LookupFn, NetlinkRequest, Protocol};
use netlink_bindings::utils::{finalize_nested_header, push_header, push_nested_header};

use super::explain;

pub use super::explain::HEADER_BYTES;

/// Flags of a message (`linux/netlink.h`).
pub const NLM_F_REQUEST: u16 = 1;
pub const NLM_F_ACK: u16 = 4;
pub const NLM_F_DUMP: u16 = 0x300;

/// The content of an answer.
pub enum Answer<'a> {
    Data(u16, &'a [u8]),
    Done,
    Failed(String),
}

/// A request that the bindings lack: its bytes, of a family with the message type that the sender gives.
#[derive(Debug, Default)]
pub struct RawRequest {
    pub flags: u16,
    pub payload: Vec<u8>,
}

impl RawRequest {
    /// Create a request for everything that the kernel has.
    pub fn dump(payload: Vec<u8>) -> Self {
        Self { flags: NLM_F_DUMP, payload }
    }
}

impl NetlinkRequest for RawRequest {
    type ReplyType<'buf> = ();

    fn protocol(&self) -> Protocol {
        Protocol::Generic(b"")
    }

    fn flags(&self) -> u16 {
        self.flags
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(_: &[u8]) {}
}

/// Append an attribute with its padding.
pub fn push_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    push_header(bytes, kind, u16::try_from(value.len()).expect("the agent cuts long values to pieces"));
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Append an attribute whose content `fill` appends.
pub fn push_nest<T>(bytes: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let nest = push_nested_header(bytes, kind);
    let result = fill(bytes);
    finalize_nested_header(bytes, nest);
    result
}

/// Return the message type of a request with a fixed number.
pub fn kernel_type(request: &impl NetlinkRequest) -> u16 {
    match request.protocol() {
        Protocol::Raw { request_type, .. } => request_type,
        // The kernel numbers generic families at boot; the caller passes the number.
        Protocol::Generic(_) => 0,
    }
}

/// Append one message: header, payload, padding.
pub fn push_message(out: &mut Vec<u8>, request: &impl NetlinkRequest, kernel_type: u16, ack: bool, seq: u32) {
    let payload = request.payload();
    let ack = if ack { NLM_F_ACK } else { 0 };
    let header = Nlmsghdr {
        len: u32::try_from(HEADER_BYTES + payload.len()).unwrap_or(u32::MAX),
        r#type: kernel_type,
        flags: request.flags() | NLM_F_REQUEST | ack,
        seq,
        pid: 0,
    };
    out.extend_from_slice(header.as_slice());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Split the data of one read into answers, each with its sequence number.
pub fn answers(mut bytes: &[u8], lookup: LookupFn) -> impl Iterator<Item = (u32, Answer<'_>)> {
    std::iter::from_fn(move || {
        let header = Nlmsghdr::new_from_slice(bytes.get(..HEADER_BYTES)?)?;
        let length = (header.len as usize).clamp(HEADER_BYTES, bytes.len());
        let payload = &bytes[HEADER_BYTES..length];
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        let answer = match i32::from(header.r#type) {
            libc::NLMSG_ERROR | libc::NLMSG_DONE => match explain::errno(payload) {
                None => Answer::Done,
                Some(errno) => Answer::Failed(explain::failure(&header, payload, errno, lookup)),
            },
            _ => Answer::Data(header.r#type, payload),
        };
        Some((header.seq, answer))
    })
}
