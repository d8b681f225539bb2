//! Constants: with the model, in pools of their own, or parts of others that lie in pools.

use std::sync::Arc;

use burst_hal::{DataLocation, HeapMemory, OutputSpec};

use super::{Grower, Within, value};
use crate::random::style::Style;
use crate::random::value::Value;

/// Pools of a model.
const MAX_POOLS: usize = 6;

/// A constant with random values that lies in a pool.
pub(super) struct Pooled {
    spec: OutputSpec,
    location: DataLocation,
    within: Within,
    style: Style,
}

impl Grower<'_> {
    /// A constant with these bytes: with the model, or in a pool.
    pub(in crate::random) fn constant(
        &mut self,
        spec: OutputSpec,
        bytes: &[u8],
        within: Within,
    ) -> Value {
        let operand = match self.pool_for(bytes) {
            Some(location) => self.b.constant_in_pool(spec.clone(), location),
            None => self.b.constant_bytes(spec.clone(), bytes),
        };
        let value = value(operand, &spec, within);
        self.add(value, false)
    }

    /// Where these bytes lie in a pool of their own; `None` for such that go with the model.
    fn pool_for(&mut self, bytes: &[u8]) -> Option<DataLocation> {
        if self.pools >= MAX_POOLS || !self.rng.chance(0.1) {
            return None;
        }
        self.pools += 1;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let pool_index = self.b.pool(Arc::new(HeapMemory::new(bytes.to_vec())));
        Some(DataLocation { pool_index, offset: 0, length })
    }

    /// A constant with random values; some are parts of others.
    pub(in crate::random) fn random_constant(&mut self, spec: OutputSpec, within: Within) -> Value {
        if let Some(location) = self.part_of_another(&spec, within) {
            let operand = self.b.constant_in_pool(spec.clone(), location);
            return self.add(value(operand, &spec, within), false);
        }
        let bytes = self.bytes(&spec, within);
        let Some(location) = self.pool_for(&bytes) else {
            let operand = self.b.constant_bytes(spec.clone(), &bytes);
            return self.add(value(operand, &spec, within), false);
        };
        let operand = self.b.constant_in_pool(spec.clone(), location);
        let style = self.style;
        self.pooled.push(Pooled { spec: spec.clone(), location, within, style });
        self.add(value(operand, &spec, within), false)
    }

    /// A part of a constant that has such values, and lies in a pool.
    fn part_of_another(&mut self, spec: &OutputSpec, within: Within) -> Option<DataLocation> {
        let bytes = spec.ty.byte_length(&spec.dimensions)?;
        let length = u32::try_from(bytes).ok().filter(|length| *length > 0)?;
        let element = u32::try_from(spec.ty.element_bytes()?).ok()?;
        let has_such = |one: &&Pooled| {
            one.style == self.style
                && one.spec.ty == spec.ty
                // Biases are smaller than other whole numbers.
                && (one.spec.scale == 0.0) == (spec.scale == 0.0)
                && within.0 <= one.within.0
                && one.within.1 <= within.1
                && length <= one.location.length
        };
        let location = self.pooled.iter().rfind(has_such)?.location;
        if !self.rng.chance(0.5) {
            return None;
        }
        let places = (location.length - length) / element + 1;
        let offset = location.offset + self.rng.size(0, places - 1) * element;
        Some(DataLocation { offset, length, ..location })
    }
}
