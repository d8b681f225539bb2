//! Everything a client can ask of a service, once, in order; and a relay between the two that knows
//! each message by name and can kill one end at any of them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use burst_client::{
    Burst, BurstOptions, Client, ClientError, RemoteBuffer, RemoteDevice, RemotePreparedModel,
    ShmMemory, TraceBuffer,
};
use burst_hal::trace::{Span, SpanSink};
use burst_hal::{
    Buffer, CACHE_TOKEN_BYTES, Caller, CancelWord, CompilationCache, Device, ErrorStatus,
    ExecutionOptions, Fence, FenceState, FencedOptions, Pool, PrepareOptions, PreparedModel,
    Request, RequestPool, TimePoint,
};
use burst_wire::control::{Answer, Call, ClientMessage, Reply, ServerMessage, decode, encode};
use burst_wire::socket::{self, Inbox};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::{
    LONG, PANIC_INPUT, buffer_for, long, model, request_between, request_whole, wait_until,
};

/// Each kind of call, over the socket and over a burst; a burst that its service gives up. Ends with
/// a call, so that a service that died at any step before is noticed.
///
/// # Errors
/// That the service is gone.
pub fn tour(socket: OwnedFd) -> Result<(), ClientError> {
    let client = Client::from_socket(socket)?;
    let device = client.device("fake")?;
    let _ = device.status(); // "offline" where the service died; the next call says so
    device.query_operations(&model())?;
    let prepared = device.prepare(&model(), &PrepareOptions::default())?;
    let spans = TraceBuffer::create(TraceBuffer::BYTES_MIN)?;
    client.begin_trace(&spans, Arc::new(Unseen))?;
    let output = prepared.allocate_outputs(64)?;
    let input: Pool = Arc::new(ShmMemory::create(64)?);
    let request = request_between(&input, &output);
    prepared.execute(&request, &ExecutionOptions::default(), long())?;
    let mut burst = prepared.configure_burst(&BurstOptions::default())?;
    for _ in 0..2 {
        burst.execute(&request, &ExecutionOptions::default(), long())?;
    }
    let buffer = tour_of_a_buffer(&device, &prepared, &mut burst, &input)?;
    tour_of_launches(&client, &prepared, &request)?;
    tour_of_compilations(&device)?;
    client.end_trace()?;
    burst.free_memory(&input)?;
    drop((input, request, buffer));
    // Before it makes another memory, the client gives back the number of the one dropped.
    let output_of_last = prepared.allocate_outputs(64)?;
    let fatal: Pool = Arc::new(ShmMemory::create(64)?);
    fatal.write(0, PANIC_INPUT).expect("as long as that");
    run_until_given_up(&mut burst, &request_between(&fatal, &output_of_last))?;
    drop((burst, prepared, fatal, output, output_of_last));
    client.device_names().map(drop)
}

/// Takes the spans of the client's end.
#[derive(Debug)]
struct Unseen;

impl SpanSink for Unseen {
    fn is_on(&self) -> bool {
        true
    }

