//! Which device an operation goes to.

use burst_hal::{
    Capabilities, ExecutionPreference, Model, ModelBuilder, OperandType, OperationType, OutputSpec,
    PerformanceInfo, ResultCode,
};

use super::{default, everything, figures, offer, these};
use crate::partition::{Offer, PartitionError, PartitionOptions, Plan, choices, partition};

fn floats(relaxed: bool) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
    b.output(y);
    b.relaxed(relaxed);
    b.build().unwrap()
}

fn chosen(model: &Model, offers: &[Offer<'_>], options: &PartitionOptions) -> usize {
    let Plan::Simple { device } = partition(model, offers, options).unwrap() else {
        panic!("one operation is one step");
    };
    assert_eq!(choices(model, offers, options).unwrap()[0].device, device);
    device
}

#[test]
fn the_smallest_weight_wins_by_time_or_by_energy() {
    let model = floats(false);
    let (fast, economical) = (figures(0.5, 2.0), figures(2.0, 0.5));
    let offers = [
        offer("economical", &economical, everything(&model)),
        offer("fast", &fast, everything(&model)),
    ];
    assert_eq!(chosen(&model, &offers, &default()), 1);
    for (preference, want) in [
        (ExecutionPreference::LowPower, 0),
        (ExecutionPreference::FastSingleAnswer, 1),
        (ExecutionPreference::SustainedSpeed, 1),
    ] {
        assert_eq!(chosen(&model, &offers, &PartitionOptions { preference, ..default() }), want);
    }
}

#[test]
fn of_equal_weights_the_first_wins_unless_the_reference_is_among_them() {
    let model = floats(false);
    let same = figures(1.0, 1.0);
    let all = || everything(&model);
    let offers = [offer("a", &same, all()), offer("b", &same, all())];
    assert_eq!(chosen(&model, &offers, &default()), 0);
    for names in [["reference", "b", "c"], ["a", "reference", "c"], ["a", "b", "reference"]] {
        let offers = names.map(|name| offer(name, &same, all()));
        let reference = names.iter().position(|name| *name == "reference").unwrap();
        assert_eq!(chosen(&model, &offers, &default()), reference, "{names:?}");
    }
    let faster = figures(0.9, 0.9);
    let offers = [offer("reference", &same, all()), offer("a", &faster, all())];
    assert_eq!(chosen(&model, &offers, &default()), 1);
}

#[test]
fn floats_that_may_be_computed_with_less_precision_have_figures_of_their_own() {
    let slow = figures(2.0, 2.0);
    let relaxed_is_fast = Capabilities {
        relaxed_float32_to_float16_tensor: PerformanceInfo { exec_time: 0.1, power_usage: 0.1 },
        ..figures(3.0, 3.0)
    };
    for (relaxed, want) in [(false, 0), (true, 1)] {
        let model = floats(relaxed);
        let offers = [
            offer("slow", &slow, everything(&model)),
            offer("relaxed", &relaxed_is_fast, everything(&model)),
        ];
        assert_eq!(chosen(&model, &offers, &default()), want, "relaxed: {relaxed}");
    }
}

#[test]
fn what_a_device_does_not_say_or_says_without_sense_counts_as_the_largest_weight() {
    let model = floats(false);
    let silent = Capabilities::default();
    let slow = figures(1e30, 1e30);
    for nonsense in [f32::NAN, -1.0, 0.0, f32::INFINITY] {
        let nonsense = figures(nonsense, nonsense);
        let offers = [
            offer("silent", &silent, everything(&model)),
            offer("nonsense", &nonsense, everything(&model)),
            offer("slow", &slow, everything(&model)),
        ];
        assert_eq!(chosen(&model, &offers, &default()), 2);
        assert_eq!(chosen(&model, &offers[..2], &default()), 0, "still better than nobody");
        let weights = &choices(&model, &offers, &default()).unwrap()[0].weights;
        assert_eq!(*weights, [Some(f32::MAX), Some(f32::MAX), Some(1e30)]);
    }
}

#[test]
fn an_operation_that_nobody_runs_is_named() {
    let model = floats(false);
    let fast = figures(1.0, 1.0);
    for answer in [vec![false], vec![], vec![true, true]] {
        let offers = [offer("a", &fast, these(&answer))];
        let error = partition(&model, &offers, &default()).unwrap_err();
        assert!(matches!(error, PartitionError::NoDevice { operation: 0, .. }), "{error}");
        assert_eq!(error.code(), ResultCode::BadData);
        assert!(error.to_string().contains("FLOOR"), "{error}");
    }
    assert!(partition(&model, &[], &default()).is_err());
}

#[test]
fn a_model_that_is_not_legal_is_not_divided() {
    let mut model = floats(false);
    model.main.output_indexes = vec![7];
    let fast = figures(1.0, 1.0);
    let offers = [offer("a", &fast, these(&[true]))];
    let error = partition(&model, &offers, &default()).unwrap_err();
    assert!(matches!(error, PartitionError::Illegal(_)), "{error}");
}

/// IF is weighed by its own figure and half of either branch, WHILE by its own and both graphs.
#[test]
fn control_flow_is_weighed_with_what_its_graphs_do() {
    let mut b = ModelBuilder::new();
    let spec = || OutputSpec::f32(&[2]);
    let floors = |b: &mut ModelBuilder, count: usize| {
        b.referenced(|b| {
            let mut x = b.input(OperandType::TensorFloat32, &[2]);
            for _ in 0..count {
                x = b.result_of(OperationType::Floor, &[x], spec());
            }
            b.output(x);
        })
    };
    let (one, three) = (floors(&mut b, 1), floors(&mut b, 3));
    let never = b.referenced(|b| {
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let same = b.result_of(
            OperationType::Less,
            &[x, x],
            OutputSpec::new(OperandType::TensorBool8, &[2]),
        );
        let (axes, keep) = (b.constant_i32(&[1], &[0]), b.scalar_bool(true));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let any = b.result_of(OperationType::ReduceAny, &[same, axes, keep], truth);
        b.output(any);
    });
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let (then, otherwise) = (b.subgraph(one), b.subgraph(three));
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec());
    let (condition, body) = (b.subgraph(never), b.subgraph(three));
    let z = b.result_of(OperationType::While, &[condition, body, y], spec());
    b.output(z);
    let model = b.build().unwrap();
    let capabilities = Capabilities {
        if_performance: PerformanceInfo { exec_time: 10.0, power_usage: 1.0 },
        while_performance: PerformanceInfo { exec_time: 100.0, power_usage: 1.0 },
        ..figures(2.0, 1.0)
    };
    let offers = [offer("a", &capabilities, everything(&model))];
    let choices = choices(&model, &offers, &default()).unwrap();
    // 10 + (1 + 3) / 2 operations of 2; 100 + 2 of bool and float operands, 3 of floats.
    assert_eq!(choices[0].weights, [Some(14.0)]);
    assert_eq!(choices[1].weights, [Some(110.0)]);
    let silent = Capabilities { operand_performance: Vec::new(), ..capabilities };
    let offers = [offer("a", &silent, everything(&model))];
    let choices = crate::partition::choices(&model, &offers, &default()).unwrap();
    assert_eq!(choices[0].weights, [Some(f32::MAX)], "half of what is missing is missing");
}
