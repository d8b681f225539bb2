//! A driver that serves the queues of its bursts itself, with one engine that all of them share.
//! It says on standard output when a burst comes and goes.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, PrepareOptions,
    PrepareResult, PreparedModel, Request,
};
use burst_server::{
    BurstContext, BurstContexts, BurstSetup, GivenUp, Listener, Service, ServiceOptions, Stop,
};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, RequestExtras, ResultExtras, ResultPacket, SlotRequest,
    decode_request, packet_datums,
};
use fmq::{Deadline, QueueError};

/// How long a client may leave its results lying.
const PATIENCE: Duration = Duration::from_secs(5);

struct Hardware;

/// What this driver makes of a model, and gets back in the contexts of its bursts.
struct Loaded {
    /// What it adds to each byte.
    step: u8,
}

impl Loaded {
    /// What the hardware does, whoever asks for it.
    fn run(&self, request: &Request) -> ExecutionResult {
        let mut bytes = Vec::new();
        let done = request.read_input(0, &mut bytes).and_then(|()| {
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(self.step));
            request.write_output(0, &bytes)
        });
        ExecutionResult::of(done.err().map_or(ErrorStatus::None, |failure| failure.status))
    }
}

impl Device for Hardware {
    fn name(&self) -> &str {
        "hardware"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Loaded { step: 1 }))
    }
}

impl PreparedModel for Loaded {
    fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
        self.run(request)
    }
}

/// Runs one request at a time, whichever burst it comes from.
type Engine = Arc<Mutex<()>>;

#[derive(Debug, Default)]
struct Contexts {
    engine: Engine,
}

impl BurstContexts for Contexts {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        let engine = Arc::clone(&self.engine);
        // Not what any driver's models can do, but what this one's are.
        let model = setup.own_model::<Loaded>()?;
        println!("a burst for {} requests at once", setup.depth);
        let thread = std::thread::Builder::new()
            .name("context".to_owned())
            .spawn(move || match Loop::new(setup, engine, model).run() {
                QueueError::PeerDied => println!("a burst has ended"),
                error => println!("a burst was given up: {error}"),
            })
            .map_err(|error| Failure::new(ErrorStatus::ResourceExhaustedTransient, error))?;
        Ok(Box::new(Context(Some(thread))))
    }
}

/// The queues are closed before this is dropped, so that the thread has been told.
struct Context(Option<JoinHandle<()>>);

impl BurstContext for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.join().is_err()
        {
            eprintln!("a context panicked");
        }
    }
}

/// What is used again for every request.
struct Loop {
    setup: BurstSetup,
    engine: Engine,
    model: Arc<Loaded>,
    packet: Vec<u8>,
    decoded: SlotRequest,
    request: Request,
}

impl Loop {
    fn new(setup: BurstSetup, engine: Engine, model: Arc<Loaded>) -> Self {
        let (decoded, request) = (SlotRequest::default(), Request::default());
        Loop { setup, engine, model, packet: Vec::new(), decoded, request }
    }

    /// Answers until the burst ends; gives the reason.
    fn run(mut self) -> QueueError {
        loop {
            if let Err(reason) = self.serve_one() {
                if !matches!(reason, QueueError::PeerDied) {
                    self.setup.ender.end(GivenUp::Queue, &reason.to_string());
                }
                return reason;
            }
        }
    }

    fn serve_one(&mut self) -> Result<(), QueueError> {
        self.take_packet()?;
        let arrived = Instant::now();
        let result = match self.prepare() {
            Err(status) => ExecutionResult::of(status),
            Ok(()) => {
                let _turn = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
                self.setup.counts.executing();
                self.model.run(&self.request)
            }
        };
        self.request.pools.clear(); // a freed slot's memory goes with its last execution
        self.reply(&result)?;
        self.setup.counts.answered(result.status, arrived);
        Ok(())
    }

    /// One packet, copied out once.
    fn take_packet(&mut self) -> Result<(), QueueError> {
        // This hardware keeps nothing between requests that it could let go of.
        let mut datums = self.setup.next_request(|| ())?;
        let requests = &mut self.setup.requests;
        if self.setup.features.contains(Features::PIPELINING) {
            let mut first = [0; DATUM_BYTES];
            requests.peek(1)?.copy_out(0, &mut first)?;
            // Nobody knows where the next packet begins: the burst is over.
            datums = packet_datums(PacketKind::Request, self.setup.features, &first, datums)
                .map_err(|_| QueueError::PeerDied)?;
        }
        self.packet.resize(datums * DATUM_BYTES, 0);
        requests.read(&mut self.packet)
    }

    /// From the packet to a request that is legal for the model.
    fn prepare(&mut self) -> Result<(), ErrorStatus> {
        let Loop { setup, packet, decoded, request, .. } = self;
        decoded.extras = RequestExtras::default();
        decode_request(packet, setup.features, decoded).map_err(|error| {
            setup.counts.malformed();
            error.status()
        })?;
        request.inputs.clone_from(&decoded.inputs);
        request.outputs.clone_from(&decoded.outputs);
        setup.memories.resolve(&decoded.slots, &mut request.pools)?;
        setup.check().check(request)
    }

    fn reply(&mut self, result: &ExecutionResult) -> Result<(), QueueError> {
        let features = self.setup.features;
        let extras = ResultExtras { id: self.decoded.extras.id, ..ResultExtras::default() };
        let results = &mut self.setup.results;
        let packet = ResultPacket::new(result, extras, features);
        let fits = packet.datums().is_ok_and(|datums| datums as usize <= results.capacity());
        let packet = match fits {
            true => packet,
            false => ResultPacket::failure(ErrorStatus::GeneralFailure, features),
        };
        // What fits a queue can be encoded.
        packet.encode_into(&mut self.packet).map_err(|_| QueueError::PeerDied)?;
        results.write_blocking(&self.packet, Deadline::after(PATIENCE))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    let mut options = ServiceOptions::default();
    options.contexts.insert(Hardware.name().to_owned(), Arc::new(Contexts::default()));
    let (_stopper, stop) = Stop::new()?;
    Ok(Service::new(vec![Arc::new(Hardware)], options).run(&Listener::bind(path)?, &stop)?)
}
