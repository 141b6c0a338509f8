//! The rows of the table of system calls: what a guest may call, what that reaches, and why it is safe.

use libc::c_long;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
use serde::Serialize;

/// Which guests may make a call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Guests {
    /// User-Mode Linux, and an emulator.
    All,
    /// An emulator (QEMU), which has threads and libraries.
    Emulators,
    /// A kernel that starts its processes from a program in memory (since Linux 6.13).
    ExecutingMemory,
    /// An emulator, or such a kernel, which may pass its processes a descriptor (since Linux 6.16).
    PassingDescriptors,
}

/// What the value of an argument must fulfil.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// It equals this value.
    Is(u32),
    /// It has none of these bits.
    Without(u32),
    /// It has no other bits than these.
    Within(u32),
    /// It is the null pointer.
    Null,
}

/// A condition on one argument of a call. The filter compares the lower 32 bits of a number, which are all that the
/// kernel uses of these arguments, and the 64 bits of a pointer.
#[derive(Clone, Copy, Serialize)]
pub struct Argument {
    /// Its position, from 0.
    pub position: u8,
    /// What it must fulfil.
    pub rule: Rule,
    /// What the value is, as in the manual.
    pub meaning: &'static str,
}

/// Why a call is safe.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// These attacks try it, and fail (`tests/security`).
    Attacks(&'static [&'static str]),
    /// It cannot do harm, for this reason.
    Harmless(&'static str),
    /// It can do harm that plait does not prevent.
    Unclaimed(&'static str),
}

/// One call that the filter lets through.
#[derive(Clone, Copy, Serialize)]
pub struct Row {
    /// Its name in the manual.
    pub call: &'static str,
    /// Its number on this architecture.
    pub number: c_long,
    /// Conditions on its arguments; all must hold.
    pub arguments: &'static [Argument],
    /// Which guests may make it.
    pub guests: Guests,
}

/// Rows that reach the same things and are safe for the same reason.
#[derive(Clone, Copy, Serialize)]
pub struct Group {
    /// What these calls reach of the host.
    pub reaches: &'static str,
    /// Why they are safe.
    pub proof: Proof,
    /// The calls.
    pub rows: &'static [Row],
}

impl Row {
    /// Limit the row to some guests.
    pub const fn of(self, guests: Guests) -> Self {
        Self { guests, ..self }
    }

    /// Return the rule of the filter; none if the row has no condition.
    pub fn rule(&self) -> Result<Option<SeccompRule>, BackendError> {
        if self.arguments.is_empty() {
            return Ok(None);
        }
        let conditions = self.arguments.iter().map(Argument::condition);
        SeccompRule::new(conditions.collect::<Result<_, _>>()?).map(Some)
    }
}

impl Argument {
    fn condition(&self) -> Result<SeccompCondition, BackendError> {
        let (length, operator, value) = match self.rule {
            Rule::Is(value) => (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value),
            Rule::Without(bits) => (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits.into()), 0),
            Rule::Within(bits) => (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq((!bits).into()), 0),
            Rule::Null => (SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0),
        };
        SeccompCondition::new(self.position, length, operator, value.into())
    }
}
