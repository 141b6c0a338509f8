//! The layers of containment that are active in this sandbox.

use crate::failure::Failure;
use crate::layer::Layer;
use crate::spec::Spec;

/// The requested layers and the active ones.
pub struct Layers<'a> {
    spec: &'a Spec,
    /// Active layers.
    pub held: Vec<Layer>,
    /// Layers that this machine does not offer, and why.
    pub missing: Vec<(Layer, String)>,
}

impl<'a> Layers<'a> {
    /// Start without active layers.
    pub fn new(spec: &'a Spec) -> Self {
        Self { spec, held: Vec::new(), missing: Vec::new() }
    }

    /// Build `layer` with `build`, unless the specification leaves it out. Fail if a required layer
    /// cannot be built.
    pub fn add(
        &mut self,
        layer: Layer,
        build: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        if self.spec.without.contains(&layer) {
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