    fn record(&self, _: &Span<'_>) {}
}

/// A buffer that gets a value, plays both ends of executions on either path, and is copied.
fn tour_of_a_buffer(
    device: &RemoteDevice,
    prepared: &Arc<RemotePreparedModel>,
    burst: &mut Burst,
    memory: &Pool,
) -> Result<RemoteBuffer, ClientError> {
    let model: Arc<dyn PreparedModel> = Arc::clone(prepared) as _;
    let buffer = device.allocate_buffer(&buffer_for(&model))?;
    let value: Pool = Arc::new(ShmMemory::create(16)?);
    buffer.fill_from(&value, &[])?;
    let token = || RequestPool::Token(buffer.token());
    let behind_it = RequestPool::Memory(Pool::clone(&value));
    prepared.execute(&request_whole(token(), behind_it), &ExecutionOptions::default(), long())?;
    let mut request = request_whole(RequestPool::Memory(Pool::clone(memory)), token());
    request.inputs[0].location.length = 16;
    burst.execute(&request, &ExecutionOptions::default(), long())?;
    buffer.read_into(&value)?;
    Ok(buffer)
}

/// Executions that nobody waits for: one that calls back, one behind a fence, one that is cancelled before
/// its fence is done. Whoever waits for a fence is told of the end, and of the death of the service, too.
fn tour_of_launches(
    client: &Client,
    prepared: &Arc<RemotePreparedModel>,
    request: &Request,
) -> Result<(), ClientError> {
    let (tell, told) = channel();
    let options = ExecutionOptions::default();
    let callback = move |outcome| drop(tell.send(outcome));
    prepared.start_with(request.clone(), &options, &Caller::default(), callback)?;
    told.recv_timeout(LONG).expect("the callback is called whatever becomes of the service")?;
    for is_cancelled in [false, true] {
        let (gate, mut opener) = std::io::pipe().expect("a pipe");
        let word = CancelWord::default();
        let gate = Fence::from(OwnedFd::from(gate));
        let (options, caller) = (FencedOptions::default(), Caller::new(&word));
        let launched = prepared.start_fenced(request.clone(), &[gate], &options, &caller)?;
        let fence = launched.fence.as_ref().expect("it cannot have begun");
        if is_cancelled {
            word.cancel();
        } else {
            let _ = opener.write_all(&[1]); // where the service is dead nobody reads
        }
        let state = fence.wait(Some(TimePoint::after(LONG)));
        assert_ne!(state, FenceState::Pending, "whoever waits for the fence is told nothing");
        let want = if is_cancelled { ErrorStatus::GeneralFailure } else { ErrorStatus::None };
        match launched.info.execution_info() {
            Ok(info) => {
                assert_eq!((info.status, state == FenceState::Done), (want, !is_cancelled));
            }
            Err(_) => return Err(client.device_names().expect_err("a service that is gone")),
        }
    }
    Ok(())
}

/// A compilation that is kept in files, and one that comes from them.
fn tour_of_compilations(device: &RemoteDevice) -> Result<(), ClientError> {
    let file = || vec![tempfile::tempfile().expect("a file")];
    let cache = CompilationCache { token: [1; CACHE_TOKEN_BYTES], model: file(), data: file() };
    drop(device.prepare_caching(&model(), &PrepareOptions::default(), &cache)?);
    drop(device.prepare_from_cache(&cache, None)?);
    Ok(())
}

/// Runs a request at which the driver panics, until the client knows from the service's message
/// that the burst is no more.
fn run_until_given_up(burst: &mut Burst, request: &Request) -> Result<(), ClientError> {
    let until = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < until, "the service never said that it gave up the burst");
        match burst.execute(request, &ExecutionOptions::default(), long()) {
            Err(ClientError::BurstEnded { detail }) if detail.contains("panicked") => return Ok(()),
            // Its queue was closed; the message with the reason comes right behind.
            Ok(_) | Err(ClientError::BurstEnded { .. }) => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    Client,
    Service,
}

/// A message of a conversation: who sent it, its number among theirs, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub from: From,
    pub number: usize,
    pub name: String,
    /// `None` for a greeting, and for a refusal.
    pub kind: Option<Kind>,
}

/// What kind of message it is, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Call(u32),
    Answer(u32),
    /// Neither a call nor a reply.
    Other(From, u32),
}

impl Kind {
    /// What these bytes are, where they are no greeting: each kind is a number and a length, and a call and a reply
    /// have their own number of eight bytes before what they carry (`docs/PROTOCOL.md`).
    fn of(from: From, message: &[u8]) -> Option<Kind> {
        let word = |at: usize| message[at..].first_chunk().map(|word| u32::from_le_bytes(*word));
        let (number, inner) = (word(0)?, 16);
        match (number, from) {
            (0, From::Client) => word(inner).map(Kind::Call),
            (0, From::Service) if word(inner)? == 0 => word(inner + 8).map(Kind::Answer),
            (0, From::Service) => None,
            _ => Some(Kind::Other(from, number)),
        }
    }

    /// Every kind that this build knows: those that a decoder does not take for one of a later version.
    #[must_use]
    pub fn all() -> BTreeSet<Kind> {
        let kinds = (0..KINDS_MAX).flat_map(|number| {
            let others = [From::Client, From::Service].map(|from| Kind::Other(from, number));
            others.into_iter().chain([Kind::Call(number), Kind::Answer(number)])
        });
        // What calls and replies are of, and no kind by itself; and what a service says that is told to stop,
        // which none is on a tour.
        let is_left_out =
            |kind: &Kind| matches!(kind, Kind::Other(_, 0) | Kind::Other(From::Service, STOPPING));
        kinds.filter(|kind| !is_left_out(kind) && kind.is_known()).collect()
    }

