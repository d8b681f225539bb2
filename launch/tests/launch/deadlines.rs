//! Deadlines of launched executions: hopeless, passing while they wait, passing midway; and what each is called.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use burst_hal::{
    Caller, ErrorStatus, ExecutionOptions, FencedExecution, FencedOptions, Pool, PrepareOptions,
    PreparedModel, TimePoint,
};
use burst_launch::{FenceSignal, Launcher, LauncherOptions};

use crate::fenced::expect;
use crate::gated::{Gated, Go, LONG, Watch, gated, model, paced, pool, request};

const PERSISTENT: ErrorStatus = ErrorStatus::MissedDeadlinePersistent;
const TRANSIENT: ErrorStatus = ErrorStatus::MissedDeadlineTransient;

/// A deadline that is to pass while something waits may have passed before that has begun to wait, where this
/// machine has much to do: then the next one is tried.
const GIVEN: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_secs(1), Duration::from_secs(20)];

/// A prepared model on one thread.
fn prepared((device, watch): (Gated, Watch)) -> (Arc<dyn PreparedModel>, Watch) {
    let options = LauncherOptions { threads: NonZeroUsize::MIN, waiting: 10 };
    let device = Launcher::new(options).wrap(Arc::new(device));
    (device.prepare_model(&model(&[1]), &PrepareOptions::default()).unwrap(), watch)
}

/// A model whose executions are said to have taken this long.
fn taking(times: &[Duration]) -> (Arc<dyn PreparedModel>, Watch) {
    prepared(paced(times))
}

fn until(deadline: TimePoint) -> ExecutionOptions {
    ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() }
}

/// Launches asynchronously; the status that the callback gets.
fn start(
    model: &Arc<dyn PreparedModel>,
    pool: &Pool,
    options: ExecutionOptions,
) -> Receiver<ErrorStatus> {
    let (say, said) = channel();
    let callback = Box::new(move |result: burst_hal::ExecutionResult| {
        say.send(result.status).unwrap();
    });
    let launched = Arc::clone(model).execute_asynchronously(
        request(pool),
        options,
        Caller::default(),
        callback,
    );
    launched.expect("a missed deadline is a result and no refusal");
    said
}

fn start_fenced(
    model: &Arc<dyn PreparedModel>,
    pool: &Pool,
    options: ExecutionOptions,
) -> FencedExecution {
    let options = FencedOptions { execution: options, duration: None };
    Arc::clone(model).execute_fenced(request(pool), vec![], options, Caller::default()).unwrap()
}

#[track_caller]
fn next(said: &Receiver<ErrorStatus>) -> ErrorStatus {
    said.recv_timeout(LONG).expect("an end")
}

/// The status of a fenced execution that has failed, or fails.
#[track_caller]
fn end_of(execution: &FencedExecution) -> ErrorStatus {
    crate::gated::wait_until("an end", || execution.info.execution_info().is_ok());
    execution.info.execution_info().unwrap().status
}

#[test]
fn a_hopeless_deadline_is_told_before_anything_is_waited_for_and_by_the_rule_of_the_model() {
    // So long that what a busy machine takes for this test is nothing beside them.
    let (model, watch) = taking(&[Duration::from_secs(1_000), Duration::from_secs(100_000)]);
    let after = |seconds| TimePoint::after(Duration::from_secs(seconds));
    for (deadline, want) in
        [(TimePoint { nanos: 1 }, PERSISTENT), (after(500), PERSISTENT), (after(5_000), TRANSIENT)]
    {
        let pool = pool();
        let said = start(&model, &pool, until(deadline));
        assert_eq!(said.try_recv(), Ok(want), "when the launch returns");
        let (_never, fence) = FenceSignal::new().unwrap();
        let options = FencedOptions { execution: until(deadline), duration: None };
        let fenced = Arc::clone(&model)
            .execute_fenced(request(&pool), vec![fence], options, Caller::default())
            .unwrap();
        assert_eq!(fenced.info.execution_info().unwrap().status, want, "its fence never signals");
        expect(&fenced, want);
        assert_eq!(Arc::strong_count(&pool), 1, "its memory is free");
    }
    assert!(watch.begun.try_recv().is_err(), "one was begun");
}

