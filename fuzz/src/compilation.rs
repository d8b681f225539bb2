//! The structure of a model in a file that a compilation is kept in, as if its seal were right.
//!
//! Looked at: there is one way to write a model, so what is read is written to the same bytes; every
//! index and location names something that is there, by an independent look; lists are no longer than
//! their bytes.

use burst_driver::cache::{decode, encode_again};
use burst_hal::{Model, OperandLifeTime};

use crate::hal_model::models;
use crate::{Seed, seed};

/// Bytes of values that the constants lie in.
const VALUE_BYTES: u64 = 256;

/// The bytes are the structure.
pub fn run(data: &[u8]) -> bool {
    match decode(data, VALUE_BYTES) {
        Ok(model) => {
            assert_eq!(encode_again(&model), data, "one way to write it");
            check(&model, data.len());
            true
        }
        Err(what) => {
            assert!(!what.is_empty() && !what.contains('\n'), "{what:?}");
            false
        }
    }
}

fn check(model: &Model, length: usize) {
    assert!(model.pools.is_empty() && model.operand_values.is_empty());
    for graph in std::iter::once(&model.main).chain(&model.referenced) {
        let exists = |index: &u32| (*index as usize) < graph.operands.len();
        let lists = [&graph.input_indexes, &graph.output_indexes];
        let operations = graph.operations.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
        assert!(lists.into_iter().flatten().chain(operations).all(exists));
        assert!(graph.operands.len() * 34 + graph.operations.len() * 12 <= length);
        for operand in &graph.operands {
            let end = u64::from(operand.location.offset) + u64::from(operand.location.length);
            match operand.lifetime {
                OperandLifeTime::ConstantCopy => assert!(end <= VALUE_BYTES),
                OperandLifeTime::ConstantReference => panic!("a constant in a pool"),
                OperandLifeTime::Subgraph => {
                    assert!((operand.location.offset as usize) < model.referenced.len());
                }
                _ => {}
            }
        }
    }
}

/// The structures of the models that clients may send, and what changes them slightly.
pub fn seeds() -> Vec<Seed> {
    let whole = models().map(|(name, model)| seed(name, encode_again(&model)));
    let mut longer = encode_again(&models()[0].1);
    longer.push(0);
    let empty = encode_again(&Model::default());
    whole.into_iter().chain([seed("longer", longer), seed("empty", empty)]).collect()
}
