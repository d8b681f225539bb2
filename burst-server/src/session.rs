//! One client: its socket, the threads that read it, and everything it has here.

pub(crate) mod dispatch;
pub(crate) mod models;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_hal::{CancelWord, Pool};
use burst_wire::control::{
    self, Call, ClientGreeting, ClientMessage, PoolSource, Reply, ServerGreeting, ServerMessage,
    Text, Welcome,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};

use crate::admission::limits::{Budgets, Charge, Limit};
use crate::admission::users::User;
use crate::burst::start::BurstHandle;
use crate::client::questions::{Callbacks, Memories};
use crate::session::dispatch::{self as calls, Done};
use crate::session::models::PreparedEntry;
use crate::{ServerError, Service};

/// How long a new connection may take to say who it is.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may leave its socket unread while the service has something to say; one
/// that does so longer is cut off.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything one client has. The threads that read its socket share it, and so do its bursts.
pub(crate) struct Session {
    pub(crate) service: Arc<Service>,
    pub(crate) budgets: Budgets,
    pub(crate) callbacks: Callbacks,
    /// Set when the client is gone: what runs for it is given up.
    pub(crate) cancel: CancelWord,
    socket: OwnedFd,
    number: u64,
    features: OnceLock<Features>,
    /// Whose connection it is, and its place among that user's.
    user: OnceLock<(Arc<User>, Charge)>,
    state: Mutex<State>,
    /// Threads that wait for a message just now.
    idle: AtomicUsize,
    helpers: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) closed: bool,
    pub(crate) models: HashMap<u32, Arc<PreparedEntry>>,
    pub(crate) memories: HashMap<u32, Pool>,
    pub(crate) bursts: HashMap<u32, BurstHandle>,
    next: u32,
}

impl State {
    /// A number for a model or burst that none has had before.
    pub(crate) fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        while self.models.contains_key(&self.next) || self.bursts.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }
}

/// Serves one client until it hangs up, then frees what it had.
///
/// # Errors
/// The client is refused, or breaks the protocol.
pub(crate) fn run(session: &Arc<Session>, place: Option<Charge>) -> Result<(), ServerError> {
    let result = session.greet(place.is_some()).and_then(|()| session.read_messages());
    session.end_reading(&result);
    session.free();
    match result {
        Err(ServerError::Wire(WireError::Closed)) => Ok(()),
        other => other,
    }
}

