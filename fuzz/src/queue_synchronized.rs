//! Either end of a synchronized queue, or both, while a peer changes every shared word at will.
//!
//! Looked at: answers are typed and among those a peer may cause; a corrupt queue stays corrupt;
//! counts lie within the capacity; nothing is read or written outside of the ring; a deadline
//! that passed ends every wait.

use fmq::{Consumer, Producer, QueueError, SYNCHRONIZED};

use crate::ends::{
    Scripts, attached, begin, copy_somewhere, end_claim, refused_as_too_large, too_many,
};
use crate::words::{Arena, PAST, STEPS_MAX, Verdict, check_payload, expected, payload, wait};
use crate::{Input, Seed};

/// Runs a script.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let (arena, ends) = begin(&mut input, SYNCHRONIZED);
    let passed = match ends % 3 {
        0 => attached(Producer::attach(arena.descriptor()))
            .is_some_and(|end| converse(Some(end), None, &arena, &mut input)),
        1 => attached(Consumer::attach(arena.descriptor()))
            .is_some_and(|end| converse(None, Some(end), &arena, &mut input)),
        _ => attached(Producer::attach(arena.descriptor()))
            .zip(attached(Consumer::attach(arena.descriptor())))
            .is_some_and(|(p, c)| converse(Some(p), Some(c), &arena, &mut input)),
    };
    arena.check_gaps();
    passed
}

/// Steps of the ends there are, and of the attacker; true where no end found corruption.
fn converse(
    mut producer: Option<Producer>,
    mut consumer: Option<Consumer>,
    arena: &Arena,
    input: &mut Input<'_>,
) -> bool {
    let mut verdicts = [Verdict::default(), Verdict::default()];
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let step = input.u8();
        let produces = step & 0x40 != 0 || consumer.is_none();
        match (&mut producer, &mut consumer) {
            _ if step & 0xC0 == 0 => arena.attack(input),
            (Some(end), _) if produces => produce(end, step, arena, input, &mut verdicts[0]),
            (_, Some(end)) => consume(end, step, arena, input, &mut verdicts[1]),
            _ => {}
        }
    }
    verdicts.iter().all(Verdict::is_clean)
}

fn produce(
    end: &mut Producer,
    step: u8,
    arena: &Arena,
    input: &mut Input<'_>,
    verdict: &mut Verdict,
) {
    let items = 1 + input.below(arena.capacity);
    let bytes = payload(items * arena.quantum);
    match step % 10 {
        0 => verdict.judge(end.write(&bytes)),
        1 => verdict.judge(end.write_quiet(&bytes)),
        2 => verdict.judge(claim(end, items, input)),
        3 => verdict.judge(end.available_to_write().map(|free| within(free, 0, arena))),
        4 if arena.has_event() => {
            verdict.judge(end.wait(items, PAST).map(|free| within(free, items, arena)));
        }
        5 if arena.has_event() => verdict.judge(end.write_blocking(&bytes, PAST)),
        6 if arena.has_event() => {
            let (wait_for, then_wake) = (input.u32(), input.u32());
            expected(end.write_blocking_bits(&bytes, wait_for, then_wake, PAST));
        }
        7 => expected(wake(arena, end.wake_bits(input.u32()))),
        8 => refusals_of_writing(end, arena),
        _ => match input.below(8) {
            0 => end.closer().close(),
            _ => end.set_wait(wait(input)),
        },
    }
}

/// Fills a claim in two pieces at offsets of the script's choice, and commits part of it.
fn claim(end: &mut Producer, items: usize, input: &mut Input<'_>) -> Result<(), QueueError> {
    let mut claim = end.claim(items)?;
    let len = claim.len();
    assert_eq!(claim.piece_lens().iter().sum::<usize>(), len);
    for _ in 0..2 {
        copy_somewhere(input, len, |at, count| claim.copy_in(at, &payload(count)));
    }
    end_claim(input, items, |count, _| claim.commit(count))
}

fn refusals_of_writing(end: &mut Producer, arena: &Arena) {
    refused_as_too_large(end.write(&too_many(arena)));
    refused_as_too_large(end.claim(usize::MAX));
    if arena.quantum > 1 {
        assert!(matches!(end.write(&[0]), Err(QueueError::NotWhole { .. })));
    }
    if !arena.has_event() {
        assert_eq!(end.wait(1, PAST), Err(QueueError::NoEventFlag));
    }
}

