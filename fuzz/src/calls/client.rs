//! What a client does, and what it knows of what it has.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use burst_hal::{
    BufferRole, DataLocation, ErrorStatus, ExecutionResult, Model, ModelBuilder, OperandType,
    OperationType, OutputSpec, PrepareOptions, RequestArgument,
};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    Answer, Call, FencedRequest, List, ModelBody, PoolSource, QueueDescriptor, QueueGrantor,
    Refusal, SynchronousRequest, WaitStyle, WireArgument, WireBufferRequest, WirePrepareOptions,
    WireRole, encode_model,
};
use burst_wire::{DATUM_BYTES, Features, RequestExtras, RequestPacket, decode_result};
use fmq::{Consumer, Deadline, Descriptor, Producer, QueueConfig};

use super::talk::{HANG, Talk};
use crate::Input;

/// Bytes of every memory: an input, and from the middle on an output.
const POOL_BYTES: usize = 64;
const OUTPUT_AT: u32 = 32;
/// Bytes of a value.
const VALUE_BYTES: u32 = 16;
/// Bytes of a memory for spans.
const TRACE_BYTES: usize = 1 << 16;

/// A client, and what it has.
pub(super) struct Client {
    talk: Talk,
    /// Numbers of prepared models.
    models: Vec<u32>,
    /// Memories by number.
    memories: BTreeMap<u32, Memory>,
    bursts: Vec<Burst>,
    /// Tokens of buffers, and whether each has a value.
    buffers: Vec<u32>,
    /// Executions that were started asynchronously.
    started: Vec<u32>,
    /// Fenced executions that were not released, with the fences that they gave.
    fenced: Vec<(u32, Option<OwnedFd>)>,
    /// The ends of fences at which they are signalled.
    unsignalled: Vec<std::io::PipeWriter>,
    is_traced: bool,
    /// A memory that comes with messages.
    pool: Memory,
    succeeded: usize,
    is_connected: bool,
}

struct Burst {
    number: u32,
    requests: Producer,
    results: Consumer,
    /// Whether something was sent that is no request: then nothing is known of the burst any more.
    is_odd: bool,
}

/// What a reply must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    Succeed,
    Fail,
    /// Either: it depends on what nobody here keeps count of.
    End,
}

fn memory(bytes: usize) -> Memory {
    Memory::create("calls", bytes).unwrap()
}

/// Four numbers in and four out.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    let input = b.input(OperandType::TensorFloat32, &[4]);
    let output = b.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[4]));
    b.output(output);
    b.build().unwrap()
}

/// One that is not legal: it reads what is not there.
fn illegal_model() -> Model {
    let mut model = model();
    model.main.operations[0].inputs[0] = 77;
    model
}

fn parcel(model: &Model) -> (ModelBody, Memory) {
    let (structure, body) = encode_model(model).unwrap();
    let mut memory = memory(usize::try_from(body.total_bytes().unwrap()).unwrap());
    let mapping = Mapping::map(&memory).unwrap();
    mapping.region(0, structure.len()).unwrap().copy_in(0, &structure).unwrap();
    drop(mapping);
    memory.seal_write().unwrap();
    (body, memory)
}

fn argument(offset: u32) -> RequestArgument {
    let location = DataLocation { pool_index: 0, offset, length: VALUE_BYTES };
    RequestArgument { location, ..RequestArgument::default() }
}

fn wire_descriptor(descriptor: &Descriptor) -> QueueDescriptor {
    let grantor = |grantor: &fmq::Grantor| QueueGrantor {
        fd_index: grantor.fd_index,
        offset: grantor.offset,
        extent: grantor.extent,
    };
    QueueDescriptor {
        quantum: descriptor.quantum,
        flags: descriptor.flags,
        descriptors: u8::try_from(descriptor.fds.len()).unwrap(),
        grantors: List(descriptor.grantors.iter().map(grantor).collect()),
    }
}

/// A number of which nothing has any: neither models nor executions come that far.
const NO_NUMBER: u32 = 0x7FFF_FF00;

/// One of the numbers, the last one first; `None` for a choice beyond all of them, which names nothing.
fn chosen(numbers: &[u32], choice: u8) -> Option<u32> {
    numbers.iter().rev().nth(choice.into()).copied()
}

