//! The system calls that User-Mode Linux needs of its host. Every other one fails with EPERM.
//!
//! The list was read off the kernel's binary, which is static: it holds every call that the kernel can make. What is
//! left out of it: `socket`, `connect`, `bind`, `accept` and `sendto` (the management console and network back ends,
//! which no guest of plait has), and the scheduler's settings. What programs of the guest call does not come here: the
//! guest's kernel traces them, and the host skips a traced call before it asks the filter.

use libc::{c_long, *};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::report::Failure;

/// Its own start, the end, and the processes in which it runs the guest's programs.
const PROCESSES: [c_long; 20] = [
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_wait4,
    SYS_kill,
    SYS_tgkill,
    SYS_ptrace,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getpgrp,
    SYS_setsid,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_arch_prctl,
    SYS_personality,
    SYS_prctl,
    SYS_prlimit64,
    SYS_sched_yield,
];
/// The guest's memory: one file in memory, mapped by all of its processes. `seccomp` serves `seccomp=on` of Linux 6.16,
/// which lets the guest's programs make even fewer calls.
const MEMORY: [c_long; 11] = [
    SYS_memfd_create,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_sysinfo,
    SYS_seccomp,
];
/// Its clock and its interrupts, which are timers and signals.
const TIME: [c_long; 15] = [
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_pause,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_setitimer,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_uname,
];
/// Its console, and descriptors that it passes between its own processes: `socketpair` reaches nobody else.
const DESCRIPTORS: [c_long; 19] = [
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_dup,
    SYS_dup2,
    SYS_fcntl,
    SYS_pipe2,
    SYS_poll,
    SYS_epoll_create,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_wait,
    SYS_eventfd2,
    SYS_socketpair,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_shutdown,
];
/// hostfs: the files of the sandbox's root.
const FILES: [c_long; 29] = [
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_statfs,
    SYS_access,
    SYS_getdents64,
    SYS_getcwd,
    SYS_readlink,
    SYS_fsync,
    SYS_fdatasync,
    SYS_truncate,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_chown,
    SYS_fchown,
    SYS_lchown,
    SYS_utimensat,
    SYS_futimesat,
    SYS_link,
    SYS_symlink,
    SYS_unlink,
    SYS_rmdir,
    SYS_rename,
    SYS_renameat2,
    SYS_sync_file_range,
    SYS_flock,
];
/// Calls that give a file its mode, and the argument that holds it: none may set the user's or group's identity.
const MODES: [(c_long, u8); 5] =
    [(SYS_chmod, 1), (SYS_fchmod, 1), (SYS_mkdir, 1), (SYS_openat, 3), (SYS_mknodat, 2)];
/// Namespaces that `clone` must not make.
const NEW_NAMESPACES: u64 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET) as u64;
/// `ioctl` requests that put characters into a terminal's input, which a shell behind it would run.
const TYPING: [u64; 2] = [TIOCSTI as u64, TIOCLINUX];
const TIOCLINUX: u64 = 0x541c;

/// Puts the filter on this process and all that it starts.
pub fn install() -> Result<(), Failure> {
    let what = "filtering system calls";
    let program = compile().map_err(|error| Failure::new(what, error))?;
    seccompiler::apply_filter(&program).map_err(|error| Failure::new(what, error))
}

fn compile() -> Result<BpfProgram, seccompiler::BackendError> {
    let whole = [&PROCESSES[..], &MEMORY, &TIME, &DESCRIPTORS, &FILES].concat();
    let mut rules: Vec<(c_long, Vec<SeccompRule>)> =
        whole.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, argument) in MODES {
        rules.push((
            call,
            vec![SeccompRule::new(vec![without_bits(argument, u64::from(S_ISUID | S_ISGID))?])?],
        ));
    }
    rules.push((SYS_clone, vec![SeccompRule::new(vec![without_bits(0, NEW_NAMESPACES)?])?]));
    let not_typing = TYPING
        .into_iter()
        .map(|request| SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, request));
    rules.push((SYS_ioctl, vec![SeccompRule::new(not_typing.collect::<Result<_, _>>()?)?]));
    let refuse = SeccompAction::Errno(EPERM as u32);
    SeccompFilter::new(rules.into_iter().collect(), refuse, SeccompAction::Allow, TargetArch::x86_64)?
        .try_into()
}

/// None of `bits` is set in the call's argument.
fn without_bits(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), 0)
}
