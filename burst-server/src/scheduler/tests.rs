//! Runs on real threads. Every wait is a handshake; `LONG` turns a hang into a failure.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_hal::trace::{Span, SpanKind, SpanSink};
use burst_hal::{Priority, TimePoint, Turn};

use super::urgent::{Need, News};
use super::*;
use crate::panics::catch_panic;

const LONG: Duration = Duration::from_secs(60);

/// One whose runs wait as long as that takes.
fn scheduler(tokens: usize) -> Arc<Scheduler> {
    Scheduler::new(NonZeroUsize::new(tokens), Patience::default())
}

/// One whose runs wait for a millisecond for those that do not give way, and what counts these.
fn impatient(tokens: usize) -> (Arc<Scheduler>, Arc<TurnMeter>) {
    let patience = Patience { time: Some(Duration::ZERO), ..Patience::default() };
    let meter = Arc::clone(&patience.meter);
    (Scheduler::new(NonZeroUsize::new(tokens), patience), meter)
}

fn of(user: u32) -> Claimant {
    Claimant { user, connection: user.into(), priority: Priority::Medium }
}

fn new_run(scheduler: &Arc<Scheduler>, user: u32) -> (Arc<Run>, CancelWord) {
    let cancel = CancelWord::default();
    (scheduler.run(of(user), Work::Burst(user), &cancel), cancel)
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "it never came");
        std::thread::yield_now();
    }
}

fn waiting(scheduler: &Scheduler) -> u64 {
    scheduler.turns.counts().1
}

/// Somebody who waits for a token, says what came of it, and holds it until told to end.
struct Other {
    said: Receiver<Result<(), NoToken>>,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

fn begin(run: &Arc<Run>, deadline: Option<TimePoint>) -> Other {
    let ((say, said), (end, ends)) = (channel(), channel());
    let run = Arc::clone(run);
    let thread = std::thread::spawn(move || {
        let _entered = run.enter();
        say.send(run.begin(deadline)).unwrap();
        let _ = ends.recv();
        run.end();
    });
    Other { said, end, thread }
}

impl Other {
    fn said(&self) -> Result<(), NoToken> {
        self.said.recv_timeout(LONG).expect("it says something")
    }

