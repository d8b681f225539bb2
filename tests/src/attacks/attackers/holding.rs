//! What a client may keep in a service: as much as it is given, in ever smaller pieces, so that nothing
//! is left over.

use std::any::Any;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use burst_client::{BurstOptions, Client, ClientError, Deadline, ShmMemory};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, Pool, PrepareOptions, Request, RequestArgument,
    RequestPool,
};
use burst_shm::Memory;
use burst_wire::control::Call;
use burst_wire::{DATUM_BYTES, Features};
use fmq::{Descriptor, Producer, QueueConfig};

use super::super::child::{HANG, say};
use super::super::connection::Connection;
use super::super::models;
use super::{Outcome, UNDER_WAY};

/// Connections with pieces of one size.
const CONNECTIONS: usize = 16;
/// Pieces of one size.
const PIECES: usize = 512;
/// Sizes, largest first: 1 GiB down to 256 KiB.
const SIZES: [u32; 7] = [1 << 30, 256 << 20, 64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10];

/// Keeps the process, and with it what it holds, until it is killed.
fn keep<K>(_kept: K) -> ! {
    say(UNDER_WAY);
    loop {
        std::thread::park();
    }
}

/// Takes pieces of each size from one connection after the other, until a connection gets none.
fn take_all<K: 'static>(
    sizes: &[u32],
    take: impl Fn(&Client, u32, usize) -> Result<Vec<K>, ClientError>,
    socket: &Path,
) -> Vec<Box<dyn Any>> {
    let mut kept: Vec<Box<dyn Any>> = Vec::new();
    for size in sizes {
        let mut pieces = 0;
        for _ in 0..CONNECTIONS {
            let taken = Client::connect(socket)
                .and_then(|client| Ok((take(&client, *size, PIECES - pieces)?, client)));
            match taken {
                Ok((taken, client)) if !taken.is_empty() => {
                    pieces += taken.len();
                    kept.push(Box::new((taken, client)));
                }
                Ok(_) => break,
                Err(error) => {
                    say(&format!("refused {error}"));
                    break;
                }
            }
        }
        say(&format!("took {pieces} pieces of {size} bytes"));
    }
    kept
}

/// As many as there are, up to a number; why there are no more is said.
fn as_many_as_given<K>(most: usize, one: impl Fn() -> Result<K, ClientError>) -> Vec<K> {
    let mut given = Vec::new();
    while given.len() < most {
        match one() {
            Ok(piece) => given.push(piece),
            Err(error) => {
                say(&format!("refused {error}"));
                break;
            }
        }
    }
    given
}

/// Four bytes in and four out, in memory of their own.
fn request() -> Result<Request, ClientError> {
    let memory: Pool = Arc::new(ShmMemory::create(64)?);
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    let pools = vec![RequestPool::Memory(memory)];
    Ok(Request { inputs: vec![argument(0)], outputs: vec![argument(32)], pools })
}

/// Bursts of models that need much working memory, each of which has used it once.
pub(super) fn bursts(socket: &Path) -> Outcome {
    let kept = take_all(
        &SIZES,
        |client, size, most| {
            let model = models::working_memory(size).expect("a legal model");
            let prepared = client.device("cpu")?.prepare(&model, &PrepareOptions::default())?;
            let request = request()?;
            let burst = || {
                let mut burst = prepared.configure_burst(&BurstOptions::default())?;
                let deadline = Deadline::after(HANG);
                let result =
                    burst.execute(&request, &ExecutionOptions::default(), deadline)?.status;
                // One that did not get its memory is held on to all the same.
                if result != ErrorStatus::None {
                    say(&format!("executed {result}"));
                }
                Ok(burst)
            };
            Ok(as_many_as_given(most, burst))
        },
        socket,
    );
    keep(kept)
}

/// Models with large weights.
pub(super) fn weights(socket: &Path) -> Outcome {
    let kept = take_all(
        &SIZES[1..],
        |client, size, most| {
            let model = models::weights(size).expect("a legal model");
            let device = client.device("cpu")?;
            let prepared = || device.prepare(&model, &PrepareOptions::default());
            Ok(as_many_as_given(most.min(64), prepared))
        },
        socket,
    );
    keep(kept)
}

/// What is said of a memory, in bytes.
const STATED: u64 = 4096;
/// Memories that span ever less of the address space, with how many there are of each: together more
/// than its 128 TiB.
const SPANS: [(u64, usize); 9] = [
    (1 << 40, 130),
    (256 << 30, 8),
    (64 << 30, 8),
    (16 << 30, 8),
    (4 << 30, 8),
    (1 << 30, 8),
    (64 << 20, 32),
    (4 << 20, 32),
    (256 << 10, 64),
];

/// A memory of so many bytes, none of which is there yet.
fn sparse(bytes: u64) -> Result<Memory, Box<dyn std::error::Error>> {
    Ok(Memory::create("sparse", usize::try_from(bytes)?)?)
}

/// Memories, each far larger than what is said of it.
pub(super) fn sparse_memories(socket: &Path) -> Outcome {
    let mut connection = Connection::open(socket)?;
    let mut number = 0;
    for (bytes, count) in SPANS {
        let memory = sparse(bytes)?;
        let mut taken = 0;
        for _ in 0..count {
            number += 1;
            let call = Call::ShareMemory { memory: number, length: STATED };
            match connection.call(call, &[memory.as_fd()])? {
                Ok(_) => taken += 1,
                Err(refusal) => {
                    say(&format!("refused {}", refusal.detail.as_str()));
                    break;
                }
            }
        }
        say(&format!("took {taken} memories of {bytes} bytes"));
    }
    keep(connection)
}

/// A queue's descriptor that lies at the beginning of a far larger memory.
fn queue_in(memory: &Memory) -> Result<Descriptor, Box<dyn std::error::Error>> {
    let small = Producer::create(&QueueConfig::new(DATUM_BYTES, 64))?.descriptor()?;
    Ok(Descriptor { fds: vec![memory.duplicate_fd()?], ..small })
}

/// Bursts whose queues lie in memories that are far larger.
pub(super) fn sparse_queues(socket: &Path) -> Outcome {
    let mut connection = Connection::open(socket)?;
    let model = connection.prepare(&models::tiny()?)?;
    for (bytes, count) in SPANS {
        let mut taken = 0;
        for _ in 0..count.div_ceil(2) {
            let (requests, results) = (sparse(bytes)?, sparse(bytes)?);
            let queues = [queue_in(&requests)?, queue_in(&results)?];
            match connection.configure(model, [&queues[0], &queues[1]], (Features::NONE, 1))? {
                Ok(_) => taken += 1,
                Err(refusal) => {
                    say(&format!("refused {}", refusal.detail.as_str()));
                    break;
                }
            }
        }
        say(&format!("took {taken} bursts with queues in {bytes} bytes"));
    }
    keep(connection)
}
