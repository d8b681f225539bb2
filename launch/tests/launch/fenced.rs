use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    Caller, CancelWord, ErrorStatus, ExecutionOptions, Failure, Fence, FencedExecution,
    FencedOptions, Pool, PrepareOptions, PreparedModel, Request, TimePoint, Timing,
};
use burst_launch::{CheckedFence, FenceSignal, FenceState, Launcher, LauncherOptions};

use crate::gated::{Go, Watch, gated, model, output, pool, request, wait_until};

fn prepared() -> (Arc<dyn PreparedModel>, Watch) {
    let (device, watch) = gated();
    let threads = NonZeroUsize::new(2).unwrap();
    let device = Launcher::new(LauncherOptions { threads, waiting: 10 }).wrap(Arc::new(device));
    (device.prepare_model(&model(&[1]), &PrepareOptions::default()).unwrap(), watch)
}

fn launch(
    model: &Arc<dyn PreparedModel>,
    request: Request,
    wait_for: Vec<Fence>,
    options: FencedOptions,
) -> Result<FencedExecution, Failure> {
    Arc::clone(model).execute_fenced(request, wait_for, options, Caller::default())
}

/// One that is expected to start.
fn start(model: &Arc<dyn PreparedModel>, pool: &Pool, wait_for: Vec<Fence>) -> FencedExecution {
    launch(model, request(pool), wait_for, FencedOptions::default()).unwrap()
}

fn state(fence: &Fence) -> FenceState {
    match CheckedFence::check_all(vec![fence.clone()]) {
        Ok(checked) => checked[0].state(),
        Err(_) => FenceState::Failed,
    }
}

/// Waits for the end of an execution, of which its fence says so much and its status that.
#[track_caller]
pub(crate) fn expect(execution: &FencedExecution, status: ErrorStatus) {
    let fence = execution.fence.as_ref().expect("it had not ended");
    wait_until("an end", || state(fence) != FenceState::Pending);
    let want = if status == ErrorStatus::None { FenceState::Done } else { FenceState::Failed };
    assert_eq!(state(fence), want);
    assert_eq!(execution.info.execution_info().unwrap().status, status);
}

#[test]
fn a_fenced_execution_begins_when_its_fences_are_done_and_tells_its_end_by_its_own() {
    let (model, watch) = prepared();
    let [(one, first), (other, second)] = [(); 2].map(|()| FenceSignal::new().unwrap());
    let pool = pool();
    let execution = start(&model, &pool, vec![first, second]);
    let early = execution.info.execution_info().unwrap_err();
    assert_eq!(early.status, ErrorStatus::GeneralFailure);
    one.done();
    assert!(watch.begun.try_recv().is_err(), "one is not all");
    other.done();
    watch.expect_begun();
    assert_eq!(state(execution.fence.as_ref().unwrap()), FenceState::Pending);
    watch.go_on.send(Go::On).unwrap();
    expect(&execution, ErrorStatus::None);
    assert_eq!(output(&pool), 1);
    let info = execution.info.execution_info().unwrap();
    assert_eq!(
        (info.timing_launched, info.timing_fenced),
        (Timing::UNAVAILABLE, Timing::UNAVAILABLE)
    );
}

#[test]
fn times_are_told_where_they_were_asked_for() {
    let (model, watch) = prepared();
    let (signal, fence) = FenceSignal::new().unwrap();
    let execution = ExecutionOptions { measure_timing: true, ..Default::default() };
    let options = FencedOptions { execution, duration: None };
    let execution = launch(&model, request(&pool()), vec![fence], options).unwrap();
    signal.done();
    watch.go_on.send(Go::On).unwrap();
    expect(&execution, ErrorStatus::None);
    let info = execution.info.execution_info().unwrap();
    assert_eq!(info.timing_fenced.time_on_device_us, 3);
    assert!(info.timing_fenced.time_in_driver_us >= 4);
    assert!(info.timing_launched.time_in_driver_us >= info.timing_fenced.time_in_driver_us);
}

#[test]
fn a_chain_runs_in_order_and_a_failed_link_fails_those_behind_it() {
    let (model, watch) = prepared();
    for go in [Go::On, Go::Panic] {
        let pool = pool();
        let (signal, fence) = FenceSignal::new().unwrap();
        let first = start(&model, &pool, vec![fence]);
        let second = start(&model, &pool, vec![first.fence.clone().unwrap()]);
        let third = start(&model, &pool, vec![second.fence.clone().unwrap()]);
        signal.done();
        watch.go_on.send(Go::On).unwrap();
        watch.expect_begun();
        watch.go_on.send(go).unwrap();
        watch.expect_begun();
        if go == Go::On {
            watch.go_on.send(Go::On).unwrap();
            watch.expect_begun();
        }
        expect(&first, ErrorStatus::None);
        let want = if go == Go::On { ErrorStatus::None } else { ErrorStatus::GeneralFailure };
        expect(&second, want);
        expect(&third, want);
        assert!(watch.begun.try_recv().is_err(), "nothing else was begun");
    }
}

