//! The layers of containment, and which of them hold in this sandbox.

use serde::{Deserialize, Serialize};

use crate::report::Failure;
use crate::spec::Spec;

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

/// What was asked for, and what holds.
pub struct Layers<'a> {
    spec: &'a Spec,
    /// Layers that hold.
    pub held: Vec<Layer>,
    /// Layers that this machine does not offer, and why.
    pub missing: Vec<(Layer, String)>,
}

impl<'a> Layers<'a> {
    /// Nothing holds yet.
    pub fn new(spec: &'a Spec) -> Self {
        Self { spec, held: Vec::new(), missing: Vec::new() }
    }

    /// Whether to build `layer` at all.
    pub fn wants(&self, layer: Layer) -> bool {
        !self.spec.without.contains(&layer)
    }

    /// Builds `layer` by `build`, unless it is to be left out. Fails when a layer that is required cannot be built.
    pub fn add(
        &mut self,
        layer: Layer,
        build: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        if !self.wants(layer) {
            return Ok(false);
        }
        match build() {
            Ok(()) => {
                self.held.push(layer);
                Ok(true)
            }
            Err(failure) if self.spec.required.contains(&layer) => {
                Err(Failure { layer: Some(layer), ..failure })
            }
            Err(failure) => {
                self.missing.push((layer, failure.reason));
                Ok(false)
            }
        }
    }
}
