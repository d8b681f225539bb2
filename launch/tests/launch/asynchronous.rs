use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use burst_hal::{
    Caller, CancelWord, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Pool,
    PrepareOptions, PreparedModel, Request, TimePoint,
};
use burst_launch::{Execution, Launcher, LauncherOptions};

use crate::gated::{
    Gated, Go, LONG, Watch, gated, model, output, pool, request, stubborn, wait_until,
};

/// A prepared model on so many threads.
fn prepared(threads: usize, waiting: usize) -> (Arc<dyn PreparedModel>, Watch) {
    prepared_by(gated(), threads, waiting)
}

fn prepared_by(
    (device, watch): (Gated, Watch),
    threads: usize,
    waiting: usize,
) -> (Arc<dyn PreparedModel>, Watch) {
    let threads = NonZeroUsize::new(threads).unwrap();
    let device = Launcher::new(LauncherOptions { threads, waiting }).wrap(Arc::new(device));
    (device.prepare_model(&model(&[1]), &PrepareOptions::default()).unwrap(), watch)
}

fn start(model: &Arc<dyn PreparedModel>, pool: &Pool) -> Execution {
    Execution::start(Arc::clone(model), request(pool), ExecutionOptions::default()).unwrap()
}

/// Launches with a callback of the test's.
fn launch(
    model: &Arc<dyn PreparedModel>,
    request: Request,
    options: ExecutionOptions,
    cancel: &CancelWord,
) -> (Result<(), ErrorStatus>, Receiver<ExecutionResult>) {
    let (say, said) = channel();
    let callback = Box::new(move |result| say.send(result).unwrap());
    let caller = Caller::new(cancel);
    let launched = Arc::clone(model).execute_asynchronously(request, options, caller, callback);
    (launched.map_err(|failure| failure.status), said)
}

#[test]
fn the_launch_returns_before_the_execution_ends() {
    let (model, watch) = prepared(1, 10);
    let pool = pool();
    let execution = start(&model, &pool);
    watch.expect_begun();
    assert!(!execution.has_ended());
    watch.go_on.send(Go::On).unwrap();
    assert_eq!(execution.wait().status, ErrorStatus::None);
    assert_eq!(output(&pool), 1);
}

#[test]
fn a_wait_ends_at_its_deadline_and_may_be_repeated() {
    let (model, watch) = prepared(1, 10);
    let execution = start(&model, &pool());
    let soon = TimePoint::after(Duration::from_millis(1));
    let execution = execution.wait_until(soon).expect_err("it has not ended");
    watch.go_on.send(Go::On).unwrap();
    let result = execution.wait_until(TimePoint::after(LONG)).expect("an end");
    assert_eq!(result.status, ErrorStatus::None);
}

#[test]
fn a_callback_gets_the_result_whether_it_comes_early_or_late() {
    let (model, watch) = prepared(1, 10);
    let (say, said) = channel();
    for is_early in [true, false] {
        let execution = start(&model, &pool());
        if !is_early {
            watch.go_on.send(Go::On).unwrap();
            wait_until("the end", || execution.has_ended());
        }
        let say = say.clone();
        execution.when_done(move |result| say.send(result.status).unwrap());
        if is_early {
            watch.go_on.send(Go::On).unwrap();
        }
        assert_eq!(said.recv_timeout(LONG), Ok(ErrorStatus::None));
    }
}

