//! Workers that take all that they may have: of one thing after the other up to its limit, and of descriptors until
//! the service has none.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use burst_client::{
    Burst, BurstOptions, Client, ClientError, ConnectOptions, Deadline, RemoteBuffer, RemoteDevice,
    RemotePreparedModel, ShmMemory, Stream,
};
use burst_hal::{
    BufferRequest, BufferRole, Caller, Dimensions, ErrorStatus, Fence, FencedExecution,
    FencedOptions, Model, Pool, PrepareOptions, PreparedModel,
};

use super::frame::Frame;
use super::subjects;
use super::using::{execute, is_passing, limit_of, set_up};
use super::worker::{Pair, Worker};

/// Things that are taken at most, so that a service without limits ends it too.
const THINGS_MAX: usize = 500;
/// Connections at most of one who takes things over several.
const CLIENTS_MAX: usize = 64;
/// Bytes of each memory of one who is after bytes.
const BYTES: usize = 1 << 20;
/// Floats of a model that is larger than may be; each is a constant twice.
const LARGE_MODEL: u32 = 200_000;
/// Datums of a queue that is longer than may be.
const LONG_QUEUE: usize = 100_000;
/// How long a service without descriptors is asked for a connection, which then waits.
const CONNECTING: Duration = Duration::from_secs(1);
/// How often, and how long each time, who has all descriptors waits with them.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(20);

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greed {
    Models,
    Bursts,
    Memories,
    MappedBytes,
    AllocatedBytes,
    Buffers,
    Executions,
    LargeModel,
    LongQueue,
    /// Of these a user has so much over all of its connections.
    Clients,
    Threads,
    Memory,
    AddressSpace,
    Descriptors,
}

impl Greed {
    const LIMITED: [Greed; 13] = [
        Greed::Models,
        Greed::Bursts,
        Greed::Memories,
        Greed::MappedBytes,
        Greed::AllocatedBytes,
        Greed::Buffers,
        Greed::Executions,
        Greed::LargeModel,
        Greed::LongQueue,
        Greed::Clients,
        Greed::Threads,
        Greed::Memory,
        Greed::AddressSpace,
    ];

    /// Whether one connection has less of it than its user.
    fn is_of_the_user(self) -> bool {
        use Greed::{AddressSpace, Clients, Descriptors, Memory, Threads};
        matches!(self, Clients | Threads | Memory | AddressSpace | Descriptors)
    }

    /// Whether a refusal by this limit is what it goes on to.
    fn is_reached_by(self, limit: &str) -> bool {
        match self {
            Greed::Clients => limit.starts_with("clients"),
            Greed::Threads => limit.starts_with("threads"),
            Greed::Memory => limit.starts_with("memory_bytes"),
            Greed::AddressSpace => limit.starts_with("address_space"),
            Greed::Descriptors => limit.contains("descriptors"),
            _ => true,
        }
    }
}

/// A connection with something prepared.
struct Home {
    device: RemoteDevice,
    prepared: Arc<RemotePreparedModel>,
    burst: Option<Burst>,
    pair: Pair,
    _client: Client,
}

