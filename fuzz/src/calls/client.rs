//! What a client does, and what it knows of what it has.

mod bursts;
mod compilations;
mod launches;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::{
    BufferRole, DataLocation, ErrorStatus, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, PrepareOptions, RequestArgument,
};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    Answer, Call, List, ModelBody, PoolSource, Refusal, SynchronousRequest, WireArgument,
    WireBufferRequest, WirePrepareOptions, WireRole, encode_model,
};

use self::bursts::Burst;
pub(super) use self::compilations::Places;
use super::talk::Talk;
use crate::Input;

/// Bytes of every memory: an input, and from the middle on an output.
const POOL_BYTES: usize = 64;
const OUTPUT_AT: u32 = 32;
/// Bytes of a value.
const VALUE_BYTES: u32 = 16;
/// Most models that a client has.
const MODELS_MAX: usize = 32;
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
    /// The ends of fences at which they are signalled, each with a reader.
    unsignalled: Vec<(std::io::PipeWriter, std::io::PipeReader)>,
    is_traced: bool,
    /// Files of compilations.
    places: Places,
    /// Numbers of what another client has, by [`Kind`]: nothing of this one's but where it has the same number.
    foreign: Numbers,
    /// A memory that comes with messages.
    pool: Memory,
    succeeded: usize,
    is_connected: bool,
}

/// What a client has that has numbers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Model,
    Burst,
    Buffer,
    Execution,
}

/// Numbers by [`Kind`].
pub(super) type Numbers = [Vec<u32>; 4];

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

/// A number of which nothing has any: neither models nor executions come that far.
const NO_NUMBER: u32 = 0x7FFF_FF00;

/// One of the numbers, the last one first; `None` for a choice beyond all of them, which names nothing.
fn chosen(numbers: &[u32], choice: u8) -> Option<u32> {
    numbers.iter().rev().nth(choice.into()).copied()
}

impl Client {
    pub(super) fn greet(socket: OwnedFd, places: Places) -> Self {
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
            places,
            foreign: Numbers::default(),
            pool: memory(POOL_BYTES),
            succeeded: 0,
            is_connected: true,
        }
    }

    /// The numbers of what it has.
    pub(super) fn numbers(&self) -> Numbers {
        let bursts = self.bursts.iter().map(|burst| burst.number).collect();
        let fenced = self.fenced.iter().map(|(number, _)| number);
        let executions = self.started.iter().chain(fenced).copied().collect();
        [self.models.clone(), bursts, self.buffers.clone(), executions]
    }

    /// It is this client's turn behind another one, which has these.
    pub(super) fn follow(&mut self, foreign: Numbers) {
        self.foreign = foreign;
    }

    /// A number under which this client has nothing: one of the other client's, where there is such a one.
    fn nothing(&self, kind: Kind) -> u32 {
        let own = &self.numbers()[kind as usize];
        let foreign = self.foreign[kind as usize].iter().rev();
        foreign.copied().find(|number| !own.contains(number)).unwrap_or(NO_NUMBER)
    }

    /// Makes a call. Says whether the connection lives.
    pub(super) fn step(&mut self, call: u8, input: &mut Input<'_>) -> bool {
        match call {
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
            30 | 31 => self.keep(input),
            32 | 33 => self.restore(input),
            34 => self.change(input),
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
        if self.models.len() >= MODELS_MAX {
            return;
        }
        match self.call(call, &descriptors) {
            Some(Ok(Answer::Prepared { model })) if is_legal => self.own(model),
            Some(Err(refusal)) if !is_legal => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A model that was prepared.
    fn own(&mut self, model: u32) {
        assert!(!self.models.contains(&model), "model {model} is given twice");
        self.models.push(model);
    }

    fn release_model(&mut self, input: &mut Input<'_>) {
        let model = chosen(&self.models, input.u8());
        let call = Call::ReleaseModel { model: model.unwrap_or_else(|| self.nothing(Kind::Model)) };
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
                None => (PoolSource::Token { token: self.nothing(Kind::Buffer) }, Must::Fail),
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
            model: model.unwrap_or_else(|| self.nothing(Kind::Model)),
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
            models: List(vec![model.unwrap_or_else(|| self.nothing(Kind::Model))]),
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
        let number = token.unwrap_or_else(|| self.nothing(Kind::Buffer));
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
        let call =
            Call::ReleaseBuffer { token: token.unwrap_or_else(|| self.nothing(Kind::Buffer)) };
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
