//! Branches and loops that are interpreted, because devices run parts of them.

use std::sync::Arc;

use burst_hal::{ErrorStatus, HeapMemory, OperandType, OperationType, ResultCode};

use super::support::*;
use crate::partition::{Plan, Step};
use crate::{Argument, Compilation, Execution, Model, OperandTypeDesc};

fn ints() -> OperandTypeDesc {
    OperandTypeDesc { dimensions: vec![1], ..of(OperandType::TensorInt32) }
}

fn is_interpreted(compilation: &Compilation) -> bool {
    match &*compilation.plan().unwrap() {
        Plan::Simple { .. } => false,
        Plan::Compound(graph) => {
            graph.steps.iter().any(|step| matches!(step, Step::If(_) | Step::While(_)))
        }
    }
}

#[test]
fn the_branch_that_the_condition_says_runs_on_the_devices_of_its_steps() {
    let two = two();
    let (add, mul) = (OperationType::Add, OperationType::Mul);
    let compilation = compiled(&branching([mul, add], [add, add]), &two.registry);
    assert!(is_interpreted(&compilation));
    let squares = CHAIN_IN.map(|x| x * x + x + x);
    let sums = CHAIN_IN.map(|x| x + x + x + x);
    assert_eq!(branched(&compilation, true).unwrap(), squares);
    assert_eq!((two.adder.executed(), two.multiplier.executed()), (2, 1));
    assert_eq!(branched(&compilation, false).unwrap(), sums);
    assert_eq!(two.multiplier.executed(), 1);
    // A device that fails within a branch is stood in for, step by step.
    for hand in [&two.adder, &two.multiplier] {
        hand.set(Fault::Execute(ErrorStatus::GeneralFailure));
        assert_eq!(branched(&compilation, true).unwrap(), squares);
        hand.set(Fault::Nothing);
    }
    // A missed deadline within a branch is final.
    two.multiplier.set(Fault::Execute(ErrorStatus::MissedDeadlineTransient));
    let late = code(branched(&compilation, true));
    assert_eq!(late, ResultCode::MissedDeadlineTransient);
}

/// Counts `i` up to `n`, and adds `step`, an input that does not change, to `x` each time.
pub(super) fn counting() -> Arc<Model> {
    let state = |net: &Net| {
        let i = net.0.add_operand(&ints()).unwrap();
        let n = net.0.add_operand(&ints()).unwrap();
        (i, net.floats(&[4]), net.floats(&[4]), n)
    };
    let net = Net::new();
    let (i, x, step, n) = state(&net);
    let goes_on = net.0.add_operand(&bools()).unwrap();
    net.run(OperationType::Less, &[i, n], goes_on);
    let condition = net.finish(&[i, x, step, n], &[goes_on]);

    let net = Net::new();
    let (i, x, step, n) = state(&net);
    let one = net.0.add_operand(&ints()).unwrap();
    net.0.set_operand_value(signed(one), Some(&1_i32.to_le_bytes())).unwrap();
    let next = net.0.add_operand(&ints()).unwrap();
    let (none, scaled, sum) = (net.int(0), net.floats(&[4]), net.floats(&[4]));
    let ones = net.constant(&[4], &[1.0; 4]);
    net.run(OperationType::Add, &[i, one, none], next);
    net.run(OperationType::Mul, &[step, ones, none], scaled);
    net.run(OperationType::Add, &[x, scaled, none], sum);
    let body = net.finish(&[i, x, step, n], &[next, sum]);

    let net = Net::new();
    let graphs = [condition, body].map(|model| {
        let graph = net.0.add_operand(&of(OperandType::Subgraph)).unwrap();
        net.0.set_operand_value_from_model(signed(graph), &model).unwrap();
        graph
    });
    let (i, x, step, n) = state(&net);
    let (last, y) = (net.0.add_operand(&ints()).unwrap(), net.floats(&[4]));
    let inputs = [graphs[0], graphs[1], i, x, step, n];
    net.0.add_operation(OperationType::While.code(), &inputs, &[last, y]).unwrap();
    net.finish(&[i, x, step, n], &[last, y])
}

/// From this number up to `n`: what `i` and `x` are then.
fn counted(
    compilation: &Arc<Compilation>,
    (from, n): (i32, i32),
    timeout: Option<u64>,
) -> crate::Result<(i32, Vec<f32>)> {
    let execution = Execution::new(compilation)?;
    let int = |value: i32| Argument::Host(Arc::new(HeapMemory::new(value.to_le_bytes().to_vec())));
    execution.set_input(0, None, int(from))?;
    execution.set_input(1, None, host(&[0.0; 4]))?;
    execution.set_input(2, None, host(&[1.0, 2.0, 3.0, 4.0]))?;
    execution.set_input(3, None, int(n))?;
    if let Some(timeout) = timeout {
        execution.set_loop_timeout(timeout)?;
    }
    let (last, output) = (heap(4), heap(16));
    execution.set_output(0, None, Argument::Host(last.clone()))?;
    execution.set_output(1, None, Argument::Host(output.clone()))?;
    execution.compute()?;
    let last = i32::from_le_bytes(last.to_vec().try_into().unwrap());
    Ok((last, values(&output.to_vec())))
}

#[test]
fn a_loop_keeps_its_state_between_devices_and_ends_with_its_condition_or_its_time() {
    let two = two();
    let compilation = compiled(&counting(), &two.registry);
    assert!(is_interpreted(&compilation));
    // The condition is false at once: the state is as it was.
    let zero = (5, vec![0.0; 4]);
    assert_eq!(counted(&compilation, (5, 5), None).unwrap(), zero);
    assert_eq!(two.multiplier.executed(), 0);
    for (from, n) in [(4, 5), (3, 5), (0, 7)] {
        let times = f32::from(i16::try_from(n - from).unwrap());
        let want = (n, [1.0, 2.0, 3.0, 4.0].map(|step| step * times).to_vec());
        assert_eq!(counted(&compilation, (from, n), None).unwrap(), want, "{from} to {n}");
    }
    assert_eq!(two.multiplier.executed(), 1 + 2 + 7);
    // A device that fails within the loop is stood in for, time and again.
    two.adder.set(Fault::Execute(ErrorStatus::GeneralFailure));
    assert_eq!(counted(&compilation, (0, 2), None).unwrap().0, 2);
    two.adder.set(Fault::Nothing);
    // It never becomes false, nearly: the loop ends with its time.
    let endless = counted(&compilation, (0, i32::MAX), Some(20_000_000));
    assert_eq!(code(endless), ResultCode::MissedDeadlineTransient);
}
