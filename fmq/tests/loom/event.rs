//! Goal: no wake-up is lost. Both ends sleep at once where they can, and loom finds every
//! interleaving in which one of them would never wake (a deadlock in the model). The code is that
//! of the blocking calls; the kernel's futex is a lock, a compare and a condition variable.

use std::num::NonZeroU32;

use burst_shm::model::ModelWord;
use fmq::closer::{Closed, close, close_and_insist};
use fmq::event_flag::{NOT_EMPTY, NOT_FULL, announce_awake, wake};
use fmq::geometry::Geometry;
use fmq::ring::{ReadSide, WriteSide};
use fmq::sync::{AtomicU64, EventWord, Ordering};
use fmq::wait::{Sleeper, Wait, WaitCondition, Waiter};
use fmq::{Deadline, QueueError};
use loom::sync::Arc;
use loom::thread;

struct Shared {
    read: AtomicU64,
    write: AtomicU64,
    slot: ModelWord,
    event: EventWord,
    closed: Closed,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let zero = || AtomicU64::new(0);
        let event = EventWord::new(NOT_FULL | NOT_EMPTY);
        let closed = Closed::new();
        Arc::new(Shared { read: zero(), write: zero(), slot: ModelWord::new(0), event, closed })
    }

    fn sleeper(&self, bit: u32) -> Sleeper<'_> {
        let bits = NonZeroU32::new(bit).unwrap();
        let deadline = Deadline::never();
        Sleeper { event: &self.event, bits, closed: &self.closed, deadline }
    }
}

/// A ring of one slot: the ends have to wait for each other for every item.
fn geometry() -> Geometry {
    Geometry::new(1, 8).unwrap()
}

struct Room<'a>(&'a mut WriteSide, &'a AtomicU64);

impl WaitCondition for Room<'_> {
    fn has_moved(&self) -> bool {
        self.0.changed(self.1)
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        Ok((self.0.free(self.1)? == 8).then_some(1))
    }
}

struct Item<'a>(&'a mut ReadSide, &'a AtomicU64);

impl WaitCondition for Item<'_> {
    fn has_moved(&self) -> bool {
        self.0.changed(self.1)
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        Ok((self.0.available(self.1)? == 8).then_some(1))
    }
}

fn write_blocking(side: &mut WriteSide, shared: &Shared, value: u64) -> Result<(), QueueError> {
    let mut waiter = Waiter::new(Wait::Sleep);
    waiter.wait(&mut Room(side, &shared.read), &shared.sleeper(NOT_FULL))?;
    side.claim(&shared.read, 8)?;
    shared.slot.write(value);
    side.publish(&shared.write, 8);
    wake(&shared.event, NOT_EMPTY).unwrap();
    Ok(())
}

fn read_blocking(side: &mut ReadSide, shared: &Shared) -> Result<u64, QueueError> {
    read_blocking_bit(side, shared, NOT_EMPTY)
}

fn read_blocking_bit(side: &mut ReadSide, shared: &Shared, bit: u32) -> Result<u64, QueueError> {
    let mut waiter = Waiter::new(Wait::Sleep);
    waiter.wait(&mut Item(side, &shared.write), &shared.sleeper(bit))?;
    side.peek(&shared.write, 8)?;
    let value = shared.slot.read();
    side.take(8);
    side.release(&shared.read);
    wake(&shared.event, NOT_FULL).unwrap();
    Ok(value)
}

#[test]
fn a_sleeping_reader_is_always_woken() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            write_blocking(&mut side, &theirs, 1).unwrap();
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Ok(1));
        writer.join().unwrap();
    });
}

#[test]
fn both_ends_block_on_a_ring_of_one_slot() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            for value in 1..=2 {
                write_blocking(&mut side, &theirs, value).unwrap();
            }
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        for value in 1..=2 {
            assert_eq!(read_blocking(&mut side, &shared), Ok(value));
        }
        writer.join().unwrap();
    });
}

#[test]
fn closing_wakes_a_sleeper_whenever_it_comes() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let closer = thread::spawn(move || close(&theirs.closed, Some(&theirs.event)));
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Err(QueueError::PeerDied));
        closer.join().unwrap();
    });
}

#[test]
fn the_closed_bit_wakes_the_other_process() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        // Another process has another flag: only the word is common.
        let closer = thread::spawn(move || close(&Closed::new(), Some(&theirs.event)));
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Err(QueueError::PeerDied));
        closer.join().unwrap();
    });
}

