//! An event word on its own, and a set of two queues of which one is under attack.
//!
//! Looked at: notifications are some of the bits asked for; errors are those of an ordinary word;
//! deadlines that passed end every wait; a set reports an honest queue that has something, however
//! its neighbour behaves, and no error of its own.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use burst_shm::{Errno, Mapping, Memory, Shared};
use fmq::{
    Consumer, EventError, EventFlag, Producer, QueueConfig, QueueError, Ready, SYNCHRONIZED,
    WaitSet,
};

use crate::words::{Arena, PAST, STEPS_MAX, expected, wait};
use crate::{Input, Script, Seed, seed};

/// Runs a script.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.u8() % 2 {
        0 => word_alone(&mut input),
        _ => set_of_queues(&mut input),
    }
}

fn word_alone(input: &mut Input<'_>) -> bool {
    let (flag, memory) = EventFlag::create().unwrap();
    // The peer's own mapping of the same word.
    let theirs = Memory::from_fd(OwnedFd::from(memory)).unwrap();
    let word: Shared<AtomicU32> = Shared::new(Arc::new(Mapping::map(&theirs).unwrap()), 0).unwrap();
    let mut notified = false;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(5) {
            0 => word.store(input.u32(), Ordering::Release),
            1 => drop(word.fetch_xor(1 << input.below(32), Ordering::AcqRel)),
            2 => {
                let bits = input.u32();
                assert_eq!(flag.wake(bits), Ok(()));
                assert_eq!(word.load(Ordering::Acquire) & bits, bits);
            }
            3 => notified |= one_wait(&word, input.u32(), |bits| flag.wait_once(bits, PAST)),
            _ => notified |= one_wait(&word, input.u32(), |bits| flag.wait(bits, PAST)),
        }
    }
    notified
}

/// With nobody else at the word a wait takes what is there, or times out.
fn one_wait(
    word: &AtomicU32,
    bits: u32,
    wait: impl FnOnce(u32) -> Result<u32, EventError>,
) -> bool {
    let there = word.load(Ordering::Acquire) & bits;
    let result = wait(bits);
    match there {
        _ if bits == 0 => assert_eq!(result, Err(EventError::BadBits { bits })),
        0 => assert_eq!(result, Err(EventError::Timeout)),
        _ => assert_eq!(result, Ok(there)),
    }
    assert_eq!(word.load(Ordering::Acquire) & bits, 0, "what was taken is gone");
    there != 0
}

fn set_of_queues(input: &mut Input<'_>) -> bool {
    let arena = Arena::new(input, SYNCHRONIZED);
    let mut set = WaitSet::new(wait(input));
    let mut hostile = match Consumer::attach(arena.descriptor()) {
        Ok(end) => end,
        Err(other) => panic!("the descriptor is legal: {other}"),
    };
    let mut producer = Producer::create(&QueueConfig::new(8, 4)).unwrap();
    let mut honest = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    let mut waiting = 0;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(5) {
            0 | 1 => arena.attack(input),
            2 => waiting += u64::from(producer.write(&[1; 8]).is_ok()),
            3 => {
                let mut bytes = vec![0; arena.quantum];
                expected(hostile.read(&mut bytes));
            }
            _ => {
                let found = look_twice(&mut set, &mut hostile, &mut honest, &arena);
                assert_eq!(found, waiting > 0, "{waiting} items are there");
                if found {
                    honest.read(&mut [0; 8]).unwrap();
                    waiting -= 1;
                }
            }
        }
    }
    arena.check_gaps();
    arena.has_event()
}

/// Whether two consecutive waits report the honest queue: the other one can do one round at most.
fn look_twice(
    set: &mut WaitSet,
    hostile: &mut Consumer,
    honest: &mut Consumer,
    arena: &Arena,
) -> bool {
    let mut found = false;
    for _ in 0..2 {
        match set.wait(&mut [hostile, honest], PAST) {
            Ok(Ready { index: 1, items }) => {
                assert!(items.is_ok(), "the honest queue has not failed: {items:?}");
                found = true;
            }
            Ok(Ready { items: Err(QueueError::NoEventFlag), .. }) => assert!(!arena.has_event()),
            Ok(Ready { items, .. }) => expected(items.map(drop)),
            Err(QueueError::Timeout) => {}
            // Linux before 5.16, and valgrind.
            Err(QueueError::System { call: "futex_waitv", errno: Errno::NOSYS }) => {}
            Err(other) => panic!("no answer to a hostile neighbour: {other}"),
        }
    }
    found
}

/// A word with each call, and sets with each kind of neighbour.
pub fn seeds() -> Vec<Seed> {
    let word = Script::new()
        .bytes(&[0, 2]) // wake
        .u32(0xF0)
        .bytes(&[3]) // wait once: there
        .u32(0x30)
        .bytes(&[4]) // wait: still there
        .u32(0xFF)
        .bytes(&[3]) // wait once: times out
        .u32(1)
        .bytes(&[4]) // no bits
        .u32(0)
        .bytes(&[1, 5, 4]) // a bit appears
        .u32(0x20)
        .bytes(&[0]) // the peer sets all
        .u32(u32::MAX)
        .bytes(&[4])
        .u32(0x8000_0000);
    let traffic: &[u8] = &[2, 4, 4, 2, 2, 0, 1, 7, 1, 4, 3, 4, 0, 4, 31, 4, 2, 4];
    let set = |shape: u8, policy: u8| {
        Script::new().bytes(&[1, 7, 4, shape, policy]).bytes(traffic).bytes(traffic)
    };
    let corrupt: &[u8] = &[0, 1, 2, 9, 2, 4, 3, 4, 2, 2, 4, 4];
    vec![
        seed("word", word),
        seed("set_spin", set(0, 0)),
        seed("set_poll", set(4, 1)),
        seed("set_poll_longer", set(0, 2)),
        seed("set_sleep", set(0, 3)),
        seed("set_without_an_event_word", set(1, 3)),
        seed("set_beside_a_corrupt_queue", Script::new().bytes(&[1, 7, 4, 0, 3]).bytes(corrupt)),
    ]
}
