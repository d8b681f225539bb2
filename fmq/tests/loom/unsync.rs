//! Goal: a reader of an unsynchronized queue never accepts an item that the writer was overwriting
//! while it copied, with our writer. With a libfmq writer, which announces nothing, it can: the last
//! model shows that this window exists, so that nobody claims otherwise.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fmq::QueueError;
use fmq::geometry::Geometry;
use fmq::sync::{AtomicU64, Ordering};
use fmq::unsync_ring::{UnsyncReadSide, UnsyncWriteSide};
use loom::sync::Arc;
use loom::thread;

const SLOTS: usize = 2;
const VALUES: u64 = 3;

/// An item is two words that must agree: a torn one does not.
struct Shared {
    write: AtomicU64,
    intent: AtomicU64,
    slots: [[AtomicU64; 2]; SLOTS],
}

impl Shared {
    fn new() -> Arc<Shared> {
        let zero = || AtomicU64::new(0);
        let slots = [[zero(), zero()], [zero(), zero()]];
        Arc::new(Shared { write: zero(), intent: zero(), slots })
    }

    fn slot(&self, position: u64) -> &[AtomicU64; 2] {
        &self.slots[usize::try_from(position / 16).unwrap()]
    }
}

fn geometry() -> Geometry {
    Geometry::new(SLOTS as u64, 16).unwrap()
}

/// Writes `1..=values`; with the intent announced, or as libfmq does.
fn write_all(shared: &Shared, announce: bool, values: u64) {
    let mut side = UnsyncWriteSide::attach(geometry(), 0, 0).unwrap();
    for value in 1..=values {
        side.claim(announce.then_some(&shared.intent), 16).unwrap();
        let slot = shared.slot(side.position());
        slot[0].store(value, Ordering::Relaxed);
        slot[1].store(value, Ordering::Relaxed);
        side.publish(&shared.write, 16);
    }
}

/// One try: what was accepted, if anything was.
fn try_read(side: &mut UnsyncReadSide, shared: &Shared, announce: bool) -> Option<[u64; 2]> {
    side.peek(&shared.write, 16).ok()?;
    let slot = shared.slot(side.position());
    let item = [slot[0].load(Ordering::Relaxed), slot[1].load(Ordering::Relaxed)];
    match side.confirm(&shared.write, announce.then_some(&shared.intent), 16) {
        Ok(()) => Some(item),
        Err(QueueError::Overrun { lost }) => {
            assert!(lost % 16 == 0 && lost > 0);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reads `tries` times beside the writer; each accepted item must be whole and newer than the last.
fn model(announce: bool, values: u64, tries: usize) {
    loom::model(move || {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || write_all(&theirs, announce, values));
        let mut side = UnsyncReadSide::new(geometry());
        let mut last = 0;
        for _ in 0..tries {
            if let Some(item) = try_read(&mut side, &shared, announce) {
                assert_eq!(item[0], item[1], "torn");
                assert!(item[0] > last && item[0] <= values, "{} after {last}", item[0]);
                last = item[0];
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn no_torn_item_is_accepted_from_our_writer() {
    model(true, VALUES, 2);
}

#[test]
fn an_abandoned_claim_is_as_good_as_an_overwrite() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        write_all(&shared, true, 2);
        // The first item is read: an intent of three items would leave the second one alone.
        let mut side = UnsyncReadSide::new(geometry());
        assert_eq!(try_read(&mut side, &shared, true), Some([1, 1]));
        let writer = thread::spawn(move || {
            let mut side = UnsyncWriteSide::attach(geometry(), 32, 32).unwrap();
            // Touches both slots and gives up; the smaller claim that follows must not hide it.
            side.claim(Some(&theirs.intent), 32).unwrap();
            theirs.slots[1][0].store(100, Ordering::Relaxed);
            side.claim(Some(&theirs.intent), 16).unwrap();
        });
        side.peek(&shared.write, 16).unwrap();
        let item = [&shared.slots[1][0], &shared.slots[1][1]].map(|w| w.load(Ordering::Relaxed));
        if side.confirm(&shared.write, Some(&shared.intent), 16).is_ok() {
            assert_eq!(item, [2, 2]);
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_plain_libfmq_writer_leaves_a_window_for_torn_items() {
    let outcome = catch_unwind(AssertUnwindSafe(|| model(false, VALUES, 1)));
    let message = outcome.expect_err("no torn item was found: the documentation is out of date");
    let message = message.downcast_ref::<String>().map_or("", String::as_str);
    assert!(message.contains("torn"), "{message}");
}

/// libfmq's writer leaves the intent of a queue of ours alone: its items are read, and none is taken
/// for corruption (`try_read` panics at that).
#[test]
fn an_intent_that_nobody_moves_is_no_corruption() {
    loom::model(|| {
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || write_all(&theirs, false, VALUES));
        let mut side = UnsyncReadSide::new(geometry());
        for _ in 0..2 {
            if let Some(item) = try_read(&mut side, &shared, true) {
                assert!(item.iter().all(|word| (1..=VALUES).contains(word)), "{item:?}");
                assert!(side.writes_unannounced());
            }
        }
        writer.join().unwrap();
    });
}
