//! A service in another process, a client with a prepared model, a burst: what the tests share.

use std::io::BufRead;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use burst_shm::{Mapping, Memory};
use rustix::time::{ClockId, clock_gettime};

use super::bytes::{Reader, Writer};
use super::connection::{Connection, PATIENCE, Received};
use super::packet::{Answer, Argument, Before, Request, datums_of_result, decode};
use super::queue::{CLOSED, DATUM, NOT_EMPTY, NOT_FULL, Queue};

pub const LIST_DEVICES: u32 = 0;
pub const DEVICE_INFO: u32 = 1;
pub const DEVICE_STATUS: u32 = 2;
pub const SUPPORTED_OPERATIONS: u32 = 3;
pub const PREPARE: u32 = 4;
pub const RELEASE_MODEL: u32 = 5;
pub const SHARE_MEMORY: u32 = 6;
pub const ALLOCATE_MEMORY: u32 = 7;
pub const FORGET_MEMORY: u32 = 8;
pub const EXECUTE: u32 = 9;
pub const CONFIGURE_BURST: u32 = 10;
pub const PUSH_MEMORY: u32 = 11;
pub const FREE_MEMORY: u32 = 12;
pub const CLOSE_BURST: u32 = 13;

pub const GENERAL_FAILURE: i32 = 2;
pub const OUTPUT_INSUFFICIENT_SIZE: i32 = 3;
pub const INVALID_ARGUMENT: i32 = 4;
pub const MISSED_DEADLINE_PERSISTENT: i32 = 6;
pub const RESOURCE_EXHAUSTED_PERSISTENT: i32 = 8;

pub const FEATURES: u64 = 0b11_1111;
pub const PIPELINING: u64 = 0b1000;
pub const SLEEP: u32 = 3;
pub const POLL_THEN_SLEEP: u32 = 2;
pub const UNKNOWN: u64 = u64::MAX;

/// Numbers of memories, as this client chooses them.
pub const INPUTS: u32 = 40;
pub const OUTPUTS: u32 = 41;
/// Slots likewise.
pub const INPUT_SLOT: i32 = 3;
pub const OUTPUT_SLOT: i32 = 0;
pub const POOL_BYTES: u64 = 64;

/// The CPU driver as a service in another process, killed with its test.
pub struct Service {
    pub child: Child,
    folder: PathBuf,
}

