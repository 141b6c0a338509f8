//! Captures of a session: a file for each network namespace that programs name (`ip netns add`).
//!
//! A thread lives in the mounts of the programs, where the names are. It follows the names with
//! inotify(7), and moves from namespace to namespace. Times count from the guest's boot, as in a
//! trace. The kernel fills the rings, so a packet takes no virtual time; a round of the thread does.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, open, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::clock;
use crate::error::{Attempt, Error, Result};
use crate::monitor::{Recording, Writer};
use crate::sys::{self, PacketRing};

/// The folder with the names of network namespaces.
const NAMES: &str = "/run/netns";
/// How often to empty the rings.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How often to try a name whose namespace is not mounted yet, and how many times. It is mounted two
/// system calls later.
const SHORT_ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
const PATIENCE: u32 = 5000;
/// Interface number of a packet socket for all interfaces.
const ALL_INTERFACES: i32 = 0;
const EVENT_BYTES: usize = 4096;
/// The file system of namespaces.
const NSFS_MAGIC: i64 = 0x6e73_6673;

/// The captures of a session.
pub struct Captures {
    /// Closed to end the thread.
    stop: OwnedFd,
    thread: JoinHandle<Result<()>>,
}

impl Captures {
    /// Capture `keep` bytes of each packet to files in `folder`, from now on. `mounts` is the mount
    /// namespace of the programs.
    pub fn start(mounts: OwnedFd, folder: &Path, keep: u32) -> Result<Self> {
        let context = || "capturing packets";
        let creating = || format!("creating {}", folder.display());
        fs::create_dir_all(folder).attempt(creating)?;
        // The programs' mounts do not have this folder.
        let folder = OwnedFd::from(fs::File::open(folder).attempt(creating)?);
        let (stopped, stop) = rustix::pipe::pipe().attempt(context)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        let follow = move || {
            let names = watch(&mounts);
            let _ = sender.send(names.is_ok()); // the receiver waits for it
            let mut captures = Named { folder, keep, open: BTreeMap::new(), made: BTreeMap::new() };
            captures.follow(&names?, &stopped)
        };
        let thread = thread::Builder::new().spawn(follow).attempt(context)?;
        let captures = Self { stop, thread };
        if receiver.recv().unwrap_or(false) {
            return Ok(captures);
        }
        captures.finish()?;
        Err(Error::because(context(), "the thread ended"))
    }

    /// Complete the files. Fail if a capture failed or has gaps.
    pub fn finish(self) -> Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(Error::because("capturing packets", "the thread panicked")))
    }
}

/// Enter the mounts of the programs, and return a descriptor that reports new and removed names.
fn watch(mounts: &OwnedFd) -> Result<OwnedFd> {
    sys::unshare(UnshareFlags::NEWNS | UnshareFlags::FS)
        .and_then(|()| move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount)))
        .attempt(|| "entering the mounts of the programs")?;
    let context = || format!("watching {NAMES}");
    let names = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).attempt(context)?;
    inotify::add_watch(&names, NAMES, WatchFlags::CREATE | WatchFlags::DELETE).attempt(context)?;
    Ok(names)
}

/// The captures of the named namespaces.
struct Named {
    folder: OwnedFd,
    keep: u32,
    open: BTreeMap<String, Recording>,
    /// The number of the last file of each name.
    made: BTreeMap<String, u32>,
}

impl Named {
    /// Follow the names until the other end of `stopped` is closed.
    fn follow(&mut self, names: &OwnedFd, stopped: &OwnedFd) -> Result<()> {
        // A name appears shortly before its namespace is mounted there.
        let mut expected: BTreeMap<String, u32> = BTreeMap::new();
        loop {
            let mut ready = [PollFd::new(names, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
            let most = match (expected.is_empty(), self.open.is_empty()) {
                (false, _) => Some(&SHORT_ROUND),
                (true, false) => Some(&ROUND),
                (true, true) => None,
            };
            match poll(&mut ready, most) {
                Err(Errno::INTR) => continue,
                other => other.attempt(|| "waiting for names of namespaces")?,
            };
            let is_over = !ready[1].revents().is_empty();
            for (name, is_new) in changes(names)? {
                if is_new {
                    expected.insert(name, 0);
                } else {
                    expected.remove(&name);
                    self.open.remove(&name).map_or(Ok(()), complete)?;
                }
            }
            for (name, tries) in std::mem::take(&mut expected) {
                if !self.attach(&name)? && tries < PATIENCE {
                    expected.insert(name, tries + 1);
                }
            }
            self.open.values_mut().try_for_each(|capture| capture.read(boot_ns()))?;
            if is_over {
                return std::mem::take(&mut self.open).into_values().try_for_each(complete);
            }
        }
    }

    /// Start the capture of a namespace. Return false if the name has none yet, and may get one.
    fn attach(&mut self, name: &str) -> Result<bool> {
        let context = || format!("capturing the packets of namespace {name}");
        // Programs put what they like into the folder; the open of a FIFO would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(file) = open(Path::new(NAMES).join(name), flags, Mode::empty()) else { return Ok(false) };
        if fstatfs(&file).attempt(context)?.f_type != NSFS_MAGIC {
            let kind = FileType::from_raw_mode(fstat(&file).attempt(context)?.st_mode);
            return Ok(kind != FileType::RegularFile); // `ip` makes a regular file, and mounts the namespace on it
        }
        match move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)) {
            Err(Errno::INVAL) => return Ok(false),
            entered => entered.attempt(context)?,
        }
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
        let ring = PacketRing::new(socket.attempt(context)?, ALL_INTERFACES, self.keep as usize);
        let file = self.create(name).attempt(context)?;
        let file = Writer::begin(file.into(), name, self.keep).attempt(context)?;
        let subject = format!("the packets of namespace {name}");
        self.open.insert(name.to_owned(), Recording::new(file, ring.attempt(context)?, subject));
        Ok(true)
    }

    /// Create the next file of a name. `a-2` may be the second file of `a`, or that of a namespace with
    /// this name; each name takes the next free number.
    fn create(&mut self, name: &str) -> rustix::io::Result<OwnedFd> {
        let made = self.made.entry(name.to_owned()).or_insert(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            *made += 1;
            let file = if *made == 1 { format!("{name}.pcapng") } else { format!("{name}-{made}.pcapng") };
            match openat(&self.folder, file, flags, Mode::from_raw_mode(0o644)) {
                Err(Errno::EXIST) => {}
                opened => return opened,
            }
        }
    }
}

/// Return the names that appeared (true) and disappeared, in order.
fn changes(names: &OwnedFd) -> Result<Vec<(String, bool)>> {
    let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
    let mut reader = inotify::Reader::new(names, &mut buffer);
    let mut changes = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => {
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                changes.extend(name.map(|name| (name, event.events().contains(ReadFlags::CREATE))));
            }
            Err(Errno::AGAIN) => return Ok(changes),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).attempt(|| format!("watching {NAMES}")),
        }
    }
}

/// Return the guest's boot in ns of `CLOCK_REALTIME`.
fn boot_ns() -> i64 {
    clock::realtime_zero_ns() - clock::zero_ns()
}

/// Complete the file of a namespace.
fn complete(mut capture: Recording) -> Result<()> {
    capture.read(boot_ns())?;
    capture.flush()
}
