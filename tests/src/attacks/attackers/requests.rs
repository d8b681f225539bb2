//! Requests that keep a service busy.

use std::convert::Infallible;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use burst_client::{BurstOptions, Client, Deadline, ShmMemory, Stream, StreamOptions, Wait};
use burst_hal::{
    DataLocation, ExecutionOptions, Model, Pool, PrepareOptions, Request, RequestArgument,
    RequestPool,
};
use burst_shm::Memory;
use burst_wire::control::{Answer, Refusal};
use burst_wire::{DATUM_BYTES, Features, RequestExtras, RequestPacket};
use fmq::{Consumer, Producer, QueueConfig};

use super::super::child::say;
use super::super::connection::Connection;
use super::super::models;
use super::{Outcome, UNDER_WAY};

/// Datums of a queue: as many as a service takes.
const QUEUE_DATUMS: usize = 64 << 10;
/// Requests under way on one burst: as many as a client may agree on.
const DEPTH: u16 = burst_wire::PIPELINE_DEPTH_MAX;
/// Layers of a busy model: some milliseconds.
const LAYERS: u32 = 4;
/// Bytes of the memory with a request's input and output.
const POOL_BYTES: usize = 8192;
/// Where the output lies in it.
const OUTPUT_AT: u32 = 4096;

fn argument(offset: u32, length: u32) -> RequestArgument {
    let location = DataLocation { pool_index: 0, offset, length };
    RequestArgument { location, ..RequestArgument::default() }
}

/// The busy model's input.
fn input() -> RequestArgument {
    argument(0, OUTPUT_AT)
}

/// Its output.
fn output() -> RequestArgument {
    argument(OUTPUT_AT, 4)
}

/// A refusal where none was expected.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
struct Refused(Refusal);

/// A request of the busy model, with a number as pipelined requests have it.
fn request(id: u64) -> Result<Vec<u8>, burst_wire::WireError> {
    let extras = RequestExtras { id: Some(id), ..RequestExtras::default() };
    let packet = RequestPacket {
        inputs: &[input()],
        outputs: &[output()],
        slots: &[0],
        measure_timing: false,
        extras,
    };
    let mut bytes = Vec::new();
    packet.encode_into(&mut bytes)?;
    Ok(bytes)
}

/// Bursts whose request queues are filled to the brim, and filled again when the service gives one up.
pub(super) fn full_queues(socket: &Path) -> Outcome {
    let model = models::busy(LAYERS)?;
    let memory = Memory::create("pool", POOL_BYTES)?;
    loop {
        let mut connection = Connection::open(socket)?;
        let prepared = connection.prepare(&model)?;
        let config = QueueConfig::new(DATUM_BYTES, QUEUE_DATUMS);
        let (mut requests, results) = (Producer::create(&config)?, Consumer::create(&config)?);
        let queues = [requests.descriptor()?, results.descriptor()?];
        let pipelined = (Features::PIPELINING, DEPTH);
        let answer = connection.configure(prepared, [&queues[0], &queues[1]], pipelined)?;
        let Ok(Answer::Burst { burst }) = answer else {
            say(&format!("refused {answer:?}"));
            continue;
        };
        connection.push(burst, 0, &memory, POOL_BYTES as u64)?.map_err(Refused)?;
        let mut queued = 0;
        while requests.write(&request(queued)?).is_ok() {
            queued += 1;
        }
        requests.wake()?;
        say(&format!("{UNDER_WAY}: {queued} requests queued"));
        connection.wait_for_end_of_burst();
        say("given up");
    }
}

/// Bursts with as many requests under way as they may have, each of which takes a while.
pub(super) fn deep_queues(socket: &Path) -> Outcome {
    const BURSTS: usize = 8;
    const MANY_LAYERS: u32 = 100;
    let device = Client::connect(socket)?.device("cpu")?;
    let prepared = device.prepare(&models::busy(MANY_LAYERS)?, &PrepareOptions::default())?;
    let memory: Pool = Arc::new(ShmMemory::create(POOL_BYTES)?);
    let pools = vec![RequestPool::Memory(Arc::clone(&memory))];
    let request = Request { inputs: vec![input()], outputs: vec![output()], pools };
    // Room for all of them at once: nothing here waits for the service.
    let options = BurstOptions::default().with_depth(DEPTH).with_queue_datums(1024);
    let mut kept = Vec::new();
    for _ in 0..BURSTS {
        let mut burst = match prepared.configure_burst(&options) {
            Ok(burst) => burst,
            // As many as its account pays for.
            Err(_) if !kept.is_empty() => break,
            Err(error) => return Err(error.into()),
        };
        let mut submit = || burst.submit(&request, &ExecutionOptions::default(), Deadline::never());
        let tickets: Result<Vec<_>, _> = (0..DEPTH).map(|_| submit()).collect();
        kept.push((tickets?, burst));
    }
    say(UNDER_WAY);
    loop {
        std::thread::park();
    }
}

/// A stream of a model, on a connection of its own.
fn stream(socket: &Path, model: &Model) -> Result<Stream, burst_client::ClientError> {
    Client::connect(socket)?.device("cpu")?.stream(model, &StreamOptions::default())
}

/// Bursts that execute for a minute each. The attack is in force when each of them executes, or was refused.
pub(super) fn long_executions(socket: &Path) -> Outcome {
    const BURSTS: usize = 16;
    let model = models::long_execution()?;
    let execute = |coming: Sender<Infallible>| -> Result<(), burst_client::ClientError> {
        let mut stream = stream(socket, &model)?;
        say("executing");
        drop(coming);
        loop {
            stream.run(Deadline::never())?;
        }
    };
    // Nothing is sent: it ends when each thread has dropped its end.
    let (coming, all_came) = channel();
    std::thread::scope(|scope| {
        for _ in 0..BURSTS {
            let coming = coming.clone();
            scope.spawn(|| {
                if let Err(error) = execute(coming) {
                    say(&format!("refused {error}"));
                }
            });
        }
        drop(coming);
        // The error is that all have dropped their ends, which is what is waited for.
        let _ = all_came.recv();
        say(UNDER_WAY);
    });
    Ok(())
}

/// Bursts that never send a request, and that the service is asked to poll for.
pub(super) fn spinning(socket: &Path) -> Outcome {
    const CONNECTIONS: usize = 2;
    const BURSTS: usize = 250;
    let options = BurstOptions::default().waiting(Wait::Spin);
    let model = models::tiny()?;
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        let device = Client::connect(socket)?.device("cpu")?;
        let prepared = device.prepare(&model, &PrepareOptions::default())?;
        for _ in 0..BURSTS {
            kept.push(prepared.configure_burst(&options)?);
        }
    }
    say(UNDER_WAY);
    loop {
        std::thread::park();
    }
}

/// So many bursts that send a request as soon as the one before is answered. Says how many were, for
/// each line on standard input.
pub(super) fn busy(socket: &Path, bursts: usize) -> Outcome {
    let model = models::busy(LAYERS)?;
    let answered = AtomicU64::new(0);
    let streams: Result<Vec<_>, _> = (0..bursts).map(|_| stream(socket, &model)).collect();
    std::thread::scope(|scope| {
        for mut stream in streams? {
            scope.spawn({
                let answered = &answered;
                move || {
                    while stream.run(Deadline::never()).is_ok() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        say(UNDER_WAY);
        for _ in std::io::stdin().lock().lines() {
            say(&format!("answered {}", answered.load(Ordering::Relaxed)));
        }
        Ok(())
    })
}