/// Something that was taken.
enum Thing {
    Model(#[expect(dead_code, reason = "held")] Arc<RemotePreparedModel>),
    Burst(#[expect(dead_code, reason = "held")] Box<Burst>),
    Memory(#[expect(dead_code, reason = "held")] Pool),
    Buffer(#[expect(dead_code, reason = "held")] RemoteBuffer),
    Client(#[expect(dead_code, reason = "held")] Client),
    /// It waits for a fence, whose other end this is.
    Execution(#[expect(dead_code, reason = "held")] (FencedExecution, OwnedFd)),
    /// A device that has nothing of the kind.
    Nothing,
}

/// What was taken, and over which connections.
#[derive(Default)]
struct Hoard {
    things: Vec<Thing>,
    homes: Vec<Home>,
}

/// Goes on to each limit, in an order by chance; is served there; gives some back, takes again, and gives all back.
pub(super) fn everything(worker: &mut Worker) -> Result<()> {
    let large = subjects::sum(&mut worker.random, LARGE_MODEL)?;
    let Some((_client, pair, mut served)) = set_up(worker)? else { return Ok(()) };
    while worker.goes_on() {
        let greed = Greed::LIMITED[worker.random.below(Greed::LIMITED.len())];
        let mut hoard = Hoard::default();
        take_all(worker, greed, &large, &mut hoard)?;
        still_served(worker, &pair, &mut served)?;
        let kept = worker.random.below(hoard.things.len() + 1);
        hoard.things.truncate(kept);
        take_all(worker, greed, &large, &mut hoard)?;
        still_served(worker, &pair, &mut served)?;
        drop(hoard);
        worker.step()?;
    }
    Ok(())
}

fn still_served(worker: &mut Worker, pair: &Pair, stream: &mut Stream) -> Result<()> {
    execute(worker, pair, stream).context("beside what was taken up to a limit")
}

/// Takes descriptors in each of the ways there are until the service has none, says so, waits, and gives them back.
pub(super) fn descriptors(worker: &mut Worker) -> Result<()> {
    let model = subjects::sum(&mut worker.random, 1)?;
    while worker.goes_on() {
        let mut hoard = Hoard::default();
        let is_full = take_all(worker, Greed::Descriptors, &model, &mut hoard)?;
        if is_full {
            worker.is_full(true)?;
            for _ in 0..LOOKS {
                std::thread::sleep(LOOK);
                worker.step()?;
            }
            worker.is_full(false)?;
        }
        drop(hoard);
        worker.step()?;
    }
    Ok(())
}

/// Takes until the limit refuses more, whether it did. Refusals by other limits are counted too.
fn take_all(worker: &mut Worker, greed: Greed, large: &Model, hoard: &mut Hoard) -> Result<bool> {
    while worker.goes_on() && hoard.things.len() < THINGS_MAX {
        let error = match take(worker, greed, large, hoard) {
            Ok(Thing::Nothing) => return Ok(false),
            Ok(thing) => {
                hoard.things.push(thing);
                worker.step()?;
                continue;
            }
            Err(error) => error,
        };
        if !is_passing(&error) {
            return Err(error).context("refused for another reason than a limit");
        }
        let limit = error.downcast_ref::<ClientError>().and_then(limit_of).unwrap_or("other");
        worker.happened(&format!("refused:{limit}"));
        if greed.is_reached_by(limit) {
            return Ok(true);
        }
        if !greed.is_of_the_user() || hoard.homes.len() >= CLIENTS_MAX {
            return Ok(false);
        }
        // This connection has all that one may have: the next one.
        match home(worker) {
            Ok(home) => hoard.homes.push(home),
            Err(error) if is_passing(&error) => {
                let limit = error.downcast_ref::<ClientError>().and_then(limit_of);
                let limit = limit.unwrap_or("other");
                worker.happened(&format!("refused:{limit}"));
                return Ok(greed.is_reached_by(limit));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn home(worker: &mut Worker) -> Result<Home> {
    let options = ConnectOptions::default().until(Deadline::after(CONNECTING));
    let client = match Client::connect_with(&worker.socket, &options) {
        // Without a descriptor for it a connection waits to be taken.
        Err(ClientError::Timeout) => return Err(ClientError::NoGreeting.into()),
        client => client?,
    };
    let pair = worker.pair(&client)?;
    let device = client.device(&pair.device)?;
    let prepared =
        device.prepare(&worker.subjects[pair.subject].model, &PrepareOptions::default())?;
    Ok(Home { device, prepared, burst: None, pair, _client: client })
}

/// Takes one thing more.
fn take(worker: &mut Worker, greed: Greed, large: &Model, hoard: &mut Hoard) -> Result<Thing> {
    if greed == Greed::Clients {
        return Ok(Thing::Client(Client::connect(&worker.socket)?));
    }
    if hoard.homes.is_empty() {
        hoard.homes.push(home(worker)?);
    }
    let Some(home) = hoard.homes.last_mut() else { return Ok(Thing::Nothing) };
    let model = |worker: &Worker| worker.subjects[home.pair.subject].model.clone();
    let greed = match greed {
        // Each is charged its descriptors in a place of its own.
        Greed::Descriptors => {
            [Greed::Bursts, Greed::Memories, Greed::Executions][worker.random.below(3)]
        }
        greed => greed,
    };
    match greed {
        Greed::Models => {
            let model = model(worker);
            Ok(Thing::Model(home.device.prepare(&model, &PrepareOptions::default())?))
        }
        Greed::LargeModel => {
            let name = &home.pair.device;
            if home.device.query_operations(large).is_ok_and(|runs| runs != [true, true]) {
                tracing::debug!(name, "a large model of floats is none of its models");
                return Ok(Thing::Nothing);
            }
            Ok(Thing::Model(home.device.prepare(large, &PrepareOptions::default())?))
        }
        Greed::Bursts | Greed::Threads => {
            let depth = [1, 4, 32][worker.random.below(3)];
            let options = BurstOptions::default().with_depth(depth);
            Ok(Thing::Burst(Box::new(home.prepared.configure_burst(&options)?)))
        }
        Greed::LongQueue => {
            let options = BurstOptions::default().with_queue_datums(LONG_QUEUE);
            Ok(Thing::Burst(Box::new(home.prepared.configure_burst(&options)?)))
        }
        Greed::Memories => memory(home, 1),
        Greed::MappedBytes | Greed::AddressSpace => memory(home, BYTES),
        Greed::AllocatedBytes | Greed::Memory => {
            Ok(Thing::Memory(home.prepared.allocate_outputs(BYTES as u64)?))
        }
        Greed::Buffers => buffer(home),
        Greed::Executions => {
            let (input, _) = worker.case(&home.pair);
            let frame = Frame::new(&worker.subjects[home.pair.subject].model, &[&input])?;
            execution(home, &frame)
        }
        Greed::Clients | Greed::Descriptors => Ok(Thing::Nothing),
    }
}

/// A memory that the service maps.
fn memory(home: &mut Home, bytes: usize) -> Result<Thing> {
    if home.burst.is_none() {
        home.burst = Some(home.prepared.configure_burst(&BurstOptions::default())?);
    }
    let Some(burst) = &mut home.burst else { return Ok(Thing::Nothing) };
    let memory: Pool = Arc::new(ShmMemory::create(bytes)?);
    burst.push_memory(&memory)?;
    Ok(Thing::Memory(memory))
}

/// A buffer of the driver, for the model's first input.
fn buffer(home: &Home) -> Result<Thing> {
    let request = BufferRequest {
        dimensions: Dimensions::default(),
        models: vec![Arc::clone(&home.prepared) as Arc<dyn PreparedModel>],
        inputs: vec![BufferRole { model: 0, position: 0, frequency: 1.0 }],
        outputs: Vec::new(),
    };
    match home.device.allocate_buffer(&request) {
        Ok(buffer) => Ok(Thing::Buffer(buffer)),
        // What a driver says that has no buffers.
        Err(ClientError::Refused { status: ErrorStatus::GeneralFailure, .. }) => Ok(Thing::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// An execution that waits.
fn execution(home: &Home, frame: &Frame) -> Result<Thing> {
    let (read, write) = std::io::pipe().context("no pipe for a fence")?;
    let fence = Fence::from(OwnedFd::from(read));
    let (options, caller) = (FencedOptions::default(), Caller::default());
    let started =
        home.prepared.start_fenced(frame.request().clone(), &[fence], &options, &caller)?;
    Ok(Thing::Execution((started, OwnedFd::from(write))))
}
