//! Everything a client can ask of a service, once, in order; and a relay between the two that knows
//! each message by name and can kill one end at any of them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use burst_client::{
    Burst, BurstOptions, Client, ClientError, RemoteBuffer, RemoteDevice, RemotePreparedModel,
    ShmMemory,
};
use burst_hal::{
    Buffer, Device, ExecutionOptions, Pool, PrepareOptions, PreparedModel, Request, RequestPool,
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
    let output = prepared.allocate_outputs(64)?;
    let input: Pool = Arc::new(ShmMemory::create(64)?);
    let request = request_between(&input, &output);
    prepared.execute(&request, &ExecutionOptions::default(), long())?;
    let mut burst = prepared.configure_burst(&BurstOptions::default())?;
    for _ in 0..2 {
        burst.execute(&request, &ExecutionOptions::default(), long())?;
    }
    let buffer = tour_of_a_buffer(&device, &prepared, &mut burst, &input)?;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

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
        let threads = ways.into_iter().map(|(from, source, target)| {
            let (steps, kill) = (Arc::clone(&steps), kill.clone());
            std::thread::spawn(move || {
                carry(from, (&source, &target), &steps, kill.as_ref(), withheld_push);
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
    steps: &Mutex<Vec<Step>>,
    kill: Option<&Kill>,
    withheld_push: Option<usize>,
) {
    let mut inbox = Inbox::default();
    let mut pushes = 0;
    for number in 1.. {
        if socket::receive(source, &mut inbox).is_err() {
            return;
        }
        let step = Step { from, number, name: name(from, number, inbox.message()) };
        let kill = kill.filter(|kill| kill.at == step);
        steps.lock().unwrap().push(step);
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
