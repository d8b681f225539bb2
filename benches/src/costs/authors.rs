//! What each of the ways costs in which an author can serve bursts: a device that computes nothing, so that the
//! transport and the service are what is seen.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, RemotePreparedModel, ShmMemory};
use burst_hal::{
    Burst, BurstExecutor, DataLocation, Device, DeviceType, ErrorStatus, ExecutionOptions,
    ExecutionResult, Failure, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    PrepareOptions, PrepareResult, PreparedModel, Request, RequestArgument, RequestPool,
};
use burst_harness::HarnessError;
use burst_server::{
    BurstContext, BurstContexts, BurstSetup, GivenUp, RequestCheck, ServiceOptions,
};
use burst_wire::{DATUM_BYTES, ResultExtras, ResultPacket, SlotRequest, decode_request};
use fmq::{Deadline, QueueError};

use super::pairs::{Effort, Side, compare};
use super::service::{Connected, check, patience};
use super::{Found, Row};

/// The name of the device, and of its rows' model.
const NAME: &str = "computes nothing";
/// Bytes of the input, and of the output.
const BYTES: u32 = 16;
/// How long a context waits for room for a result.
const RESULT_PATIENCE: Duration = Duration::from_secs(5);

/// How the device serves a burst (the table in `hal/src/device.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Synchronous,
    Burst,
    Executor,
    Context,
}

impl Way {
    const OTHERS: [Way; 3] = [Way::Burst, Way::Executor, Way::Context];

    fn name(self) -> &'static str {
        match self {
            Way::Synchronous => "execute_synchronously behind PlainBurst",
            Way::Burst => "a Burst of the driver",
            Way::Executor => "a BurstExecutor of the driver",
            Way::Context => "a context of the driver",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Way::Synchronous => "",
            Way::Burst => "one call less",
            Way::Executor => "its list of memories is looked at with every request",
            Way::Context => "decodes, checks and answers on a thread of its own",
        }
    }
}

/// Measures each of the other ways beside the plainest.
pub(super) fn measure(effort: Effort, found: &mut Found) -> Result<(), HarnessError> {
    for way in Way::OTHERS {
        let plain = Connected::start(Arc::new(Nothing(Way::Synchronous)), options(false))?;
        let other = Connected::start(Arc::new(Nothing(way)), options(way == Way::Context))?;
        let measured = {
            let mut ends = [BurstEnd::open(&other)?, BurstEnd::open(&plain)?];
            compare(effort, |side| ends[usize::from(side == Side::Second)].execute())?
        };
        let sides = [way.name(), Way::Synchronous.name()];
        found.rows.push(Row::new(NAME, sides, way.note(), measured));
        plain.end()?;
        other.end()?;
    }
    Ok(())
}

fn options(own_contexts: bool) -> ServiceOptions {
    let mut options = ServiceOptions::default();
    if own_contexts {
        options.contexts.insert(NAME.to_owned(), Arc::new(Contexts));
    }
    options
}

/// A client's burst, with a request.
struct BurstEnd {
    burst: burst_client::Burst,
    request: Request,
    _prepared: Arc<RemotePreparedModel>,
}

impl BurstEnd {
    fn open(connected: &Connected) -> Result<BurstEnd, HarnessError> {
        let device = connected.client.device(NAME).map_err(HarnessError::peer)?;
        let prepared = device.prepare(&model()?, &PrepareOptions::default());
        let prepared = prepared.map_err(HarnessError::peer)?;
        let burst = prepared.configure_burst(&BurstOptions::default());
        let memory = ShmMemory::create(2 * BYTES as usize).map_err(HarnessError::peer)?;
        let argument = |offset| RequestArgument {
            location: DataLocation { pool_index: 0, offset, length: BYTES },
            ..RequestArgument::default()
        };
        let request = Request {
            inputs: vec![argument(0)],
            outputs: vec![argument(BYTES)],
            pools: vec![RequestPool::Memory(Arc::new(memory) as Pool)],
        };
        Ok(BurstEnd { burst: burst.map_err(HarnessError::peer)?, request, _prepared: prepared })
    }

    fn execute(&mut self) -> Result<(), HarnessError> {
        let options = ExecutionOptions::default();
        let result = self.burst.execute(&self.request, &options, patience());
        check(result.map_err(HarnessError::peer)?.status)
    }
}

/// One operation that is never executed.
fn model() -> Result<Model, HarnessError> {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[1, 4]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[1, 4]));
    builder.output(output);
    builder.build().map_err(HarnessError::peer)
}