fn consume(
    end: &mut Consumer,
    step: u8,
    arena: &Arena,
    input: &mut Input<'_>,
    verdict: &mut Verdict,
) {
    let items = 1 + input.below(arena.capacity);
    let mut bytes = vec![0; items * arena.quantum];
    match step % 11 {
        0 => verdict.judge(end.read(&mut bytes)),
        1 => verdict.judge(end.read_deferred(&mut bytes)),
        2 => expected(end.release()), // it takes no item, so it looks at no counter
        3 => verdict.judge(peek(end, items, input)),
        4 => verdict.judge(end.available_to_read().map(|there| within(there, 0, arena))),
        5 if arena.has_event() => {
            verdict.judge(end.wait(items, PAST).map(|there| within(there, items, arena)));
        }
        6 if arena.has_event() => verdict.judge(end.read_blocking(&mut bytes, PAST)),
        7 if arena.has_event() => {
            let (wait_for, then_wake) = (input.u32(), input.u32());
            expected(end.read_blocking_bits(&mut bytes, wait_for, then_wake, PAST));
        }
        8 => expected(wake(arena, end.wake_bits(input.u32()))),
        9 => refusals_of_reading(end, arena),
        _ => match input.below(8) {
            0 => end.closer().close(),
            _ => end.set_wait(wait(input)),
        },
    }
    check_payload(&bytes);
}

/// Copies out of a claim at offsets of the script's choice, and commits part of it.
fn peek(end: &mut Consumer, items: usize, input: &mut Input<'_>) -> Result<(), QueueError> {
    let claim = end.peek(items)?;
    let len = claim.len();
    assert_eq!(claim.piece_lens().iter().sum::<usize>(), len);
    for _ in 0..2 {
        copy_somewhere(input, len, |at, count| {
            let mut bytes = vec![0; count];
            let result = claim.copy_out(at, &mut bytes);
            check_payload(&bytes);
            result
        });
    }
    end_claim(input, items, |count, input| {
        if count > items || input.flag() {
            claim.commit(count)
        } else {
            claim.commit_deferred(count)
        }
    })
}

fn refusals_of_reading(end: &mut Consumer, arena: &Arena) {
    refused_as_too_large(end.read(&mut too_many(arena)));
    refused_as_too_large(end.peek(usize::MAX));
    if arena.quantum > 1 {
        assert!(matches!(end.read(&mut [0]), Err(QueueError::NotWhole { .. })));
    }
    if !arena.has_event() {
        assert_eq!(end.wait(1, PAST), Err(QueueError::NoEventFlag));
    }
}

fn within(items: usize, wanted: usize, arena: &Arena) {
    assert!((wanted..=arena.capacity).contains(&items), "{items} of {}", arena.capacity);
}

/// A queue without an event word says so; no other error can come of a wake.
fn wake(arena: &Arena, result: Result<(), QueueError>) -> Result<(), QueueError> {
    match result {
        Err(QueueError::NoEventFlag) if !arena.has_event() => Ok(()),
        other => other,
    }
}

/// Shapes of queues with scripts of honest traffic, and with each kind of attack between.
pub fn seeds() -> Vec<Seed> {
    // Write, read, wait on both ends, claims; attacks are steps below 0x40.
    let traffic: &[u8] = &[
        0x5A, 2, // produce: write
        0x84, 1, // consume: read
        0x5E, 3, // produce: wait
        0x89, 0, // consume: wait
        0x5C, 4, 0, 0, 9, 5, 0, 9, 2, // produce: claim
        0x87, 3, 0, 0, 9, 5, 0, 9, 1, 1, // consume: peek
    ];
    Scripts {
        size: [23, 6],
        shapes: &[(0, "apart"), (4, "packed"), (1, "no_event")],
        traffic,
        attacks: &[
            ("counters", &[0, 0, 7, 1, 0, 1, 7, 2]),
            ("backwards", &[0, 0, 2, 3, 0, 1, 2, 3]),
            ("near_2_64", &[0, 0, 5, 200, 0, 1, 5, 199]),
            ("event_word", &[0, 3, 0xFF, 0xFF, 0xFF, 0x7F, 0, 4, 1]),
            ("closed_bit", &[0, 4, 31]),
            ("payload", &[0, 5, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ],
        history: ("counters_with_a_history", &[3, 2, 0, 2, 2, 0, 5, 1, 1, 5, 0]),
    }
    .seeds()
}
