//! A reader or the writer of an unsynchronized queue, or a writer with two readers, while a peer
//! changes every shared word at will.
//!
//! Looked at: as in [`queue_synchronized`](crate::queue_synchronized), but for waits, of which
//! this flavour has none.

use fmq::{QueueError, UNSYNCHRONIZED, UnsyncConsumer, UnsyncProducer};

use crate::ends::{
    Scripts, answered, attached, begin, copy_somewhere, end_claim, refused_as_too_large, too_many,
};
use crate::words::{Arena, STEPS_MAX, Verdict, check_payload, payload};
use crate::{Input, Seed};

/// Runs a script.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let (arena, ends) = begin(&mut input, UNSYNCHRONIZED);
    let producer = attached(UnsyncProducer::attach(arena.descriptor()));
    let reader = || {
        let end = UnsyncConsumer::attach(arena.descriptor()).unwrap();
        assert_eq!((end.capacity(), end.quantum()), (arena.capacity, arena.quantum));
        (end, Verdict::default())
    };
    let (producer, readers) = match ends % 3 {
        0 => (producer, vec![]),
        1 => (None, vec![reader()]),
        _ => (producer, vec![reader(), reader()]),
    };
    let passed = converse(producer, readers, &arena, &mut input);
    arena.check_gaps();
    passed
}

fn converse(
    mut producer: Option<UnsyncProducer>,
    mut readers: Vec<(UnsyncConsumer, Verdict)>,
    arena: &Arena,
    input: &mut Input<'_>,
) -> bool {
    let mut moved = false;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let step = input.u8();
        let count = readers.len();
        match &mut producer {
            _ if step & 0xC0 == 0 => arena.attack(input),
            Some(end) if step & 0x40 != 0 || count == 0 => {
                moved |= produce(end, step, arena, input).is_ok();
            }
            _ if count > 0 => {
                let (end, verdict) = &mut readers[usize::from(step) % count];
                consume(end, step, arena, input, verdict);
            }
            _ => {}
        }
    }
    moved || readers.iter().any(|(_, verdict)| verdict.is_clean())
}

fn produce(
    end: &mut UnsyncProducer,
    step: u8,
    arena: &Arena,
    input: &mut Input<'_>,
) -> Result<(), QueueError> {
    let items = 1 + input.below(arena.capacity);
    match step % 4 {
        0 | 1 => answered(end.write(&payload(items * arena.quantum))),
        2 => answered(claim(end, items, input)),
        _ => {
            refused_as_too_large(end.write(&too_many(arena)));
            refused_as_too_large(end.claim(usize::MAX));
            Ok(())
        }
    }
}

fn claim(end: &mut UnsyncProducer, items: usize, input: &mut Input<'_>) -> Result<(), QueueError> {
    let mut claim = end.claim(items)?;
    let len: usize = claim.piece_lens().iter().sum();
    copy_somewhere(input, len, |at, count| claim.copy_in(at, &payload(count)));
    end_claim(input, items, |count, _| claim.commit(count))
}

fn consume(
    end: &mut UnsyncConsumer,
    step: u8,
    arena: &Arena,
    input: &mut Input<'_>,
    verdict: &mut Verdict,
) {
    let items = 1 + input.below(arena.capacity);
    match (step >> 1) % 4 {
        0 => {
            let mut bytes = vec![0; items * arena.quantum];
            verdict.judge(end.read(&mut bytes));
            check_payload(&bytes);
        }
        1 => verdict.judge(end.available_to_read().map(|there| assert!(there <= arena.capacity))),
        2 => verdict.judge(peek(end, items, arena, input)),
        _ => {
            refused_as_too_large(end.read(&mut too_many(arena)));
            refused_as_too_large(end.peek(usize::MAX));
        }
    }
}

/// Copies out of a claim, lets the attacker act before the commit, which alone says whether the
/// copy counts.
fn peek(
    end: &mut UnsyncConsumer,
    items: usize,
    arena: &Arena,
    input: &mut Input<'_>,
) -> Result<(), QueueError> {
    let claim = end.peek(items)?;
    let len: usize = claim.piece_lens().iter().sum();
    assert_eq!((claim.items(), len), (items, items * arena.quantum));
    copy_somewhere(input, len, |at, count| {
        let mut bytes = vec![0; count];
        let result = claim.copy_out(at, &mut bytes);
        check_payload(&bytes);
        result
    });
    if input.flag() {
        arena.attack(input);
    }
    end_claim(input, items, |count, _| claim.commit(count))
}

/// Shapes of queues with honest traffic, overruns, and each kind of attack between.
pub fn seeds() -> Vec<Seed> {
    let traffic: &[u8] = &[
        0x40, 2, // produce: write
        0x80, 1, // first reader: read
        0x81, 2, // second reader: read
        0x42, 3, 0, 0, 9, 2, // produce: claim
        0x82, 0, // first reader: how many
        0x84, 1, 0, 0, 9, 0, 1, // first reader: peek
        0x85, 1, 0, 0, 9, 1, 6, 1, // second reader: peek with the attacker between
        0x40, 5, 0x40, 5, // produce: overrun
        0x80, 0, 0x81, 0, 0x80, 0, 0x81, 0, // both readers: told of it
    ];
    Scripts {
        size: [11, 5],
        shapes: &[(0, "apart"), (4, "packed"), (2, "no_intent"), (1, "libfmq")],
        traffic,
        attacks: &[
            ("write_counter", &[0, 1, 7, 2, 0, 1, 2, 3]),
            ("intent", &[0, 2, 7, 2, 0, 2, 2, 9]),
            ("near_2_64", &[0, 2, 5, 1, 0, 1, 5, 1]),
            ("ragged", &[0, 1, 3, 1]),
            ("payload", &[0, 5, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ],
        history: ("a_counter_with_a_history", &[3, 2, 0, 2, 1, 1, 5, 1]),
    }
    .seeds()
}
