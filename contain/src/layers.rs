//! Which layers of containment hold in this sandbox.

use crate::failure::Failure;
use crate::layer::Layer;
use crate::spec::Spec;

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
