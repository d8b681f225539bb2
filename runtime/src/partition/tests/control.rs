//! IF and WHILE: when they are taken apart, and when they stay operations of one device.

use burst_hal::{Model, ModelBuilder, OperandLifeTime, OperandType, OperationType, OutputSpec};

use super::soundness::check_plan;
use super::{default, everything, figures, offer};
use crate::partition::{MAX_BRANCH_OPERATIONS, Offer, Plan, Step, SupportedBy, partition};

const F32: OperandType = OperandType::TensorFloat32;

fn spec() -> OutputSpec {
    OutputSpec::f32(&[4])
}

/// A graph `x -> FLOOR(ABS(x))`, with this declared shape.
fn branch(b: &mut ModelBuilder, dims: &[u32]) -> u32 {
    b.referenced(|b| {
        let x = b.input(F32, dims);
        let y = b.result_of(OperationType::Abs, &[x], OutputSpec::f32(dims));
        let z = b.result_of(OperationType::Floor, &[y], OutputSpec::f32(dims));
        b.output(z);
    })
}

/// `if condition { FLOOR(ABS(x)) } else { FLOOR(ABS(x)) }`, then ABS.
fn choosing(dims: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let graphs = [branch(&mut b, dims), branch(&mut b, dims)];
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(F32, dims);
    let [then, otherwise] = graphs.map(|graph| b.subgraph(graph));
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], OutputSpec::f32(dims));
    let z = b.result_of(OperationType::Abs, &[y], OutputSpec::f32(dims));
    b.output(z);
    b.build().unwrap()
}

/// What a device runs that has these operations.
fn only(model: &Model, types: &[OperationType]) -> SupportedBy {
    SupportedBy::ask(model, |graph| {
        graph.main.operations.iter().map(|one| types.contains(&one.ty)).collect()
    })
}

fn planned(model: &Model, offers: &[Offer<'_>]) -> Plan {
    let plan = partition(model, offers, &default()).unwrap();
    check_plan(model, offers, &default(), &plan);
    plan
}

#[test]
fn control_flow_is_taken_apart_where_others_run_its_graphs() {
    let model = choosing(&[4]);
    let (fast, slow) = (figures(0.5, 0.5), figures(1.0, 1.0));
    let floors = only(&model, &[OperationType::Floor]);
    let offers = [offer("fast", &fast, floors), offer("reference", &slow, everything(&model))];
    let Plan::Compound(plan) = planned(&model, &offers) else { panic!("FLOOR is elsewhere") };
    let [Step::If(step), Step::Device(last)] = &plan.steps[..] else {
        panic!("an IF, then ABS: {plan:?}");
    };
    assert_eq!((step.condition, &*step.inputs, &*step.outputs), (0, &[1][..], &[4][..]));
    assert_eq!((step.then.subgraph, step.otherwise.subgraph), (0, 1));
    for branch in [&step.then, &step.otherwise] {
        let devices: Vec<usize> =
            branch.plan.device_steps().iter().map(|step| step.device).collect();
        assert_eq!(devices, [1, 0], "ABS on the reference, FLOOR on the other");
    }
    assert_eq!(last.device, 1);
}

#[test]
fn control_flow_stays_one_operation_where_nothing_is_gained() {
    let model = choosing(&[4]);
    let (fast, slow) = (figures(0.5, 0.5), figures(1.0, 1.0));
    // The other device runs nothing of it.
    let nothing = only(&model, &[]);
    let offers = [offer("fast", &fast, nothing), offer("reference", &slow, everything(&model))];
    assert!(matches!(planned(&model, &offers), Plan::Simple { device: 1 }));
    // The other device runs all of it.
    let offers =
        [offer("fast", &fast, everything(&model)), offer("reference", &slow, everything(&model))];
    assert!(matches!(planned(&model, &offers), Plan::Simple { device: 0 }));
    // Only the reference's control flow is interpreted.
    let floors = || only(&model, &[OperationType::Floor]);
    let offers = [offer("fast", &fast, floors()), offer("slow", &slow, everything(&model))];
    let Plan::Simple { device: 1 } = planned(&model, &offers) else {
        panic!("both operations of the main graph are the slow device's");
    };
    // What was not asked about a graph is not known of it.
    let unasked = SupportedBy { referenced: Vec::new(), ..floors() };
    let reference = SupportedBy { referenced: Vec::new(), ..everything(&model) };
    let offers = [offer("fast", &fast, unasked), offer("reference", &slow, reference)];
    assert!(matches!(planned(&model, &offers), Plan::Simple { device: 1 }));
}

#[test]
fn control_flow_with_values_of_unknown_size_stays_one_operation() {
    let model = choosing(&[0]);
    let (fast, slow) = (figures(0.5, 0.5), figures(1.0, 1.0));
    let floors = only(&model, &[OperationType::Floor]);
    let offers = [offer("fast", &fast, floors), offer("reference", &slow, everything(&model))];
    assert!(matches!(planned(&model, &offers), Plan::Simple { device: 1 }));
}

/// `while below(x) { x = FLOOR(x) + 1 }`, beginning with a constant.
#[test]
fn a_loop_that_begins_with_constants_is_taken_apart() {
    let mut b = ModelBuilder::new();
    let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
    let one = || OutputSpec::f32(&[1]);
    let condition = b.referenced(|b| {
        let x = b.input(F32, &[1]);
        let limit = b.constant_f32(&[1], &[10.0]);
        let below = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(below);
    });
    let body = b.referenced(|b| {
        let x = b.input(F32, &[1]);
        let (step, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
        let floor = b.result_of(OperationType::Floor, &[x], one());
        let next = b.result_of(OperationType::Add, &[floor, step, none], one());
        b.output(next);
    });
    let begin = b.constant_f32(&[1], &[0.5]);
    let graphs = [b.subgraph(condition), b.subgraph(body)];
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], begin], one());
    b.output(out);
    let model = b.build().unwrap();
    let (fast, slow) = (figures(0.5, 0.5), figures(1.0, 1.0));
    let floors = only(&model, &[OperationType::Floor]);
    let offers = [offer("fast", &fast, floors), offer("reference", &slow, everything(&model))];
    let Plan::Compound(plan) = planned(&model, &offers) else { panic!("FLOOR is elsewhere") };
    let [Step::While(step)] = &plan.steps[..] else { panic!("a loop alone: {plan:?}") };
    assert_eq!((&*step.inputs, &*step.outputs), (&[begin][..], &[out][..]));
    let lifetime = model.main.operands[begin as usize].lifetime;
    assert_eq!(lifetime, OperandLifeTime::ConstantCopy);
    assert_eq!((step.condition.subgraph, step.body.subgraph), (condition, body));
}

