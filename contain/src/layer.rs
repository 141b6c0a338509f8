//! The layers of containment.

use serde::{Deserialize, Serialize};

/// One layer. Each stops an attack that no other layer stops alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A user namespace: root in the sandbox is not root of the host.
    UserNamespace,
    /// A mount namespace whose root holds the guest's folder, its kernel, and at most the host's files, read-only.
    MinimalRoot,
    /// A PID namespace: the guest cannot see, signal or trace any process of the host.
    PidNamespace,
    /// A network namespace without devices and without the host's abstract sockets.
    NetworkNamespace,
    /// An IPC namespace: no shared memory and no message queue of the host.
    IpcNamespace,
    /// A UTS namespace: the guest cannot change the host's name.
    UtsNamespace,
    /// A cgroup namespace: no control group of the host.
    CgroupNamespace,
    /// No capability, and no way to gain one.
    NoCapabilities,
    /// No program gains more privileges than its caller has.
    NoNewPrivileges,
    /// Limits on files, descriptors, processes and core dumps.
    ResourceLimits,
    /// The kernel allows only the system calls of User-Mode Linux.
    Seccomp,
    /// The kernel allows access only to the guest's folders. This includes FIFOs, which read-only
    /// mounts do not protect.
    Landlock,
}
