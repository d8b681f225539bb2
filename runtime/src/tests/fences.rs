//! Executions that nobody waits for: events, fences, chains.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

use burst_hal::{ErrorStatus, OperationType, ResultCode};

use super::support::*;
use crate::{Argument, Compilation, Event, Execution, Memory, MemoryDesc, Registry, RuntimeDevice};

use ResultCode::{BadData, BadState, NoError, OpFailed};

/// A fence that is pending, and the end that makes it done or, dropped, failed.
fn fence() -> (Arc<Event>, std::io::PipeWriter) {
    let (read, write) = std::io::pipe().unwrap();
    (Event::from_sync_fence_fd(read.as_fd()).unwrap(), write)
}

#[test]
fn an_event_is_waited_for_by_any_number_and_says_how_the_execution_ended() {
    let (device, hand) = faulty("adder", &[OperationType::Add, OperationType::Mul]);
    let device = RuntimeDevice::local(device).unwrap();
    let compilation = Compilation::for_devices(&chain(), &[device]).unwrap();
    compilation.finish().unwrap();
    let (started, output) = execution(&compilation, &CHAIN_IN);
    let event = started.start_compute().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(event.wait(), NoError));
        }
    });
    assert_eq!(values(&output.to_vec()), CHAIN_OUT);
    assert_eq!(started.output_operand_rank(0), (NoError, Some(1)));
    assert_eq!(code(event.sync_fence_fd()), BadData, "it has no fence");
    hand.set(Fault::Execute(ErrorStatus::ResourceExhaustedTransient));
    let (failing, _) = execution(&compilation, &CHAIN_IN);
    let event = failing.start_compute().unwrap();
    assert_eq!(event.wait(), ResultCode::ResourceExhaustedTransient);
    assert_eq!(failing.output_operand_rank(0), (BadState, None));
}

#[test]
fn a_foreign_fence_is_a_pipe_an_eventfd_or_a_sync_file() {
    let (event, mut write) = fence();
    write.write_all(&[1]).unwrap();
    assert_eq!(event.wait(), NoError);
    let (failing, write) = fence();
    drop(write);
    assert_eq!(failing.wait(), OpFailed);
    let again = event.sync_fence_fd().unwrap();
    assert_eq!(Event::from_sync_fence_fd(again.as_fd()).unwrap().wait(), NoError, "a duplicate");
    let file = tempfile::tempfile().unwrap();
    assert_eq!(code(Event::from_sync_fence_fd(file.as_fd())), BadData);
    // One that has failed before it is handed over is an event, too.
    let failed = failing.sync_fence_fd().unwrap();
    assert_eq!(Event::from_sync_fence_fd(failed.as_fd()).unwrap().wait(), OpFailed);
}

#[test]
fn an_execution_behind_a_fence_begins_when_it_is_done() {
    for registry in [Registry::of(vec![reference()]), two().registry] {
        let compilation = compiled(&chain(), &registry);
        let (behind, output) = execution(&compilation, &CHAIN_IN);
        let (before, mut write) = fence();
        let event = behind.start_compute_with_dependencies(&[before], 0).unwrap();
        let fence = event.sync_fence_fd().expect("it has a fence of its own");
        assert_eq!(code(behind.compute()), BadState, "it runs");
        assert_eq!(behind.output_operand_rank(0), (BadState, None), "it has not ended");
        assert_eq!(output.to_vec(), [0; 16]);
        write.write_all(&[1]).unwrap();
        assert_eq!(event.wait(), NoError);
        assert_eq!(Event::from_sync_fence_fd(fence.as_fd()).unwrap().wait(), NoError);
        assert_eq!(values(&output.to_vec()), CHAIN_OUT);
        assert_eq!(behind.output_operand_dimensions(0), (NoError, Some(vec![4])));
    }
}