impl Client {
    pub(super) fn greet(socket: OwnedFd) -> Self {
        Client {
            talk: Talk::greet(socket, memory(POOL_BYTES)),
            models: Vec::new(),
            memories: BTreeMap::new(),
            bursts: Vec::new(),
            buffers: Vec::new(),
            started: Vec::new(),
            fenced: Vec::new(),
            unsignalled: Vec::new(),
            is_traced: false,
            pool: memory(POOL_BYTES),
            succeeded: 0,
            is_connected: true,
        }
    }

    /// Makes the next call. Says whether the connection lives.
    pub(super) fn step(&mut self, input: &mut Input<'_>) -> bool {
        match input.u8() {
            0 => self.expect(Call::ListDevices, &[], Must::Succeed),
            1 => self.ask(input),
            2 | 3 => self.prepare(input),
            4 => self.release_model(input),
            5 | 6 => self.take_memory(input),
            7 => self.forget(input),
            8 => self.execute(input),
            9 => self.configure(input),
            10 | 11 => self.fill_slot(input),
            12 => self.run_burst(input),
            13 => self.close(input),
            14 => self.nonsense(input),
            15 | 16 => self.start(input),
            17 => self.signal(input),
            18 => self.info(input),
            19 => self.release_execution(input),
            20 => self.cancel(input),
            21 => self.allocate(input),
            22 => self.copy(input),
            23 => self.release_buffer(input),
            24 => self.talk.gives_memories = !input.flag(),
            25 => self.wrong_descriptors(input),
            26 => self.later_call(input),
            27 => self.raw(input),
            28 => self.trace(input),
            _ => self.talk.listen(),
        }
        self.notice();
        self.is_connected
    }

    /// Makes a call; `None` where the service has hung up.
    fn call(
        &mut self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
    ) -> Option<Result<Answer, Refusal>> {
        let reply = self.talk.call(call, descriptors);
        self.is_connected &= reply.is_some();
        assert!(self.is_connected, "the service hangs up on a client that keeps to the protocol");
        reply.map(|(outcome, _)| outcome)
    }

    /// Makes a call whose reply is known. Shortages are none here: there is room for all of this.
    fn expect(&mut self, call: Call, descriptors: &[BorrowedFd<'_>], must: Must) {
        let what = format!("{call:?}");
        let Some(outcome) = self.call(call, descriptors) else { return };
        match (must, outcome) {
            (Must::Succeed | Must::End, Ok(_)) | (Must::End, Err(_)) => {}
            (Must::Fail, Err(refusal)) => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{what}: {refusal:?}");
            }
            (must, outcome) => panic!("{what} must {must:?}: {outcome:?}"),
        }
    }

    /// Bursts that were given up, and executions that have ended.
    fn notice(&mut self) {
        for number in std::mem::take(&mut self.talk.told) {
            let at = self.started.iter().position(|started| *started == number);
            let at = at.expect("the end of an execution that was not started is told");
            self.started.swap_remove(at);
        }
        for burst in &mut self.bursts {
            let has_ended = self.talk.ended_bursts.remove(&burst.number);
            assert!(!has_ended || burst.is_odd, "a burst that was used well is given up");
        }
    }

    fn ask(&mut self, input: &mut Input<'_>) {
        let device = u32::from(input.u8());
        let must = if device == 0 { Must::Succeed } else { Must::Fail };
        let call = match input.flag() {
            true => Call::DeviceStatus { device },
            false => Call::DeviceInfo { device },
        };
        self.expect(call, &[], must);
    }