    fn is_known(self) -> bool {
        let id = 7_u64.to_le_bytes();
        let record = |fields: &[u8]| {
            let length = u32::try_from(fields.len()).expect("short");
            [&length.to_le_bytes()[..], fields].concat()
        };
        let kind =
            |number: u32, fields: &[u8]| [&number.to_le_bytes()[..], &record(fields)].concat();
        let unknown = match self {
            Kind::Call(number) => {
                let call = decode(&kind(0, &[&id[..], &kind(number, &[])].concat()));
                matches!(call, Ok(ClientMessage::Call { call: Call::Unknown { .. }, .. }))
            }
            Kind::Answer(number) => {
                let answer = [&0_u32.to_le_bytes()[..], &record(&kind(number, &[]))].concat();
                let reply = decode(&kind(0, &[&id[..], &answer].concat()));
                let is_unknown =
                    |reply: &Reply| matches!(reply.outcome, Ok(Answer::Unknown { .. }));
                matches!(reply, Ok(ServerMessage::Reply(reply)) if is_unknown(&reply))
            }
            Kind::Other(From::Client, number) => {
                matches!(decode(&kind(number, &[])), Ok(ClientMessage::Unknown { .. }))
            }
            Kind::Other(From::Service, number) => {
                matches!(decode(&kind(number, &[])), Ok(ServerMessage::Unknown { .. }))
            }
        };
        !unknown
    }
}

/// The message of a service that is told to stop.
const STOPPING: u32 = 4;
/// More than there are kinds of anything.
const KINDS_MAX: u32 = 200;

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = match self.from {
            From::Client => "client",
            From::Service => "service",
        };
        write!(f, "{from} {}: {}", self.number, self.name)
    }
}

/// Kills a process when this step has been sent and before the other end sees it.
#[derive(Debug, Clone)]
pub struct Kill {
    pub at: Step,
    pub victim: From,
    pub pid: Pid,
}

/// The `PushMemory`, counted from 1, that a relay which withholds keeps to itself.
const WITHHELD_PUSH: usize = 2;

/// A cancellation, or something let go of, whose acknowledgement its client does not wait for. The service may answer the
/// client's next call first, by another of its threads, and this one when its client has hung up; so that conversations are
/// the same each time, the relay holds the next call back until the acknowledgement has come.
#[derive(Default)]
struct Unacknowledged {
    state: Mutex<Acknowledgement>,
    changed: Condvar,
}

#[derive(Default)]
struct Acknowledgement {
    awaited: Option<u64>,
    /// Either end has hung up: none will come.
    never: bool,
}

impl Unacknowledged {
    /// Waits for the one before; afterwards this message of the client's may be carried on.
    fn client_says(&self, number: usize, message: &[u8]) {
        let state = self.state.lock().unwrap();
        let waits = |state: &mut Acknowledgement| state.awaited.is_some() && !state.never;
        let (mut state, waited) = self.changed.wait_timeout_while(state, LONG, waits).unwrap();
        assert!(!waited.timed_out(), "a cancellation or release was not acknowledged");
        if number > 1
            && let Ok(ClientMessage::Call { id, call }) = decode::<ClientMessage>(message)
            && is_told(&call)
        {
            state.awaited = Some(id);
        }
    }

    fn service_says(&self, number: usize, message: &[u8]) {
        let mut state = self.state.lock().unwrap();
        if number > 1
            && let Ok(ServerMessage::Reply(Reply { id, .. })) = decode::<ServerMessage>(message)
            && state.awaited == Some(id)
        {
            state.awaited = None;
            self.changed.notify_all();
        }
    }

    fn hung_up(&self) {
        self.state.lock().unwrap().never = true;
        self.changed.notify_all();
    }
}

/// Whether it is a call whose answer its client may not wait for.
fn is_told(call: &Call) -> bool {
    matches!(
        call,
        Call::CancelExecution { .. }
            | Call::CloseBurst { .. }
            | Call::ForgetMemory { .. }
            | Call::FreeMemory { .. }
            | Call::ReleaseBuffer { .. }
            | Call::ReleaseExecution { .. }
            | Call::ReleaseModel { .. }
    )
}

