//! How a graph is cut, and what the models of its steps have.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ExtensionCode, ExtensionOperandType, HeapMemory, Model, ModelBuilder,
    OperandLifeTime, OperandType, OperationType, OutputSpec, ResultCode,
};

use super::soundness::check_plan;
use super::{default, everything, figures, offer, these};
use crate::partition::{
    DeviceStep, Offer, PartitionError, PartitionOptions, Plan, Step, constant_bytes, partition,
};

const F32: OperandType = OperandType::TensorFloat32;

fn spec() -> OutputSpec {
    OutputSpec::f32(&[4])
}

/// The device steps of a plan that has several.
fn steps(model: &Model, offers: &[Offer<'_>]) -> Vec<DeviceStep> {
    let plan = partition(model, offers, &default()).unwrap();
    check_plan(model, offers, &default(), &plan);
    let Plan::Compound(plan) = plan else { panic!("several steps are expected") };
    plan.device_steps().into_iter().cloned().collect()
}

/// FLOOR, ABS, FLOOR, ABS, … in a row, each reading the last one's result.
fn alternating(count: usize) -> Model {
    let mut b = ModelBuilder::new();
    let mut x = b.input(F32, &[4]);
    for index in 0..count {
        let ty = if index % 2 == 0 { OperationType::Floor } else { OperationType::Abs };
        x = b.result_of(ty, &[x], spec());
    }
    b.output(x);
    b.build().unwrap()
}

fn by_type(model: &Model, ty: OperationType) -> Vec<bool> {
    model.main.operations.iter().map(|one| one.ty == ty).collect()
}

#[test]
fn one_device_for_everything_gets_the_model_as_it_is() {
    let model = alternating(6);
    let fast = figures(1.0, 1.0);
    let offers = [offer("a", &fast, these(&[false; 6])), offer("b", &fast, everything(&model))];
    let plan = partition(&model, &offers, &default()).unwrap();
    assert!(matches!(plan, Plan::Simple { device: 1 }), "{plan:?}");
}

#[test]
fn a_row_of_operations_that_two_devices_share_is_a_row_of_steps() {
    let model = alternating(5);
    let fast = figures(1.0, 1.0);
    let offers = [
        offer("floors", &fast, these(&by_type(&model, OperationType::Floor))),
        offer("abs", &fast, these(&by_type(&model, OperationType::Abs))),
    ];
    let steps = steps(&model, &offers);
    let devices: Vec<usize> = steps.iter().map(|step| step.device).collect();
    assert_eq!(devices, [0, 1, 0, 1, 0]);
    for pair in steps.windows(2) {
        assert_eq!(pair[0].outputs, pair[1].inputs);
    }
}

/// Two rows beside each other: what does not wait for anybody runs in one step.
#[test]
fn a_device_runs_all_that_is_ready_in_one_step() {
    let mut b = ModelBuilder::new();
    let mut rows = [b.input(F32, &[4]), b.input(F32, &[4])];
    for ty in [OperationType::Floor, OperationType::Abs] {
        for row in &mut rows {
            *row = b.result_of(ty, &[*row], spec());
        }
    }
    rows.into_iter().for_each(|row| b.output(row));
    let model = b.build().unwrap();
    let fast = figures(1.0, 1.0);
    let offers = [
        offer("floors", &fast, these(&by_type(&model, OperationType::Floor))),
        offer("abs", &fast, these(&by_type(&model, OperationType::Abs))),
    ];
    let steps = steps(&model, &offers);
    assert_eq!(steps.len(), 2);
    assert_eq!((&*steps[0].operations, &*steps[1].operations), (&[0, 1][..], &[2, 3][..]));
    assert_eq!(steps[1].outputs, model.main.output_indexes);
}

#[test]
fn an_output_that_another_step_reads_is_given_to_both() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[4]);
    let y = b.result_of(OperationType::Floor, &[x], spec());
    let z = b.result_of(OperationType::Abs, &[y], spec());
    b.output(z);
    b.output(y);
    let model = b.build().unwrap();
    let fast = figures(1.0, 1.0);
    let offers =
        [offer("a", &fast, these(&[true, false])), offer("b", &fast, these(&[false, true]))];
    let steps = steps(&model, &offers);
    assert_eq!(
        (&*steps[0].outputs, &*steps[1].inputs, &*steps[1].outputs),
        (&[y][..], &[y][..], &[z][..])
    );
}

