use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::time::Duration;

use burst_hal::{ErrorStatus, TimePoint};
use burst_wire::control::{Answer, Call, List, SynchronousRequest};

use super::client::{Launching, in_use, memory, output, service, wait_for_nothing};
use super::device::{Gated, PANIC, QUICK};
use crate::burst_support::wait_until;

#[test]
fn results_come_in_the_order_in_which_the_executions_end() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let memories = [1, 2, 3].map(memory);
    for (number, memory) in (71..).zip(&memories) {
        client.launch(number, memory).unwrap();
    }
    for (byte, number) in [(3, 73), (1, 71), (2, 72)] {
        device.wait_begun(byte);
        device.release(byte);
        assert_eq!(client.next_executed(), number);
        assert_eq!(output(&memories[usize::from(byte) - 1]), byte + 1);
    }
    drop(client);
    wait_for_nothing(&service);
}

#[test]
fn many_are_under_way_on_one_connection_and_each_is_told_once() {
    const MANY: u32 = 200;
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let memories: Vec<_> = (0..MANY).map(|_| memory(7)).collect();
    for (number, memory) in (0..).zip(&memories) {
        client.launch(number, memory).unwrap();
    }
    assert_eq!(in_use(&service, "pending_executions"), u64::from(MANY));
    device.release_all();
    for number in 0..MANY {
        assert_eq!(client.executed(number), ErrorStatus::None);
    }
    assert!(memories.iter().all(|memory| output(memory) == 8));
    assert_eq!(in_use(&service, "pending_executions"), 0, "given back before the last is told");
    assert_eq!(device.begun().len(), MANY as usize);
    // Whoever launches again may use the numbers again.
    client.launch(0, &memories[0]).unwrap();
    assert_eq!(client.executed(0), ErrorStatus::None);
}

#[test]
fn what_is_wrong_with_a_launch_is_refused_and_no_end_is_told() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let memory = memory(1);
    client.launch(5, &memory).unwrap();
    let refused = client.launch(5, &memory).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert_eq!(refused.detail.as_str(), "execution 5 is in use");
    let whole = client.request();
    for request in [
        SynchronousRequest { inputs: List(Vec::new()), ..whole.clone() },
        SynchronousRequest { model: 99, ..whole },
    ] {
        let call = Call::ExecuteAsynchronously { execution: 6, request };
        let refused = client.call(call, &[memory.as_fd()]).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{}", refused.detail.as_str());
    }
    device.release_all();
    assert_eq!(client.next_executed(), 5);
    // Nothing else is told: the next message is the reply to the next call.
    assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
    assert_eq!(device.begun(), [1]);
}

#[test]
fn a_deadline_that_has_passed_is_launched_and_told() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    client.launch_by(1, &memory(1), Some(TimePoint { nanos: 1 })).unwrap();
    assert_eq!(client.executed(1), ErrorStatus::MissedDeadlinePersistent);
    assert!(device.begun().is_empty());
}

#[test]
fn a_deadline_passes_also_where_it_is_never_its_turn() {
    let device = Gated { on_cores: true, is_stubborn: true, ..Gated::default() };
    let (service, device) = service(device, |options| {
        options.run_tokens = Some(NonZeroUsize::MIN);
        options.turn_patience = None;
    });
    let (mut one, mut other) = (Launching::connect(&service), Launching::connect(&service));
    // As many as wait for the token, and one more, which waits for one of those.
    let count = std::thread::available_parallelism().unwrap().get().max(4) + 1;
    one.launch(0, &memory(1)).unwrap();
    device.wait_begun(1);
    let at = Some(TimePoint::after(Duration::from_millis(20)));
    let memory = memory(2);
    for number in 0..u32::try_from(count).unwrap() {
        other.launch_by(number, &memory, at).unwrap();
    }
    for number in 0..u32::try_from(count).unwrap() {
        assert_eq!(other.executed(number), ErrorStatus::MissedDeadlineTransient);
    }
    assert_eq!(device.begun(), [1]);
    device.release_all();
    assert_eq!(one.executed(0), ErrorStatus::None);
}

#[test]
fn an_execution_is_cancelled_before_it_begins_while_it_runs_and_after_its_end() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let width = u8::try_from(std::thread::available_parallelism().unwrap().get().max(4)).unwrap();
    // As many as it has threads.
    for byte in 1..=width {
        client.launch(byte.into(), &memory(byte)).unwrap();
        device.wait_begun(byte);
    }
    let waiting = u32::from(width) + 1;
    client.launch(waiting, &memory(width + 1)).unwrap();
    client.cancel(waiting);
    assert_eq!(client.executed(waiting), ErrorStatus::GeneralFailure);
    assert!(!device.begun().contains(&(width + 1)), "it was begun");
    client.cancel(1);
    device.wait_cancelled(1);
    assert_eq!(client.executed(1), ErrorStatus::GeneralFailure);
    client.cancel(1);
    client.cancel(4711); // nobody's
    device.release_all();
    for byte in 2..=width {
        assert_eq!(client.executed(byte.into()), ErrorStatus::None, "the others go on");
    }
}

#[test]
fn a_driver_that_panics_fails_that_execution_alone() {
    let (service, _device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    client.launch(1, &memory(PANIC)).unwrap();
    assert_eq!(client.executed(1), ErrorStatus::GeneralFailure);
    client.launch(2, &memory(QUICK)).unwrap();
    assert_eq!(client.executed(2), ErrorStatus::None);
}

#[test]
fn more_than_may_be_under_way_are_refused_by_name() {
    for per_user in [false, true] {
        let (service, device) = service(Gated::default(), |options| {
            let limits = &mut options.limits;
            let limit = if per_user {
                &mut limits.pending_executions_per_user
            } else {
                &mut limits.pending_executions
            };
            *limit = 2;
        });
        let mut client = Launching::connect(&service);
        let memory = memory(1);
        client.launch(1, &memory).unwrap();
        client.launch(2, &memory).unwrap();
        let refused = client.launch(3, &memory).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        let of = if per_user { " of one user" } else { "" };
        let want = format!("the limit of 2 on executions{of} that are not waited for is reached");
        assert_eq!(refused.detail.as_str(), want);
        device.release_all();
        let ended = client.next_executed();
        client.launch(ended, &memory).expect("there is room again");
    }
}

#[test]
fn a_client_that_does_not_read_is_told_all_the_same_once_it_does() {
    const MANY: u32 = 900;
    let (service, device) = service(Gated::default(), |options| {
        options.limits.pending_executions = MANY.into();
        options.limits.pending_executions_per_user = MANY.into();
        options.limits.memories = 2 * u64::from(MANY);
    });
    let mut client = Launching::connect(&service);
    let memory = memory(1);
    for number in 0..MANY {
        client.launch(number, &memory).unwrap();
    }
    device.release_all();
    // More than its socket has room for; the others are told by threads of its own.
    wait_until("all executed", || device.begun().len() == MANY as usize);
    for _ in 0..MANY {
        client.next_executed();
    }
    drop(client);
    wait_for_nothing(&service);
}
