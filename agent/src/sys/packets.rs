//! Packets of an interface in a ring that the kernel fills (`TPACKET_V2` of packet(7)).
//!
//! The kernel copies the beginning of each packet into the ring and releases the packet at once. An
//! ordinary packet socket would keep a reference to the packet; the receiver cannot merge segments
//! with other references, so the capture would change the traffic.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::io::Result;

use super::calls::{check, getsockopt, last_errno, setsockopt, size32};

/// The size of a block of the ring.
const BLOCK_BYTES: usize = 128 * 1024;
const BLOCKS: usize = 64;
/// The bytes before the packet: `struct tpacket2_hdr` of 32 bytes, `struct sockaddr_ll`, and
/// padding that aligns the network header after 14 bytes of Ethernet.
const PACKET_OFFSET: usize = 66;
const ALIGNMENT: usize = 16;
/// The offset of `sll_pkttype` in the `struct sockaddr_ll` after the header.
const KIND_OFFSET: usize = 32 + 10;
/// Limit on the bytes kept of a packet.
pub const KEEP_MAX: usize = 65_600;
const TPACKET_V2: i32 = 1;
const NS_PER_S: i64 = 1_000_000_000;

/// A packet in the ring.
pub struct Packet<'a> {
    /// `CLOCK_REALTIME` in ns, when the interface sent or received it.
    pub realtime_ns: i64,
    /// Whether the node sent the packet; otherwise it received it.
    pub outgoing: bool,
    /// Its length on the wire.
    pub length: usize,
    /// Its first bytes, up to the requested number.
    pub bytes: &'a [u8],
}

/// A packet socket and its ring.
pub struct PacketRing {
    socket: OwnedFd,
    base: NonNull<u8>,
    frame_bytes: usize,
    frames: usize,
    next: usize,
}

impl PacketRing {
    /// Create a ring for the packets of interface `ifindex` that keeps `keep` bytes of each.
    /// `socket` is a raw packet socket without a protocol, in the interface's namespace.
    pub fn new(socket: OwnedFd, ifindex: i32, keep: usize) -> Result<Self> {
        let fd = socket.as_fd();
        let keep = keep.min(KEEP_MAX);
        let frame_bytes = (PACKET_OFFSET + keep).next_multiple_of(ALIGNMENT);
        let frames = BLOCK_BYTES / frame_bytes * BLOCKS;
        // A filter of one instruction, "return keep", sets how much the kernel copies.
        let code = libc::BPF_RET | libc::BPF_K;
        let mut filter = libc::sock_filter {
            code: u16::try_from(code).unwrap_or_default(),
            jt: 0,
            jf: 0,
            k: size32(keep),
        };
        let program = libc::sock_fprog { len: 1, filter: &raw mut filter };
        setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        setsockopt(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
        let ring: [u32; 4] = [BLOCK_BYTES, BLOCKS, frame_bytes, frames].map(size32);
        setsockopt(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &ring)?;
        // SAFETY: maps the socket's ring, at an address that the kernel chooses.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK_BYTES * BLOCKS,
                access,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(last_errno());
        }
        // After a fork, User-Mode Linux would mistake the owner of the ring's pages when the child unmaps
        // them.
        // SAFETY: the range was just mapped, and keeps its content.
        check(unsafe { libc::madvise(base, BLOCK_BYTES * BLOCKS, libc::MADV_DONTFORK) })?;
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: all zero is a valid sockaddr_ll, a structure of integers.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::sa_family_t::try_from(libc::AF_PACKET).unwrap_or_default();
        address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be();
        address.sll_ifindex = ifindex;
        // SAFETY: the kernel reads the structure; its size is the next argument.
        check(unsafe {
            let size = size32(size_of::<libc::sockaddr_ll>());
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size)
        })?;
        Ok(Self { socket, base, frame_bytes, frames, next: 0 })
    }

    /// Return how many packets fit into the ring.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Pass the pending packets to `each`, in order, and return their frames to the kernel.
    pub fn take(&mut self, mut each: impl FnMut(&Packet<'_>)) {
        // Stop after one round of the ring, even if packets arrive faster than they are read.
        for _ in 0..self.frames {
            let in_block = BLOCK_BYTES / self.frame_bytes;
            let offset = self.next / in_block * BLOCK_BYTES + self.next % in_block * self.frame_bytes;
            // SAFETY: the frame lies within the mapping (`next` is below `frames`), is aligned for 32-bit words, and the
            // mapping lives as long as the ring. Only the status is touched while the kernel owns the frame.
            #[allow(clippy::cast_ptr_alignment)] // frames are aligned to 16 bytes in a mapping of whole pages
            let status = unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU32>() };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return;
            }
            // SAFETY: see above; this status means that the kernel has left the frame to us.
            let frame =
                unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset), self.frame_bytes) };
            if let Some(packet) = read(frame) {
                each(&packet);
            }
            fence(Ordering::SeqCst);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.frames;
        }
    }

    /// Return how many packets the kernel has dropped since the last call because the ring was
    /// full.
    pub fn lost(&self) -> Result<u32> {
        let mut bytes = [0; 8]; // `struct tpacket_stats`: packets, drops
        getsockopt(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut bytes)?;
        Ok(u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]))
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this ring's own, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// Decode `struct tpacket2_hdr`: status, length, kept bytes, offset of the packet (16 bits) and of
/// its network header, s, ns.
fn read(frame: &[u8]) -> Option<Packet<'_>> {
    let word = |at: usize| Some(u32::from_ne_bytes(*frame.get(at..)?.first_chunk()?));
    let kept = word(8)? as usize;
    let start = usize::from(u16::from_ne_bytes(*frame.get(12..)?.first_chunk()?));
    Some(Packet {
        realtime_ns: i64::from(word(16)?) * NS_PER_S + i64::from(word(20)?),
        outgoing: *frame.get(KIND_OFFSET)? == libc::PACKET_OUTGOING,
        length: word(4)? as usize,
        bytes: frame.get(start..start + kept)?,
    })
}