/// A device that gets an IF gets the graphs that it runs, and those that they run, under new numbers.
#[test]
fn a_step_carries_the_graphs_that_it_runs() {
    let mut b = ModelBuilder::new();
    let _unused = branch(&mut b, &[4]);
    let inner = branch(&mut b, &[4]);
    let outer = b.referenced(|b| {
        let x = b.input(F32, &[4]);
        let condition = b.constant_bool(&[1], &[true]);
        let (then, otherwise) = (b.subgraph(inner), b.subgraph(inner));
        let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec());
        b.output(y);
    });
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(F32, &[4]);
    let (then, otherwise) = (b.subgraph(outer), b.subgraph(inner));
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec());
    let z = b.result_of(OperationType::Floor, &[y], spec());
    b.output(z);
    let model = b.build().unwrap();
    let same = figures(1.0, 1.0);
    let mut control = everything(&model);
    control.main[1] = false;
    let mut floor = everything(&model);
    floor.main[0] = false;
    let offers = [offer("a", &same, control), offer("b", &same, floor)];
    let Plan::Compound(plan) = planned(&model, &offers) else { panic!("two devices") };
    let steps = plan.device_steps();
    assert_eq!((steps[0].model.referenced.len(), steps[1].model.referenced.len()), (2, 0));
    let inner_of_step = &steps[0].model.referenced[0];
    assert_eq!(inner_of_step.operations.len(), 2, "the graph with ABS and FLOOR");
}

/// An IF on graphs of which each runs the next one twice, so many levels deep.
fn doubling(levels: usize) -> Model {
    let mut b = ModelBuilder::new();
    let mut next = branch(&mut b, &[4]);
    for _ in 0..levels {
        next = b.referenced(|b| {
            let x = b.input(F32, &[4]);
            let condition = b.constant_bool(&[1], &[true]);
            let (then, otherwise) = (b.subgraph(next), b.subgraph(next));
            let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec());
            let z = b.result_of(OperationType::If, &[condition, then, otherwise, y], spec());
            b.output(z);
        });
    }
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(F32, &[4]);
    let (then, otherwise) = (b.subgraph(next), b.subgraph(next));
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec());
    b.output(y);
    b.build().unwrap()
}

/// As many plans as there are ways through such graphs would take for ever.
#[test]
fn graphs_that_are_named_from_many_places_are_planned_within_a_limit() {
    let (fast, slow) = (figures(0.5, 0.5), figures(1.0, 1.0));
    let planned = |levels| {
        let model = doubling(levels);
        let floors = only(&model, &[OperationType::Floor]);
        let offers = [offer("fast", &fast, floors), offer("reference", &slow, everything(&model))];
        planned(&model, &offers)
    };
    let Plan::Compound(plan) = planned(3) else { panic!("taken apart to the end") };
    // Four ways on each level, in the end ABS and FLOOR.
    assert_eq!(plan.device_steps().len(), 2 * 4_usize.pow(3) * 2);
    assert!(4_usize.pow(14) > MAX_BRANCH_OPERATIONS);
    assert!(matches!(planned(14), Plan::Simple { device: 1 }), "too many: it stays whole");
}
