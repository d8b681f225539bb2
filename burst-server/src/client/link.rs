//! What a burst needs of its client, and nothing else.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::trace::Tracer;
use burst_hal::{Caller, CancelWord, ErrorStatus};
use burst_wire::WireError;
use burst_wire::control::{List, ServerMessage, Text};

use super::questions::{Memories, Questions};
use super::socket::ClientSocket;
use crate::ServerError;
use crate::admission::{Charge, ClientBudgets};
use crate::pools::ClientMemory;
use crate::scheduler::Scheduler;
use crate::trace::ClientTrace;

/// How long a client may take to name the memories of slots that it used without pushing them.
const MEMORIES_PATIENCE: Duration = Duration::from_secs(1);

/// A client, as its bursts know it.
#[derive(Debug)]
pub(crate) struct ClientLink {
    socket: Arc<ClientSocket>,
    questions: Questions,
    budgets: Arc<ClientBudgets>,
    cancel: CancelWord,
    /// The user whose process it is.
    uid: u32,
    scheduler: Arc<Scheduler>,
    trace: Arc<ClientTrace>,
}

/// For the server of a burst.
impl ClientLink {
    /// Asks the client for the memories of slots that it has not pushed (callback `getMemories`);
    /// waits for a second at most, for room in the client's socket too, and not once the burst `has_ended`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when no answer comes in time, GENERAL_FAILURE when none can come.
    pub(crate) fn ask_for_memories(
        &self,
        burst: u32,
        slots: &[i32],
        has_ended: impl Fn() -> bool,
    ) -> Result<Memories, ErrorStatus> {
        let send_now = |id| {
            let slots = List(slots.to_vec());
            self.socket.send_now(&ServerMessage::GetMemories { id, burst, slots })
        };
        let wait_for_room = |patience| self.socket.wait_for_room(patience);
        self.questions.ask(burst, MEMORIES_PATIENCE, (send_now, wait_for_room), has_ended)
    }

    /// Opens a memory that the client sent, and charges it to the client.
    pub(crate) fn open_memory(
        &self,
        descriptor: OwnedFd,
        length: u64,
    ) -> Result<ClientMemory, ServerError> {
        ClientMemory::open(descriptor, length, &self.budgets)
    }

    /// The client as a device works for it: what is held for it is charged to its user, and called off
    /// once it is gone; what is kept for it is its user's, and spans go where it wants them.
    pub(crate) fn caller(&self) -> Caller {
        self.caller_by(&self.cancel)
    }

    /// The same for work that can be cancelled by itself, by this word.
    pub(crate) fn caller_by(&self, cancel: &CancelWord) -> Caller {
        let account = self.budgets.device_account();
        Caller::new(cancel).with_account(account).with_user(self.uid).with_tracer(self.tracer())
    }

    /// Where the spans of what is done for the client go.
    pub(crate) fn tracer(&self) -> Tracer {
        Arc::clone(&self.trace) as Tracer
    }

    /// Tells the client something where there is room for it just now; false where there is none.
    pub(crate) fn tell_now(&self, message: &ServerMessage) -> Result<bool, WireError> {
        self.socket.send_now(message)
    }

    /// Tells the client something. One that does not read it for too long is disconnected.
    pub(crate) fn tell(&self, message: &ServerMessage) {
        if let Err(error) = self.socket.send(message, &[]) {
            tracing::debug!(%error, "client already disconnected");
            self.socket.hang_up();
        }
    }

    /// Tells the client that one of its bursts ended before it closed it, and why. One that does not read it for
    /// too long is disconnected: it would wait for that burst for ever.
    pub(crate) fn tell_burst_ended(&self, burst: u32, reason: &str) {
        self.tell(&ServerMessage::BurstEnded { burst, detail: Text::cut(reason) });
    }

    /// Disconnects the client.
    pub(crate) fn hang_up(&self) {
        self.socket.hang_up();
    }

    /// A place for an execution of the client's that is not waited for.
    pub(crate) fn pending_execution(&self) -> Result<Charge, ServerError> {
        Ok(self.budgets.pending_execution()?)
    }

    /// The same place for the message about its end, and these bytes for as long as it waits to be told.
    pub(crate) fn pending_message(&self, bytes: u64) -> Result<Charge, ServerError> {
        Ok(self.budgets.pending_execution()?.and(self.budgets.memory(bytes)?))
    }

