//! Any bytes against the CPU device: `burst_verify::fuzzing` makes a model and requests of them, or has the
//! generator of random models make one.
//!
//! Looked at: all that the contract promises of any model, which that module lists. What is not looked at is
//! whether values are right; conformance vectors do that.

use burst_hal::OperationType;
use burst_verify::fuzzing::judge_device;

use crate::judged::{device, succeeded};
use crate::{Mutator, Seed, seed};

/// Bytes behind the choice of the operation in a seed.
const TAIL: usize = 96;
/// The same behind the choices of a model of the generator, for its requests.
const REQUESTS: usize = 32;

/// The model, how it is prepared, and what is asked of it.
pub fn run(data: &[u8]) -> bool {
    succeeded(judge_device(&**device(), data))
}

/// A model for each operation, of any choices; one of first choices alone; and models of the generator.
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
    seeds.extend(grown(&mut mutator));
    seeds
}

/// Models of the generator, of each class, whole ones and one that is broken.
fn grown(mutator: &mut Mutator) -> Vec<Seed> {
    // Which class, with which operation, how large.
    let choices: [(&str, [u8; 3]); 8] = [
        ("single", [0, 0, 7]),
        ("lstm", [1, of(OperationType::Lstm), 3]),
        ("while", [2, of(OperationType::While), 5]),
        ("conv_2d", [3, of(OperationType::Conv2d), 7]),
        ("small", [4, 0, 5]),
        ("small_with_if", [5, of(OperationType::If), 4]),
        ("large", [6, 0, 4]),
        ("calm", [7, 0, 6]),
    ];
    let mut grown = |name: &str, first: u8, choices: [u8; 3]| {
        let mut bytes = vec![first, 1, 1];
        bytes.extend(choices);
        bytes.extend((0..4 + REQUESTS).map(|_| mutator.below(256) as u8));
        seed(&format!("random_{name}"), bytes)
    };
    let mut seeds: Vec<Seed> =
        choices.into_iter().map(|(name, choices)| grown(name, WHOLE, choices)).collect();
    seeds.push(grown("broken", BROKEN, [4, 0, 5]));
    seeds
}

/// First bytes for the generator: its model as it is, or broken somewhere.
const WHOLE: u8 = 192;
const BROKEN: u8 = 197;

/// Whether a seed is of the generator.
pub(crate) fn is_grown((_, bytes): &Seed) -> bool {
    bytes.first().is_some_and(|first| *first >= WHOLE)
}

/// The choice of a model that has to have this operation.
fn of(ty: OperationType) -> u8 {
    let at = OperationType::ALL.iter().position(|one| *one == ty).unwrap();
    u8::try_from(at + 1).unwrap()
}
