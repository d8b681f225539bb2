use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use burst_hal::Fence;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::FenceSignal;

const LONG: Duration = Duration::from_secs(60);

/// A fence that somebody else signals.
fn fence() -> (FenceSignal, CheckedFence) {
    let (signal, fence) = FenceSignal::new().unwrap();
    (signal, CheckedFence::check_all(vec![fence]).unwrap().remove(0))
}

fn event() -> (OwnedFd, CheckedFence) {
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let fence = Fence::from(event.try_clone().unwrap());
    (event, CheckedFence::check_all(vec![fence]).unwrap().remove(0))
}

fn wait(
    watcher: &FenceWatcher,
    fences: &[CheckedFence],
    deadline: Option<TimePoint>,
    cancel: &CancelWord,
) -> Receiver<WaitEnd> {
    let (say, said) = channel();
    watcher.wait(fences, deadline, cancel, move |end| say.send(end).unwrap()).unwrap();
    said
}

#[track_caller]
fn expect(said: &Receiver<WaitEnd>, want: WaitEnd) {
    assert_eq!(said.recv_timeout(LONG), Ok(want));
    assert!(said.recv_timeout(LONG).is_err(), "it is told once");
}

#[test]
fn a_wait_ends_when_all_of_its_fences_are_done() {
    let (watcher, never) = (FenceWatcher::default(), CancelWord::default());
    let [(one, first), (other, second)] = [fence(), fence()];
    let (event, third) = event();
    let all = wait(&watcher, &[first.clone(), second, third], None, &never);
    let alone = wait(&watcher, std::slice::from_ref(&first), None, &never);
    one.done();
    expect(&alone, WaitEnd::Done);
    assert!(all.try_recv().is_err());
    rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
    other.done();
    expect(&all, WaitEnd::Done);
    // What was done already is found done, and nothing at all is.
    expect(&wait(&watcher, &[first], None, &never), WaitEnd::Done);
    expect(&wait(&watcher, &[], None, &never), WaitEnd::Done);
}

#[test]
fn a_failed_fence_ends_every_wait_for_it_at_once() {
    let (watcher, never) = (FenceWatcher::default(), CancelWord::default());
    let [(fails, first), (_pending, second)] = [fence(), fence()];
    let waits = [
        wait(&watcher, &[first.clone(), second.clone()], None, &never),
        wait(&watcher, &[second, first.clone()], None, &never),
        wait(&watcher, &[first.clone(), first], None, &never),
    ];
    drop(fails);
    waits.iter().for_each(|said| expect(said, WaitEnd::Failed));
}

#[test]
fn a_wait_ends_at_its_deadline_and_when_it_is_cancelled() {
    let (watcher, cancel) = (FenceWatcher::default(), CancelWord::default());
    let (_pending, fence) = fence();
    let fences = [fence];
    let soon = Some(TimePoint::after(Duration::from_millis(5)));
    let (cancelled, missed) = (
        wait(&watcher, &fences, Some(TimePoint::after(LONG)), &cancel),
        wait(&watcher, &fences, soon, &CancelWord::default()),
    );
    expect(&missed, WaitEnd::MissedDeadline);
    assert!(cancelled.try_recv().is_err());
    cancel.cancel();
    expect(&cancelled, WaitEnd::Cancelled);
    expect(&wait(&watcher, &fences, None, &cancel), WaitEnd::Cancelled);
    let past = Some(TimePoint { nanos: 0 });
    expect(&wait(&watcher, &fences, past, &CancelWord::default()), WaitEnd::MissedDeadline);
}

#[test]
fn an_alarm_goes_off_at_its_time_or_is_taken_back() {
    let watcher = FenceWatcher::default();
    let (say, said) = channel();
    let tell = |name: &'static str| {
        let say = say.clone();
        move |end| say.send((name, end)).unwrap()
    };
    let late = watcher.alarm(TimePoint::after(LONG), tell("late")).unwrap();
    watcher.alarm(TimePoint::after(Duration::from_millis(1)), tell("early")).unwrap();
    assert_eq!(said.recv_timeout(LONG), Ok(("early", WaitEnd::MissedDeadline)));
    late.cancel();
    assert_eq!(said.recv_timeout(LONG), Ok(("late", WaitEnd::Cancelled)));
    let run = tell("soon");
    watcher.soon(move || run(WaitEnd::Done)).unwrap();
    assert_eq!(said.recv_timeout(LONG), Ok(("soon", WaitEnd::Done)));
}

#[test]
fn many_waits_cost_one_thread_and_a_panic_harms_none_of_them() {
    const MANY: usize = 300;
    let (watcher, never) = (FenceWatcher::new("test-watch"), CancelWord::default());
    let (signals, waits): (Vec<_>, Vec<_>) = (0..MANY)
        .map(|_| {
            let (signal, fence) = fence();
            (signal, wait(&watcher, &[fence], None, &never))
        })
        .unzip();
    let (last, fence) = fence();
    let panics = |_| panic!("a panic that is wanted here");
    watcher.wait(&[fence], None, &never, panics).unwrap();
    last.done();
    let threads = std::fs::read_dir("/proc/self/task").unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path().join("comm");
        std::fs::read_to_string(path).is_ok_and(|name| name.trim() == "test-watch")
    });
    assert_eq!(threads.count(), 1);
    // The last ones first: none waits for another one.
    for (signal, said) in signals.into_iter().zip(&waits).rev() {
        signal.done();
        expect(said, WaitEnd::Done);
    }
}

#[test]
fn what_still_waits_when_the_watcher_is_dropped_is_cancelled() {
    let watcher = FenceWatcher::default();
    let (_pending, fence) = fence();
    let said = wait(&watcher, &[fence], None, &CancelWord::default());
    drop(watcher);
    expect(&said, WaitEnd::Cancelled);
}