    fn prepare(&mut self, input: &mut Input<'_>) {
        let is_legal = input.u8() != 9;
        let is_survey = input.u8() == 9;
        let (body, memory) = parcel(&if is_legal { model() } else { illegal_model() });
        let descriptors = [memory.as_fd()];
        let must = if is_legal { Must::Succeed } else { Must::Fail };
        if is_survey {
            let call = Call::SupportedOperations { device: 0, model: body };
            return self.expect(call, &descriptors, must);
        }
        let options = WirePrepareOptions::from(&PrepareOptions::default());
        let call = Call::Prepare { device: 0, model: body, options };
        if self.models.len() >= 32 {
            return;
        }
        match self.call(call, &descriptors) {
            Some(Ok(Answer::Prepared { model })) if is_legal => {
                assert!(!self.models.contains(&model), "model {model} is given twice");
                self.models.push(model);
            }
            Some(Err(refusal)) if !is_legal => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn release_model(&mut self, input: &mut Input<'_>) {
        let model = chosen(&self.models, input.u8());
        let call = Call::ReleaseModel { model: model.unwrap_or(NO_NUMBER) };
        self.expect(call, &[], found(model));
        self.models.retain(|live| Some(*live) != model);
    }

    /// Shares a memory, or asks for one.
    fn take_memory(&mut self, input: &mut Input<'_>) {
        let number = u32::from(input.u8() % 8);
        let is_free = !self.memories.contains_key(&number);
        let must = if is_free { Must::Succeed } else { Must::Fail };
        if input.flag() {
            let call = Call::AllocateMemory { memory: number, length: POOL_BYTES as u64 };
            let Some((outcome, descriptors)) = self.talk.call(call, &[]) else {
                self.is_connected = false;
                return;
            };
            assert_eq!(outcome.is_ok(), is_free, "{outcome:?}");
            assert_eq!(descriptors.len(), usize::from(is_free), "the memory comes with success");
            if let Some(memory) = descriptors.into_iter().next() {
                self.memories.insert(number, Memory::from_fd(memory).unwrap());
            }
            return;
        }
        let memory = memory(POOL_BYTES);
        let call = Call::ShareMemory { memory: number, length: POOL_BYTES as u64 };
        self.expect(call, &[memory.as_fd()], must);
        self.memories.entry(number).or_insert(memory);
    }

    fn forget(&mut self, input: &mut Input<'_>) {
        let memory = u32::from(input.u8() % 8);
        self.expect(Call::ForgetMemory { memory }, &[], Must::Succeed);
        self.memories.remove(&memory);
    }

    /// Where a request's memory is, and what that makes of a request that is right otherwise.
    fn source(&self, input: &mut Input<'_>) -> (PoolSource, Must) {
        let here = PoolSource::Descriptor { length: POOL_BYTES as u64 };
        match input.below(5) {
            1 => {
                let memory = u32::from(input.u8() % 8);
                let is_there = self.memories.contains_key(&memory);
                let must = if is_there { Must::Succeed } else { Must::Fail };
                (PoolSource::Shared { memory }, must)
            }
            2 => (PoolSource::Unknown { kind: 99 }, Must::Fail),
            3 => match chosen(&self.buffers, input.u8()) {
                // Whether it suits a place depends on its roles, and on whether it has a value.
                Some(token) => (PoolSource::Token { token }, Must::End),
                None => (PoolSource::Token { token: NO_NUMBER }, Must::Fail),
            },
            _ => (here, Must::Succeed),
        }
    }

    /// A request of a model, and whether it must succeed.
    fn request(&mut self, input: &mut Input<'_>) -> (SynchronousRequest, Must) {
        let model = chosen(&self.models, input.u8());
        let (source, of_source) = self.source(input);
        let (mut from, mut to) = (argument(0), argument(OUTPUT_AT));
        let is_legal = match input.below(6) {
            1 => {
                from.location.offset = u32::MAX;
                false
            }
            2 => {
                to.location.pool_index = 1;
                false
            }
            3 => {
                from.dimensions = [5].as_slice().into();
                false
            }
            _ => true,
        };
        let request = SynchronousRequest {
            model: model.unwrap_or(NO_NUMBER),
            inputs: List(vec![WireArgument::from(&from)]),
            outputs: List(vec![WireArgument::from(&to)]),
            pools: List(vec![source]),
            measure_timing: false,
            deadline: None,
            loop_timeout: None,
        };
        let must = if model.is_some() && is_legal { of_source } else { Must::Fail };
        // What is wrong with the rest may be found before the buffer is, or behind it.
        let must = if of_source == Must::End { Must::End } else { must };
        (request, must)
    }

    /// The descriptors that go with a request.
    fn with_pool<'p>(request: &SynchronousRequest, pool: &'p Memory) -> Vec<BorrowedFd<'p>> {
        let from_here = |source: &&PoolSource| matches!(source, PoolSource::Descriptor { .. });
        request.pools.0.iter().filter(from_here).map(|_| pool.as_fd()).collect()
    }

    fn execute(&mut self, input: &mut Input<'_>) {
        let (request, must) = self.request(input);
        let pool = self.pool.as_fd().try_clone_to_owned().unwrap();
        let descriptors: Vec<BorrowedFd<'_>> =
            Self::with_pool(&request, &self.pool).iter().map(|_| pool.as_fd()).collect();
        let Some(outcome) = self.call(Call::Execute(request), &descriptors) else { return };
        let status = match outcome {
            Ok(Answer::Executed(executed)) => executed.status,
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => refusal.status,
        };
        self.ends(status, must);
    }

