//! Every system call that a guest may make, with what it reaches of the host and why it is safe.
//!
//! User-Mode Linux needs these calls, and an emulator (QEMU) some more. The list comes from the
//! kernel's binary, which is static and contains every call that the kernel can make. It omits
//! `socket`, `connect`, `bind`, `accept` and `sendto` (for the management console and network back
//! ends, which no guest of plait has), locks, and the scheduler's settings.
//! `docs/explanation/security.md` describes the table, and `tests/security/test_system_calls.py` tests it.

use super::row::{Argument, Group, Guests, Proof, Row, Rule};

/// The row of a call, with conditions on its arguments.
macro_rules! call {
    ($name:ident, $number:ident $(, $position:literal $meaning:literal $rule:expr)*) => {
        Row {
            call: stringify!($name),
            number: libc::$number,
            arguments: &[$(Argument { position: $position, rule: $rule, meaning: $meaning }),*],
            guests: Guests::All,
        }
    };
}

const OUTSIDE: u32 = NEW_NAMESPACES | libc::CLONE_PARENT.cast_unsigned();
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const NO_SET_ID: Rule = Rule::Without(libc::S_ISUID | libc::S_ISGID);
/// The bit that the kinds of both character and block devices have, and no other kind.
const DEVICE: u32 = libc::S_IFCHR;
const STREAM: Rule = Rule::Within((libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32);
const SEALABLE: Rule = Rule::Without(libc::MFD_HUGETLB);
/// `F_SETSIG` of fcntl(2), which the library does not name.
const F_SETSIG: i32 = 10;
const fn is(value: i32) -> Rule {
    Rule::Is(value.cast_unsigned())
}

#[allow(clippy::cast_possible_truncation)] // ioctl(2) uses 32 bits
const fn request(value: libc::Ioctl) -> Rule {
    Rule::Is(value as u32)
}

/// The table. The filter consists of it and nothing else.
pub const TABLE: &[Group] = &[
    Group {
        reaches: "this process itself, and its clock and timers",
        proof: Proof::Harmless("no argument names anything outside of the process"),
        rows: &[
            call!(exit, SYS_exit),
            call!(exit_group, SYS_exit_group),
            call!(getpid, SYS_getpid),
            call!(gettid, SYS_gettid),
            call!(getppid, SYS_getppid),
            call!(getpgrp, SYS_getpgrp),
            call!(setsid, SYS_setsid),
            call!(set_tid_address, SYS_set_tid_address),
            call!(set_robust_list, SYS_set_robust_list),
            call!(rseq, SYS_rseq),
            call!(arch_prctl, SYS_arch_prctl),
            call!(personality, SYS_personality),
            call!(sched_yield, SYS_sched_yield),
            call!(prctl, SYS_prctl, 0 "PR_SET_PDEATHSIG" is(libc::PR_SET_PDEATHSIG)),
            call!(prctl, SYS_prctl, 0 "PR_SET_DUMPABLE" is(libc::PR_SET_DUMPABLE), 1 "0" is(0)),
            call!(prctl, SYS_prctl, 0 "PR_SET_NO_NEW_PRIVS" is(libc::PR_SET_NO_NEW_PRIVS)),
            call!(prctl, SYS_prctl, 0 "PR_SET_TIMERSLACK" is(libc::PR_SET_TIMERSLACK)).of(Guests::Emulators),
            call!(prctl, SYS_prctl, 0 "PR_SET_NAME" is(libc::PR_SET_NAME)).of(Guests::Emulators),
            call!(seccomp, SYS_seccomp, 0 "SECCOMP_SET_MODE_FILTER" Rule::Is(libc::SECCOMP_SET_MODE_FILTER)),
            call!(rt_sigaction, SYS_rt_sigaction),
            call!(rt_sigprocmask, SYS_rt_sigprocmask),
            call!(rt_sigreturn, SYS_rt_sigreturn),
            call!(rt_sigsuspend, SYS_rt_sigsuspend),
            call!(rt_sigtimedwait, SYS_rt_sigtimedwait),
            call!(sigaltstack, SYS_sigaltstack),
            call!(pause, SYS_pause),
            call!(timer_create, SYS_timer_create),
            call!(timer_settime, SYS_timer_settime),
            call!(timer_gettime, SYS_timer_gettime),
            call!(setitimer, SYS_setitimer),
            call!(clock_gettime, SYS_clock_gettime),
            call!(clock_nanosleep, SYS_clock_nanosleep),
            call!(nanosleep, SYS_nanosleep),
            call!(getrandom, SYS_getrandom),
            call!(getuid, SYS_getuid).of(Guests::Emulators),
            call!(geteuid, SYS_geteuid).of(Guests::Emulators),
            call!(getgid, SYS_getgid).of(Guests::Emulators),
            call!(getegid, SYS_getegid).of(Guests::Emulators),
            call!(getrlimit, SYS_getrlimit).of(Guests::Emulators),
            call!(membarrier, SYS_membarrier).of(Guests::Emulators),
        ],
    },
    Group {
        reaches: "limits of this process, all to read and one to change",
        proof: Proof::Attacks(&["let a crash start the host's program for crashes"]),
        rows: &[
            call!(prlimit64, SYS_prlimit64, 0 "this process" is(0), 2 "no new limit" Rule::Null),
            call!(prlimit64, SYS_prlimit64, 0 "this process" is(0), 1 "RLIMIT_STACK" Rule::Is(libc::RLIMIT_STACK)),
        ],
    },
    Group {
        reaches: "the release of the host's kernel, its processors, load and amount of memory",
        proof: Proof::Harmless("every process of the host may read them; nothing can be changed"),
        rows: &[
            call!(uname, SYS_uname),
            call!(sysinfo, SYS_sysinfo),
            call!(sched_getaffinity, SYS_sched_getaffinity).of(Guests::Emulators),
        ],
    },
    Group {
        reaches: "processes, by their numbers",
        proof: Proof::Attacks(&["kill a process", "trace a process", "signal its group", "signal everybody"]),
        rows: &[
            call!(kill, SYS_kill),
            call!(tgkill, SYS_tgkill),
            call!(ptrace, SYS_ptrace),
            call!(wait4, SYS_wait4),
        ],
    },
    Group {
        reaches: "new processes, which have the same layers",
        proof: Proof::Attacks(&[
            "make a namespace",
            "make a namespace with flags in memory",
            "leave a child to the supervisor",
            "gain privileges",
            "use a capability",
        ]),
        rows: &[
            call!(clone, SYS_clone, 0 "no new namespace, no child of the supervisor" Rule::Without(OUTSIDE)),
            call!(clone3, SYS_clone3).of(Guests::Emulators), // a second filter answers it with ENOSYS
        ],
    },
    Group {
        reaches: "programs",
        proof: Proof::Attacks(&["execute a file of the host", "execute a file of the emulator"]),
        rows: &[call!(execve, SYS_execve)],
    },
    Group {
        reaches: "programs that it writes into memory itself",
        proof: Proof::Harmless(
            "the process keeps this filter and all layers, so it can do no more than before",
        ),
        rows: &[call!(execveat, SYS_execveat, 4 "AT_EMPTY_PATH" is(libc::AT_EMPTY_PATH))
            .of(Guests::ExecutingMemory)],
    },
    Group {
        reaches: "memory of the host, as any process does",
        proof: Proof::Unclaimed("the amount is not limited; a cgroup's memory.max limits it"),
        rows: &[
            call!(memfd_create, SYS_memfd_create, 1 "no huge pages of the host's pool" SEALABLE),
            call!(mmap, SYS_mmap, 3 "no huge pages of the host's pool"
                Rule::Without(libc::MAP_HUGETLB.cast_unsigned())),
            call!(munmap, SYS_munmap),
            call!(mprotect, SYS_mprotect),
            call!(mremap, SYS_mremap),
            call!(brk, SYS_brk),
            call!(madvise, SYS_madvise, 2 "MADV_DONTNEED" is(libc::MADV_DONTNEED)),
            call!(madvise, SYS_madvise, 2 "MADV_REMOVE" is(libc::MADV_REMOVE)),
            call!(madvise, SYS_madvise, 2 "MADV_HUGEPAGE" is(libc::MADV_HUGEPAGE)),
            call!(madvise, SYS_madvise, 2 "MADV_DONTFORK" is(libc::MADV_DONTFORK)).of(Guests::Emulators),
            call!(madvise, SYS_madvise, 2 "MADV_DONTDUMP" is(libc::MADV_DONTDUMP)).of(Guests::Emulators),
        ],
    },
    Group {
        reaches: "memory that it shares with other processes",
        proof: Proof::Attacks(&["attach shared memory"]),
        rows: &[call!(futex, SYS_futex)],
    },
    Group {
        reaches: "descriptors that it has: of its console, its orders, its own files and pipes",
        proof: Proof::Harmless(
            "the console is a file that plait reads as hostile, and orders are a pair of sockets; both are plait's \
             for this guest alone",
        ),
        rows: &[
            call!(read, SYS_read),
            call!(readv, SYS_readv),
            call!(close, SYS_close),
            call!(dup, SYS_dup),
            call!(dup2, SYS_dup2),
            call!(dup3, SYS_dup3).of(Guests::Emulators),
            call!(pipe2, SYS_pipe2),
            call!(poll, SYS_poll),
            call!(ppoll, SYS_ppoll).of(Guests::Emulators),
            call!(epoll_create, SYS_epoll_create),
            call!(epoll_create1, SYS_epoll_create1),
            call!(epoll_ctl, SYS_epoll_ctl),
            call!(epoll_wait, SYS_epoll_wait),
            call!(eventfd2, SYS_eventfd2),
            call!(signalfd4, SYS_signalfd4),
            call!(timerfd_create, SYS_timerfd_create).of(Guests::Emulators),
            call!(timerfd_settime, SYS_timerfd_settime).of(Guests::Emulators),
            call!(lseek, SYS_lseek),
            call!(pread64, SYS_pread64),
            call!(preadv, SYS_preadv).of(Guests::Emulators),
            call!(recvmsg, SYS_recvmsg).of(Guests::PassingDescriptors),
            call!(shutdown, SYS_shutdown),
            call!(fcntl, SYS_fcntl, 1 "F_GETFD" is(libc::F_GETFD)),
            call!(fcntl, SYS_fcntl, 1 "F_SETFD" is(libc::F_SETFD)),
            call!(fcntl, SYS_fcntl, 1 "F_GETFL" is(libc::F_GETFL)),
            call!(fcntl, SYS_fcntl, 1 "F_SETFL" is(libc::F_SETFL)),
            call!(fcntl, SYS_fcntl, 1 "F_DUPFD_CLOEXEC" is(libc::F_DUPFD_CLOEXEC)),
        ],
    },
    Group {
        reaches: "sockets that a message names",
        proof: Proof::Attacks(&[
            "send to a datagram socket among the host's files",
            "send to an abstract datagram socket",
            "connect to a socket among the host's files",
            "connect to a socket in a folder",
            "connect to an abstract socket",
            "connect to the loopback",
        ]),
        rows: &[
            call!(socketpair, SYS_socketpair, 0 "AF_UNIX" is(libc::AF_UNIX), 1 "SOCK_STREAM" STREAM),
            // A connected stream socket ignores or refuses a name. Descriptors on their way count for the user.
            call!(sendmsg, SYS_sendmsg).of(Guests::PassingDescriptors),
        ],
    },
    Group {
        reaches: "processes that a descriptor signals, by SIGIO alone",
        proof: Proof::Attacks(&["choose the signal of a descriptor", "kill a process"]),
        rows: &[
            call!(fcntl, SYS_fcntl, 1 "F_SETSIG" is(F_SETSIG), 2 "SIGIO" is(libc::SIGIO)),
            call!(fcntl, SYS_fcntl, 1 "F_SETOWN" is(libc::F_SETOWN)),
        ],
    },
    Group {
        reaches: "settings of a terminal, to read them",
        proof: Proof::Attacks(&["change the terminal"]),
        rows: &[
            call!(ioctl, SYS_ioctl, 1 "TCGETS" request(libc::TCGETS)),
            call!(ioctl, SYS_ioctl, 1 "TIOCGWINSZ" request(libc::TIOCGWINSZ)),
            call!(ioctl, SYS_ioctl, 1 "FIONREAD" request(libc::FIONREAD)),
            call!(ioctl, SYS_ioctl, 1 "FIONBIO" request(libc::FIONBIO)),
        ],
    },
    Group {
        reaches: "names and attributes of the files that it sees",
        proof: Proof::Attacks(&["read the host's processes", "read a file that it was not given"]),
        rows: &[
            call!(newfstatat, SYS_newfstatat),
            call!(fstat, SYS_fstat),
            call!(statx, SYS_statx),
            call!(statfs, SYS_statfs),
            call!(access, SYS_access),
            call!(faccessat, SYS_faccessat).of(Guests::Emulators),
            call!(faccessat2, SYS_faccessat2).of(Guests::Emulators),
            call!(getdents64, SYS_getdents64),
            call!(getcwd, SYS_getcwd),
            call!(readlink, SYS_readlink),
            call!(readlinkat, SYS_readlinkat).of(Guests::Emulators),
            call!(fsync, SYS_fsync),
            call!(fdatasync, SYS_fdatasync),
            call!(sync_file_range, SYS_sync_file_range),
        ],
    },
    Group {
        reaches: "files and FIFOs that it sees",
        proof: Proof::Attacks(&[
            "write a file",
            "write to a FIFO among the host's files",
            "read a file that it was not given",
            "read a FIFO that it was not given",
            "lock a file",
            "lock a range of a file",
            "lock a file by its description",
            "take a lease",
            "watch a folder",
        ]),
        rows: &[call!(openat, SYS_openat, 3 "no set-user-ID" NO_SET_ID)],
    },
    Group {
        reaches: "the content and the space of files that it may write",
        proof: Proof::Attacks(&[
            "write more than is allowed",
            "write more to deleted files",
            "write more to a folder that cannot be listed",
        ]),
        rows: &[
            call!(write, SYS_write),
            call!(writev, SYS_writev),
            call!(pwrite64, SYS_pwrite64),
            call!(pwritev, SYS_pwritev).of(Guests::Emulators),
            call!(truncate, SYS_truncate),
            call!(ftruncate, SYS_ftruncate),
            call!(fallocate, SYS_fallocate),
        ],
    },
    Group {
        reaches: "names, modes, owners and times of files in folders that it may write",
        proof: Proof::Attacks(&[
            "leave a set-user-ID file",
            "write a file",
            "make too many files",
            "make a device",
            "change the mode of a device",
            "leave a whiteout",
        ]),
        rows: &[
            call!(chmod, SYS_chmod, 1 "no set-user-ID" NO_SET_ID),
            call!(fchmod, SYS_fchmod, 1 "no set-user-ID" NO_SET_ID),
            call!(mkdir, SYS_mkdir, 1 "no set-user-ID" NO_SET_ID),
            call!(mknodat, SYS_mknodat, 2 "no device, no set-user-ID"
                Rule::Without(DEVICE | libc::S_ISUID | libc::S_ISGID)),
            call!(chown, SYS_chown),
            call!(fchown, SYS_fchown),
            call!(lchown, SYS_lchown),
            call!(utimensat, SYS_utimensat),
            call!(futimesat, SYS_futimesat),
            call!(link, SYS_link),
            call!(symlink, SYS_symlink),
            call!(unlink, SYS_unlink),
            call!(rmdir, SYS_rmdir),
            call!(rename, SYS_rename),
            call!(renameat2, SYS_renameat2, 4 "no whiteout" Rule::Without(libc::RENAME_WHITEOUT)),
        ],
    },
];