    /// Set when the client is gone: what runs for it is given up.
    pub(crate) fn cancel_word(&self) -> &CancelWord {
        &self.cancel
    }
}

/// For the client's session.
impl ClientLink {
    pub(crate) fn new(
        socket: Arc<ClientSocket>,
        budgets: Arc<ClientBudgets>,
        uid: u32,
        scheduler: Arc<Scheduler>,
    ) -> Self {
        let (questions, cancel) = (Questions::default(), CancelWord::default());
        let trace = Arc::default();
        ClientLink { socket, questions, budgets, cancel, uid, scheduler, trace }
    }

    /// The spans of what is done for the client.
    pub(crate) fn trace(&self) -> &ClientTrace {
        &self.trace
    }

    /// The client is gone: what runs for it is given up, and nothing for it waits for its turn.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
        self.scheduler.wake_called_off();
    }

    /// The client answered a question.
    pub(crate) fn answer(&self, id: u64, memories: Memories) {
        self.questions.answer(id, memories);
    }

    /// Ends all waiting of this burst for answers.
    pub(crate) fn cancel_questions_of(&self, burst: u32) {
        self.questions.cancel(burst);
    }

    /// Ends all waiting of all bursts, now and later: the connection has ended.
    pub(crate) fn close(&self) {
        self.questions.close();
        self.trace.end();
    }
}

#[cfg(test)]
mod tests {
    use burst_wire::control;
    use burst_wire::socket::{self, Inbox};

    use super::*;
    use crate::admission::{Limits, Users};
    use crate::scheduler::Patience;

    fn link() -> (ClientLink, OwnedFd) {
        let (ours, theirs) = socket::pair().unwrap();
        let (limits, users) = (Limits::default(), Users::new(&Limits::default()));
        let budgets = ClientBudgets::new(&limits, &users.find(0), users.meters());
        let socket = Arc::new(ClientSocket::new(ours));
        let scheduler = Scheduler::new(None, Patience::default());
        (ClientLink::new(socket, Arc::new(budgets), 0, scheduler), theirs)
    }

    #[test]
    fn a_question_reaches_the_client_and_its_answer_the_burst_that_asked() {
        let (link, client) = link();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| link.ask_for_memories(3, &[5, 7], || false));
            let mut inbox = Inbox::default();
            socket::receive(&client, &mut inbox).unwrap();
            let message: ServerMessage = control::decode(inbox.message()).unwrap();
            let ServerMessage::GetMemories { id, burst: 3, slots } = message else {
                panic!("not the question: {message:?}");
            };
            assert_eq!(slots.0, [5, 7]);
            link.answer(id, Memories { status: 0, lengths: vec![1], descriptors: Vec::new() });
            assert_eq!(asking.join().unwrap().unwrap().lengths, [1]);
        });
    }

    /// Leaves no room in the client's socket.
    fn fill(link: &ClientLink) {
        while link.tell_now(&ServerMessage::Stopping).unwrap() {}
    }

    #[test]
    fn a_client_without_room_for_a_question_is_asked_for_a_second_and_its_slots_are_unknown() {
        let (link, client) = link();
        fill(&link);
        let asked = link.ask_for_memories(3, &[5], || false);
        assert_eq!(asked.unwrap_err(), ErrorStatus::InvalidArgument);
        // Nothing is wrong with the connection.
        let mut inbox = Inbox::default();
        socket::receive(&client, &mut inbox).unwrap();
        assert_eq!(control::decode(inbox.message()), Ok(ServerMessage::Stopping));
    }

    #[test]
    fn a_client_that_leaves_no_room_to_tell_it_of_a_burst_is_disconnected() {
        let (link, client) = link();
        fill(&link);
        socket::set_send_timeout(&*link.socket, Some(Duration::from_millis(1))).unwrap();
        link.tell_burst_ended(1, "a reason");
        let mut inbox = Inbox::default();
        let ended = loop {
            if let Err(error) = socket::receive(&client, &mut inbox) {
                break error;
            }
        };
        assert_eq!(ended, WireError::Closed);
    }

    #[test]
    fn a_client_that_is_gone_gets_neither_questions_nor_messages() {
        let (link, client) = link();
        link.close();
        let asked = link.ask_for_memories(1, &[0], || false);
        assert_eq!(asked.unwrap_err(), ErrorStatus::GeneralFailure);
        drop(client);
        link.tell_burst_ended(1, "a reason"); // neither a panic nor a signal
    }
}
