//! The system calls that remain to a prototype's program once it has locked itself.
//!
//! A scheduler is a stranger's code, and a real host has no guest around it. The program therefore
//! installs these filters before it loads the scheduler. It can then compute, tell the time, and use
//! the descriptors that it has. Every other call fails with `EPERM`: the program opens no files and
//! no sockets, starts no processes, and signals none.

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::error::{Error, Result};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

const PROCESS: [c_long; 15] = [
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_clone3, // the other filter refuses it
];
const MEMORY: [c_long; 6] = [
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
];
const TIME: [c_long; 7] = [
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
];
/// On descriptors that the program has. It creates no others.
const DESCRIPTORS: [c_long; 13] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
];
/// Older calls, which this architecture has besides the newer ones.
#[cfg(target_arch = "x86_64")]
const OLDER: [c_long; 3] = [libc::SYS_time, libc::SYS_select, libc::SYS_poll];
#[cfg(target_arch = "aarch64")]
const OLDER: [c_long; 0] = [];

/// An instruction of a filter: code, jump if true, jump if false, k.
type Instruction = (u16, u8, u8, u32);

/// Return the filters, in the order in which the program installs them.
pub fn filters() -> Result<Vec<Vec<Instruction>>> {
    [without_clone3(), compile()]
        .into_iter()
        .map(|program| program.map(instructions))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::because("filtering the system calls of a prototype", error))
}

fn instructions(program: BpfProgram) -> Vec<Instruction> {
    program.into_iter().map(|each| (each.code, each.jt, each.jf, each.k)).collect()
}

/// `clone3` has its flags in memory, where no filter can read them. The C library then calls
/// `clone`.
#[allow(clippy::cast_sign_loss)] // error numbers are positive
fn without_clone3() -> std::result::Result<BpfProgram, BackendError> {
    let rules = [(libc::SYS_clone3, Vec::new())].into_iter().collect();
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, missing, ARCHITECTURE)?.try_into()
}

#[allow(clippy::cast_sign_loss)] // flags and error numbers are positive
fn compile() -> std::result::Result<BpfProgram, BackendError> {
    let whole = [&PROCESS[..], &MEMORY, &TIME, &DESCRIPTORS, &OLDER].concat();
    let mut rules: Vec<(c_long, Vec<SeccompRule>)> =
        whole.into_iter().map(|call| (call, Vec::new())).collect();
    let thread = libc::CLONE_THREAD as u64;
    rules.push((libc::SYS_clone, vec![argument(0, SeccompCmpOp::MaskedEq(thread), thread)?]));
    rules.push((libc::SYS_ioctl, vec![argument(1, SeccompCmpOp::Eq, libc::FIONBIO)?]));
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules.into_iter().collect(), refuse, SeccompAction::Allow, ARCHITECTURE)?.try_into()
}

/// Return the rule for one argument of a call.
fn argument(
    number: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> std::result::Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(number, SeccompCmpArgLen::Dword, operator, value)?])
}
