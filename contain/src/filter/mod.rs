//! The filter of system calls, made of the table in `table.rs`: every call without a row fails with
//! `EPERM`.
//!
//! The filter never sees the calls of the guest's programs: the guest's kernel traces them, and the
//! host skips a traced call before it consults the filter.

mod row;
mod table;

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

use crate::failure::Failure;
use crate::spec::Spec;
use row::Guests;
pub use table::TABLE;

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
fn without_clone3() -> Result<BpfProgram, BackendError> {
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let rules = [(libc::SYS_clone3, Vec::new())].into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, missing, TargetArch::x86_64)?.try_into()
}

fn compile(spec: &Spec) -> Result<BpfProgram, BackendError> {
    let has = |guests| match guests {
        Guests::All => true,
        Guests::Emulators => spec.emulator,
        Guests::ExecutingMemory => spec.executes_memory,
        Guests::PassingDescriptors => spec.emulator || spec.executes_memory,
    };
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    for row in TABLE.iter().flat_map(|group| group.rows).filter(|row| has(row.guests)) {
        rules.entry(row.number).or_default().extend(row.rule()?);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, TargetArch::x86_64)?.try_into()
}
