//! Models of the [generator of random models](crate::random), which of them is up to any bytes.

use std::collections::BTreeMap;

use burst_hal::{Dimensions, Model, OperationType};

use super::bytes::Bytes;
use crate::random::{Class, RandomModel, Sample, graph};

/// Most multiplications of windows and matrices in a model's main graph: it is executed a dozen times.
const MULTIPLICATIONS_MAX: u64 = 1 << 18;
/// Largest dimension of what comes from outside, to begin with.
const LARGEST: usize = 8;
/// Most operations of a model whose shapes are all known.
const CALM_OPERATIONS_MAX: usize = 12;
/// Most bytes of room for an output: where the table of operations says more, it is not enough.
const ROOM_MAX: usize = 1 << 16;

/// What whoever made a model knows of values that suit it: nothing, of a model from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Suited {
    /// Shapes and values of inputs, by operand.
    inputs: BTreeMap<u32, (Dimensions, Vec<u8>)>,
    /// Bytes of outputs, by operand.
    outputs: BTreeMap<u32, usize>,
}

impl Suited {
    fn of(one: &RandomModel) -> Self {
        let graph = &one.model.main;
        let inputs = graph.input_indexes.iter().zip(&one.inputs).map(|(index, stored)| {
            let dims = one.shape(*index).map(|shape| shape.dims.as_slice()).unwrap_or_default();
            (*index, (dims.into(), stored.clone()))
        });
        let outputs = graph.output_indexes.iter().copied().zip(one.output_lengths());
        let outputs = outputs.filter(|(_, length)| *length <= ROOM_MAX);
        Suited { inputs: inputs.collect(), outputs: outputs.collect() }
    }

    /// The shape and the stored bytes of a value that suits this input.
    pub(super) fn input(&self, operand: u32) -> Option<(&Dimensions, &[u8])> {
        self.inputs.get(&operand).map(|(dims, stored)| (dims, stored.as_slice()))
    }

    /// How many bytes this output has, at most.
    pub(super) fn output(&self, operand: u32) -> Option<usize> {
        self.outputs.get(&operand).copied()
    }
}

/// The model that these bytes choose: legal, with shapes that may be open, and values at the edges of types.
pub(super) fn model(bytes: &mut Bytes<'_>) -> (Model, Suited) {
    let class = match bytes.below(8) {
        0..4 => Some(Class::Single),
        4 | 5 => Some(Class::Small),
        6 => Some(Class::Large),
        _ => None,
    };
    let only = bytes.below(OperationType::ALL.len() + 1).checked_sub(1);
    let only = only.and_then(|index| OperationType::ALL.get(index).copied());
    let size = 1 + bytes.below(LARGEST);
    let seed = u64::from(bytes.word());
    let one = match class {
        Some(class) => bounded(Sample { only, ..Sample::new(class, seed) }, size),
        None => graph(seed, 1 + size % CALM_OPERATIONS_MAX),
    };
    let suited = Suited::of(&one);
    (one.model, suited)
}

/// The model of this sample, of sizes that do not ask for more than may be computed.
fn bounded(sample: Sample, size: usize) -> RandomModel {
    let mut largest = u32::try_from(size).unwrap_or(1);
    loop {
        let one = Sample { largest, ..sample }.model();
        if largest <= 1 || one.multiplications() <= MULTIPLICATIONS_MAX {
            return one;
        }
        largest /= 2;
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::HalVersion;
    use burst_hal::validate::validate_model;

    use super::*;
    use crate::random::Rng;

    #[test]
    fn models_are_legal_and_their_suited_values_fit() {
        let mut rng = Rng::new(11);
        let mut operations = std::collections::BTreeSet::new();
        for number in 0..600 {
            let choices: Vec<u8> = (0..7).map(|_| rng.next().to_le_bytes()[7]).collect();
            let (model, suited) = model(&mut Bytes::new(&choices));
            assert_eq!(validate_model(&model, HalVersion::LATEST), Ok(()), "{number}: {choices:?}");
            for index in &model.main.input_indexes {
                let (dims, stored) = suited.input(*index).expect("every input has a value");
                let operand = &model.main.operands[*index as usize];
                assert_eq!(operand.ty.byte_length(dims), Some(stored.len() as u64), "{number}");
            }
            operations.extend(model.main.operations.iter().map(|operation| operation.ty));
        }
        assert_eq!(operations.len(), OperationType::ALL.len());
    }
}