/// Wakes a thread: all that an executor needs.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn an_execution_is_a_future_that_needs_no_runtime() {
    let (model, watch) = prepared(1, 10);
    let mut execution = pin!(start(&model, &pool()));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    assert!(execution.as_mut().poll(&mut context).is_pending());
    watch.go_on.send(Go::On).unwrap();
    let result = loop {
        match execution.as_mut().poll(&mut context) {
            Poll::Ready(result) => break result,
            Poll::Pending => std::thread::park_timeout(LONG),
        }
    };
    assert_eq!(result.status, ErrorStatus::None);
}

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_last_waker_is_woken_once_and_no_other() {
    let (model, watch) = prepared(1, 10);
    let mut execution = pin!(start(&model, &pool()));
    let wakers = [(); 2].map(|()| Arc::new(Woken::default()));
    for woken in &wakers {
        let waker = Waker::from(Arc::clone(woken));
        assert!(execution.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    watch.go_on.send(Go::On).unwrap();
    wait_until("the wake-up", || wakers[1].0.load(Ordering::SeqCst) > 0);
    // It is woken when the result is there.
    let waker = Waker::from(Arc::clone(&wakers[1]));
    let Poll::Ready(result) = execution.as_mut().poll(&mut Context::from_waker(&waker)) else {
        panic!("woken before the end")
    };
    assert_eq!(result.status, ErrorStatus::None);
    assert_eq!(wakers.map(|woken| woken.0.load(Ordering::SeqCst)), [0, 1]);
}

#[test]
fn a_future_that_is_dropped_while_it_is_awaited_cancels_and_keeps_its_memory_for_the_driver() {
    let (model, watch) = prepared_by(stubborn(), 1, 10);
    let pool = pool();
    let woken = Arc::new(Woken::default());
    {
        let mut execution = pin!(start(&model, &pool));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(execution.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        watch.expect_begun();
        assert!(watch.cancelled.try_recv().is_err(), "nobody has cancelled it yet");
    }
    watch.cancelled.recv_timeout(LONG).expect("whoever drops it cancels it");
    // This driver does not give up: it reads and writes the memory, which therefore is still there.
    let pinned = Arc::downgrade(&pool);
    drop(pool);
    let held = pinned.upgrade().expect("the driver has it");
    assert_eq!(output(&held), 0);
    watch.go_on.send(Go::On).unwrap();
    wait_until("the driver's end", || Arc::strong_count(&held) == 1);
    assert_eq!(output(&held), 1);
}

#[test]
fn an_execution_that_is_dropped_is_cancelled_and_its_memory_stays_until_the_driver_stops() {
    let (model, watch) = prepared(1, 10);
    let pool = pool();
    let execution = start(&model, &pool);
    watch.expect_begun();
    assert!(Arc::strong_count(&pool) > 1, "the driver has it");
    drop(execution);
    wait_until("the driver's end", || Arc::strong_count(&pool) == 1);
    assert_eq!(output(&pool), 0);
}

#[test]
fn what_waits_for_a_thread_is_called_off_at_once() {
    let (model, watch) = prepared(1, 10);
    let running = start(&model, &pool());
    watch.expect_begun();
    let waiting = pool();
    drop(start(&model, &waiting));
    assert_eq!(Arc::strong_count(&waiting), 1, "nobody had begun with it");
    watch.go_on.send(Go::On).unwrap();
    assert_eq!(running.wait().status, ErrorStatus::None);
    assert!(watch.begun.try_recv().is_err());
}

#[test]
fn an_illegal_request_is_refused_and_the_callback_told() {
    let (model, watch) = prepared(1, 10);
    let mut illegal = request(&pool());
    illegal.inputs.clear();
    let never = CancelWord::default();
    let (launched, said) = launch(&model, illegal, ExecutionOptions::default(), &never);
    assert_eq!(launched, Err(ErrorStatus::InvalidArgument));
    let result = said.try_recv().expect("told before the launch returns");
    assert_eq!(result, ExecutionResult::of(ErrorStatus::InvalidArgument));
    assert!(said.try_recv().is_err() && watch.begun.try_recv().is_err());
}

#[test]
fn a_deadline_that_has_passed_is_a_result_and_no_refusal() {
    let (model, watch) = prepared(1, 10);
    let deadline = Some(TimePoint { nanos: 1 });
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let (launched, said) = launch(&model, request(&pool()), options, &CancelWord::default());
    assert_eq!(launched, Ok(()));
    let result = said.recv_timeout(LONG).unwrap();
    assert_eq!(result.status, ErrorStatus::MissedDeadlinePersistent);
    assert!(watch.begun.try_recv().is_err(), "it was begun");
}

#[test]
fn more_than_may_wait_are_refused_and_their_callbacks_told() {
    let (model, watch) = prepared(1, 1);
    let never = CancelWord::default();
    let options = ExecutionOptions::default();
    let (first, running) = launch(&model, request(&pool()), options, &never);
    watch.expect_begun();
    let (second, waiting) = launch(&model, request(&pool()), options, &never);
    let (third, refused) = launch(&model, request(&pool()), options, &never);
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(third, Err(ErrorStatus::ResourceExhaustedTransient));
    assert_eq!(refused.recv().unwrap().status, ErrorStatus::ResourceExhaustedTransient);
    for said in [running, waiting] {
        watch.go_on.send(Go::On).unwrap();
        assert_eq!(said.recv_timeout(LONG).unwrap().status, ErrorStatus::None);
    }
}

#[test]
fn a_driver_that_panics_fails_that_execution_alone() {
    let (model, watch) = prepared(1, 10);
    let executions = [start(&model, &pool()), start(&model, &pool())];
    watch.go_on.send(Go::Panic).unwrap();
    watch.go_on.send(Go::On).unwrap();
    let statuses = executions.map(|execution| execution.wait().status);
    assert_eq!(statuses, [ErrorStatus::GeneralFailure, ErrorStatus::None]);
}

#[test]
fn a_model_without_launches_of_its_own_executes_before_the_launch_returns() {
    let (device, watch) = gated();
    let model = device.prepare_model(&model(&[1]), &PrepareOptions::default()).unwrap();
    watch.go_on.send(Go::On).unwrap();
    let execution = start(&model, &pool());
    assert!(execution.has_ended());
    assert_eq!(execution.wait().status, ErrorStatus::None);
}
