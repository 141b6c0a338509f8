//! The system calls that User-Mode Linux, or an emulator, needs of its host. Every other call fails
//! with `EPERM`.
//!
//! The list comes from the kernel's binary, which is static and contains every call that the kernel
//! can make. It omits `socket`, `connect`, `bind`, `accept` and `sendto` (for the management
//! console and network back ends, which no guest of plait has), and the scheduler's settings. The
//! filter never sees the calls of the guest's programs: the guest's kernel traces them, and the
//! host skips a traced call before it consults the filter.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::failure::Failure;
use crate::spec::Spec;

/// Start and end of the kernel, and the processes in which it runs the guest's programs.
const PROCESSES: [c_long; 20] = [
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_ptrace,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgrp,
    libc::SYS_setsid,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_arch_prctl,
    libc::SYS_personality,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_sched_yield,
];
/// The guest's memory: one memfd, mapped by all of its processes. `seccomp` serves `seccomp=on` of
/// Linux 6.16, which restricts the calls of the guest's programs further.
const MEMORY: [c_long; 11] = [
    libc::SYS_memfd_create,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_sysinfo,
    libc::SYS_seccomp,
];
/// The guest's clock and its interrupts, which are timers and signals. `signalfd4` serves an idle
/// guest of Linux 7.
const TIME: [c_long; 16] = [
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_pause,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_setitimer,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_uname,
];
/// The guest's console, and descriptors that it passes between its own processes. `socketpair`
/// connects to no other process.
const DESCRIPTORS: [c_long; 19] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_fcntl,
    libc::SYS_pipe2,
    libc::SYS_poll,
    libc::SYS_epoll_create,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd2,
    libc::SYS_socketpair,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
];
/// hostfs: the files in the sandbox's root.
const FILES: [c_long; 29] = [
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_access,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_readlink,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_utimensat,
    libc::SYS_futimesat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_sync_file_range,
    libc::SYS_flock,
];
/// Further calls of an emulator (QEMU), which has threads, and none of them for networks or devices.
const EMULATOR: [c_long; 17] = [
    libc::SYS_clone3,
    libc::SYS_ppoll,
    libc::SYS_dup3,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrlimit,
    libc::SYS_sched_getaffinity,
    libc::SYS_membarrier,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
];
/// Calls that set the mode of a file, and the argument with the mode. It must not contain the
/// set-user-ID or set-group-ID bit.
const MODES: [(c_long, u8); 5] = [
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_mkdir, 1),
    (libc::SYS_openat, 3),
    (libc::SYS_mknodat, 2),
];
/// Namespaces that `clone` must not make.
const NEW_NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
/// `ioctl` requests that insert characters into a terminal's input, where a shell would execute
/// them.
const TYPING: [u64; 2] = [libc::TIOCSTI, TIOCLINUX];
const TIOCLINUX: u64 = 0x541c;

/// Install the filter on this process and all its descendants.
pub fn install(spec: &Spec) -> Result<(), Failure> {
    let context = "filtering system calls";
    let mut programs = vec![compile(spec)];
    if spec.emulator {
        programs.push(without_clone3());
    }
    for program in programs {
        let program = program.map_err(|error| Failure::new(context, error))?;
        seccompiler::apply_filter(&program).map_err(|error| Failure::new(context, error))?;
    }
    Ok(())
}

/// Return a filter that claims that `clone3` does not exist: its flags are in memory, where no
/// filter can read them. The C library then calls `clone`.
fn without_clone3() -> Result<BpfProgram, seccompiler::BackendError> {
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let rules = [(libc::SYS_clone3, Vec::new())].into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, missing, TargetArch::x86_64)?.try_into()
}

fn compile(spec: &Spec) -> Result<BpfProgram, seccompiler::BackendError> {
    let more: &[c_long] = if spec.emulator { &EMULATOR } else { &[] };
    let whole = [&PROCESSES[..], &MEMORY, &TIME, &DESCRIPTORS, &FILES, more].concat();
    let mut rules: Vec<(c_long, Vec<SeccompRule>)> =
        whole.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, argument) in MODES {
        rules.push((
            call,
            vec![SeccompRule::new(vec![without_bits(argument, u64::from(libc::S_ISUID | libc::S_ISGID))?])?],
        ));
    }
    rules.push((libc::SYS_clone, vec![SeccompRule::new(vec![without_bits(0, NEW_NAMESPACES)?])?]));
    if spec.executes_memory {
        // With an open file; with a path it gives no more than execve(). The program keeps all layers.
        let empty_path = libc::AT_EMPTY_PATH as u64;
        let only = SeccompCondition::new(4, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, empty_path)?;
        rules.push((libc::SYS_execveat, vec![SeccompRule::new(vec![only])?]));
    }
    let not_typing = TYPING
        .into_iter()
        .map(|request| SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, request));
    rules.push((libc::SYS_ioctl, vec![SeccompRule::new(not_typing.collect::<Result<_, _>>()?)?]));
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules.into_iter().collect(), refuse, SeccompAction::Allow, TargetArch::x86_64)?
        .try_into()
}

/// Return the condition that no bit of `bits` is set in the call's argument.
fn without_bits(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), 0)
}
