//! The layers of containment.

use serde::{Deserialize, Serialize};

/// One layer. Each stops something that no other stops alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A user namespace: root in the sandbox is not root of the host.
    UserNamespace,
    /// A mount namespace whose root holds the guest's folder, its kernel, and at most the host's files, read-only.
    MinimalRoot,
    /// A PID namespace: no process of the host can be seen, signalled or traced.
    PidNamespace,
    /// A network namespace without a device, and with no abstract socket of the host.
    NetworkNamespace,
    /// An IPC namespace: no shared memory or message queue of the host.
    IpcNamespace,
    /// A UTS namespace: the host keeps its name.
    UtsNamespace,
    /// A cgroup namespace: no control group of the host.
    CgroupNamespace,
    /// No capability is left, and none can be gained.
    NoCapabilities,
    /// No program gives more privileges than its caller has.
    NoNewPrivileges,
    /// Limits on files, descriptors, processes and core dumps.
    ResourceLimits,
    /// The kernel allows only the system calls of User-Mode Linux.
    Seccomp,
    /// The kernel allows access only to the guest's folders, also to FIFOs, which mounts do not protect.
    Landlock,
}