#[test]
fn a_step_whose_results_nobody_reads_still_has_outputs() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[4]);
    let unread = b.result_of(OperationType::Floor, &[x], spec());
    let y = b.result_of(OperationType::Abs, &[x], spec());
    b.output(y);
    let model = b.build().unwrap();
    let fast = figures(1.0, 1.0);
    let offers =
        [offer("a", &fast, these(&[true, false])), offer("b", &fast, these(&[false, true]))];
    let steps = steps(&model, &offers);
    let of_a = steps.iter().find(|step| step.device == 0).unwrap();
    assert_eq!(of_a.outputs, [unread]);
}

#[test]
fn a_value_of_unknown_size_cannot_go_from_step_to_step() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[0]);
    let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[0]));
    let z = b.result_of(OperationType::Abs, &[y], OutputSpec::f32(&[]));
    b.output(z);
    let model = b.build().unwrap();
    let fast = figures(1.0, 1.0);
    let [first, second] = [[true, false], [false, true]].map(|main| these(&main));
    let offers = [offer("a", &fast, first), offer("b", &fast, second)];
    let error = partition(&model, &offers, &default()).unwrap_err();
    assert!(
        matches!(error, PartitionError::UnknownSize { operand, .. } if operand == y),
        "{error}"
    );
    assert!(error.is_for_one_device());
    assert_eq!(error.code(), ResultCode::OpFailed);

    // Inputs and outputs of the graph may have any size.
    let mut known = model;
    known.main.operands[y as usize].dimensions = [4].into_iter().collect();
    let plan = partition(&known, &offers, &default()).unwrap();
    check_plan(&known, &offers, &default(), &plan);
}

/// A value of an extension's type takes as much memory as its devices say.
#[test]
fn values_of_extensions_go_from_step_to_step_where_their_size_is_known() {
    let ty = ExtensionCode { prefix: 9, number: 1 }.operand_type();
    let turn = ExtensionCode { prefix: 9, number: 2 }.operation_type();
    let mut b = ModelBuilder::new();
    b.extension("org.example.other", 8);
    b.extension("org.example.triple", 9);
    let x = b.input(ty, &[4]);
    let y = b.result_of(turn, &[x], OutputSpec::new(ty, &[4]));
    let z = b.result_of(turn, &[y], OutputSpec::new(ty, &[4]));
    b.output(z);
    let model = b.build().unwrap();
    let fast = figures(1.0, 1.0);
    let offers =
        [offer("a", &fast, these(&[true, false])), offer("b", &fast, these(&[false, true]))];
    let error = partition(&model, &offers, &default()).unwrap_err();
    assert!(matches!(error, PartitionError::UnknownSize { .. }), "{error}");
    let described = ExtensionOperandType { ty: 1, is_tensor: true, byte_size: 3 };
    let options = PartitionOptions { extension_types: vec![(ty, described)], ..default() };
    let plan = partition(&model, &offers, &options).unwrap();
    check_plan(&model, &offers, &options, &plan);
    let Plan::Compound(plan) = plan else { panic!("two steps") };
    for step in plan.device_steps() {
        let kept = [("org.example.triple".to_owned(), 9)];
        assert_eq!(step.model.extension_name_to_prefix, kept, "only what the step uses");
    }
}

