//! Executions: arguments, states, results.

use std::sync::Arc;

use burst_hal::{HeapMemory, OperandType, ResultCode};

use super::support::*;
use crate::{Argument, Burst, Compilation, Execution, Memory, OperandTypeDesc, Registry};

use ResultCode::{BadData, BadState, MissedDeadlineTransient, NoError, OutputInsufficientSize};

fn on_reference(model: &Arc<crate::Model>) -> Arc<Compilation> {
    compiled(model, &Registry::of(vec![reference()]))
}

/// For exactly one named device.
fn named(model: &Arc<crate::Model>) -> Arc<Compilation> {
    let compilation = Compilation::for_devices(model, &[reference()]).unwrap();
    compilation.finish().unwrap();
    compilation
}

fn room(length: usize) -> Argument {
    Argument::Host(heap(length))
}

#[test]
fn an_argument_fits_the_model_and_is_set_once() {
    let (chain, open) = (on_reference(&chain()), on_reference(&open_sum()));
    let in_memory = |size: usize, offset, length| Argument::Memory {
        memory: Memory::from_pool(heap(size)),
        offset,
        length,
    };
    let ints = OperandTypeDesc { dimensions: vec![4], ..of(OperandType::TensorInt32) };
    for (what, compilation, ty, argument, want) in [
        ("its length", &chain, None, room(16), NoError),
        ("another length", &chain, None, room(12), BadData),
        ("too long", &chain, None, room(20), BadData),
        ("no bytes", &chain, None, room(0), BadData),
        ("left out", &chain, None, Argument::Omitted, NoError),
        ("the same type", &chain, Some(floats(&[4])), room(16), NoError),
        ("another type", &chain, Some(ints), room(16), BadData),
        ("another size", &chain, Some(floats(&[5])), room(20), BadData),
        ("another rank", &chain, Some(floats(&[2, 2])), room(16), BadData),
        (
            "a type that is none",
            &chain,
            Some(OperandTypeDesc { code: 99, ..floats(&[4]) }),
            room(16),
            BadData,
        ),
        ("memory", &chain, None, in_memory(20, 4, 16), NoError),
        ("behind its memory", &chain, None, in_memory(20, 5, 16), BadData),
        ("beyond all numbers", &chain, None, in_memory(20, usize::MAX, 16), BadData),
        ("a part too short", &chain, None, in_memory(20, 0, 12), BadData),
        ("an open input with its size", &open, Some(floats(&[3])), room(12), NoError),
        ("an open input without", &open, None, room(12), BadData),
        ("an open input that stays open", &open, Some(floats(&[0])), room(12), BadData),
        ("an open input of another length", &open, Some(floats(&[3])), room(16), BadData),
    ] {
        let execution = Execution::new(compilation).unwrap();
        assert_eq!(code(execution.set_input(0, ty.as_ref(), argument)), want, "{what}");
    }
    for (what, compilation, ty, argument, want) in [
        ("its length", &chain, None, room(16), NoError),
        ("another length", &chain, None, room(12), BadData),
        ("open, any length", &open, None, room(7), NoError),
        ("open, its size given", &open, Some(floats(&[3])), room(12), NoError),
        ("open, its size given, another length", &open, Some(floats(&[3])), room(8), BadData),
    ] {
        let execution = Execution::new(compilation).unwrap();
        assert_eq!(code(execution.set_output(0, ty.as_ref(), argument)), want, "output: {what}");
    }
    let execution = Execution::new(&chain).unwrap();
    for index in [1, -1, i32::MAX] {
        assert_eq!(code(execution.set_input(index, None, room(16))), BadData, "{index}");
        assert_eq!(code(execution.set_output(index, None, room(16))), BadData, "{index}");
    }
    execution.set_input(0, None, room(16)).unwrap();
    assert_eq!(code(execution.set_input(0, None, room(16))), BadState, "set before");
}

#[test]
fn arguments_may_be_longer_where_that_was_said_before_the_first() {
    let compilation = on_reference(&chain());
    let execution = Execution::new(&compilation).unwrap();
    execution.enable_input_and_output_padding(true).unwrap();
    let mut input = bytes(&CHAIN_IN);
    input.resize(64, 0xFF);
    execution.set_input(0, None, Argument::Host(Arc::new(HeapMemory::new(input)))).unwrap();
    assert_eq!(code(execution.enable_input_and_output_padding(false)), BadState);
    assert_eq!(code(execution.set_output(0, None, room(12))), BadData, "too short all the same");
    let output = heap(64);
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    execution.compute().unwrap();
    assert_eq!(values(&output.to_vec()[..16]), CHAIN_OUT);
    assert_eq!(output.to_vec()[16..], [0; 48]);
}

