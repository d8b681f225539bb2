use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use burst_launch::FenceWatcher;

use super::*;
use crate::admission::{Limits, Users};
use crate::scheduler::{Patience, Scheduler};

const LONG: Duration = Duration::from_secs(60);

/// A lane of this width, of a user who may have so many threads besides the one for errands.
fn lane(width: usize, threads: u64) -> (Arc<Lane>, Arc<Users>) {
    let limits = Limits { threads_per_user: threads + 1, setup_rate: 0, ..Limits::default() };
    let users = Arc::new(Users::new(&limits));
    let budgets = ClientBudgets::new(&limits, &users.find(7), users.meters());
    let host = LaunchHost {
        watcher: Arc::new(FenceWatcher::new("lane-test")),
        scheduler: Scheduler::new(None, Patience::default()),
        meters: Arc::clone(users.meters()),
        fence_wait: LONG,
        cores: NonZeroUsize::MIN,
    };
    (Lane::new(Arc::new(host), Arc::new(budgets), "lane-test".to_owned(), width), users)
}

/// Says when it is admitted and when it is run.
struct Saying {
    number: u32,
    say: Sender<(&'static str, u32)>,
    /// It ends when this has something to say.
    end: Mutex<Receiver<()>>,
    _member: Member,
}

impl Piece for Saying {
    fn admitted(self: Arc<Self>) {
        self.say.send(("admitted", self.number)).unwrap();
    }

    fn work(self: Arc<Self>) {
        self.say.send(("runs", self.number)).unwrap();
        lock(&self.end).recv_timeout(LONG).unwrap();
    }

    fn no_thread(self: Arc<Self>) {
        self.say.send(("no thread", self.number)).unwrap();
    }
}

struct Pieces {
    pieces: Vec<Arc<Saying>>,
    ends: Vec<Sender<()>>,
    said: Receiver<(&'static str, u32)>,
}

fn pieces(lane: &Arc<Lane>, count: u32) -> Pieces {
    let (say, said) = channel();
    let piece = |number| {
        let (end, ends) = channel();
        let (say, _member) = (say.clone(), lane.enlist().unwrap());
        (Arc::new(Saying { number, say, end: Mutex::new(ends), _member }), end)
    };
    let (pieces, ends) = (0..count).map(piece).unzip();
    Pieces { pieces, ends, said }
}

impl Pieces {
    #[track_caller]
    fn expect(&self, what: &'static str, number: u32) {
        assert_eq!(self.said.recv_timeout(LONG), Ok((what, number)));
    }

    fn at(&self, at: usize) -> Arc<dyn Piece> {
        Arc::clone(&self.pieces[at]) as _
    }
}

fn threads(users: &Users) -> u64 {
    let balances = users.service().balances();
    balances.iter().find(|balance| balance.resource == "threads").unwrap().used
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "it never came");
        std::thread::yield_now();
    }
}

#[test]
fn as_many_are_admitted_as_there_may_be_threads_and_they_have_none_until_they_can_be_run() {
    let (lane, users) = lane(2, 100);
    let three = pieces(&lane, 3);
    (0..3).for_each(|at| lane.enter(three.at(at)));
    three.expect("admitted", 0);
    three.expect("admitted", 1);
    assert!(three.said.try_recv().is_err(), "the third waits for a slot");
    assert_eq!((lock(&lane.state).threads, threads(&users)), (0, 3), "paid for, not started");
    lane.dispatch(three.at(1));
    three.expect("runs", 1);
    three.ends[1].send(()).unwrap();
    three.expect("admitted", 2);
    wait_until(|| lock(&lane.state).idle == 1);
    lane.dispatch(three.at(2));
    three.expect("runs", 2);
    assert_eq!(lock(&lane.state).threads, 1, "the same thread");
    lane.dispatch(three.at(0));
    three.expect("runs", 0);
    for at in [0, 2] {
        three.ends[at].send(()).unwrap();
    }
    lane.close();
    drop(three);
    wait_until(|| threads(&users) == 0);
}

#[test]
fn a_client_whose_user_has_no_thread_left_goes_on_with_the_one_that_it_has() {
    let (lane, users) = lane(8, 1);
    let two = pieces(&lane, 2);
    (0..2).for_each(|at| lane.enter(two.at(at)));
    for (number, at) in (0..).zip(0..2) {
        two.expect("admitted", number);
        lane.dispatch(two.at(at));
        two.expect("runs", number);
        assert_eq!(threads(&users), 2);
        two.ends[at].send(()).unwrap();
    }
    lane.close();
    drop(two);
    wait_until(|| threads(&users) == 0);
    let budgets = Arc::clone(&lane.budgets);
    let _elsewhere = budgets.thread().unwrap();
    let refused = lane.enlist().map(drop).unwrap_err();
    assert!(refused.to_string().contains("the limit of 2 on threads for one user"), "{refused}");
}

#[test]
fn what_is_withdrawn_is_not_admitted_and_a_panic_frees_the_slot() {
    let (lane, _users) = lane(1, 100);
    let three = pieces(&lane, 3);
    (0..3).for_each(|at| lane.enter(three.at(at)));
    three.expect("admitted", 0);
    lane.withdraw(&three.at(1));
    lane.dispatch(three.at(0));
    three.expect("runs", 0);
    // Without a word it panics, as `recv_timeout` gives an error.
    let Pieces { pieces, mut ends, said } = three;
    drop(ends.remove(0));
    assert_eq!(said.recv_timeout(LONG), Ok(("admitted", 2)));
    drop(pieces);
}

#[test]
fn an_errand_waits_for_no_execution_and_is_paid_for_while_anything_is_under_way() {
    let (lane, users) = lane(1, 1);
    let one = pieces(&lane, 1);
    lane.enter(one.at(0));
    one.expect("admitted", 0);
    lane.dispatch(one.at(0));
    one.expect("runs", 0);
    let (done, errands) = channel();
    let (go, goes) = channel::<()>();
    let begun = done.clone();
    lane.send_on_errand(Box::new(move || {
        begun.send(std::thread::current().id()).unwrap();
        goes.recv_timeout(LONG).unwrap();
        panic!("a panic that is wanted here");
    }));
    lane.send_on_errand(Box::new(move || done.send(std::thread::current().id()).unwrap()));
    let first = errands.recv_timeout(LONG).unwrap();
    assert_ne!(first, std::thread::current().id(), "the one that sends does not wait");
    assert_eq!(threads(&users), 2, "one executes, one does errands");
    // With nothing under way the thread is paid for as long as it is there.
    one.ends[0].send(()).unwrap();
    drop(one);
    wait_until(|| lock(&lane.state).idle == 1);
    assert_eq!(threads(&users), 2);
    go.send(()).unwrap();
    assert_eq!(errands.recv_timeout(LONG).unwrap(), first, "in order, and a panic ends one alone");
    lane.close();
    wait_until(|| threads(&users) == 0);
}
