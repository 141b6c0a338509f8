//! `MPTCP_FULL_INFO`: a connection and its subflows in one system call.

use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Result;

use super::calls::{check, size32};
use super::sockets::TCP_INFO_BYTES;

/// `SOL_MPTCP` and its option (`linux/mptcp.h`), which libc lacks.
const SOL_MPTCP: i32 = 284;
const MPTCP_FULL_INFO: i32 = 4;
/// Bytes of `struct mptcp_info` that the agent requests.
pub const MPTCP_INFO_BYTES: usize = 96;
/// Bytes of `struct mptcp_subflow_info`: a 32-bit id, padding to 8, and two socket addresses of 128 bytes.
pub const SUBFLOW_INFO_BYTES: usize = 264;
/// The kernel allows 8 subflows in addition to the initial one; closing ones may remain for a
/// while.
pub const SUBFLOWS_MAX: usize = 32;

/// `struct mptcp_full_info` of `linux/mptcp.h`.
#[repr(C)]
struct FullInfoHeader {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    mptcp_info: [u8; MPTCP_INFO_BYTES],
}

/// The result of `MPTCP_FULL_INFO`: the connection, and each subflow's identity and `tcp_info`.
pub struct FullInfo {
    mptcp: [u8; MPTCP_INFO_BYTES],
    mptcp_length: usize,
    identities: Box<[u8; SUBFLOW_INFO_BYTES * SUBFLOWS_MAX]>,
    identity_length: usize,
    tcp: Box<[u8; TCP_INFO_BYTES * SUBFLOWS_MAX]>,
    tcp_length: usize,
    count: usize,
}

impl FullInfo {
    /// Allocate space for one result; each call reuses it.
    pub fn new() -> Self {
        Self {
            mptcp: [0; MPTCP_INFO_BYTES],
            mptcp_length: 0,
            identities: Box::new([0; SUBFLOW_INFO_BYTES * SUBFLOWS_MAX]),
            identity_length: SUBFLOW_INFO_BYTES,
            tcp: Box::new([0; TCP_INFO_BYTES * SUBFLOWS_MAX]),
            tcp_length: TCP_INFO_BYTES,
            count: 0,
        }
    }

    /// Read the socket's state (one system call, which takes the socket lock).
    pub fn read(&mut self, fd: BorrowedFd<'_>) -> Result<()> {
        let mut header = FullInfoHeader {
            size_tcpinfo_kernel: 0,
            size_tcpinfo_user: size32(TCP_INFO_BYTES),
            size_sfinfo_kernel: 0,
            size_sfinfo_user: size32(SUBFLOW_INFO_BYTES),
            num_subflows: 0,
            size_arrays_user: size32(SUBFLOWS_MAX),
            subflow_info: self.identities.as_mut_ptr().expose_provenance() as u64,
            tcp_info: self.tcp.as_mut_ptr().expose_provenance() as u64,
            mptcp_info: [0; MPTCP_INFO_BYTES],
        };
        let mut length = size32(size_of::<FullInfoHeader>());
        // SAFETY: the kernel writes at most `length` bytes of `header`, and through its two pointers at most
        // `size_arrays_user` elements of at most `size_sfinfo_user` and `size_tcpinfo_user` bytes, which is what
        // the two boxes hold; it keeps none of the pointers.
        check(unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                SOL_MPTCP,
                MPTCP_FULL_INFO,
                (&raw mut header).cast(),
                &raw mut length,
            )
        })?;
        self.mptcp = header.mptcp_info;
        self.mptcp_length = (length as usize).saturating_sub(offset_of!(FullInfoHeader, mptcp_info));
        // The kernel packs the elements with the size of the shorter structure, its own or ours.
        self.identity_length = (header.size_sfinfo_user as usize).clamp(1, SUBFLOW_INFO_BYTES);
        self.tcp_length = (header.size_tcpinfo_user as usize).clamp(1, TCP_INFO_BYTES);
        self.count = (header.num_subflows as usize).min(SUBFLOWS_MAX);
        Ok(())
    }

    /// Return the bytes of `struct mptcp_info`.
    pub fn mptcp(&self) -> &[u8] {
        &self.mptcp[..self.mptcp_length.min(MPTCP_INFO_BYTES)]
    }

    /// Yield the bytes of `struct mptcp_subflow_info` and of `struct tcp_info` for each live
    /// subflow.
    pub fn subflows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let identities = self.identities.chunks_exact(self.identity_length);
        identities.zip(self.tcp.chunks_exact(self.tcp_length)).take(self.count)
    }
}
