//! Cheap things, very often.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use burst_shm::{Mapping, Memory};
use burst_wire::control::{Answer, Call, List, PoolSource, SynchronousRequest};
use burst_wire::{DATUM_BYTES, Features};
use fmq::{Consumer, Producer, QueueConfig};

use super::super::child::say;
use super::super::connection::Connection;
use super::super::models;
use super::{Outcome, UNDER_WAY};

/// Pools of one request: as many as it may have.
const POOLS: usize = burst_wire::control::POOLS_MAX;
/// Bytes of each.
const POOL_BYTES: usize = 4096;
/// The event word's place among a queue's parts.
const EVENT_WORD: usize = 3;
/// Bursts whose event words are flipped.
const BURSTS: usize = 8;

/// Executions with as many descriptors as there may be. They are not even legal: what they cost comes
/// before anybody looks.
pub(super) fn executions(socket: &Path) -> Outcome {
    let memory = Memory::create("pool", POOL_BYTES)?;
    let descriptors = vec![memory.as_fd(); POOLS];
    let source = PoolSource::Descriptor { length: POOL_BYTES as u64 };
    loop {
        let mut connection = Connection::open(socket)?;
        let model = connection.prepare(&models::tiny()?)?;
        let request = SynchronousRequest {
            model,
            inputs: List::default(),
            outputs: List::default(),
            pools: List(vec![source; POOLS]),
            measure_timing: false,
            deadline: None,
            loop_timeout: None,
        };
        say(UNDER_WAY);
        while let Ok(answer) = connection.call(Call::Execute(request.clone()), &descriptors) {
            match answer {
                Ok(_) => say("executed"),
                Err(refusal) => say(&format!("refused {}", refusal.detail.as_str())),
            }
        }
    }
}

/// Changes event words of queues all the time, and wakes whoever sleeps there.
pub(super) fn flipped_events(socket: &Path) -> Outcome {
    let mut connection = Connection::open(socket)?;
    let model = connection.prepare(&models::tiny()?)?;
    let mut queues = Vec::new();
    for _ in 0..BURSTS {
        let config = QueueConfig::new(DATUM_BYTES, 64);
        let (requests, results) = (Producer::create(&config)?, Consumer::create(&config)?);
        let mut ends = [requests.descriptor()?, results.descriptor()?];
        match connection.configure(model, [&ends[0], &ends[1]], (Features::NONE, 1))? {
            Ok(Answer::Burst { .. }) => {}
            other => return Err(format!("no burst: {other:?}").into()),
        }
        let at = usize::try_from(ends[0].grantors[EVENT_WORD].offset)?;
        let mapping = Mapping::map(&Memory::from_fd(ends[0].fds.remove(0))?)?;
        queues.push((mapping, at, requests, results));
    }
    say(UNDER_WAY);
    let mut bits = 0x9E37_79B9_u32;
    loop {
        for (mapping, at, requests, _) in &queues {
            bits = bits.rotate_left(5).wrapping_mul(0x85EB_CA6B).wrapping_add(1);
            let word = mapping.region(*at, 4)?.atomic::<AtomicU32>(0)?;
            word.store(bits, Ordering::Relaxed);
            let _ = requests.wake(); // a queue that was given up cannot be woken at
            word.fetch_xor(bits, Ordering::Relaxed);
        }
        std::thread::yield_now();
    }
}