/// The device, its model, its burst and its executor: none of them does anything.
#[derive(Debug, Clone, Copy)]
struct Nothing(Way);

impl Device for Nothing {
    fn name(&self) -> &str {
        NAME
    }

    fn version_string(&self) -> &str {
        "1"
    }

    // So that its requests hold run tokens, as those of any device that computes here.
    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(*self))
    }
}

impl PreparedModel for Nothing {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        match self.0 {
            Way::Burst => Ok(Box::new(*self)),
            _ => Ok(Box::new(burst_hal::PlainBurst::new(self))),
        }
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        let own = || Box::new(Imports(Vec::new())) as Box<dyn BurstExecutor>;
        Ok((self.0 == Way::Executor).then(own))
    }
}

impl Burst for Nothing {
    fn execute(&mut self, _: &Request, _: &ExecutionOptions, result: &mut ExecutionResult) {
        result.reset(ErrorStatus::None);
    }
}

/// An executor that keeps which slots it was given.
struct Imports(Vec<i32>);

impl BurstExecutor for Imports {
    fn is_cached(&self, slot: i32) -> bool {
        self.0.contains(&slot)
    }

    fn add(&mut self, slot: i32, _: &Pool) -> Result<(), Failure> {
        self.0.push(slot);
        Ok(())
    }

    fn remove(&mut self, slot: i32) {
        self.0.retain(|one| *one != slot);
    }

    fn execute(
        &mut self,
        _: &Request,
        _: &[i32],
        _: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        result.reset(ErrorStatus::None);
    }
}

#[derive(Debug)]
struct Contexts;

impl BurstContexts for Contexts {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        let server = Server {
            model: setup.model(),
            check: setup.check(),
            setup,
            packet: Vec::new(),
            decoded: SlotRequest::default(),
            request: Request::default(),
        };
        Ok(Box::new(Thread(Some(std::thread::spawn(move || server.run())))))
    }
}

/// A thread that ends when its queues are closed, and is waited for.
pub(super) struct Thread(pub(super) Option<JoinHandle<()>>);

impl BurstContext for Thread {}

impl Drop for Thread {
    fn drop(&mut self) {
        // One that panicked has said so.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// The thread of a context: one request at a time, with storage that is used again.
struct Server {
    setup: BurstSetup,
    model: Arc<dyn PreparedModel>,
    check: RequestCheck,
    packet: Vec<u8>,
    decoded: SlotRequest,
    request: Request,
}

impl Server {
    fn run(mut self) {
        loop {
            match self.serve_one() {
                Ok(()) => {}
                Err(QueueError::PeerDied) => return,
                Err(error) => return self.setup.ender.end(GivenUp::Queue, &error.to_string()),
            }
        }
    }

    /// A packet is everything there is: one request is under way at a time.
    fn serve_one(&mut self) -> Result<(), QueueError> {
        let datums = self.setup.next_request(|| ())?;
        let arrived = Instant::now();
        self.packet.resize(datums * DATUM_BYTES, 0);
        self.setup.requests.read(&mut self.packet)?;
        let result = match self.prepare() {
            Err(status) => ExecutionResult::of(status),
            Ok(()) => {
                self.setup.counts.executing();
                let Ok(_turn) = self.setup.turns.begin(None) else {
                    return Err(QueueError::PeerDied);
                };
                let options = ExecutionOptions::default();
                self.model.execute_for(&self.request, &options, &self.setup.caller)
            }
        };
        self.request.pools.clear();
        let answer = ResultPacket::new(&result, ResultExtras::default(), self.setup.features);
        // It has no shapes: it is no longer than a packet may be.
        if answer.encode_into(&mut self.packet).is_err() {
            return Err(QueueError::PeerDied);
        }
        let until = Deadline::after(RESULT_PATIENCE);
        self.setup.results.write_blocking(&self.packet, until)?;
        self.setup.counts.answered(result.status, arrived);
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), ErrorStatus> {
        let Server { setup, packet, decoded, request, check, .. } = self;
        decode_request(packet, setup.features, decoded).map_err(|error| {
            setup.counts.malformed();
            error.status()
        })?;
        std::mem::swap(&mut request.inputs, &mut decoded.inputs);
        std::mem::swap(&mut request.outputs, &mut decoded.outputs);
        setup.memories.resolve(&decoded.slots, &mut request.pools)?;
        check.check(request)
    }
}