#[test]
fn without_fences_to_wait_for_it_begins_at_once() {
    let (model, watch) = prepared();
    let (signal, done) = FenceSignal::new().unwrap();
    signal.done();
    for fences in [vec![], vec![done]] {
        watch.go_on.send(Go::On).unwrap();
        let execution = start(&model, &pool(), fences);
        if execution.fence.is_some() {
            expect(&execution, ErrorStatus::None);
        }
        assert_eq!(execution.info.execution_info().unwrap().status, ErrorStatus::None);
    }
}

#[test]
fn the_deadline_counts_from_the_call_and_the_duration_from_the_fences() {
    let (model, watch) = prepared();
    let pending = || FenceSignal::new().unwrap();
    // The deadline passes while it waits. Where the machine has much to do it may have passed before that.
    let given = [5, 1_000, 20_000].map(Duration::from_millis);
    let is_transient = given.iter().any(|given| {
        let (_never, fence) = pending();
        let deadline = Some(TimePoint::after(*given));
        let execution = ExecutionOptions { deadline, ..Default::default() };
        let options = FencedOptions { execution, duration: None };
        let late = launch(&model, request(&pool()), vec![fence], options).unwrap();
        wait_until("an end", || late.info.execution_info().is_ok());
        let status = late.info.execution_info().unwrap().status;
        if status != ErrorStatus::MissedDeadlinePersistent {
            expect(&late, ErrorStatus::MissedDeadlineTransient);
        }
        status == ErrorStatus::MissedDeadlineTransient
    });
    assert!(is_transient);
    // It has passed when it is launched: no refusal.
    let deadline = Some(TimePoint { nanos: 1 });
    let execution = ExecutionOptions { deadline, ..Default::default() };
    let options = FencedOptions { execution, duration: None };
    let past = launch(&model, request(&pool()), vec![], options).unwrap();
    expect(&past, ErrorStatus::MissedDeadlinePersistent);
    // No time at all is left once the fences are done, however long that takes.
    let (signal, fence) = pending();
    let options = FencedOptions { duration: Some(Duration::ZERO), ..Default::default() };
    let short = launch(&model, request(&pool()), vec![fence], options).unwrap();
    assert_eq!(state(short.fence.as_ref().unwrap()), FenceState::Pending);
    signal.done();
    expect(&short, ErrorStatus::MissedDeadlineTransient);
    assert!(watch.begun.try_recv().is_err(), "none of them was begun");
}

#[test]
fn what_cannot_be_fenced_is_refused() {
    let (model, watch) = prepared();
    let refused = |request, fences, options| {
        launch(&model, request, fences, options).map(drop).unwrap_err().status
    };
    let default = FencedOptions::default();
    let mut illegal = request(&pool());
    illegal.outputs.clear();
    assert_eq!(refused(illegal, vec![], default), ErrorStatus::InvalidArgument);
    let (signal, failed) = FenceSignal::new().unwrap();
    drop(signal);
    assert_eq!(refused(request(&pool()), vec![failed], default), ErrorStatus::InvalidArgument);
    let null = Fence::from(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
    let (_signal, fine) = FenceSignal::new().unwrap();
    let fences = vec![fine, null];
    assert_eq!(refused(request(&pool()), fences, default), ErrorStatus::InvalidArgument);
    assert!(watch.begun.try_recv().is_err());
}

#[test]
fn an_output_of_unknown_size_cannot_be_fenced() {
    let (device, watch) = gated();
    let device = Launcher::default().wrap(Arc::new(device));
    let open = device.prepare_model(&model(&[0]), &PrepareOptions::default()).unwrap();
    let refused = launch(&open, request(&pool()), vec![], FencedOptions::default()).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
    // Where the request says it, the size is known.
    let mut sized = request(&pool());
    sized.outputs[0].dimensions = [1].as_slice().into();
    watch.go_on.send(Go::On).unwrap();
    launch(&open, sized, vec![], FencedOptions::default()).unwrap();
}

#[test]
fn a_cancelled_execution_fails_its_fence_wherever_it_is() {
    let (model, watch) = prepared();
    for begins in [false, true] {
        let cancel = CancelWord::default();
        let (signal, fence) = FenceSignal::new().unwrap();
        let pool = pool();
        let execution = Arc::clone(&model)
            .execute_fenced(
                request(&pool),
                vec![fence],
                FencedOptions::default(),
                Caller::new(&cancel),
            )
            .unwrap();
        let mut pending = Some(signal);
        if let Some(signal) = pending.take_if(|_| begins) {
            signal.done();
            watch.expect_begun();
        }
        cancel.cancel();
        expect(&execution, ErrorStatus::GeneralFailure);
        assert_eq!(Arc::strong_count(&pool), 1, "its memory is free by then");
    }
}

#[test]
fn a_fence_may_be_passed_on_by_descriptor() {
    let (model, watch) = prepared();
    let (signal, fence) = FenceSignal::new().unwrap();
    let first = start(&model, &pool(), vec![fence]);
    let copy = first.fence.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap();
    let second = start(&model, &pool(), vec![Fence::from(copy)]);
    watch.go_on.send(Go::On).unwrap();
    watch.go_on.send(Go::On).unwrap();
    signal.done();
    expect(&first, ErrorStatus::None);
    expect(&second, ErrorStatus::None);
}