    fn end(self) {
        drop(self.end);
        self.thread.join().unwrap();
    }
}

#[test]
fn a_token_goes_from_hand_to_hand_and_back() {
    let scheduler = scheduler(1);
    let runs = [1, 2, 3].map(|user| new_run(&scheduler, user).0);
    let first = begin(&runs[0], None);
    assert_eq!(first.said(), Ok(()));
    let [second, third] = [1, 2].map(|at| {
        let other = begin(&runs[at], None);
        wait_until(|| waiting(&scheduler) == at as u64);
        other
    });
    assert_eq!(scheduler.computing(), ["burst 1 of client 1, user 1"]);
    first.end();
    assert_eq!(second.said(), Ok(()));
    assert!(third.said.try_recv().is_err());
    second.end();
    assert_eq!(third.said(), Ok(()));
    third.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
    assert!(scheduler.computing().is_empty());
    drop(runs);
    assert!(lock(&scheduler.runs).alive.is_empty());
}

#[test]
fn who_was_called_off_or_cancelled_does_not_wait_for_a_token() {
    let scheduler = scheduler(1);
    let (holder, _) = new_run(&scheduler, 1);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    for is_cancelled in [false, true] {
        let (run, cancel) = new_run(&scheduler, 2);
        let waits = begin(&run, None);
        wait_until(|| waiting(&scheduler) == 1);
        if is_cancelled {
            cancel.cancel();
            scheduler.wake_called_off();
        } else {
            run.call_off();
        }
        assert_eq!(waits.said(), Err(NoToken::CalledOff));
        waits.end();
        let later = begin(&run, None);
        assert_eq!(later.said(), Err(NoToken::CalledOff), "nor later");
        later.end();
    }
    holding.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn who_waits_leaves_at_its_deadline() {
    let scheduler = scheduler(1);
    let (holder, _) = new_run(&scheduler, 1);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    let (run, _) = new_run(&scheduler, 2);
    let soon = TimePoint::after(Duration::from_millis(5));
    let waits = begin(&run, Some(soon));
    assert_eq!(waits.said(), Err(NoToken::MissedDeadline));
    assert!(soon.has_passed());
    waits.end();
    holding.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

/// Kinds of spans, in their order.
#[derive(Debug, Default)]
struct Kinds(Mutex<Vec<SpanKind>>);

impl SpanSink for Kinds {
    fn is_on(&self) -> bool {
        true
    }

    fn record(&self, span: &Span<'_>) {
        assert!(span.begin_ns <= span.end_ns);
        lock(&self.0).push(span.kind);
    }
}

#[test]
fn only_who_waits_for_its_turn_has_a_span_of_that() {
    let scheduler = scheduler(1);
    let kinds = [(); 2].map(|()| Arc::new(Kinds::default()));
    let runs = [1, 2].map(|user| new_run(&scheduler, user).0);
    for (run, kinds) in runs.iter().zip(&kinds) {
        run.traced_by(Arc::clone(kinds) as _);
    }
    let holding = begin(&runs[0], None);
    holding.said().unwrap();
    let waits = begin(&runs[1], None);
    wait_until(|| waiting(&scheduler) == 1);
    holding.end();
    waits.said().unwrap();
    waits.end();
    let kinds = kinds.map(|kinds| lock(&kinds.0).clone());
    assert_eq!(kinds, [vec![], vec![SpanKind::WaitForTurn]]);
}

/// Gives way until somebody else has had the token.
fn give_way_until(run: &Run, other: &Receiver<Result<(), NoToken>>) {
    let until = Instant::now() + LONG;
    while other.try_recv().is_err() {
        assert!(Instant::now() < until, "it is never the other's turn");
        run.give_way();
    }
}

#[test]
fn a_run_that_has_had_its_quantum_gives_way_and_gets_its_token_back() {
    let scheduler = scheduler(1);
    let (run, _) = new_run(&scheduler, 1);
    let _entered = run.enter();
    run.begin(None).unwrap();
    run.give_way(); // nobody waits
    let (other, _) = new_run(&scheduler, 2);
    let other = begin(&other, None);
    // It ends by itself as soon as it had its turn.
    let Other { said, end, thread } = other;
    drop(end);
    give_way_until(&run, &said);
    thread.join().unwrap();
    assert_eq!(scheduler.computing(), ["burst 1 of client 1, user 1"], "it goes on with its token");
    run.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn time_is_charged_once_however_often_a_run_asks_whose_turn_it_is() {
    let scheduler = scheduler(1);
    let (run, _) = new_run(&scheduler, 1);
    let _entered = run.enter();
    run.begin(None).unwrap(); // nobody waits yet
    // Of the same user and less urgent, so that the one with the token always goes on.
    let low = Claimant { priority: Priority::Low, ..of(1) };
    let other = scheduler.run(low, Work::Burst(2), &CancelWord::default());
    let begun = Instant::now();
    let other = begin(&other, None);
    wait_until(|| waiting(&scheduler) == 1);
    (0..1000).for_each(|_| run.give_way());
    let charged = Duration::from_nanos(scheduler.turns.computed(1));
    let took = begun.elapsed();
    assert!(!charged.is_zero() && charged <= took, "charged {charged:?} of {took:?}");
    run.end();
    other.said().unwrap();
    other.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn a_cancelled_run_does_not_wait_to_go_on_and_has_no_token_to_give_back() {
    cancelled_while_it_waits_to_go_on(|scheduler, _| scheduler.wake_called_off());
    // The one alone, as an execution that is cancelled by itself.
    cancelled_while_it_waits_to_go_on(|_, run| run.look_again());
}

fn cancelled_while_it_waits_to_go_on(wake: impl Fn(&Arc<Scheduler>, &Run)) {
    let scheduler = scheduler(1);
    let (run, cancel) = new_run(&scheduler, 1);
    let (other, _) = new_run(&scheduler, 2);
    let (says, said) = channel();
    let thread = {
        let run = Arc::clone(&run);
        std::thread::spawn(move || {
            let _entered = run.enter();
            run.begin(None).unwrap();
            says.send(()).unwrap();
            let until = Instant::now() + LONG;
            while !run.is_called_off() {
                assert!(Instant::now() < until, "it is never cancelled");
                run.give_way();
            }
        })
    };
    said.recv_timeout(LONG).unwrap();
    let other = begin(&other, None);
    assert_eq!(other.said(), Ok(()), "it was handed over");
    wait_until(|| waiting(&scheduler) == 1);
    cancel.cancel();
    wake(&scheduler, &run);
    thread.join().unwrap();
    assert_eq!(scheduler.turns.counts(), (0, 0), "the other one's token");
    other.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn a_driver_can_neither_lose_a_token_nor_double_it() {
    let scheduler = scheduler(1);
    let (run, _) = new_run(&scheduler, 1);
    let turn: Arc<dyn Turn> = Arc::clone(&run) as _;
    turn.give_way(); // it has none
    let panicked = catch_panic(|| {
        let _entered = run.enter();
        run.begin(None).unwrap();
        panic!("a panic that is wanted here");
    });
    assert!(panicked.is_err());
    assert_eq!(scheduler.turns.counts(), (1, 0), "given back");

    // From a thread that does not compute, while another one waits.
    let holding = begin(&run, None);
    holding.said().unwrap();
    let (other, _) = new_run(&scheduler, 2);
    let other = begin(&other, None);
    wait_until(|| waiting(&scheduler) == 1);
    for _ in 0..1000 {
        turn.give_way();
    }
    assert_eq!(scheduler.turns.counts(), (0, 1));
    assert!(other.said.try_recv().is_err());
    holding.end();
    assert_eq!(other.said(), Ok(()));
    turn.give_way();
    other.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn nobody_holds_a_token_while_a_client_may_keep_the_thread_waiting() {
    let scheduler = scheduler(1);
    without_token(|| ()); // a thread that computes for nobody
    let (run, _) = new_run(&scheduler, 1);
    let _entered = run.enter();
    run.begin(None).unwrap();
    let (other, _) = new_run(&scheduler, 2);
    without_token(|| {
        let other = begin(&other, None);
        assert_eq!(other.said(), Ok(()), "the token is free for others");
        assert_eq!(scheduler.computing().len(), 2, "what waits for a file is named, too");
        other.end();
    });
    assert_eq!(scheduler.turns.counts(), (0, 0), "it has it again");
    run.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn a_driver_that_steps_aside_holds_no_token_meanwhile() {
    let scheduler = scheduler(1);
    let (run, _) = new_run(&scheduler, 1);
    let _entered = run.enter();
    run.begin(None).unwrap();
    let mut other_ran = false;
    run.step_aside(&mut || {
        let (other, _) = new_run(&scheduler, 2);
        let other = begin(&other, None);
        other_ran = other.said() == Ok(());
        other.end();
    });
    assert!(other_ran, "the token was free for others");
    assert_eq!(scheduler.turns.counts(), (0, 0), "it has it again");
    // From another thread nothing is given away: the token is this one's.
    std::thread::scope(|scope| {
        let aside =
            scope.spawn(|| run.step_aside(&mut || assert_eq!(scheduler.turns.counts(), (0, 0))));
        aside.join().unwrap();
    });
    run.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn a_service_that_stops_cancels_what_runs_now_and_later() {
    let scheduler = scheduler(1);
    let (run, cancel) = new_run(&scheduler, 1);
    let _entered = run.enter();
    run.begin(None).unwrap();
    let (other, _) = new_run(&scheduler, 2);
    let waits = begin(&other, None);
    wait_until(|| waiting(&scheduler) == 1);
    scheduler.cancel_all();
    assert_eq!(waits.said(), Err(NoToken::CalledOff));
    waits.end();
    assert!(cancel.is_cancelled());
    assert!(new_run(&scheduler, 3).1.is_cancelled());
}

#[test]
fn runs_of_many_threads_end_with_every_token_given_back() {
    const TOKENS: usize = 2;
    let scheduler = scheduler(TOKENS);
    let computing = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for user in 0..6 {
            let (run, _) = new_run(&scheduler, user % 3);
            let computing = &computing;
            scope.spawn(move || {
                use std::sync::atomic::Ordering::SeqCst;
                let _entered = run.enter();
                for round in 0..2000_u32 {
                    run.begin(None).unwrap();
                    assert!(computing.fetch_add(1, SeqCst) < TOKENS, "more than there are tokens");
                    std::hint::black_box((0..round % 300).sum::<u32>());
                    computing.fetch_sub(1, SeqCst);
                    run.give_way();
                    run.end();
                }
            });
        }
    });
    assert_eq!(scheduler.turns.counts(), (TOKENS as u64, 0));
}

/// Waits for a token without a thread; says when it is there.
fn begin_later(run: &Run) -> (bool, Receiver<()>) {
    let (say, said) = channel();
    (run.begin_later(Box::new(move || say.send(()).unwrap())), said)
}

#[test]
fn who_waits_without_a_thread_is_told_of_its_token_and_another_thread_takes_it_over() {
    let scheduler = scheduler(1);
    let [first, second, third] = [1, 2, 3].map(|user| new_run(&scheduler, user).0);
    let (is_there, told) = begin_later(&first);
    assert!(is_there && told.try_recv().is_err(), "the token is free");
    let (is_there, told) = begin_later(&second);
    assert!(!is_there);
    let waits = begin(&third, None); // on a thread
    wait_until(|| waiting(&scheduler) == 2);
    assert!(told.try_recv().is_err());
    let other = Arc::clone(&first);
    let run = move || {
        let entered = other.enter();
        other.take_over(); // it has its token already
        drop(entered);
    };
    std::thread::spawn(run).join().unwrap();
    assert_eq!(told.try_recv(), Ok(()), "told by who gave the token back");
    assert!(waits.said.try_recv().is_err(), "nobody else has it meanwhile");
    assert!(!second.leave(), "it is too late to leave");
    let entered = second.enter();
    second.take_over();
    assert_eq!(second.begin(None), Ok(()));
    assert_eq!(scheduler.computing(), ["burst 2 of client 2, user 2"]);
    drop(entered);
    assert_eq!(waits.said(), Ok(()));
    waits.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn who_waits_without_a_thread_may_leave_and_is_told_of_nothing() {
    let scheduler = scheduler(1);
    let [holder, leaves] = [1, 2].map(|user| new_run(&scheduler, user).0);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    let (is_there, told) = begin_later(&leaves);
    assert!(!is_there && waiting(&scheduler) == 1);
    assert!(leaves.leave());
    assert_eq!(waiting(&scheduler), 0);
    assert!(!leaves.leave());
    holding.end();
    assert!(told.try_recv().is_err());
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn who_waits_for_a_run_that_does_not_give_way_computes_beside_it() {
    let (scheduler, meter) = impatient(1);
    let [holder, other, later] = [1, 2, 3].map(|user| new_run(&scheduler, user).0);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    let beside = begin(&other, None);
    assert_eq!(beside.said(), Ok(()), "the holder has its token all the time");
    assert_eq!(scheduler.computing().len(), 2);
    // It was waited for already: whoever comes now does not wait.
    let at_once = begin(&later, None);
    assert_eq!(at_once.said(), Ok(()));
    assert_eq!((meter.begun_beside(), meter.beside()), (2, 2));
    let another = new_run(&scheduler, 2).0;
    let waits = begin(&another, None);
    wait_until(|| waiting(&scheduler) == 1); // its user has one beside
    assert!(waits.said.try_recv().is_err());
    beside.end();
    assert_eq!(waits.said(), Ok(()), "in its place");
    holding.end();
    waits.end();
    at_once.end();
    assert_eq!((scheduler.turns.counts(), meter.beside()), ((1, 0), 0));
    assert_eq!(meter.begun_beside(), 3);
    // Tokens move again.
    let first = begin(&holder, None);
    assert_eq!((first.said(), meter.beside()), (Ok(()), 0));
    first.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn who_computes_beside_has_no_token_to_give_back() {
    let (scheduler, meter) = impatient(1);
    let [holder, other] = [1, 2].map(|user| new_run(&scheduler, user).0);
    let (give_way, gives_way) = channel::<()>();
    let ((says, said), (end, ends)) = (channel(), channel::<()>());
    let thread = {
        let run = Arc::clone(&holder);
        std::thread::spawn(move || {
            let _entered = run.enter();
            run.begin(None).unwrap();
            says.send(()).unwrap();
            let _ = gives_way.recv();
            run.give_way(); // nobody waits: it goes on
            says.send(()).unwrap();
            let _ = ends.recv();
        })
    };
    said.recv_timeout(LONG).unwrap();
    let beside = begin(&other, None);
    assert_eq!(beside.said(), Ok(()));
    give_way.send(()).unwrap();
    said.recv_timeout(LONG).unwrap();
    // Without a token there is none to give back: the one that there is remains held.
    beside.end();
    assert_eq!((scheduler.turns.counts(), meter.beside()), ((0, 0), 0));
    drop(end);
    thread.join().unwrap();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn who_waits_without_a_thread_computes_beside_what_does_not_give_way_too() {
    let (scheduler, meter) = impatient(1);
    let [holder, other] = [1, 2].map(|user| new_run(&scheduler, user).0);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    let (is_there, told) = begin_later(&other);
    assert!(!is_there);
    told.recv_timeout(LONG).expect("it is told while the holder computes");
    assert!(!other.leave(), "it is too late to leave");
    let entered = other.enter();
    other.take_over();
    assert_eq!((scheduler.computing().len(), meter.beside()), (2, 1));
    drop(entered);
    assert_eq!((scheduler.turns.counts(), meter.beside()), ((0, 0), 0));
    holding.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

#[test]
fn whoever_waits_for_a_client_gives_up_its_place_beside() {
    let (scheduler, meter) = impatient(1);
    let [holder, run] = [1, 2].map(|user| new_run(&scheduler, user).0);
    let holding = begin(&holder, None);
    holding.said().unwrap();
    let _entered = run.enter();
    run.begin(None).unwrap();
    without_token(|| assert_eq!(meter.beside(), 0));
    assert_eq!((meter.beside(), meter.begun_beside()), (1, 2), "and has one again");
    run.end();
    assert_eq!(meter.beside(), 0);
    holding.end();
    assert_eq!(scheduler.turns.counts(), (1, 0));
}

/// A run of a burst, and the two ends of its requests.
fn burst(scheduler: &Arc<Scheduler>, of: Claimant) -> (Arc<Run>, fmq::Producer, fmq::Consumer) {
    let run = scheduler.run(of, Work::Burst(0), &CancelWord::default());
    let (requests, served) = fmq::pair(&fmq::QueueConfig::new(8, 4)).unwrap();
    run.watches(served.gauge());
    (run, requests, served)
}

#[test]
fn a_request_of_a_more_urgent_burst_is_news_until_its_thread_has_begun() {
    let scheduler = scheduler(1);
    let (low, high) = (Priority::Low, Priority::High);
    let of = |user, priority| Claimant { priority, ..of(user) };
    let users = [1, 2].map(|user| scheduler.users.of(user));
    let above = || users.each_ref().map(|urgent| urgent.is_above(low));
    assert_eq!(above(), [false; 2]);
    let (urgent, mut requests, mut served) = burst(&scheduler, of(1, high));
    let (_equal, mut others, _served) = burst(&scheduler, of(1, low));
    let (_stranger, mut strangers, _taken) = burst(&scheduler, of(2, high));
    assert_eq!(above(), [true; 2]);
    assert_eq!([Priority::Medium, high].map(|p| users[0].is_above(p)), [true, false]);
    assert!(!scheduler.users.of(3).is_above(low), "who has none has none to look at");
    others.write(&[0; 8]).unwrap();
    strangers.write(&[0; 8]).unwrap();
    let news = || users[0].news(low);
    let nothing = News { need: None, ends: 0 };
    assert_eq!(news(), nothing, "neither an equal one's nor another user's");
    requests.write(&[0; 8]).unwrap();
    assert_eq!(news().need, Some(Need::CoreAndToken));
    urgent.begin(None).unwrap();
    assert_eq!(news(), nothing, "it computes");
    served.read(&mut [0; 8]).unwrap();
    urgent.end();
    assert_eq!(news(), News { need: None, ends: 1 }, "its client has an answer to read");
    // What it was given and no thread has taken is a need, too.
    let holder = new_run(&scheduler, 1).0;
    holder.begin(None).unwrap();
    assert!(!urgent.begin_later(Box::new(|| {})));
    holder.end();
    assert_eq!(news().need, Some(Need::Core));
    urgent.take_over();
    assert_eq!(news().need, None);
    urgent.end();
    drop(urgent);
    assert_eq!(news(), nothing);
    assert_eq!(above(), [false, true], "another user's, of whom this one sees nothing");
}
