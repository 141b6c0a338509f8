//! MPTCP sockets for programs that ask for TCP.
//!
//! The laboratory kernel has a setting for it, for each namespace. A stock kernel (since Linux 6.6)
//! calls `update_socket_protocol` for every new socket, for which BPF can answer. The agent's answer
//! is for one control group.

use std::os::fd::OwnedFd;

use super::confine::Group;
use crate::apply::write_sysctl;
use crate::error::{Attempt, Error, Result};
use crate::machine;
use crate::sys;

/// A patch of the laboratory kernel.
const REPLACE_TCP: &str = "net/mptcp/replace_tcp";
const FUNCTION: &str = "update_socket_protocol";
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Give programs in the namespace of this thread, or in `group`, MPTCP sockets instead of TCP
/// sockets. What is returned must live as long as the programs.
pub fn replace_tcp(group: &Group) -> Result<Option<OwnedFd>> {
    if !machine::is_this_one() {
        return write_sysctl(REPLACE_TCP, "1").map(|()| None);
    }
    let types = std::fs::read(TYPES).attempt(|| format!("reading {TYPES}"))?;
    let function = function_id(&types, FUNCTION)
        .ok_or_else(|| Error::new(format!("the kernel has no {FUNCTION}, which gives programs MPTCP")))?;
    sys::modify_return(&answer(group.id()?), function)
        .attempt(|| format!("answering for {FUNCTION}"))
        .map(Some)
}

/// Return the number of a function in the kernel's types (Documentation/bpf/btf.rst).
fn function_id(types: &[u8], wanted: &str) -> Option<u32> {
    const HEADER: usize = 24;
    const FUNC: u32 = 12;
    let word = |at: usize| types.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let offset = |at: usize| word(at).and_then(|value| usize::try_from(value).ok());
    let begin = offset(4)?;
    let (mut at, end) = (begin + offset(8)?, begin + offset(8)? + offset(12)?);
    let names = types.get(begin + offset(16)?..)?;
    let is_wanted = |start: usize| {
        let rest = names.get(start..).unwrap_or_default();
        rest.strip_prefix(wanted.as_bytes()).is_some_and(|after| after.first() == Some(&0))
    };
    debug_assert!(begin >= HEADER);
    let mut id = 1;
    while at < end {
        let info = word(at + 4)?;
        let (kind, count) = (info >> 24 & 0x1f, usize::try_from(info & 0xffff).ok()?);
        if kind == FUNC && is_wanted(offset(at)?) {
            return Some(id);
        }
        at += 12
            + match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                _ => 0,
            };
        id += 1;
    }
    None
}

/// Return a program that answers MPTCP when a process of the control group asks for a TCP socket,
/// and what was asked otherwise. Its context has the function's arguments: family, type, protocol.
fn answer(group: u64) -> Vec<u64> {
    const LOAD: u8 = 0x79; // dst = *(u64 *)(src + offset)
    const MOVE: u8 = 0xbf;
    const MOVE_NUMBER: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const LOAD_NUMBER: u8 = 0x18; // 64 bits, in two instructions
    const UNLESS: u8 = 0x5d; // dst != src
    const IF_NUMBER: u8 = 0x16; // 32 bits
    const UNLESS_NUMBER: u8 = 0x56; // 32 bits
    const MASK: u8 = 0x54; // 32 bits
    const EXIT: u8 = 0x95;
    const CURRENT_GROUP: u32 = 80; // bpf_get_current_cgroup_id
    let (low, high) = (group & 0xffff_ffff, group >> 32);
    let number = |value: u64| u32::try_from(value).unwrap_or_default();
    vec![
        instruction(MOVE, 6, 1, 0, 0),
        instruction(LOAD, 7, 6, 16, 0), // the protocol
        instruction(CALL, 0, 0, 0, CURRENT_GROUP),
        instruction(LOAD_NUMBER, 1, 0, 0, number(low)),
        instruction(0, 0, 0, 0, number(high)),
        instruction(UNLESS, 0, 1, 9, 0),
        instruction(LOAD, 2, 6, 0, 0), // the family
        instruction(IF_NUMBER, 2, 0, 1, libc::AF_INET.unsigned_abs()),
        instruction(UNLESS_NUMBER, 2, 0, 6, libc::AF_INET6.unsigned_abs()),
        instruction(LOAD, 2, 6, 8, 0), // the type, with flags
        instruction(MASK, 2, 0, 0, 0xf),
        instruction(UNLESS_NUMBER, 2, 0, 3, libc::SOCK_STREAM.unsigned_abs()),
        instruction(IF_NUMBER, 7, 0, 1, 0),
        instruction(UNLESS_NUMBER, 7, 0, 1, libc::IPPROTO_TCP.unsigned_abs()),
        instruction(MOVE_NUMBER, 7, 0, 0, libc::IPPROTO_MPTCP.unsigned_abs()),
        instruction(MOVE, 0, 7, 0, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// Encode an instruction; `offset` of a jump counts from the next one.
fn instruction(code: u8, target: u8, source: u8, offset: u16, number: u32) -> u64 {
    u64::from(code)
        | u64::from(target) << 8
        | u64::from(source) << 12
        | u64::from(offset) << 16
        | u64::from(number) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `struct`, with two members, then `int f(..)`, then `g`.
    fn types() -> Vec<u8> {
        let names = b"\0fg\0f\0";
        let words: [u32; 15] = [0, 4 << 24 | 2, 8, 0, 0, 0, 0, 0, 0, 1, 12 << 24, 0, 4, 12 << 24, 0];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = u32::try_from(body.len()).unwrap();
        let mut whole = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, length, length, 6] {
            whole.extend(u32::to_le_bytes(word));
        }
        whole.extend(body);
        whole.extend(names);
        whole
    }

    #[test]
    fn a_function_has_the_number_of_its_place_among_all_types() {
        assert_eq!(function_id(&types(), "f"), Some(3), "fg is another function");
        assert_eq!(function_id(&types(), "fg"), Some(2));
        assert_eq!(function_id(&types(), "h"), None);
        for length in 0..types().len() - 6 {
            assert_eq!(function_id(&types()[..length], "f"), None, "cut after {length} bytes");
        }
    }

    #[test]
    fn jumps_end_at_the_answer() {
        let program = answer(0x1_0000_0002);
        assert_eq!(program[3] >> 32, 2);
        assert_eq!(program[4] >> 32, 1);
        for (place, word) in program.iter().enumerate() {
            let (code, offset) = (word & 0xff, usize::try_from(word >> 16 & 0xffff).unwrap());
            if [0x5d, 0x56].contains(&code) {
                assert_eq!(place + 1 + offset, program.len() - 2, "instruction {place}");
            }
        }
    }
}