    fn ends(&mut self, status: i32, must: Must) {
        let status = ErrorStatus::from_code(status).expect("a status of the HAL");
        match must {
            Must::Succeed => assert_eq!(status, ErrorStatus::None),
            Must::Fail => assert_eq!(status, ErrorStatus::InvalidArgument),
            Must::End => {}
        }
        self.succeeded += usize::from(status == ErrorStatus::None);
    }

    fn configure(&mut self, input: &mut Input<'_>) {
        let model = chosen(&self.models, input.u8());
        if self.bursts.len() >= 8 {
            return;
        }
        let config = QueueConfig::new(DATUM_BYTES, 64);
        let (requests, results) =
            (Producer::create(&config).unwrap(), Consumer::create(&config).unwrap());
        let queues = [requests.descriptor().unwrap(), results.descriptor().unwrap()];
        let depth = u16::from(input.u8());
        let call = Call::ConfigureBurst {
            model: model.unwrap_or(NO_NUMBER),
            request_queue: wire_descriptor(&queues[0]),
            result_queue: wire_descriptor(&queues[1]),
            features: 0,
            wait: WaitStyle::Sleep,
            depth: depth.max(1),
        };
        let descriptors: Vec<BorrowedFd<'_>> =
            queues.iter().flat_map(|queue| &queue.fds).map(AsFd::as_fd).collect();
        match self.call(call, &descriptors) {
            Some(Ok(Answer::Burst { burst: number })) if model.is_some() && depth < 2 => {
                assert!(self.bursts.iter().all(|burst| burst.number != number), "given twice");
                self.bursts.push(Burst { number, requests, results, is_odd: false });
            }
            Some(Err(_)) if model.is_none() || depth > 1 => {}
            other => panic!("depth {depth} of {model:?}: {other:?}"),
        }
    }

    fn burst(&self, choice: u8) -> Option<u32> {
        let numbers: Vec<u32> = self.bursts.iter().map(|burst| burst.number).collect();
        chosen(&numbers, choice)
    }

    /// Puts a memory into a slot, or empties it.
    fn fill_slot(&mut self, input: &mut Input<'_>) {
        let burst = self.burst(input.u8());
        let number = burst.unwrap_or(NO_NUMBER);
        let slot = i32::from(input.u8() % 4);
        if input.flag() {
            return self.expect(Call::FreeMemory { burst: number, slot }, &[], found(burst));
        }
        let (source, of_source) = self.source(input);
        let call = Call::PushMemory { burst: number, slot, source };
        let pool = self.pool.as_fd().try_clone_to_owned().unwrap();
        let comes_along = matches!(source, PoolSource::Descriptor { .. });
        let descriptors = if comes_along { vec![pool.as_fd()] } else { Vec::new() };
        let Some(outcome) = self.call(call, &descriptors) else { return };
        // A slot may be full already.
        assert!(outcome.is_err() || burst.is_some() && of_source != Must::Fail, "{outcome:?}");
    }

    /// One request over a burst, and its result.
    fn run_burst(&mut self, input: &mut Input<'_>) {
        let (choice, slot) = (input.u8(), i32::from(input.u8() % 4));
        let Some(number) = self.burst(choice) else { return };
        let gives_memories = self.talk.gives_memories;
        let at = self.bursts.iter().position(|burst| burst.number == number).unwrap();
        if self.bursts[at].is_odd {
            return;
        }
        let extras = RequestExtras::default();
        let (from, to) = ([argument(0)], [argument(OUTPUT_AT)]);
        let packet = RequestPacket {
            inputs: &from,
            outputs: &to,
            slots: &[slot],
            measure_timing: false,
            extras,
        };
        let mut bytes = Vec::new();
        packet.encode_into(&mut bytes).unwrap();
        self.bursts[at].requests.write_blocking(&bytes, Deadline::after(HANG)).unwrap();
        let begun = Instant::now();
        let datums = loop {
            let soon = Deadline::after(std::time::Duration::from_millis(1));
            if let Ok(datums) = self.bursts[at].results.wait(1, soon) {
                break datums;
            }
            // The service may want a memory first.
            self.talk.listen();
            assert!(begun.elapsed() < HANG, "a request over a burst is not answered");
        };
        let mut bytes = vec![0; datums * DATUM_BYTES];
        self.bursts[at].results.read(&mut bytes).unwrap();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        decode_result(&bytes, Features::NONE, 1, true, &mut result).unwrap();
        let is_answered = result.status == ErrorStatus::None || !gives_memories;
        assert!(is_answered, "{}", result.status);
        self.succeeded += usize::from(result.status == ErrorStatus::None);
    }