#[test]
fn a_chain_runs_in_order_and_breaks_where_one_fails() {
    let two = two();
    let compilation = compiled(&chain(), &two.registry);
    let (middle, output) = (heap(16), heap(16));
    let link = |input: Argument, output: Argument| {
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, None, input).unwrap();
        execution.set_output(0, None, output).unwrap();
        execution
    };
    let first = link(host(&[0.0, 1.0, 0.0, 0.0]), Argument::Host(middle.clone()));
    let second = link(Argument::Host(middle.clone()), Argument::Host(output.clone()));
    let (gate, mut write) = fence();
    let one = first.start_compute_with_dependencies(&[gate], 0).unwrap();
    let last = second.start_compute_with_dependencies(std::slice::from_ref(&one), 0).unwrap();
    write.write_all(&[1]).unwrap();
    assert_eq!(last.wait(), NoError);
    assert_eq!(values(&output.to_vec()), [0.0, 21.0, 0.0, 0.0]);

    let (gate, write) = fence();
    let third = link(host(&CHAIN_IN), Argument::Host(heap(16)));
    let fourth = link(host(&CHAIN_IN), Argument::Host(heap(16)));
    let one = third.start_compute_with_dependencies(&[gate], 0).unwrap();
    let last = fourth.start_compute_with_dependencies(std::slice::from_ref(&one), 0).unwrap();
    drop(write);
    assert_eq!((one.wait(), last.wait()), (OpFailed, OpFailed));
    assert_eq!(fourth.output_operand_rank(0), (BadState, None));
    // What has failed before is told at once, and the execution has not been started.
    let fifth = link(host(&CHAIN_IN), Argument::Host(heap(16)));
    assert_eq!(code(fifth.start_compute_with_dependencies(&[last], 0)), OpFailed);
    assert_eq!(code(fifth.compute()), NoError);
}

#[test]
fn a_memory_that_a_chain_writes_has_a_value_for_those_behind_and_none_when_it_breaks() {
    let compilation = compiled(&chain(), &Registry::of(vec![reference()]));
    let desc = MemoryDesc::new();
    desc.add_output_role(&compilation, 0, 1.0).unwrap();
    desc.add_input_role(&compilation, 0, 1.0).unwrap();
    desc.finish().unwrap();
    for is_done in [true, false] {
        let memory = Memory::from_desc(&desc).unwrap();
        let whole = || Argument::Memory { memory: memory.clone(), offset: 0, length: 0 };
        let first = Execution::new(&compilation).unwrap();
        first.set_input(0, None, host(&[0.0, 1.0, 0.0, 0.0])).unwrap();
        first.set_output(0, None, whole()).unwrap();
        let second = Execution::new(&compilation).unwrap();
        second.set_input(0, None, whole()).unwrap();
        let output = heap(16);
        second.set_output(0, None, Argument::Host(output.clone())).unwrap();
        let (gate, mut write) = fence();
        let one = first.start_compute_with_dependencies(&[gate], 0).unwrap();
        let last = second.start_compute_with_dependencies(&[one], 0).unwrap();
        if is_done {
            write.write_all(&[1]).unwrap();
        }
        drop(write);
        let plain = Memory::from_pool(heap(16));
        match is_done {
            true => {
                assert_eq!(last.wait(), NoError);
                assert_eq!(values(&output.to_vec()), [0.0, 21.0, 0.0, 0.0]);
                assert_eq!(code(Memory::copy(&memory, &plain)), NoError);
            }
            false => {
                assert_eq!(last.wait(), OpFailed);
                assert_eq!(code(Memory::copy(&memory, &plain)), BadData, "it has no value");
            }
        }
    }
}

#[test]
fn outputs_behind_fences_have_known_sizes_and_a_limited_time_is_for_one_device() {
    let registry = Registry::of(vec![reference()]);
    let open = compiled(&open_sum(), &registry);
    let execution_of = |ty: Option<&crate::OperandTypeDesc>| {
        let execution = Execution::new(&open).unwrap();
        execution.set_input(0, Some(&floats(&[2])), host(&[1.0, 2.0])).unwrap();
        execution.set_output(0, ty, Argument::Host(heap(8))).unwrap();
        execution
    };
    let unknown = execution_of(None);
    assert_eq!(code(unknown.start_compute_with_dependencies(&[], 0)), BadData);
    assert_eq!(code(unknown.compute()), NoError, "it had not been started");
    let known = execution_of(Some(&floats(&[2])));
    assert_eq!(known.start_compute_with_dependencies(&[], 0).unwrap().wait(), NoError);

    let one = Compilation::for_devices(&chain(), &[reference()]).unwrap();
    one.finish().unwrap();
    let (limited, _) = execution(&one, &CHAIN_IN);
    limited.set_measure_timing(true).unwrap();
    let event = limited.start_compute_with_dependencies(&[], 60_000_000_000).unwrap();
    assert_eq!(event.wait(), NoError);
    for measure in 0..4 {
        assert_eq!(limited.duration(measure).0, NoError, "{measure}");
    }
    let (late, _) = execution(&one, &CHAIN_IN);
    let event = late.start_compute_with_dependencies(&[], 1).unwrap();
    let missed = event.wait();
    let is_late = matches!(
        missed,
        ResultCode::MissedDeadlineTransient | ResultCode::MissedDeadlinePersistent
    );
    assert!(is_late, "{missed}");
}