/// Two threads that carry messages between two sockets.
pub struct Relay {
    threads: Vec<JoinHandle<()>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Relay {
    /// Between the socket that leads to the client and the one that leads to the service. One
    /// `PushMemory` does not get through: the relay answers it, and the service, which then lacks a
    /// memory that a request names, has to ask the client with `GetMemories`.
    #[must_use]
    pub fn start_withholding(client: OwnedFd, service: OwnedFd, kill: Option<Kill>) -> Relay {
        Relay::carry_all(Arc::default(), (client, service), kill, Some(WITHHELD_PUSH))
    }

    /// Between the same sockets, with every message let through and added to a list.
    #[must_use]
    pub fn start_into(
        steps: Arc<Mutex<Vec<Step>>>,
        client: OwnedFd,
        service: OwnedFd,
        kill: Option<Kill>,
    ) -> Relay {
        Relay::carry_all(steps, (client, service), kill, None)
    }

    fn carry_all(
        steps: Arc<Mutex<Vec<Step>>>,
        (client, service): (OwnedFd, OwnedFd),
        kill: Option<Kill>,
        withheld_push: Option<usize>,
    ) -> Relay {
        let (client, service) = (Arc::new(client), Arc::new(service));
        let ways = [
            (From::Client, Arc::clone(&client), Arc::clone(&service)),
            (From::Service, service, client),
        ];
        let unacknowledged = Arc::new(Unacknowledged::default());
        let threads = ways.into_iter().map(|(from, source, target)| {
            let (steps, kill) = (Arc::clone(&steps), kill.clone());
            let order = Arc::clone(&unacknowledged);
            std::thread::spawn(move || {
                carry(from, (&source, &target), (&steps, &order), kill.as_ref(), withheld_push);
                order.hung_up();
                let _ = rustix::net::shutdown(&*target, rustix::net::Shutdown::Both);
            })
        });
        Relay { threads: threads.collect(), steps }
    }

    /// Waits for both ends to hang up; gives what was said, in order.
    #[must_use]
    #[track_caller]
    pub fn join(self) -> Vec<Step> {
        for thread in self.threads {
            wait_until("the end of both connections", || thread.is_finished());
            thread.join().expect("a relay does not panic");
        }
        std::mem::take(&mut self.steps.lock().unwrap())
    }
}

/// Carries messages until either end hangs up.
fn carry(
    from: From,
    (source, target): (&OwnedFd, &OwnedFd),
    (steps, order): (&Mutex<Vec<Step>>, &Unacknowledged),
    kill: Option<&Kill>,
    withheld_push: Option<usize>,
) {
    let mut inbox = Inbox::default();
    let mut pushes = 0;
    for number in 1.. {
        if socket::receive(source, &mut inbox).is_err() {
            return;
        }
        if from == From::Client {
            order.client_says(number, inbox.message());
        }
        let (name, kind) =
            (name(from, number, inbox.message()), kind(from, number, inbox.message()));
        let step = Step { from, number, name, kind };
        let kill = kill.filter(|kill| kill.at == step);
        steps.lock().unwrap().push(step);
        if from == From::Service {
            order.service_says(number, inbox.message());
        }
        if let Some(kill) = kill {
            end(kill.pid);
            if kill.victim != from {
                return; // its receiver is dead
            }
        }
        let descriptors = inbox.take_descriptors();
        if from == From::Client
            && let Some(id) = push_memory(number, inbox.message())
        {
            pushes += 1;
            if Some(pushes) == withheld_push {
                let done = ServerMessage::Reply(Reply { id, outcome: Ok(Answer::Done) });
                // A client that was killed here does not hear it.
                let _ = socket::send(source, &encode(&done).expect("short"), &[]);
                continue;
            }
        }
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if socket::send(target, inbox.message(), &borrowed).is_err() {
            return;
        }
    }
}

/// Kills a child of this process and waits until it is dead; its owner still has to reap it.
fn end(pid: Pid) {
    kill_process(pid, Signal::KILL).expect("a child of ours");
    let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), dead).expect("a child of ours");
}

/// The call's number, where a client's message is a `PushMemory`.
fn push_memory(number: usize, message: &[u8]) -> Option<u64> {
    match decode::<ClientMessage>(message) {
        Ok(ClientMessage::Call { id, call: Call::PushMemory { .. } }) if number > 1 => Some(id),
        _ => None,
    }
}

fn kind(from: From, number: usize, message: &[u8]) -> Option<Kind> {
    // The first one is the greeting.
    Kind::of(from, message).filter(|_| number > 1)
}

/// The name of a message: of the call, or of the answer.
fn name(from: From, number: usize, message: &[u8]) -> String {
    if number == 1 {
        return "greeting".to_owned();
    }
    let text = match from {
        From::Client => decode::<ClientMessage>(message).map(|message| format!("{message:?}")),
        From::Service => decode::<ServerMessage>(message).map(|message| format!("{message:?}")),
    };
    let text = text.expect("an honest end");
    let mut names = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.starts_with(char::is_uppercase))
        .filter(|word| !matches!(*word, "Call" | "Reply" | "Ok"));
    names.next().expect("every message has a name").to_owned()
}
