//! A client that speaks the protocol by hand, and so can say anything.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::{DataLocation, ExecutionResult, Model, RequestArgument};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    self, Answer, Call, ClientGreeting, ClientMessage, List, ModelBody, PoolSource,
    QueueDescriptor, QueueGrantor, Refusal, ServerGreeting, ServerMessage, WaitStyle, encode_model,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::{DATUM_BYTES, DatumBytes, Features, RequestExtras, RequestPacket, decode_result};
use fmq::{Consumer, Descriptor, Producer, QueueConfig};

use super::long;

/// A connection without a watcher.
pub struct RawClient {
    pub socket: OwnedFd,
    inbox: Inbox,
    next: u64,
}

/// A socket connected to the service that listens at this path.
pub fn connect(path: &std::path::Path) -> OwnedFd {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };
    // Not for processes that another test starts meanwhile: with them it would stay open.
    let (unix, packets) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = socket_with(unix, packets, SocketFlags::CLOEXEC, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

impl RawClient {
    /// Greets the service at the other end.
    pub fn greet(socket: OwnedFd) -> Self {
        // A message that does not come fails the test and does not hang it.
        socket::set_receive_timeout(&socket, Some(super::LONG)).unwrap();
        let greeting = ClientGreeting::new(Features::ALL, "raw");
        socket::send(&socket, &greeting.encode().unwrap(), &[]).unwrap();
        let mut inbox = Inbox::default();
        socket::receive(&socket, &mut inbox).unwrap();
        ServerGreeting::decode(inbox.message()).unwrap();
        RawClient { socket, inbox, next: 1 }
    }

    /// The next message of the service, with its descriptors.
    pub fn receive(&mut self) -> (ServerMessage, Vec<OwnedFd>) {
        socket::receive(&self.socket, &mut self.inbox).expect("a message");
        let message = control::decode(self.inbox.message()).expect("well formed");
        (message, self.inbox.take_descriptors())
    }

    /// Whether the service hangs up now.
    pub fn is_hung_up(&mut self) -> bool {
        loop {
            match socket::receive(&self.socket, &mut self.inbox) {
                Ok(()) => {}
                Err(error) => return error == burst_wire::WireError::Closed,
            }
        }
    }

    pub fn send(&self, message: &ClientMessage, descriptors: &[BorrowedFd<'_>]) {
        socket::send(&self.socket, &control::encode(message).unwrap(), descriptors).unwrap();
    }

    /// Makes a call and waits for its reply.
    pub fn call(&mut self, call: Call, descriptors: &[BorrowedFd<'_>]) -> Result<Answer, Refusal> {
        let id = self.next;
        self.next += 1;
        self.send(&ClientMessage::Call { id, call }, descriptors);
        match self.receive().0 {
            ServerMessage::Reply(reply) => {
                assert_eq!(reply.id, id);
                reply.outcome
            }
            other => panic!("not a reply: {other:?}"),
        }
    }

    /// Prepares a model as it should be done.
    pub fn prepare(&mut self, model: &Model) -> u32 {
        let (body, memory) = parcel(model);
        let options = control::WirePrepareOptions::from(&burst_hal::PrepareOptions::default());
        let call = Call::Prepare { device: 0, model: body, options };
        match self.call(call, &[memory.as_fd()]) {
            Ok(Answer::Prepared { model }) => model,
            other => panic!("{other:?}"),
        }
    }
}

/// A model as it goes with a call, and the memory that it lies in.
#[must_use]
pub fn parcel(model: &Model) -> (ModelBody, Memory) {
    let (structure, body) = encode_model(model).unwrap();
    let total = usize::try_from(body.total_bytes().unwrap()).unwrap();
    let mut memory = Memory::create("model", total).unwrap();
    let mapping = Mapping::map(&memory).unwrap();
    let region = mapping.region(0, total).unwrap();
    region.copy_in(0, &structure).unwrap();
    region
        .copy_in(usize::try_from(body.values_at().unwrap()).unwrap(), &model.operand_values)
        .unwrap();
    drop(mapping);
    memory.seal_write().unwrap();
    (body, memory)
}

/// A queue's descriptor for a message.
pub fn wire_descriptor(descriptor: &Descriptor) -> QueueDescriptor {
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

/// The call that starts a burst with these queues, and its descriptors.
pub fn configure_call<'a>(
    model: u32,
    requests: &'a Descriptor,
    results: &'a Descriptor,
) -> (Call, Vec<BorrowedFd<'a>>) {
    let call = Call::ConfigureBurst {
        model,
        request_queue: wire_descriptor(requests),
        result_queue: wire_descriptor(results),
        features: 0,
        wait: WaitStyle::Sleep,
        depth: 1,
    };
    let fds = requests.fds.iter().chain(&results.fds).map(AsFd::as_fd).collect();
    (call, fds)
}

/// A burst whose packets are made by hand, in plain HAL 1.2.
pub struct RawBurst {
    pub client: RawClient,
    pub number: u32,
    pub requests: Producer,
    pub results: Consumer,
    pub input: Memory,
    pub output: Memory,
}

/// The slots that [`RawBurst`] pushes.
pub const INPUT_SLOT: i32 = 4;
pub const OUTPUT_SLOT: i32 = 9;
/// Bytes of each memory.
pub const POOL_BYTES: usize = 4096;

impl RawBurst {
    /// A burst on a prepared model, with both memories pushed.
    pub fn start(socket: OwnedFd, model: &Model, result_datums: usize) -> Self {
        let mut burst = Self::start_without_memories(socket, model, result_datums);
        burst.push_both();
        burst
    }

    /// Pushes both memories.
    pub fn push_both(&mut self) {
        for (slot, memory) in [(INPUT_SLOT, &self.input), (OUTPUT_SLOT, &self.output)] {
            let source = PoolSource::Descriptor { length: POOL_BYTES as u64 };
            let call = Call::PushMemory { burst: self.number, slot, source };
            assert_eq!(self.client.call(call, &[memory.as_fd()]), Ok(Answer::Done));
        }
    }

    /// The same, with memories that the service has to ask for.
    pub fn start_without_memories(socket: OwnedFd, model: &Model, result_datums: usize) -> Self {
        RawBurst::start_with_features(socket, model, result_datums, Features::NONE)
    }

    /// The same, with these additions to HAL 1.2 agreed on.
    pub fn start_with_features(
        socket: OwnedFd,
        model: &Model,
        result_datums: usize,
        agreed: Features,
    ) -> Self {
        let mut client = RawClient::greet(socket);
        let model = client.prepare(model);
        let requests = Producer::create(&QueueConfig::new(DATUM_BYTES, 1024)).unwrap();
        let results = Consumer::create(&QueueConfig::new(DATUM_BYTES, result_datums)).unwrap();
        let descriptors = (requests.descriptor().unwrap(), results.descriptor().unwrap());
        let (mut call, fds) = configure_call(model, &descriptors.0, &descriptors.1);
        if let Call::ConfigureBurst { features, .. } = &mut call {
            *features = agreed.bits();
        }
        let number = match client.call(call, &fds) {
            Ok(Answer::Burst { burst }) => burst,
            other => panic!("{other:?}"),
        };
        let memory = || Memory::create("pool", POOL_BYTES).unwrap();
        RawBurst { client, number, requests, results, input: memory(), output: memory() }
    }

    /// Sends datums as they are.
    pub fn send(&mut self, datums: &[DatumBytes]) {
        self.requests.write_blocking(datums.as_flattened(), long()).unwrap();
    }

    /// The next result packet, as it is.
    pub fn receive(&mut self) -> Vec<DatumBytes> {
        let datums = self.results.wait(1, long()).expect("a result");
        let mut bytes = vec![0; datums * DATUM_BYTES];
        self.results.read(&mut bytes).unwrap();
        bytes.as_chunks().0.to_vec()
    }

    /// Sends datums and decodes the result.
    pub fn run(&mut self, datums: &[DatumBytes], outputs: usize) -> ExecutionResult {
        self.send(datums);
        let packet = self.receive();
        let mut result = ExecutionResult::of(burst_hal::ErrorStatus::GeneralFailure);
        decode_result(packet.as_flattened(), Features::NONE, outputs, true, &mut result)
            .expect("a well-formed result");
        result
    }
}

/// Another burst on the connection of a client that has one, used as it should be. Its queues live as long as
/// this.
pub struct Beside {
    pub number: u32,
    requests: Producer,
    results: Consumer,
    memory: Memory,
    is_pushed: bool,
}

impl RawBurst {
    /// One more burst of the same client, on a model of its own.
    pub fn beside(&mut self, model: &Model) -> Beside {
        let model = self.client.prepare(model);
        Beside::start(&mut self.client, model).expect("a second burst")
    }
}

impl Beside {
    /// One more burst of a client on a prepared model.
    ///
    /// # Errors
    /// The service refuses it.
    pub fn start(client: &mut RawClient, model: u32) -> Result<Self, Refusal> {
        let requests = Producer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
        let results = Consumer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
        let descriptors = (requests.descriptor().unwrap(), results.descriptor().unwrap());
        let (call, fds) = configure_call(model, &descriptors.0, &descriptors.1);
        let number = match client.call(call, &fds)? {
            Answer::Burst { burst } => burst,
            other => panic!("{other:?}"),
        };
        let memory = Memory::create("pool", POOL_BYTES).unwrap();
        Ok(Beside { number, requests, results, memory, is_pushed: false })
    }

    /// Sends a request of one input and one output.
    #[track_caller]
    pub fn ask(&mut self, client: &mut RawClient, during: &str) {
        for slot in [INPUT_SLOT, OUTPUT_SLOT].into_iter().filter(|_| !self.is_pushed) {
            let source = PoolSource::Descriptor { length: POOL_BYTES as u64 };
            let push = Call::PushMemory { burst: self.number, slot, source };
            assert_eq!(client.call(push, &[self.memory.as_fd()]), Ok(Answer::Done), "{during}");
        }
        self.is_pushed = true;
        self.requests.write_blocking(request(1, false).as_flattened(), long()).unwrap();
    }

    /// Runs a request of one input and one output, and takes its result.
    #[track_caller]
    pub fn is_served(&mut self, client: &mut RawClient, during: &str) {
        self.ask(client, during);
        let datums = self.results.wait(1, long()).expect("a result");
        let mut bytes = vec![0; datums * DATUM_BYTES];
        self.results.read(&mut bytes).unwrap();
        assert_eq!(bytes[12..16], [0; 4], "{during}: the status of the burst beside");
    }
}

/// A legal request for [`super::wide_model`]: inputs in the first pool, outputs in the second.
#[must_use]
pub fn request(count: u32, measure_timing: bool) -> Vec<DatumBytes> {
    let argument = |pool_index, offset| RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset, length: 16 },
        dimensions: [1, 4].as_slice().into(),
    };
    let inputs: Vec<_> = (0..count).map(|index| argument(0, index * 16)).collect();
    let outputs: Vec<_> = (0..count).map(|index| argument(1, index * 16)).collect();
    packet(&inputs, &outputs, &[INPUT_SLOT, OUTPUT_SLOT], measure_timing)
}

/// A request packet as datums.
#[must_use]
pub fn packet(
    inputs: &[RequestArgument],
    outputs: &[RequestArgument],
    slots: &[i32],
    measure_timing: bool,
) -> Vec<DatumBytes> {
    let extras = RequestExtras::default();
    let packet = RequestPacket { inputs, outputs, slots, measure_timing, extras };
    let mut bytes = Vec::new();
    packet.encode_into(&mut bytes).unwrap();
    bytes.as_chunks().0.to_vec()
}
