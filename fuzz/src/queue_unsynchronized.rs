//! A reader or the writer of an unsynchronized queue, or a writer with two readers, while a peer
//! changes every shared word at will.
//!
//! Looked at: as in [`queue_synchronized`](crate::queue_synchronized), but for waits, of which
//! this flavour has none.

use fmq::{QueueError, UNSYNCHRONIZED, UnsyncConsumer, UnsyncProducer};

use crate::words::{Arena, STEPS_MAX, Verdict, check_payload, expected, payload};
use crate::{Input, Script, Seed, seed};

/// Runs a script.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let arena = Arena::new(&mut input, UNSYNCHRONIZED);
    let ends = input.u8();
    for _ in 0..input.below(4) {
        arena.attack(&mut input);
    }
    let producer = match UnsyncProducer::attach(arena.descriptor()) {
        Ok(end) => Some(end),
        Err(QueueError::Corrupt { .. }) => None,
        Err(other) => panic!("the descriptor is legal: {other}"),
    };
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
        0 | 1 => {
            let result = end.write(&payload(items * arena.quantum));
            expected(result);
            result
        }
        2 => {
            let result = claim(end, items, input);
            expected(result);
            result
        }
        _ => {
            let too_many = payload((arena.capacity + 1) * arena.quantum);
            assert!(matches!(end.write(&too_many), Err(QueueError::TooLarge { .. })));
            assert!(matches!(end.claim(usize::MAX), Err(QueueError::TooLarge { .. })));
            Ok(())
        }
    }
}

fn claim(end: &mut UnsyncProducer, items: usize, input: &mut Input<'_>) -> Result<(), QueueError> {
    let mut claim = end.claim(items)?;
    let len: usize = claim.piece_lens().iter().sum();
    let (at, count) = (usize::from(input.u16()), input.below(64));
    let result = claim.copy_in(at, &payload(count));
    assert_eq!(result.is_ok(), at + count <= len, "{at}+{count} of {len}");
    match input.below(items + 2) {
        0 => Ok(()),
        committed if committed <= items => claim.commit(committed),
        more => {
            assert!(matches!(claim.commit(more), Err(QueueError::TooLarge { .. })));
            Ok(())
        }
    }
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
            let mut too_many = vec![0; (arena.capacity + 1) * arena.quantum];
            assert!(matches!(end.read(&mut too_many), Err(QueueError::TooLarge { .. })));
            assert!(matches!(end.peek(usize::MAX), Err(QueueError::TooLarge { .. })));
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
    let (at, count) = (usize::from(input.u16()), input.below(64));
    let mut bytes = vec![0; count];
    let result = claim.copy_out(at, &mut bytes);
    assert_eq!(result.is_ok(), at + count <= len, "{at}+{count} of {len}");
    check_payload(&bytes);
    if input.flag() {
        arena.attack(input);
    }
    match input.below(items + 2) {
        0 => Ok(()),
        taken if taken <= items => claim.commit(taken),
        more => {
            assert!(matches!(claim.commit(more), Err(QueueError::TooLarge { .. })));
            Ok(())
        }
    }
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
    let attacks: [(&str, &[u8]); 5] = [
        ("write_counter", &[0, 1, 7, 2, 0, 1, 2, 3]),
        ("intent", &[0, 2, 7, 2, 0, 2, 2, 9]),
        ("near_2_64", &[0, 2, 5, 1, 0, 1, 5, 1]),
        ("ragged", &[0, 1, 3, 1]),
        ("payload", &[0, 5, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ];
    let mut seeds = Vec::new();
    for (shape, name) in [(0, "apart"), (4, "packed"), (2, "no_intent"), (1, "libfmq")] {
        for ends in 0..3 {
            let head = [11, 5, shape, ends, 0];
            let script = Script::new().bytes(&head).bytes(traffic).bytes(traffic);
            seeds.push(seed(&format!("honest_{name}_{ends}"), script));
        }
    }
    for (name, attack) in attacks {
        for ends in 0..3 {
            let head = Script::new().bytes(&[7, 4, 0, ends, 0]);
            let script = head.bytes(traffic).bytes(attack).bytes(traffic);
            seeds.push(seed(&format!("{name}_{ends}"), script));
        }
    }
    let before = Script::new().bytes(&[3, 2, 0, 2, 1, 1, 5, 1]).bytes(traffic);
    seeds.push(seed("a_counter_with_a_history", before));
    seeds
}