/// Model with constants of 64 KiB before, between and after those of a step.
fn with_constants(gap: usize) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[4]);
    let none = b.scalar_i32(0);
    let add = |b: &mut ModelBuilder, x: u32, value: f32| {
        let constant = b.constant_f32(&[4], &[value; 4]);
        b.result_of(OperationType::Add, &[x, constant, none], spec())
    };
    let first = add(&mut b, x, 1.0);
    let filler = vec![0_u8; gap];
    let filler = b.constant_bytes(
        OutputSpec::new(OperandType::TensorQuant8Asymm, &[u32::try_from(gap).unwrap()])
            .quantized(1.0, 0),
        &filler,
    );
    let second = add(&mut b, first, 2.0);
    let in_pool = Arc::new(HeapMemory::new([3.0_f32; 4].map(f32::to_le_bytes).concat()));
    let unused = b.pool(Arc::new(HeapMemory::new(vec![0; 8])));
    let pool = b.pool(in_pool);
    assert_eq!((unused, pool), (0, 1));
    let location = DataLocation { pool_index: pool, offset: 0, length: 16 };
    let referenced = b.constant_in_pool(spec(), location);
    let third = b.result_of(OperationType::Mul, &[second, referenced, none], spec());
    let other = b.result_of(OperationType::Floor, &[filler], OutputSpec::new(F32, &[]));
    let _ = other;
    b.output(third);
    b.build_unvalidated().unwrap()
}

#[test]
fn a_step_has_the_constants_and_pools_that_it_uses_and_no_others() {
    for gap in [16, 1 << 16] {
        let mut model = with_constants(gap);
        // The operation on the filler is not legal in its form, which is of no account here: it is the other
        // device's.
        let last = model.main.operands.len() - 1;
        model.main.operands[last].dimensions = [1].into_iter().collect();
        let fast = figures(1.0, 1.0);
        let offers = [
            offer("a", &fast, these(&[true, true, true, false])),
            offer("b", &fast, these(&[false, false, false, true])),
        ];
        let steps = steps(&model, &offers);
        let step = steps.iter().find(|step| step.device == 0).unwrap();
        assert_eq!(step.model.pools.len(), 1);
        let length = step.model.operand_values.len();
        assert!(length < 256, "{length} bytes of constants, a gap of {gap}");
        let constants = step.model.main.operands.iter().filter(|operand| {
            matches!(
                operand.lifetime,
                OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference
            ) && operand.ty == F32
        });
        let values: Vec<Vec<u8>> =
            constants.map(|operand| constant_bytes(&step.model, operand).unwrap()).collect();
        let want: Vec<Vec<u8>> =
            [1.0_f32, 2.0, 3.0].iter().map(|value| [value.to_le_bytes(); 4].concat()).collect();
        assert_eq!(values, want, "a gap of {gap}");
    }
}

#[test]
fn a_graph_that_falls_apart_is_left_to_one_device() {
    let model = alternating(crate::partition::MAX_STEPS + 1);
    let fast = figures(1.0, 1.0);
    let offers = [
        offer("floors", &fast, these(&by_type(&model, OperationType::Floor))),
        offer("abs", &fast, these(&by_type(&model, OperationType::Abs))),
    ];
    let error = partition(&model, &offers, &default()).unwrap_err();
    assert!(matches!(error, PartitionError::TooManySteps { .. }), "{error}");
    assert!(error.is_for_one_device());
}

#[test]
fn steps_say_what_they_need_and_what_they_give() {
    let model = alternating(2);
    let fast = figures(1.0, 1.0);
    let offers =
        [offer("a", &fast, these(&[true, false])), offer("b", &fast, these(&[false, true]))];
    let Plan::Compound(plan) = partition(&model, &offers, &default()).unwrap() else {
        panic!("two steps")
    };
    let between: Vec<(Vec<u32>, Vec<u32>)> =
        plan.steps.iter().map(|step: &Step| (step.inputs(), step.outputs().to_vec())).collect();
    assert_eq!(between, [(vec![0], vec![1]), (vec![1], vec![2])]);
}
