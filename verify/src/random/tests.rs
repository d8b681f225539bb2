//! What holds for every seed.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeSet;

use burst_hal::validate::{validate_model, validate_model_of};
use burst_hal::{HalVersion, OperandLifeTime, OperandType, OperationType};

use super::*;

/// What holds of every model.
fn check_legal(one: &RandomModel) {
    let RandomModel { seed, model, inputs, .. } = one;
    let legal = validate_model(model, HalVersion::LATEST)
        .and_then(|()| validate_model_of(model, HalVersion::LATEST));
    assert!(legal.is_ok(), "seed {seed}: {legal:?}");
    assert!(!inputs.is_empty() && !model.main.output_indexes.is_empty(), "seed {seed}");
    for (input, bytes) in model.main.input_indexes.iter().zip(inputs) {
        let shape = one.shape(*input).unwrap();
        let length = model.main.operands[*input as usize].ty.byte_length(&shape.dims).unwrap();
        assert_eq!(length, bytes.len() as u64, "seed {seed}: input {input}");
    }
    assert_eq!(inputs.len(), model.main.input_indexes.len());
}

/// What holds of those that ask little of a device.
fn check_calm(one: &RandomModel) {
    check_legal(one);
    let RandomModel { seed, model, .. } = one;
    let graphs = std::iter::once(&model.main).chain(&model.referenced);
    for operand in graphs.flat_map(|graph| &graph.operands) {
        assert!(!operand.dimensions.contains(&0), "seed {seed}: every size is known");
        let is_open = operand.ty.is_tensor() && operand.dimensions.is_empty();
        let is_there = operand.lifetime != OperandLifeTime::NoValue;
        assert!(!is_open || !is_there, "seed {seed}: every rank is known");
    }
}

#[test]
fn models_are_legal_with_inputs_of_their_lengths() {
    // Values say how many boxes these keep.
    let open = [OperationType::BoxWithNmsLimit, OperationType::GenerateProposals];
    for ty in operations() {
        for seed in 0..20 {
            let one = operation(ty, seed);
            if open.contains(&ty) {
                check_legal(&one)
            } else {
                check_calm(&one)
            };
            let made = one.model.main.operations.iter().any(|operation| operation.ty == ty);
            assert!(made, "seed {seed}: {ty}");
        }
    }
    for seed in 0..300 {
        let wanted = 5 + usize::try_from(seed).unwrap() % 36;
        let one = graph(seed, wanted);
        check_calm(&one);
        assert!(one.model.main.operations.len() >= wanted);
    }
}

#[test]
fn samples_are_legal_and_have_what_was_asked_for() {
    for class in Class::ALL {
        for seed in 0..200 {
            let one = Sample::new(class, seed).model();
            check_legal(&one);
            assert!(one.model.main.operations.len() >= class.operations(), "{class:?} {seed}");
        }
    }
    for ty in operations() {
        let one = Sample { only: Some(ty), ..Sample::new(Class::Small, 5) }.model();
        check_legal(&one);
        assert!(one.model.main.operations.iter().any(|operation| operation.ty == ty), "{ty}");
    }
}

/// A cap for one execution, so that an hour is enough for thousands of models.
const MAX_PRODUCTS: u64 = 1 << 24;

#[test]
fn windows_and_matrices_multiply_no_more_than_a_cap() {
    for (class, seeds) in [(Class::Single, 1500), (Class::Large, 40)] {
        for seed in 0..seeds {
            let one = Sample::new(class, seed).model();
            let products = one.multiplications();
            assert!(products <= MAX_PRODUCTS, "{class:?} {seed}: {products}");
        }
    }
}

#[test]
fn samples_have_what_calm_models_lack() {
    let (mut unknown_sizes, mut unknown_ranks, mut empty, mut decided) = (0, 0, 0, 0);
    let (mut long, mut specials) = (0, 0);
    for seed in 0..600 {
        let one =
            Sample::new(if seed % 2 == 0 { Class::Single } else { Class::Small }, seed).model();
        let graph = &one.model.main;
        unknown_sizes += usize::from(graph.operands.iter().any(|one| one.dimensions.contains(&0)));
        let no_rank = |one: &burst_hal::Operand| {
            let is_there = one.lifetime != OperandLifeTime::NoValue;
            is_there && one.ty.is_tensor() && one.dimensions.is_empty()
        };
        unknown_ranks += usize::from(graph.operands.iter().any(no_rank));
        let shapes: Vec<&Shape> =
            (0..).take(graph.operands.len()).filter_map(|one_| one.shape(one_)).collect();
        empty += usize::from(shapes.iter().any(|shape| shape.dims.contains(&0)));
        decided += usize::from(shapes.iter().any(|shape| shape.is_bound));
        long += usize::from(shapes.iter().any(|shape| shape.dims.iter().any(|size| *size > 500)));
        let floats = graph.input_indexes.iter().zip(&one.inputs);
        let floats = floats
            .filter(|(input, _)| graph.operands[**input as usize].ty == OperandType::TensorFloat32);
        specials += usize::from(
            floats
                .flat_map(|(_, bytes)| bytes.as_chunks::<4>().0)
                .any(|bytes| !f32::from_le_bytes(*bytes).is_finite()),
        );
    }
    let all = [unknown_sizes, unknown_ranks, empty, decided, long, specials];
    assert!(all.iter().all(|count| *count >= 5), "{all:?}");
}

#[test]
fn a_seed_gives_the_same_model_and_another_seed_another_one() {
    let of = |seed| {
        let RandomModel { model, inputs, .. } = graph(seed, 20);
        (model.main, model.referenced, model.operand_values.to_vec(), inputs)
    };
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

#[test]
fn every_operation_is_made() {
    let made: BTreeSet<OperationType> = operations().collect();
    assert_eq!(made.len(), operations().count(), "an operation has two recipes");
    assert_eq!(made, OperationType::ALL.iter().copied().collect());
}

#[test]
fn graphs_have_all_of_it() {
    let (mut operations, mut types) = (BTreeSet::new(), BTreeSet::new());
    let (mut pools, mut nested, mut relaxed) = (0, 0, 0);
    for seed in 0..400 {
        let model = graph(seed, 30).model;
        pools += usize::from(!model.pools.is_empty());
        relaxed += usize::from(model.relax_computation_float32_to_float16);
        let has_control = |graph: &burst_hal::Subgraph| {
            graph.operations.iter().any(|one| one.ty == OperationType::If)
        };
        nested += usize::from(model.referenced.iter().any(has_control));
        for graph in std::iter::once(&model.main).chain(&model.referenced) {
            operations.extend(graph.operations.iter().map(|one| one.ty));
            types.extend(graph.operands.iter().map(|one| one.ty));
        }
    }
    let missing: Vec<OperationType> =
        super::operations().filter(|one| !operations.contains(one)).collect();
    assert_eq!(missing, [OperationType::BoxWithNmsLimit, OperationType::GenerateProposals]);
    assert!(types.contains(&OperandType::TensorQuant8SymmPerChannel));
    assert!(pools > 100 && nested > 20 && relaxed > 20, "{pools}, {nested}, {relaxed}");
}
