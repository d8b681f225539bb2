//! Any bytes against the CPU device: `burst_verify::fuzzing` makes a model and requests of them.
//!
//! Looked at: all that the contract promises of any model, which that module lists. What is not looked at is
//! whether values are right; conformance vectors do that.

use burst_hal::OperationType;
use burst_verify::fuzzing::judge_device;

use crate::judged::{device, succeeded};
use crate::{Mutator, Seed, seed};

/// Bytes behind the choice of the operation in a seed.
const TAIL: usize = 96;

/// The model, how it is prepared, and what is asked of it.
pub fn run(data: &[u8]) -> bool {
    succeeded(judge_device(&**device(), data))
}

/// A model for each operation, of any choices; and one of first choices alone.
pub fn seeds() -> Vec<Seed> {
    let mut mutator = Mutator::new(0x0B5E_55ED);
    let mut seeds = vec![seed("first_choices", [])];
    for (index, ty) in (0..).zip(OperationType::ALL) {
        // Not broken, one operation, the first preference and priority; then which operation.
        let head = [0, 0, 0, 0, index];
        let tail = (0..TAIL).map(|_| mutator.below(256) as u8);
        let bytes: Vec<u8> = head.into_iter().chain(tail).collect();
        seeds.push(seed(&ty.name().to_lowercase(), bytes));
    }
    seeds
}