impl Service {
    pub fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("burst-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_burst_peer"))
            .arg("serve-cpu")
            .arg(folder.join("socket"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Service { child, folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("socket")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client with the model prepared, and memory for its inputs and its output.
pub struct Client {
    pub connection: Connection,
    pub model: u32,
    pub inputs: Memory,
    input_bytes: Mapping,
    output_bytes: Mapping,
}

impl Client {
    pub fn new(path: &Path) -> Self {
        let mut connection = Connection::open(path);
        connection.enter(FEATURES);
        let body = super::model::body(true);
        let prepare = Writer::default().u32(0).raw(&body.fields.0);
        let options = Writer::default().i32(1).i32(1).optional_u64(None);
        let prepare = prepare.record(&options);
        let model = number(connection.call(PREPARE, prepare, &[body.memory.as_fd()]), 5);
        let inputs = Memory::create("inputs", 64).unwrap();
        let input_bytes = Mapping::map(&inputs).unwrap();
        let share = Writer::default().u32(INPUTS).u64(POOL_BYTES);
        assert!(connection.done(SHARE_MEMORY, share, &[inputs.as_fd()]).is_empty());
        let allocate = Writer::default().u32(OUTPUTS).u64(POOL_BYTES);
        let [outputs] = connection.done(ALLOCATE_MEMORY, allocate, &[]).try_into().unwrap();
        let outputs = Memory::from_fd(outputs).unwrap();
        let seals = outputs.seals();
        assert!(seals.shrink && seals.grow && seals.future_write && seals.seal, "{seals:?}");
        assert!(Mapping::map(&outputs).is_err(), "nobody else can write it");
        let output_bytes = Mapping::map_read_only(&outputs).unwrap();
        Client { connection, model, inputs, input_bytes, output_bytes }
    }

    pub fn put(&self, inputs: [f32; 4]) {
        let bytes: Vec<u8> = inputs.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.input_bytes.region(0, 16).unwrap().copy_in(0, &bytes).unwrap();
    }

    pub fn sums(&self) -> [f32; 2] {
        let mut bytes = [0; 8];
        self.output_bytes.region(0, 8).unwrap().copy_out(0, &mut bytes).unwrap();
        let mut from = Reader(&bytes);
        [from.f32(), from.f32()]
    }

    /// One execution over the socket; `pools` are the sources.
    pub fn execute(&self, request: &Request, pools: &[Writer]) -> Writer {
        let argument = |to: Writer, one: &Argument| {
            let Argument(omitted, pool, offset, length, dimensions) = one;
            to.bool(*omitted).u32(*pool).u32(*offset).u32(*length).indexes(dimensions)
        };
        let to = Writer::default().u32(self.model);
        let to = to.list(&request.inputs, argument).list(&request.outputs, argument);
        let to = to.list(pools, |to, source| to.raw(&source.0));
        let options = Writer::default().bool(request.measure == 1);
        let options = options.optional_u64(request.deadline).optional_u64(request.loop_timeout);
        to.record(&options)
    }
}

pub fn shared(memory: u32) -> Writer {
    Writer::default().kind(0, &Writer::default().u32(memory))
}

/// A memory that comes with the message.
pub fn descriptor(length: u64) -> Writer {
    Writer::default().kind(1, &Writer::default().u64(length))
}

/// A buffer of the driver.
pub fn token(token: u32) -> Writer {
    Writer::default().kind(2, &Writer::default().u32(token))
}

/// Both memories by their numbers.
pub fn both() -> [Writer; 2] {
    [shared(INPUTS), shared(OUTPUTS)]
}

/// The number in an answer of this variant.
#[track_caller]
pub fn number(outcome: super::connection::Outcome, variant: u32) -> u32 {
    let received = outcome.unwrap();
    let mut from = Reader(&received.bytes);
    assert_eq!(from.u32(), variant);
    from.u32()
}

/// What Executed says, and whether it knew nanoseconds.
pub fn executed(received: &Received) -> (Answer, Option<u64>) {
    let mut from = Reader(&received.bytes);
    assert_eq!(from.u32(), 7);
    let status = from.i32();
    let shapes = from.list(|from| {
        let sizes = from.list(Reader::u32);
        (from.bool(), sizes)
    });
    let micros = [from.u64(), from.u64()];
    let nanos = from.optional_u64();
    (Answer { status, shapes, micros, nanos: None, number: None }, nanos)
}

pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// Waits until something is so; a failure if it never is.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what} never came");
        std::thread::yield_now();
    }
}

/// A burst with its two queues.
pub struct Burst {
    pub number: u32,
    pub requests: Queue,
    pub results: Queue,
    pipelined: bool,
    /// The request before and the result before.
    before: [Before; 2],
    pub sleeps: u32,
}

impl Burst {
    pub fn new(client: &mut Client, features: u64, wait: u32, depth: u16, datums: usize) -> Self {
        let (requests, results) = (Queue::new(datums), Queue::new(datums));
        let configure = configure(client.model, &requests, &results, features, wait, depth);
        let descriptors = [requests.descriptor(), results.descriptor()];
        let outcome = client.connection.call(CONFIGURE_BURST, configure, &descriptors);
        let pipelined = features & PIPELINING != 0;
        let before = Default::default();
        Burst { number: number(outcome, 6), requests, results, pipelined, before, sleeps: 0 }
    }

    pub fn push(&self, slot: i32, source: &Writer) -> Writer {
        Writer::default().u32(self.number).i32(slot).raw(&source.0)
    }

    pub fn push_both(&self, client: &mut Client) {
        for (slot, memory) in [(INPUT_SLOT, INPUTS), (OUTPUT_SLOT, OUTPUTS)] {
            client.connection.done(PUSH_MEMORY, self.push(slot, &shared(memory)), &[]);
        }
    }

    /// Sends a packet when there is room for it; whether the kernel had to be called.
    pub fn send(&mut self, packet: &[u8]) -> bool {
        until("room", || self.requests.room() >= packet.len());
        self.requests.publish(packet);
        self.requests.wake(NOT_EMPTY)
    }

    /// Sends a request by where it differs from the one before, which was sent so, too. Gives its datums.
    pub fn send_differences(&mut self, packet: &[u8]) -> usize {
        let sent = self.before[0].send(packet);
        self.send(&sent);
        sent.len() / DATUM
    }

    /// Sleeps for the next result and takes it; `None` where the service closed the queue.
    pub fn receive(&mut self) -> Option<Answer> {
        let readable = self.results.wait(&mut self.sleeps)?;
        let length = match self.pipelined {
            false => readable,
            // Only the next packet: its first datum says how long it is.
            true => datums_of_result(&self.results.first_datum()) * DATUM,
        };
        let packet = self.results.take(length);
        self.results.wake(NOT_FULL);
        Some(decode(&self.before[1].receive(packet)))
    }

    pub fn run(&mut self, packet: &[u8]) -> Answer {
        self.send(packet);
        self.receive().expect("a result")
    }

    pub fn is_closed(&self) -> bool {
        let both = [&self.requests, &self.results];
        both.iter()
            .all(|queue| queue.event.load(std::sync::atomic::Ordering::Acquire) & CLOSED != 0)
    }
}

pub fn configure(
    model: u32,
    requests: &Queue,
    results: &Queue,
    features: u64,
    wait: u32,
    depth: u16,
) -> Writer {
    let to = results.describe(requests.describe(Writer::default().u32(model)));
    to.record(&Writer::default().u64(features).u32(wait).u16(depth))
}

/// What every successful result without timing says, beside its number.
pub fn success(number: Option<u64>) -> Answer {
    let shapes = vec![(true, vec![2])];
    Answer { status: 0, shapes, micros: [UNKNOWN; 2], nanos: None, number }
}

pub fn failure(status: i32) -> Answer {
    Answer { status, shapes: Vec::new(), micros: [UNKNOWN; 2], nanos: None, number: None }
}
