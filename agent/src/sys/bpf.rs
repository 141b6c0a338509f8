//! bpf(2): load a program that changes the result of a function of the kernel, and attach it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Result;

use super::calls::{last_errno, size32};

const PROG_LOAD: i32 = 5;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const TRACING: u32 = 26;
const MODIFY_RETURN: u32 = 26;
const LICENSE: &std::ffi::CStr = c"Apache-2.0";

/// The first fields of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    /// `log_level` to `prog_ifindex`.
    unused: [u64; 5],
    interface: u32,
    attach_type: u32,
    /// `prog_btf_fd` to `line_info_cnt`.
    unused_too: [u32; 9],
    function: u32,
}

/// The fields of `union bpf_attr` for `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
struct Open {
    name: u64,
    program: u32,
    unused: u32,
}

/// Let `instructions` decide what the kernel's function with this BTF ID returns, as long as the
/// returned descriptor is open.
pub fn modify_return(instructions: &[u64], function: u32) -> Result<OwnedFd> {
    let load = Load {
        kind: TRACING,
        instruction_count: size32(instructions.len()),
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        attach_type: MODIFY_RETURN,
        function,
        ..Load::default()
    };
    let program = call(PROG_LOAD, &load)?;
    call(RAW_TRACEPOINT_OPEN, &Open { name: 0, program: program.as_raw_fd().unsigned_abs(), unused: 0 })
}

/// Call bpf(2) with a command that returns a descriptor.
fn call<Attributes>(command: i32, attributes: &Attributes) -> Result<OwnedFd> {
    // SAFETY: the kernel reads `attributes`, and what those point to, which lives until the call has
    // returned; it writes to neither.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<Attributes>())
    };
    match i32::try_from(result) {
        // SAFETY: the kernel has just opened it for this process.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(last_errno()),
    }
}