impl Session {
    pub(crate) fn new(service: &Arc<Service>, socket: OwnedFd, number: u64) -> Self {
        Session {
            service: Arc::clone(service),
            budgets: Budgets::new(&service.options.limits, &service.metrics.limits),
            callbacks: Callbacks::default(),
            cancel: CancelWord::default(),
            socket,
            number,
            features: OnceLock::new(),
            user: OnceLock::new(),
            state: Mutex::default(),
            idle: AtomicUsize::new(0),
            helpers: Mutex::default(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Additions that both ends know.
    pub(crate) fn features(&self) -> Features {
        self.features.get().copied().unwrap_or_default()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message, from any thread.
    pub(crate) fn send(
        &self,
        message: &ServerMessage,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), WireError> {
        socket::send(&self.socket, &control::encode(message)?, descriptors)
    }

    /// Ends the connection: every thread that reads it, and every burst, comes to its end.
    pub(crate) fn close(&self) {
        let bursts: Vec<_> = {
            let mut state = self.lock();
            state.closed = true;
            state.bursts.values().map(BurstHandle::closers).collect()
        };
        // An error means that it is not connected any more, which is what is wanted.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.callbacks.close();
        for closers in bursts {
            closers.close();
        }
    }

    /// Waits for every thread of the client, then lets go of what it had.
    fn free(&self) {
        let helpers =
            std::mem::take(&mut *self.helpers.lock().unwrap_or_else(PoisonError::into_inner));
        for helper in helpers {
            if helper.join().is_err() {
                tracing::error!(client = self.number, "a thread of the client panicked");
            }
        }
        let State { models, memories, bursts, .. } = std::mem::take(&mut *self.lock());
        self.lock().closed = true;
        for burst in bursts.into_values() {
            burst.end();
        }
        drop((models, memories));
        tracing::debug!(client = self.number, "client gone, everything freed");
    }

    /// Who is it, and do we understand each other?
    fn greet(&self, has_place: bool) -> Result<(), ServerError> {
        socket::set_receive_timeout(&self.socket, Some(GREETING_TIMEOUT))?;
        socket::set_send_timeout(&self.socket, Some(SEND_TIMEOUT))?;
        let mut inbox = Inbox::default();
        socket::receive(&self.socket, &mut inbox)?;
        let greeting = ClientGreeting::decode(inbox.message());
        let credentials = rustix::net::sockopt::socket_peercred(&self.socket)
            .map_err(|errno| ServerError::System { call: "getsockopt", errno })?;
        let (uid, gid) = (credentials.uid.as_raw(), credentials.gid.as_raw());
        let welcome = if !self.service.options.access.permits(uid, gid) {
            Welcome::NotPermitted
        } else if !has_place || self.take_place(uid).is_err() {
            Welcome::TooManyClients
        } else {
            Welcome::Accepted
        };
        // Also to a client of another version: it learns ours from this.
        if !matches!(greeting, Err(WireError::NotThisProtocol)) {
            self.answer_greeting(welcome)?;
        }
        let greeting = greeting?;
        if welcome != Welcome::Accepted {
            tracing::warn!(uid, gid, ?welcome, "client refused");
            return Err(WireError::Closed.into());
        }
        let features = greeting.common(self.service.options.features);
        self.features.get_or_init(|| features);
        socket::set_receive_timeout(&self.socket, None)?;
        self.service.metrics.client_accepted();
        let pid = credentials.pid.as_raw_nonzero().get();
        let name = greeting.name.as_str();
        tracing::debug!(client = self.number, pid, uid, name, ?features, "client connected");
        Ok(())
    }

    /// A place among the connections of its user, and the right to take it now.
    fn take_place(&self, uid: u32) -> Result<(), ServerError> {
        let user = self.service.users.find(uid);
        user.set_up()?;
        let place = user.admit()?;
        self.user.get_or_init(|| (user, place));
        Ok(())
    }

    fn answer_greeting(&self, welcome: Welcome) -> Result<(), WireError> {
        let greeting = ServerGreeting {
            welcome,
            features: self.service.options.features.bits(),
            pid: std::process::id(),
            name: Text::cut(&self.service.options.name),
        };
        socket::send(&self.socket, &greeting.encode()?, &[])
    }

    /// Reads messages until the end, together with whatever helpers were started.
    ///
    /// All of them wait in `recvmsg` on the same socket, of which the kernel wakes one per
    /// message; so a call that takes long keeps only its own thread.
    fn read_messages(self: &Arc<Self>) -> Result<(), ServerError> {
        let mut inbox = Inbox::default();
        loop {
            self.idle.fetch_add(1, Ordering::SeqCst);
            let received = socket::receive(&self.socket, &mut inbox);
            self.idle.fetch_sub(1, Ordering::SeqCst);
            match received {
                Err(WireError::DescriptorsLost) => self.refuse_without_descriptors(&inbox)?,
                other => {
                    other?;
                    self.handle(&mut inbox)?;
                }
            }
        }
    }

    fn handle(self: &Arc<Self>, inbox: &mut Inbox) -> Result<(), ServerError> {
        match control::decode(inbox.message())? {
            ClientMessage::Call { id, call } => self.call(id, call, inbox.take_descriptors()),
            ClientMessage::Memories { id, status, lengths } => {
                let descriptors = inbox.take_descriptors();
                let memories = Memories { status, lengths: lengths.0, descriptors };
                self.callbacks.answer(id, memories);
                Ok(())
            }
        }
    }

    /// A message whose descriptors found no place in this process: the message itself is whole.
    fn refuse_without_descriptors(&self, inbox: &Inbox) -> Result<(), ServerError> {
        match control::decode(inbox.message())? {
            ClientMessage::Call { id, .. } => self.reply(id, Err(ServerError::NoDescriptor)),
            ClientMessage::Memories { id, .. } => {
                let status = burst_hal::ErrorStatus::ResourceExhaustedTransient.code();
                let none = Memories { status, lengths: Vec::new(), descriptors: Vec::new() };
                self.callbacks.answer(id, none);
                Ok(())
            }
        }
    }

    fn call(
        self: &Arc<Self>,
        id: u64,
        call: Call,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), ServerError> {
        let done = self.admit(&call).and_then(|_place| {
            let (wanted, got) = (call.descriptors(), descriptors.len());
            if wanted != got {
                return Err(ServerError::Descriptors { wanted, got });
            }
            calls::perform(self, call, descriptors)
        });
        self.reply(id, done)
    }

    /// Sees to it that somebody else reads the socket while a slow call runs.
    fn admit(self: &Arc<Self>, call: &Call) -> Result<Option<Charge>, ServerError> {
        if is_set_up(call)
            && let Some((user, _)) = self.user.get()
        {
            user.set_up()?;
        }
        if !call.is_slow() {
            return Ok(None);
        }
        let place = self.budgets.slow_calls.charge(1)?;
        if self.idle.load(Ordering::SeqCst) == 0 {
            self.start_helper();
        }
        Ok(Some(place))
    }

    /// One more reader. There are never more than one per slow call and one, since one is only
    /// started when all others are in slow calls.
    fn start_helper(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name(format!("client-{}", self.number))
            .spawn(move || session.help());
        match started {
            Ok(helper) => {
                self.helpers.lock().unwrap_or_else(PoisonError::into_inner).push(helper);
            }
            // The call runs all the same; others wait until it is done.
            Err(error) => tracing::warn!(%error, client = self.number, "no thread to help"),
        }
    }

    fn help(self: Arc<Self>) {
        let result = self.read_messages();
        if let Err(error) = &result {
            tracing::debug!(client = self.number, %error, "reading ended");
        }
        self.end_reading(&result);
    }

    /// Whatever ended one reader, the first or a helper, ends the whole connection. The one that
    /// got a message it could not read counts it; the others find the connection closed.
    fn end_reading(&self, result: &Result<(), ServerError>) {
        if let Err(ServerError::Wire(wire)) = result
            && !matches!(wire, WireError::Closed | WireError::Socket(_))
        {
            self.service.metrics.malformed_message();
        }
        // A service that is told to stop has closed it before, and answers what is executed.
        if !self.lock().closed {
            self.cancel.cancel();
        }
        self.close();
    }

    fn reply(&self, id: u64, done: Result<Done, ServerError>) -> Result<(), ServerError> {
        let (outcome, descriptor) = match done {
            Ok(Done { answer, descriptor }) => (Ok(answer), descriptor),
            Err(error) => {
                if error.is_descriptor_shortage() {
                    self.service.metrics.limits.refused(Limit::Descriptors);
                }
                (Err(calls::refusal(&error, self.features())), None)
            }
        };
        let fds: Vec<BorrowedFd<'_>> = descriptor.iter().map(AsFd::as_fd).collect();
        match self.send(&ServerMessage::Reply(Reply { id, outcome }), &fds) {
            // An answer of the device that no message can hold.
            Err(error @ (WireError::Malformed { .. } | WireError::MessageTooLong { .. })) => {
                let refusal = calls::refusal(&error.into(), self.features());
                Ok(self.send(&ServerMessage::Reply(Reply { id, outcome: Err(refusal) }), &[])?)
            }
            other => Ok(other?),
        }
    }
}

/// Whether a call makes something that costs the service more than the call itself.
fn is_set_up(call: &Call) -> bool {
    match call {
        Call::SupportedOperations { .. }
        | Call::Prepare { .. }
        | Call::ShareMemory { .. }
        | Call::AllocateMemory { .. }
        | Call::ConfigureBurst { .. } => true,
        Call::PushMemory { source, .. } => matches!(source, PoolSource::Descriptor { .. }),
        _ => false,
    }
}
