//! Goal: through the synchronized ring every item arrives once, in order and whole, under every
//! interleaving and every value a weak memory may show. Two slots and three values, so that it
//! wraps and both ends meet full and empty.

use burst_shm::model::ModelWord;
use fmq::QueueError;
use fmq::geometry::Geometry;
use fmq::ring::{ReadSide, WriteSide};
use fmq::sync::AtomicU64;
use loom::sync::Arc;
use loom::thread;

const SLOTS: usize = 2;
const VALUES: u64 = 3;

/// The shared memory: two counters and the slots. Nothing but the counters orders accesses to the
/// slots, and loom panics at one that is not ordered.
struct Shared {
    read: AtomicU64,
    write: AtomicU64,
    slots: [ModelWord; SLOTS],
}

impl Shared {
    fn new() -> Arc<Shared> {
        let zero = || AtomicU64::new(0);
        let slots = [ModelWord::new(0), ModelWord::new(0)];
        Arc::new(Shared { read: zero(), write: zero(), slots })
    }

    fn slot(&self, position: u64) -> &ModelWord {
        &self.slots[usize::try_from(position / 8).unwrap()]
    }
}

fn geometry() -> Geometry {
    Geometry::new(SLOTS as u64, 8).unwrap()
}

/// Writes the values `1..=VALUES`, one by one.
fn write_all(shared: &Shared) {
    let mut side = WriteSide::attach(geometry(), 0, 0).unwrap();
    for value in 1..=VALUES {
        while let Err(error) = side.claim(&shared.read, 8) {
            assert!(matches!(error, QueueError::Full { .. }), "{error}");
            thread::yield_now();
        }
        shared.slot(side.position()).write(value);
        side.publish(&shared.write, 8);
    }
}

fn read_next(side: &mut ReadSide, shared: &Shared) -> u64 {
    while let Err(error) = side.peek(&shared.write, 8) {
        assert!(matches!(error, QueueError::Empty { .. }), "{error}");
        thread::yield_now();
    }
    let value = shared.slot(side.position()).read();
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
        assert_eq!(shared.slots[0].read(), 1, "overwritten before the release");
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
            theirs.slots[0].write(100); // abandoned
            side.claim(&theirs.read, 16).unwrap();
            theirs.slots[0].write(1);
            theirs.slots[1].write(100); // claimed, not committed
            side.publish(&theirs.write, 8);
            side.claim(&theirs.read, 8).unwrap();
            theirs.slot(side.position()).write(2);
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