#[test]
fn an_execution_runs_once_unless_it_is_reusable_and_changes_no_more_then() {
    let compilation = on_reference(&chain());
    let missing = Execution::new(&compilation).unwrap();
    assert_eq!(code(missing.compute()), BadData, "nothing is set");
    missing.set_input(0, None, host(&CHAIN_IN)).unwrap();
    assert_eq!(code(missing.compute()), BadData, "no output");
    missing.set_output(0, None, room(16)).unwrap();
    assert_eq!(code(missing.compute()), NoError, "it had not been started");

    let (once, _) = execution(&compilation, &CHAIN_IN);
    once.compute().unwrap();
    let burst = Burst::new(&compilation).unwrap();
    for (what, found) in [
        ("compute", once.compute()),
        ("start", once.start_compute().map(drop)),
        ("burst", once.burst_compute(&burst)),
        ("fenced", once.start_compute_with_dependencies(&[], 0).map(drop)),
        ("input", once.set_input(0, None, room(16))),
        ("output", once.set_output(0, None, room(16))),
        ("loop", once.set_loop_timeout(1)),
        ("reusable", once.set_reusable(true)),
        ("padding", once.enable_input_and_output_padding(true)),
        ("measure", once.set_measure_timing(true)),
        ("time-out", once.set_timeout(1)),
    ] {
        assert_eq!(code(found), BadState, "{what}");
    }

    let (again, output) = execution(&compilation, &CHAIN_IN);
    again.set_reusable(true).unwrap();
    for _ in 0..3 {
        again.compute().unwrap();
        assert_eq!(values(&output.to_vec()), CHAIN_OUT);
        burst_hal::Memory::write(&*output, 0, &[0; 16]).unwrap();
        assert_eq!(again.start_compute().unwrap().wait(), NoError);
        assert_eq!(values(&output.to_vec()), CHAIN_OUT);
    }
    assert_eq!(code(again.set_input(0, None, room(16))), BadState);
}

#[test]
fn the_rank_and_the_dimensions_of_outputs_are_known_afterwards() {
    let compilation = on_reference(&open_sum());
    let start = |room_for: usize| {
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, Some(&floats(&[3])), host(&[1.0, 2.0, 3.0])).unwrap();
        let output = heap(room_for);
        execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
        (execution, output)
    };
    let (execution, output) = start(100);
    assert_eq!(execution.output_operand_rank(0), (BadState, None));
    assert_eq!(execution.output_operand_dimensions(0), (BadState, None));
    execution.compute().unwrap();
    assert_eq!(values(&output.to_vec()[..12]), [2.0, 4.0, 6.0]);
    assert_eq!(execution.output_operand_rank(0), (NoError, Some(1)));
    assert_eq!(execution.output_operand_dimensions(0), (NoError, Some(vec![3])));
    assert_eq!(execution.output_operand_rank(1), (BadData, None));
    assert_eq!(execution.output_operand_dimensions(-1), (BadData, None));

    let (little, _) = start(8);
    assert_eq!(code(little.compute()), OutputInsufficientSize);
    assert_eq!(little.output_operand_rank(0), (OutputInsufficientSize, Some(1)));
    assert_eq!(little.output_operand_dimensions(0), (OutputInsufficientSize, Some(vec![3])));
}

#[test]
fn times_are_measured_and_limited_for_one_named_device_only() {
    let model = chain();
    let (any, one) = (on_reference(&model), named(&model));
    let (execution_of_any, _) = execution(&any, &CHAIN_IN);
    assert_eq!(code(execution_of_any.set_measure_timing(true)), BadData);
    assert_eq!(code(execution_of_any.set_timeout(1)), BadData);
    assert_eq!(code(execution_of_any.start_compute_with_dependencies(&[], 1).map(drop)), BadData);

    let (measured, _) = execution(&one, &CHAIN_IN);
    measured.set_measure_timing(true).unwrap();
    assert_eq!(measured.duration(0), (BadState, u64::MAX), "not started");
    measured.compute().unwrap();
    for measure in 0..4 {
        let (found, nanos) = measured.duration(measure);
        assert_eq!(found, NoError, "{measure}");
        assert!(nanos == u64::MAX || nanos % 1000 == 0, "{nanos}");
    }
    assert_eq!(measured.duration(4), (BadData, u64::MAX));
    assert_eq!(measured.duration(-1), (BadData, u64::MAX));
    let (plain, _) = execution(&one, &CHAIN_IN);
    plain.compute().unwrap();
    assert_eq!(plain.duration(1), (BadState, u64::MAX), "not asked for");

    let (late, _) = execution(&one, &CHAIN_IN);
    late.set_measure_timing(true).unwrap();
    late.set_timeout(1).unwrap();
    assert_eq!(code(late.compute()), MissedDeadlineTransient);
    assert_eq!(late.duration(1), (BadState, u64::MAX), "it failed");
    assert_eq!(late.output_operand_rank(0), (BadState, None));
}

#[test]
fn a_burst_is_for_one_compilation_and_one_execution_at_a_time() {
    let model = chain();
    let (first, second) = (on_reference(&model), on_reference(&model));
    let burst = Burst::new(&first).unwrap();
    let (foreign, _) = execution(&second, &CHAIN_IN);
    assert_eq!(code(foreign.burst_compute(&burst)), BadData);
    assert_eq!(code(foreign.compute()), NoError, "it had not been started");
    let (own, output) = execution(&first, &CHAIN_IN);
    let taken = burst.take(&first).unwrap();
    assert_eq!(code(own.burst_compute(&burst)), BadState);
    drop(taken);
    own.burst_compute(&burst).unwrap();
    assert_eq!(values(&output.to_vec()), CHAIN_OUT);
}

#[test]
fn executions_of_one_compilation_run_at_the_same_time() {
    let two = two();
    let compilation = compiled(&chain(), &two.registry);
    std::thread::scope(|scope| {
        for start in 0..4_u8 {
            let compilation = &compilation;
            scope.spawn(move || {
                for round in 0..8_u8 {
                    let x = f32::from(start * 8 + round);
                    let found = run(compilation, &[x, x + 1.0, -x, 0.5]).unwrap();
                    let want = [x, x + 1.0, -x, 0.5].map(|x| (x + x) * x + x);
                    assert_eq!(found, want);
                }
            });
        }
    });
}
