//! A connection that can say anything, and to which everything may be said: a refusal or a hang-up is
//! an outcome and no failure.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use burst_hal::{Model, PrepareOptions};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    Answer, Call, ClientGreeting, ClientMessage, List, PoolSource, QueueDescriptor, QueueGrantor,
    Refusal, ServerMessage, WaitStyle, WirePrepareOptions, decode, encode, encode_model,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// What came of a call: the service's answer to it, or the connection's end.
pub type Outcome = Result<Result<Answer, Refusal>, WireError>;

/// A socket that is connected to the service; with `NONBLOCK` also where nobody accepts it yet.
pub(super) fn dial(path: &Path, flags: SocketFlags) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A connection that was greeted.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    inbox: Inbox,
    next: u64,
}

impl Connection {
    /// Connects and greets.
    ///
    /// # Errors
    /// Nobody is there, or hangs up.
    pub fn open(path: &Path) -> Result<Connection, WireError> {
        let socket = dial(path, SocketFlags::empty())?;
        let greeting = ClientGreeting::new(Features::ALL, "attacker");
        socket::send(&socket, &greeting.encode()?, &[])?;
        let mut inbox = Inbox::default();
        socket::receive(&socket, &mut inbox)?;
        Ok(Connection { socket, inbox, next: 1 })
    }

    /// Makes a call and waits for its reply.
    ///
    /// # Errors
    /// The service hangs up, or says what nobody understands.
    pub fn call(&mut self, call: Call, descriptors: &[BorrowedFd<'_>]) -> Outcome {
        let id = self.send(call, descriptors)?;
        loop {
            match self.receive()? {
                ServerMessage::Reply(reply) if reply.id == id => return Ok(reply.outcome),
                _ => {} // questions for memories and the ends of bursts are not answered
            }
        }
    }

    /// Makes a call and does not wait; gives the call's number.
    pub(super) fn send(
        &mut self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, WireError> {
        let id = self.next;
        self.next += 1;
        let message = encode(&ClientMessage::Call { id, call })?;
        socket::send(&self.socket, &message, descriptors)?;
        Ok(id)
    }

    /// The next message of the service.
    pub(super) fn receive(&mut self) -> Result<ServerMessage, WireError> {
        socket::receive(&self.socket, &mut self.inbox)?;
        decode(self.inbox.message())
    }

    /// Answers a question for memories with the same memory for each slot.
    pub(super) fn give_memories(
        &mut self,
        id: u64,
        slots: usize,
        (memory, length): (&Memory, u64),
    ) -> Result<(), WireError> {
        let lengths = List(vec![length; slots]);
        let message = encode(&ClientMessage::Memories { id, status: 0, lengths })?;
        socket::send(&self.socket, &message, &vec![memory.as_fd(); slots])
    }

    /// Waits until the service gives a burst up, or hangs up.
    pub(super) fn wait_for_end_of_burst(&mut self) {
        while !matches!(self.receive(), Ok(ServerMessage::BurstEnded { .. }) | Err(_)) {}
    }

    /// Prepares a model; gives its number.
    pub(super) fn prepare(&mut self, model: &Model) -> Result<u32, Box<dyn std::error::Error>> {
        let (structure, body) = encode_model(model)?;
        let total = usize::try_from(body.total_bytes()?)?;
        let mut memory = Memory::create("model", total)?;
        let mapping = Mapping::map(&memory)?;
        mapping.region(0, total)?.copy_in(0, &structure)?;
        if !model.operand_values.is_empty() {
            let at = usize::try_from(body.values_at()?)?;
            mapping.region(at, model.operand_values.len())?.copy_in(0, &model.operand_values)?;
        }
        drop(mapping);
        memory.seal_write()?;
        let pools: Vec<BorrowedFd<'_>> = model.pools.iter().filter_map(|pool| pool.fd()).collect();
        let descriptors = [&[memory.as_fd()], &pools[..]].concat();
        let options = WirePrepareOptions::from(&PrepareOptions::default());
        match self.call(Call::Prepare { device: 0, model: body, options }, &descriptors)? {
            Ok(Answer::Prepared { model }) => Ok(model),
            other => Err(format!("not prepared: {other:?}").into()),
        }
    }

    /// Starts a burst with these queues: requests first.
    pub(super) fn configure(
        &mut self,
        model: u32,
        queues: [&fmq::Descriptor; 2],
        agreed: (Features, u16),
    ) -> Outcome {
        let (call, descriptors) = configure_call(model, queues, agreed);
        self.call(call, &descriptors)
    }

    /// Puts a memory into a slot of a burst.
    pub(super) fn push(&mut self, burst: u32, slot: i32, memory: &Memory, length: u64) -> Outcome {
        let source = PoolSource::Descriptor { length };
        self.call(Call::PushMemory { burst, slot, source }, &[memory.as_fd()])
    }
}

/// The call that starts a burst with these queues, with these additions and so many requests under way.
pub(super) fn configure_call<'d>(
    model: u32,
    queues: [&'d fmq::Descriptor; 2],
    (features, depth): (Features, u16),
) -> (Call, Vec<BorrowedFd<'d>>) {
    let [request_queue, result_queue] = queues.map(wire_descriptor);
    let (features, wait) = (features.bits(), WaitStyle::Sleep);
    let call = Call::ConfigureBurst { model, request_queue, result_queue, features, wait, depth };
    let descriptors = queues.into_iter().flat_map(|queue| &queue.fds).map(AsFd::as_fd);
    (call, descriptors.collect())
}

fn wire_descriptor(descriptor: &fmq::Descriptor) -> QueueDescriptor {
    let grantor = |grantor: &fmq::Grantor| QueueGrantor {
        fd_index: grantor.fd_index,
        offset: grantor.offset,
        extent: grantor.extent,
    };
    QueueDescriptor {
        quantum: descriptor.quantum,
        flags: descriptor.flags,
        descriptors: u8::try_from(descriptor.fds.len()).unwrap_or(u8::MAX),
        grantors: List(descriptor.grantors.iter().map(grantor).collect()),
    }
}