#[test]
fn an_illegal_request_is_told_so_however_late_it_is() {
    let (model, _watch) = taking(&[]);
    let mut illegal = request(&pool());
    illegal.inputs.clear();
    let options = until(TimePoint { nanos: 1 });
    let fenced = FencedOptions { execution: options, duration: None };
    let (say, said) = channel();
    let callback = Box::new(move |result| say.send(result).unwrap());
    let launched = Arc::clone(&model).execute_asynchronously(
        illegal.clone(),
        options,
        Caller::default(),
        callback,
    );
    assert_eq!(launched.unwrap_err().status, ErrorStatus::InvalidArgument);
    assert_eq!(said.try_recv().unwrap().status, ErrorStatus::InvalidArgument);
    let refused = model.execute_fenced(illegal, vec![], fenced, Caller::default()).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
}

#[test]
fn a_deadline_ends_what_waits_for_a_thread_although_none_comes_free() {
    let (model, watch) = prepared(gated());
    let busy = start(&model, &pool(), ExecutionOptions::default());
    watch.expect_begun();
    let pool = pool();
    let waits: [(&str, &dyn Fn(TimePoint) -> ErrorStatus); 2] = [
        ("asynchronous", &|at| next(&start(&model, &pool, until(at)))),
        ("fenced", &|at| end_of(&start_fenced(&model, &pool, until(at)))),
    ];
    for (way, status_of) in waits {
        let mut given = GIVEN.iter();
        loop {
            let given = *given.next().expect("a deadline that had not passed when it was launched");
            let at = TimePoint::after(given);
            let status = status_of(at);
            assert!(at.has_passed(), "{way}: {status} before its deadline");
            if status != PERSISTENT {
                assert_eq!(status, TRANSIENT, "{way}: another try may find a thread");
                break;
            }
        }
        assert_eq!(Arc::strong_count(&pool), 1, "{way}: its memory is free");
    }
    assert!(watch.begun.try_recv().is_err() && busy.try_recv().is_err());
    watch.go_on.send(Go::On).unwrap();
    assert_eq!(next(&busy), ErrorStatus::None);
}

#[test]
fn an_execution_that_was_begun_in_time_is_not_ended_by_the_queue() {
    let (model, watch) = prepared(gated());
    let pool = pool();
    for given in GIVEN {
        let deadline = TimePoint::after(given);
        let said = start(&model, &pool, until(deadline));
        crate::gated::wait_until("the deadline", || deadline.has_passed());
        watch.go_on.send(Go::On).unwrap();
        let status = next(&said);
        if status == ErrorStatus::None {
            return watch.expect_begun(); // and only the device has ended it
        }
        assert!(is_missed(status), "{status}");
        watch.take_back();
    }
    panic!("none was begun in time");
}

fn is_missed(status: ErrorStatus) -> bool {
    [PERSISTENT, TRANSIENT].contains(&status)
}

#[test]
fn a_deadline_that_passes_midway_is_called_by_what_was_left_when_the_execution_came() {
    let millisecond = Duration::from_millis(1);
    // Whose pace nobody knows has the last word on its own deadlines.
    for (times, want) in [(&[millisecond][..], TRANSIENT), (&[], PERSISTENT)] {
        let (model, watch) = match times {
            [] => prepared(gated()),
            times => taking(times),
        };
        let pool = pool();
        let ways: [(&str, &dyn Fn(TimePoint) -> ErrorStatus); 2] = [
            ("asynchronous", &|at| next(&start(&model, &pool, until(at)))),
            ("fenced", &|at| end_of(&start_fenced(&model, &pool, until(at)))),
        ];
        for (way, status_of) in ways {
            let is_ended_midway = GIVEN.iter().any(|given| {
                watch.go_on.send(Go::AtDeadline).unwrap();
                let at = TimePoint::after(*given);
                let status = status_of(at);
                let has_begun = watch.begun.try_recv().is_ok();
                if has_begun {
                    assert!(at.has_passed(), "{way}: it was under way until then");
                    assert_eq!(status, want, "{way}, {times:?}");
                } else {
                    // It was too late to begin: nobody has taken the word to the device.
                    assert!(is_missed(status), "{way}: {status}");
                    watch.take_back();
                }
                has_begun
            });
            assert!(is_ended_midway, "{way}, {times:?}: none was begun in time");
        }
    }
}
