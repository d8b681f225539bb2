//! A client's end of a connection that is spoken by hand.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use burst_shm::Memory;
use burst_wire::control::{
    Answer, Call, ClientGreeting, ClientMessage, List, Refusal, ServerGreeting, ServerMessage,
    decode, encode,
};
use burst_wire::socket::{Inbox, receive, send, set_receive_timeout};
use burst_wire::{Features, WireError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long the service may take over anything before it is a hang.
pub(super) const HANG: Duration = Duration::from_secs(60);

/// A reply with its descriptors; `None` where the service has hung up.
pub(super) type Reply = Option<(Result<Answer, Refusal>, Vec<OwnedFd>)>;

/// A connection that was greeted.
pub(super) struct Talk {
    socket: OwnedFd,
    inbox: Inbox,
    next: u64,
    /// What is given for every slot that the service asks for, where anything is.
    memory: Memory,
    pub(super) gives_memories: bool,
    /// Bursts that the service has given up.
    pub(super) ended_bursts: BTreeSet<u32>,
    /// Executions whose end was told, in order.
    pub(super) told: Vec<u32>,
}

impl Talk {
    pub(super) fn greet(socket: OwnedFd, memory: Memory) -> Self {
        set_receive_timeout(&socket, Some(HANG)).unwrap();
        let greeting = ClientGreeting::new(Features::ALL, "calls").encode().unwrap();
        send(&socket, &greeting, &[]).unwrap();
        let mut inbox = Inbox::default();
        receive(&socket, &mut inbox).unwrap();
        ServerGreeting::decode(inbox.message()).unwrap();
        let (ended_bursts, told) = (BTreeSet::new(), Vec::new());
        Talk { socket, inbox, next: 1, memory, gives_memories: true, ended_bursts, told }
    }

    /// Sends bytes that are no message, or whatever they are.
    pub(super) fn send_raw(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        // The service may have hung up by now.
        let _ = send(&self.socket, bytes, descriptors);
    }

    /// Makes a call and waits for its reply, of which there is one.
    pub(super) fn call(&mut self, call: Call, descriptors: &[BorrowedFd<'_>]) -> Reply {
        let id = self.next;
        self.next += 1;
        let message = encode(&ClientMessage::Call { id, call }).unwrap();
        self.send_raw(&message, descriptors);
        loop {
            match self.receive()? {
                ServerMessage::Reply(reply) => {
                    assert_eq!(reply.id, id, "a reply to a call that nobody waits for");
                    return Some((reply.outcome, self.inbox.take_descriptors()));
                }
                other => self.take(other),
            }
        }
    }

    /// The next message; `None` where the service has hung up.
    fn receive(&mut self) -> Option<ServerMessage> {
        match receive(&self.socket, &mut self.inbox) {
            Ok(()) => Some(decode(self.inbox.message()).expect("a message of the protocol")),
            Err(WireError::Closed | WireError::Socket(rustix::io::Errno::CONNRESET)) => None,
            Err(error) => panic!("the service says nothing any more: {error}"),
        }
    }

    /// Takes the messages that are there and are no replies.
    pub(super) fn listen(&mut self) {
        loop {
            let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
            if poll(&mut socket, Some(&Timespec::default())) != Ok(1) {
                return;
            }
            match self.receive() {
                Some(message) => self.take(message),
                None => return,
            }
        }
    }

    fn take(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::GetMemories { id, slots, .. } => self.give(id, slots.0.len()),
            ServerMessage::BurstEnded { burst, .. } => {
                assert!(self.ended_bursts.insert(burst), "burst {burst} ends twice");
            }
            ServerMessage::Executed { execution, .. } => self.told.push(execution),
            ServerMessage::Stopping => panic!("nobody told the service to stop"),
            ServerMessage::Reply(reply) => panic!("nobody waits for {reply:?}"),
            ServerMessage::Unknown { kind } => panic!("a message of kind {kind}"),
        }
    }

    fn give(&self, id: u64, slots: usize) {
        let length = self.memory.len();
        let (status, lengths) = match self.gives_memories {
            true => (0, vec![length; slots]),
            false => (2, Vec::new()),
        };
        let descriptors = vec![self.memory.as_fd(); lengths.len()];
        let answer = ClientMessage::Memories { id, status, lengths: List(lengths) };
        self.send_raw(&encode(&answer).unwrap(), &descriptors);
    }
}