#[test]
fn an_item_written_before_the_close_is_read_or_the_close_is_reported() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            write_blocking(&mut side, &theirs, 1).unwrap();
            close(&theirs.closed, Some(&theirs.event));
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        let mut got = Vec::new();
        let end = loop {
            match read_blocking(&mut side, &shared) {
                Ok(value) => got.push(value),
                Err(error) => break error,
            }
        };
        assert_eq!((got, end), (vec![1], QueueError::PeerDied));
        writer.join().unwrap();
    });
}

#[test]
fn a_thread_that_sees_the_flag_sees_what_was_written_before_it() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            side.claim(&theirs.read, 8).unwrap();
            side.publish(&theirs.write, 8);
            theirs.closed.set();
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        if shared.closed.get() {
            assert_eq!(side.available(&shared.write), Ok(8));
        }
        writer.join().unwrap();
    });
}

/// A hostile peer may have wiped the CLOSED bit: the flag of our own process counts.
#[test]
fn the_flag_ends_the_wait_without_the_closed_bit() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let closer = thread::spawn(move || {
            theirs.closed.set();
            wake(&theirs.event, NOT_EMPTY).unwrap();
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Err(QueueError::PeerDied));
        closer.join().unwrap();
    });
}

/// The other process writes, does not wake, and says good-bye.
#[test]
fn what_was_written_before_the_closed_bit_is_read() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            side.claim(&theirs.read, 8).unwrap();
            theirs.slot.write(1);
            side.publish(&theirs.write, 8);
            close(&Closed::new(), Some(&theirs.event));
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Ok(1));
        writer.join().unwrap();
    });
}

fn write_quiet(shared: &Shared) {
    let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
    side.claim(&shared.read, 8).unwrap();
    shared.slot.write(1);
    side.publish(&shared.write, 8);
}

/// A writer attaches, which sets "not full"; by the numbering of the two that is the reader's bit.
#[test]
fn who_attaches_leaves_nobody_asleep_on_the_bit_it_sets() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            announce_awake(&theirs.event, NOT_FULL).unwrap();
            write_quiet(&theirs);
            wake(&theirs.event, NOT_FULL).unwrap();
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking_bit(&mut side, &shared, NOT_FULL), Ok(1));
        writer.join().unwrap();
    });
}

/// A third party attaches and sets the reader's bit at any moment, between the writer's steps too.
#[test]
fn a_second_end_that_attaches_leaves_the_first_one_awake() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let shared = Shared::new();
        let (second, theirs) = (Arc::clone(&shared), Arc::clone(&shared));
        let second = thread::spawn(move || announce_awake(&second.event, NOT_EMPTY).unwrap());
        let writer = thread::spawn(move || {
            write_quiet(&theirs);
            wake(&theirs.event, NOT_EMPTY).unwrap();
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Ok(1));
        second.join().unwrap();
        writer.join().unwrap();
    });
}

/// A blocking call and the thread of a `Readiness` sleep on one bit.
#[test]
fn two_sleepers_on_one_bit_are_both_woken() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let shared = Shared::new();
        let (other, theirs) = (Arc::clone(&shared), Arc::clone(&shared));
        let see_item = |shared: &Shared| {
            let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
            let mut waiter = Waiter::new(Wait::Sleep);
            waiter.wait(&mut Item(&mut side, &shared.write), &shared.sleeper(NOT_EMPTY))
        };
        let other = thread::spawn(move || assert_eq!(see_item(&other), Ok(1)));
        let writer = thread::spawn(move || {
            write_quiet(&theirs);
            wake(&theirs.event, NOT_EMPTY).unwrap();
        });
        assert_eq!(see_item(&shared), Ok(1));
        other.join().unwrap();
        writer.join().unwrap();
    });
}

/// The peer makes the word what the sleeper expects, at any moment: between the closer's bits and the
/// sleeper's sleep too.
#[test]
fn a_closer_that_insists_ends_a_sleep_whatever_a_peer_does_to_the_word() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let shared = Shared::new();
        let (hostile, theirs) = (Arc::clone(&shared), Arc::clone(&shared));
        let hostile = thread::spawn(move || {
            hostile.event.fetch_and(NOT_FULL, Ordering::Relaxed);
        });
        let closer = thread::spawn(move || {
            close_and_insist(&theirs.closed, Some(&theirs.event), |_| thread::yield_now());
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        assert_eq!(read_blocking(&mut side, &shared), Err(QueueError::PeerDied));
        hostile.join().unwrap();
        closer.join().unwrap();
    });
}
