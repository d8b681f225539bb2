//! Everything a client can ask of a service, once, in order; and a relay between the two that knows
//! each message by name and can kill one end at any of them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use burst_client::{BurstOptions, Client, ClientError, ShmMemory};
use burst_hal::{ExecutionOptions, Pool, PrepareOptions};
use burst_wire::control::{ClientMessage, ServerMessage, decode};
use burst_wire::socket::{self, Inbox};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::{long, model, request_between};

/// Each kind of call, over the socket and over a burst. Ends with a call, so that a service that
/// died at any step before is noticed.
///
/// # Errors
/// That the service is gone.
pub fn tour(socket: OwnedFd) -> Result<(), ClientError> {
    let client = Client::from_socket(socket)?;
    let device = client.device("fake")?;
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
    burst.free_memory(&input)?;
    drop((burst, prepared, input, output, request));
    client.device_names().map(drop)
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

/// Two threads that carry messages between two sockets.
pub struct Relay {
    threads: Vec<JoinHandle<()>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Relay {
    /// Between the socket that leads to the client and the one that leads to the service.
    #[must_use]
    pub fn start(client: OwnedFd, service: OwnedFd, kill: Option<Kill>) -> Relay {
        Relay::start_into(Arc::default(), client, service, kill)
    }

    /// The same, with what is said added to a list.
    #[must_use]
    pub fn start_into(
        steps: Arc<Mutex<Vec<Step>>>,
        client: OwnedFd,
        service: OwnedFd,
        kill: Option<Kill>,
    ) -> Relay {
        let (client, service) = (Arc::new(client), Arc::new(service));
        let ways = [
            (From::Client, Arc::clone(&client), Arc::clone(&service)),
            (From::Service, service, client),
        ];
        let threads = ways.into_iter().map(|(from, source, target)| {
            let (steps, kill) = (Arc::clone(&steps), kill.clone());
            std::thread::spawn(move || {
                carry(from, &source, &target, &steps, kill.as_ref());
                let _ = rustix::net::shutdown(&*target, rustix::net::Shutdown::Both);
            })
        });
        Relay { threads: threads.collect(), steps }
    }

    /// Waits for both ends to hang up; gives what was said, in order.
    #[must_use]
    pub fn join(self) -> Vec<Step> {
        for thread in self.threads {
            thread.join().expect("a relay does not panic");
        }
        std::mem::take(&mut self.steps.lock().unwrap())
    }
}

/// Carries messages until either end hangs up.
fn carry(
    from: From,
    source: &OwnedFd,
    target: &OwnedFd,
    steps: &Mutex<Vec<Step>>,
    kill: Option<&Kill>,
) {
    let mut inbox = Inbox::default();
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
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if socket::send(target, inbox.message(), &borrowed).is_err() {
            return;
        }
    }
}

/// Kills a child of this process and waits until it is dead; whoever owns it still has to reap it.
fn end(pid: Pid) {
    kill_process(pid, Signal::KILL).expect("a child of ours");
    let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), dead).expect("a child of ours");
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