    fn close(&mut self, input: &mut Input<'_>) {
        let burst = self.burst(input.u8());
        self.expect(Call::CloseBurst { burst: burst.unwrap_or(NO_NUMBER) }, &[], found(burst));
        self.bursts.retain(|live| Some(live.number) != burst);
    }

    /// Datums that are no request, which nobody waits for.
    fn nonsense(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let count = 1 + input.below(8);
        let mut bytes = input.bytes(count * DATUM_BYTES).to_vec();
        bytes.resize(count * DATUM_BYTES, 0);
        let Some(number) = self.burst(choice) else { return };
        let burst = self.bursts.iter_mut().find(|burst| burst.number == number).unwrap();
        burst.is_odd = true;
        // The queue may be full, or closed, by now.
        if burst.requests.write(&bytes).is_ok() {
            let _ = burst.requests.wake();
        }
    }

    /// An execution that nobody waits for: told later, or with fences.
    fn start(&mut self, input: &mut Input<'_>) {
        if self.started.len() + self.fenced.len() >= 16 {
            return;
        }
        let (request, must) = self.request(input);
        let pool = self.pool.as_fd().try_clone_to_owned().unwrap();
        let mut descriptors: Vec<OwnedFd> = Self::with_pool(&request, &self.pool)
            .iter()
            .map(|_| pool.try_clone().unwrap())
            .collect();
        let choice = input.u8();
        if choice > 3 {
            return self.start_asynchronously(request, must, &descriptors, choice);
        }
        let mut ends = Vec::new();
        for _ in 0..choice {
            let (read, write) = std::io::pipe().unwrap();
            descriptors.push(read.into());
            ends.push(write);
        }
        let fds: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let call = FencedRequest { request, fences: choice.into(), duration: None };
        let Some((outcome, fence)) = self.talk.call(Call::ExecuteFenced(call), &fds) else {
            self.is_connected = false;
            return;
        };
        match (must, outcome) {
            (Must::Succeed | Must::End, Ok(Answer::Fenced { execution })) => {
                assert!(self.fenced.iter().all(|(live, _)| *live != execution), "given twice");
                assert!(fence.len() <= 1, "a fence or none");
                self.fenced.push((execution, fence.into_iter().next()));
                self.unsignalled.extend(ends);
            }
            (Must::Fail, Err(refusal)) => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{refusal:?}");
            }
            (Must::End, Err(_)) => {}
            (must, outcome) => panic!("a fenced execution must {must:?}: {outcome:?}"),
        }
    }

    fn start_asynchronously(
        &mut self,
        request: SynchronousRequest,
        must: Must,
        descriptors: &[OwnedFd],
        number: u8,
    ) {
        // Those of the client lie above those that the service gives.
        let execution = (1 << 31) + u32::from(number);
        let fds: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        // Its end is told behind the reply, and may be there with it.
        let was_started = self.started.contains(&execution);
        let call = Call::ExecuteAsynchronously { execution, request };
        let Some(outcome) = self.call(call, &fds) else { return };
        match outcome {
            Ok(_) => {
                assert_ne!(must, Must::Fail, "an execution of what is not there");
                self.started.push(execution);
            }
            Err(refusal) => {
                assert!(was_started || must != Must::Succeed, "{refusal:?}");
                let is_right = refusal.status() == ErrorStatus::InvalidArgument;
                assert!(is_right || must == Must::End, "{refusal:?}");
            }
        }
    }

    /// A fence becomes done, or fails.
    fn signal(&mut self, input: &mut Input<'_>) {
        let (choice, is_done) = (usize::from(input.u8()), input.flag());
        if choice >= self.unsignalled.len() {
            return;
        }
        let mut end = self.unsignalled.swap_remove(choice);
        if is_done {
            // Where nobody waits for it any more, nobody reads it.
            let _ = end.write_all(&[1]);
        }
    }

    fn fenced(&self, choice: u8) -> Option<u32> {
        let numbers: Vec<u32> = self.fenced.iter().map(|(number, _)| *number).collect();
        chosen(&numbers, choice)
    }

    fn info(&mut self, input: &mut Input<'_>) {
        let execution = self.fenced(input.u8());
        let call = Call::ExecutionInfo { execution: execution.unwrap_or(NO_NUMBER) };
        let Some(outcome) = self.call(call, &[]) else { return };
        // One that has not ended has no information yet.
        assert!(outcome.is_err() || execution.is_some(), "{outcome:?}");
    }

    fn release_execution(&mut self, input: &mut Input<'_>) {
        let execution = self.fenced(input.u8());
        let call = Call::ReleaseExecution { execution: execution.unwrap_or(NO_NUMBER) };
        self.expect(call, &[], found(execution));
        self.fenced.retain(|(live, _)| Some(*live) != execution);
    }

    fn cancel(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let execution = self.fenced(choice).or_else(|| chosen(&self.started, choice));
        let execution = execution.unwrap_or(NO_NUMBER);
        self.expect(Call::CancelExecution { execution }, &[], Must::Succeed);
    }

    fn allocate(&mut self, input: &mut Input<'_>) {
        let model = chosen(&self.models, input.u8());
        let (position, is_output) = (u32::from(input.u8() % 2), input.flag());
        if self.buffers.len() >= 32 {
            return;
        }
        let role = WireRole::from(&BufferRole { model: 0, position, frequency: 1.0 });
        let (inputs, outputs) = if is_output { (vec![], vec![role]) } else { (vec![role], vec![]) };
        let request = WireBufferRequest {
            dimensions: List(vec![]),
            models: List(vec![model.unwrap_or(NO_NUMBER)]),
            inputs: List(inputs),
            outputs: List(outputs),
        };
        let is_legal = model.is_some() && position == 0;
        match self.call(Call::AllocateBuffer { device: 0, request }, &[]) {
            Some(Ok(Answer::Buffer { token })) if is_legal => {
                assert!(!self.buffers.contains(&token), "token {token} is given twice");
                self.buffers.push(token);
            }
            Some(Err(_)) if !is_legal => {}
            other => panic!("{other:?}"),
        }
    }

    /// Copies a value to a buffer, or from it.
    fn copy(&mut self, input: &mut Input<'_>) {
        let token = chosen(&self.buffers, input.u8());
        let number = token.unwrap_or(NO_NUMBER);
        let value = memory(VALUE_BYTES as usize);
        let source = PoolSource::Descriptor { length: VALUE_BYTES.into() };
        let call = match input.flag() {
            false => Call::CopyToBuffer { token: number, from: source, dimensions: List(vec![]) },
            true => Call::CopyFromBuffer { token: number, to: source },
        };
        let Some(outcome) = self.call(call, &[value.as_fd()]) else { return };
        // One without a value has none to copy.
        assert!(outcome.is_err() || token.is_some(), "{outcome:?}");
    }

    fn release_buffer(&mut self, input: &mut Input<'_>) {
        let token = chosen(&self.buffers, input.u8());
        let call = Call::ReleaseBuffer { token: token.unwrap_or(NO_NUMBER) };
        self.expect(call, &[], found(token));
        self.buffers.retain(|live| Some(*live) != token);
    }

    /// Calls with one descriptor too few, and with one too many.
    fn wrong_descriptors(&mut self, input: &mut Input<'_>) {
        let extra = memory(POOL_BYTES);
        match input.flag() {
            false => {
                let call = Call::ShareMemory { memory: 77, length: POOL_BYTES as u64 };
                self.expect(call, &[], Must::Fail);
            }
            true => self.expect(Call::ListDevices, &[extra.as_fd()], Must::Fail),
        }
    }

    fn later_call(&mut self, input: &mut Input<'_>) {
        let number = 1000 + u32::from(input.u8());
        self.expect(Call::Unknown { number }, &[], Must::Fail);
    }

    /// Bytes that are, most likely, no message. The service may hang up.
    fn raw(&mut self, input: &mut Input<'_>) {
        let count = usize::from(input.u8()).max(1);
        let bytes = input.bytes(count).to_vec();
        self.talk.send_raw(&bytes, &[]);
        self.is_connected = false;
    }

    fn trace(&mut self, input: &mut Input<'_>) {
        if input.flag() {
            self.is_traced = false;
            return self.expect(Call::EndTrace, &[], Must::Succeed);
        }
        let spans = memory(TRACE_BYTES);
        let must = if self.is_traced { Must::Fail } else { Must::Succeed };
        self.is_traced = true;
        self.expect(Call::BeginTrace { length: TRACE_BYTES as u64 }, &[spans.as_fd()], must);
    }

    /// Ends the connection, with whatever is under way.
    pub(super) fn hang_up(self) -> usize {
        self.succeeded
    }
}

/// What names something succeeds, what names nothing fails.
fn found(number: Option<u32>) -> Must {
    if number.is_some() { Must::Succeed } else { Must::Fail }
}
