//! Structures: there and back, and what is refused.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use burst_hal::{Dimensions, OperandValues};

use super::*;

fn operand(ty: OperandType, lifetime: OperandLifeTime, dimensions: &[u32]) -> Operand {
    Operand { dimensions: Dimensions::from_slice(dimensions), ..Operand::new(ty, lifetime) }
}

/// A model with one of everything that a structure can say; it need not be legal.
fn model() -> Model {
    use OperandLifeTime as Life;
    let constant = Operand {
        location: DataLocation { pool_index: 0, offset: 64, length: 6 },
        extra_params: ExtraParams::ChannelQuant { scales: [0.5, 0.25].into(), channel_dim: 1 },
        number_of_consumers: 2,
        ..operand(OperandType::TensorQuant8SymmPerChannel, Life::ConstantCopy, &[3, 2])
    };
    let extension = Operand {
        extra_params: ExtraParams::Extension([9, 8, 7].as_slice().into()),
        scale: -0.0,
        zero_point: i32::MIN,
        ..operand(OperandType::from_code(0x0001_0002), Life::TemporaryVariable, &[])
    };
    let graph = Operand {
        location: DataLocation { pool_index: 0, offset: 0, length: 0 },
        ..operand(OperandType::Subgraph, Life::Subgraph, &[])
    };
    let operation = Operation {
        ty: OperationType::from_code(0x0001_0007),
        inputs: vec![0, 0, 1],
        outputs: vec![2],
    };
    let main = Subgraph {
        operands: vec![
            constant,
            extension,
            operand(OperandType::Float32, Life::NoValue, &[]),
            graph,
        ],
        operations: vec![operation],
        input_indexes: vec![1],
        output_indexes: vec![2, 1],
    };
    Model {
        referenced: vec![
            Subgraph { input_indexes: Vec::new(), ..main.clone() },
            Subgraph::default(),
        ],
        main,
        relax_computation_float32_to_float16: true,
        extension_name_to_prefix: vec![("org.example.größe".to_owned(), 1)],
        operand_values: OperandValues::default(),
        pools: Vec::new(),
    }
}

fn same(one: &Model, other: &Model) -> bool {
    one.main == other.main
        && one.referenced == other.referenced
        && one.extension_name_to_prefix == other.extension_name_to_prefix
        && one.relax_computation_float32_to_float16 == other.relax_computation_float32_to_float16
}

#[test]
fn a_structure_is_read_as_it_was_written() {
    let bytes = encode_again(&model());
    let read = decode(&bytes, 70).unwrap();
    assert!(same(&read, &model()), "{read:?}");
    assert_eq!(encode_again(&read), bytes);
}

#[test]
fn a_constant_that_no_step_reads_has_no_value_in_the_file() {
    let mut pooled = model();
    pooled.main.operands[0].lifetime = OperandLifeTime::ConstantReference;
    let read = decode(&encode(&pooled, |_, _| None), 0).unwrap();
    let constant = &read.main.operands[0];
    assert_eq!(constant.lifetime, OperandLifeTime::ConstantCopy);
    assert_eq!(constant.location, DataLocation::default());
}

#[test]
fn no_beginning_of_a_structure_is_one_and_nothing_may_follow_it() {
    let bytes = encode_again(&model());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length], 70).is_err(), "{length} bytes");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(decode(&longer, 70).unwrap_err(), "bytes follow its end");
}

#[test]
fn what_names_nothing_is_refused() {
    let refused = |change: fn(&mut Model)| {
        let mut changed = model();
        change(&mut changed);
        decode(&encode_again(&changed), 70).unwrap_err()
    };
    assert_eq!(refused(|m| m.main.operations[0].inputs[1] = 4), "an index names nothing");
    assert_eq!(refused(|m| m.main.operations[0].outputs[0] = u32::MAX), "an index names nothing");
    assert_eq!(refused(|m| m.main.output_indexes[0] = 4), "an index names nothing");
    let outside = "a constant lies outside of the values";
    assert_eq!(refused(|m| m.main.operands[0].location.offset = 65), outside);
    assert_eq!(refused(|m| m.main.operands[0].location.length = u32::MAX), outside);
    let no_graph = "an operand names a graph that is not there";
    assert_eq!(refused(|m| m.main.operands[3].location.offset = 2), no_graph);
    let over = "a count is over its limit";
    assert_eq!(refused(|m| m.main.operands[0].dimensions = [1; 9].as_slice().into()), over);
    let long = refused(|m| m.extension_name_to_prefix[0].0 = "x".repeat(254));
    assert_eq!(long, over);
}

#[test]
fn a_count_that_its_bytes_cannot_hold_reserves_nothing() {
    let mut bytes = encode_again(&Model::default());
    // Relaxed, extensions, graphs, then the operands of the main graph.
    bytes[9..13].copy_from_slice(&(1_u32 << 18).to_le_bytes());
    assert_eq!(decode(&bytes, 0).unwrap_err(), "it ends too early");
    bytes[9..13].copy_from_slice(&(u32::MAX).to_le_bytes());
    assert_eq!(decode(&bytes, 0).unwrap_err(), "a count is over its limit");
}
