//! What the environment switches change.

use burst_hal::{ErrorStatus, ResultCode};

use super::support::*;
use crate::Compilation;
use crate::partition::Plan;
use crate::switches::{Partitioning, Switches};

#[test]
fn models_are_not_divided_or_what_fails_has_failed() {
    let whole = two();
    let switches = Switches { partitioning: Partitioning::No, ..Switches::default() };
    let registry = whole.registry.clone().with_switches(switches);
    let compilation = compiled(&chain(), &registry);
    assert!(matches!(&*compilation.plan().unwrap(), Plan::Simple { device: 2 }));
    assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
    assert_eq!(whole.adder.prepared(), 0);

    let alone = two();
    let switches = Switches { partitioning: Partitioning::WithoutFallback, ..Switches::default() };
    let registry = alone.registry.clone().with_switches(switches);
    let compilation = compiled(&chain(), &registry);
    assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
    alone.adder.set(Fault::Execute(ErrorStatus::GeneralFailure));
    assert_eq!(code(run(&compilation, &CHAIN_IN)), ResultCode::OpFailed);
    alone.adder.set(Fault::Prepare(ErrorStatus::GeneralFailure));
    let compilation = Compilation::new(&chain(), &registry).unwrap();
    assert_eq!(code(compilation.finish()), ResultCode::OpFailed);
}

#[test]
fn calls_are_asynchronous_or_executions_end_where_they_start() {
    for switches in [
        Switches { sync_devices: false, sync_reference: false, ..Switches::default() },
        Switches { sync_runtime: true, ..Switches::default() },
    ] {
        let two = two();
        let registry = two.registry.clone().with_switches(switches);
        let compilation = compiled(&chain(), &registry);
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
        let (started, output) = execution(&compilation, &CHAIN_IN);
        let event = started.start_compute().unwrap();
        if switches.sync_runtime {
            assert_eq!(values(&output.to_vec()), CHAIN_OUT, "it has ended already");
        }
        assert_eq!(event.wait(), ResultCode::NoError);
        assert_eq!(code(started.start_compute()), ResultCode::BadState);
        // A device that fails is stood in for in either way.
        two.multiplier.set(Fault::Execute(ErrorStatus::GeneralFailure));
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
    }
}

/// Where the framework's threads and the devices' were the same, each of these would wait for one that waits.
#[test]
fn many_executions_that_call_devices_asynchronously_do_not_wait_for_each_other() {
    let switches = Switches { sync_devices: false, sync_reference: false, ..Switches::default() };
    let registry = two().registry.with_switches(switches);
    let compilation = compiled(&chain(), &registry);
    let count = 4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let started: Vec<_> = (0..count)
        .map(|_| {
            let (execution, output) = execution(&compilation, &CHAIN_IN);
            (execution.start_compute().unwrap(), output)
        })
        .collect();
    for (event, output) in started {
        assert_eq!(event.wait(), ResultCode::NoError);
        assert_eq!(values(&output.to_vec()), CHAIN_OUT);
    }
}
