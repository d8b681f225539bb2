//! Goal: through the synchronized ring every item arrives once, in order and whole, under every
//! interleaving and every value a weak memory may show. Two slots and three values, so that it
//! wraps and both ends meet full and empty.

#![cfg(loom)]

use fmq::QueueError;
use fmq::geometry::Geometry;
use fmq::ring::{ReadSide, WriteSide};
use fmq::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const SLOTS: usize = 2;
const VALUES: u64 = 3;

/// The shared memory: two counters and the slots. Slots are words copied without any ordering, as
/// payload is; only the counters may order them.
struct Shared {
    read: AtomicU64,
    write: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

impl Shared {
    fn new() -> Arc<Shared> {
        let zero = || AtomicU64::new(0);
        Arc::new(Shared { read: zero(), write: zero(), slots: [zero(), zero()] })
    }

    fn slot(&self, position: u64) -> &AtomicU64 {
        &self.slots[usize::try_from(position / 8).unwrap()]
    }
}

fn geometry() -> Geometry {
    Geometry::new(SLOTS as u64, 8).unwrap()
}

/// Writes the values `1..=VALUES`, one by one, each with `spare` slots claimed and not committed.
fn write_all(shared: &Shared) {
    let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
    for value in 1..=VALUES {
        while let Err(error) = side.claim(&shared.read, 8) {
            assert!(matches!(error, QueueError::Full { .. }), "{error}");
            thread::yield_now();
        }
        shared.slot(side.position()).store(value, Ordering::Relaxed);
        side.publish(&shared.write, 8);
    }
}

fn read_next(side: &mut ReadSide, shared: &Shared) -> u64 {
    while let Err(error) = side.peek(&shared.write, 8) {
        assert!(matches!(error, QueueError::Empty { .. }), "{error}");
        thread::yield_now();
    }
    let value = shared.slot(side.position()).load(Ordering::Relaxed);
    side.take(8);
    value
}

#[test]
fn items_arrive_once_in_order_and_whole() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || write_all(&theirs));
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        for expected in 1..=VALUES {
            assert_eq!(read_next(&mut side, &shared), expected);
            side.release(&shared.read);
        }
        writer.join().unwrap();
        assert_eq!(side.available(&shared.write), Ok(0));
    });
}

#[test]
fn late_release_keeps_every_unreleased_item() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || write_all(&theirs));
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        // Two items out, then both slots back at once.
        let first = (read_next(&mut side, &shared), side.position());
        assert_eq!(first.0, 1);
        assert_eq!(read_next(&mut side, &shared), 2);
        assert_eq!(shared.slots[0].load(Ordering::Relaxed), 1, "overwritten before the release");
        side.release(&shared.read);
        assert_eq!(read_next(&mut side, &shared), 3);
        side.release(&shared.read);
        writer.join().unwrap();
    });
}

#[test]
fn an_abandoned_or_partly_committed_claim_shows_nothing_more_than_was_committed() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
            side.claim(&theirs.read, 8).unwrap();
            theirs.slots[0].store(100, Ordering::Relaxed); // abandoned
            side.claim(&theirs.read, 16).unwrap();
            theirs.slots[0].store(1, Ordering::Relaxed);
            theirs.slots[1].store(100, Ordering::Relaxed); // claimed, not committed
            side.publish(&theirs.write, 8);
            side.claim(&theirs.read, 8).unwrap();
            theirs.slot(side.position()).store(2, Ordering::Relaxed);
            side.publish(&theirs.write, 8);
        });
        let mut side = ReadSide::attach(geometry(), 0, 0).unwrap();
        for expected in 1..=2 {
            assert_eq!(read_next(&mut side, &shared), expected);
            side.release(&shared.read);
        }
        writer.join().unwrap();
    });
}
