//! Calls of one client or two, in any order, over real sockets, to a service with the CPU device.
//!
//! Looked at: every call has one reply; what is named and is there is found, what is not, or is the other client's, is
//! INVALID_ARGUMENT, and numbers are not given twice; a legal request on what is there succeeds, over the socket and
//! over a burst; the end of each started execution is told once; a compilation is taken from its files as they
//! were kept, and from no others; when a client hangs up, whatever it left behind ends and the other one goes on; behind
//! both everything is given back, and no descriptor is kept.

mod client;
mod talk;

use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use burst_hal::Device;
use burst_server::{Service, ServiceOptions};
use burst_wire::socket::pair;

use self::client::{Client, Places};
use self::talk::HANG;
use crate::judged::device;
use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Most calls of one input.
const CALLS_MAX: usize = 64;

/// The service of all inputs.
fn service() -> &'static Arc<Service> {
    static SERVICE: OnceLock<Arc<Service>> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let mut options = ServiceOptions::default();
        // Nothing here is too fast.
        options.limits.setup_rate = 0;
        Service::new(vec![Arc::clone(device()) as Arc<dyn Device>], options)
    })
}

/// A script of calls.
pub fn run(data: &[u8]) -> bool {
    // Threads that a service has for all its clients come with the first one.
    static WARM: OnceLock<()> = OnceLock::new();
    WARM.get_or_init(|| {
        converse(&mut Input::new(&[12, 0, 1, 12, 0, 1]));
    });
    let leaks = Leaks::watch();
    let succeeded = converse(&mut Input::new(data));
    leaks.check_soon();
    succeeded > 0
}

/// Calls that are none of a client's: behind one the other client goes on, behind the other this one hangs up.
const TURN: u8 = 35;
const HANG_UP: u8 = 36;
/// Calls that a byte chooses among.
const CALLS: u8 = 40;

/// A client with its connection.
struct Session {
    client: Client,
    ended: Receiver<()>,
    server: JoinHandle<()>,
}

impl Session {
    fn begin(places: &Places) -> Self {
        let (ours, theirs) = pair().unwrap();
        let (tell, ended) = channel();
        let server = std::thread::spawn(move || {
            // What a client says that is no message is its own fault, and ends its connection.
            drop(service().serve_socket(theirs));
            // Where nobody waits any more the run has failed already.
            let _ = tell.send(());
        });
        Session { client: Client::greet(ours, Rc::clone(places)), ended, server }
    }

    /// Hangs up. Says how many executions succeeded.
    fn end(self) -> usize {
        let succeeded = self.client.hang_up();
        assert!(self.ended.recv_timeout(HANG).is_ok(), "the service does not let go of its client");
        self.server.join().unwrap();
        succeeded
    }
}

/// Connections of two clients at most, each from its greeting to its end. Says how many executions succeeded.
fn converse(input: &mut Input<'_>) -> usize {
    let places = Places::default();
    let (mut this, mut other) = (Some(Session::begin(&places)), None);
    let mut succeeded = 0;
    for _ in 0..CALLS_MAX {
        if input.is_empty() {
            break;
        }
        let call = input.u8() % CALLS;
        if call == TURN {
            std::mem::swap(&mut this, &mut other);
            let foreign = other.as_ref().map(|session| session.client.numbers());
            let session = this.get_or_insert_with(|| Session::begin(&places));
            session.client.follow(foreign.unwrap_or_default());
            continue;
        }
        let session = this.get_or_insert_with(|| Session::begin(&places));
        if call == HANG_UP || !session.client.step(call, input) {
            succeeded += this.take().map_or(0, Session::end);
            std::mem::swap(&mut this, &mut other);
        }
    }
    succeeded += [this, other].into_iter().flatten().map(Session::end).sum::<usize>();
    is_idle();
    succeeded
}

/// Nobody has anything of the service, sooner or later: threads may be about to give it back.
fn is_idle() {
    let begun = std::time::Instant::now();
    loop {
        let metrics = service().metrics().encode();
        let used = metrics.lines().find(|line| {
            let is_use =
                line.starts_with("burst_in_use{") || line.starts_with("burst_service_used{");
            is_use && !line.ends_with(" 0")
        });
        match used {
            None => return,
            Some(line) => assert!(begun.elapsed() < HANG, "nobody is there, and yet {line}"),
        }
        std::thread::yield_now();
    }
}

/// Conversations as applications have them, and each kind of misuse.
pub fn seeds() -> Vec<Seed> {
    // See `Client::step`: which call, then its choices. The last of what there is: 0.
    const PREPARE: &[u8] = &[3, 0, 0];
    const SHARE: &[u8] = &[5, 1, 0];
    const EXECUTE: &[u8] = &[8, 0, 0, 0];
    const BURST: &[u8] = &[9, 0, 0];
    const PUSH: &[u8] = &[10, 0, 1, 0, 0];
    const RUN: &[u8] = &[12, 0, 1];
    // In new files, and from the last ones.
    const KEEP: &[u8] = &[30, 9, 0, 0, 0];
    const RESTORE: &[u8] = &[32, 0, 0, 0, 0, 0];
    const OTHER: &[u8] = &[TURN];
    let script = |parts: &[&[u8]]| parts.iter().copied().fold(Script::new(), Script::bytes);
    vec![
        seed("executed", script(&[PREPARE, SHARE, EXECUTE])),
        seed("asked_first", script(&[&[0], &[1, 0], &[2, 0, 0], PREPARE, EXECUTE])),
        seed("burst", script(&[PREPARE, SHARE, BURST, PUSH, RUN, RUN, &[11, 0, 1, 1], RUN])),
        seed("burst_that_asks_for_memories", script(&[PREPARE, BURST, RUN, RUN])),
        seed("burst_that_is_given_none", script(&[PREPARE, &[24, 1], BURST, RUN])),
        seed("burst_of_a_released_model", script(&[PREPARE, BURST, &[4, 0], RUN, &[13, 0]])),
        seed("nonsense_on_a_burst", script(&[PREPARE, BURST, &[14, 0, 7, 7, 7], RUN])),
        seed("two_bursts", script(&[PREPARE, BURST, BURST, &[12, 1, 1], RUN, &[13, 0], RUN])),
        seed("asynchronous", script(&[PREPARE, &[15, 0, 0, 0, 5], &[15, 0, 0, 0, 6]])),
        seed(
            "same_number_twice",
            script(&[PREPARE, &[16, 0, 0, 0, 1], &[15, 0, 0, 0, 5], &[15, 0, 0, 0, 5]]),
        ),
        seed("fenced", script(&[PREPARE, &[16, 0, 0, 0, 0], &[18, 0], &[19, 0]])),
        seed(
            "fenced_behind_a_fence",
            script(&[PREPARE, &[16, 0, 0, 0, 1], &[18, 0], &[17, 0, 1], &[18, 0], &[19, 0]]),
        ),
        seed(
            "fences_that_are_never_done",
            script(&[PREPARE, &[16, 0, 0, 0, 1], &[16, 0, 0, 0, 2]]),
        ),
        seed("cancelled", script(&[PREPARE, &[16, 0, 0, 0, 1], &[20, 0], &[18, 0]])),
        seed(
            "buffers",
            script(&[
                PREPARE,
                &[21, 0, 0, 0],
                &[22, 0, 0],
                &[22, 0, 1],
                &[8, 0, 3, 0, 0],
                &[23, 0],
            ]),
        ),
        seed("shared", script(&[PREPARE, SHARE, &[8, 0, 1, 1, 0], &[7, 1], &[8, 0, 1, 1, 0]])),
        seed("memory_of_the_service", script(&[PREPARE, &[6, 2, 1], &[8, 0, 1, 2, 0], &[7, 2]])),
        seed("not_legal", script(&[&[3, 9, 0], &[3, 9, 9], &[3, 0, 9], PREPARE, EXECUTE])),
        seed(
            "numbers_that_are_none",
            script(&[&[4, 9], &[8, 9, 0, 0], &[13, 9], &[23, 9], &[19, 9]]),
        ),
        seed(
            "wrong_requests",
            script(&[PREPARE, SHARE, &[8, 0, 0, 1], &[8, 0, 0, 2], &[8, 0, 0, 3]]),
        ),
        seed("wrong_descriptors", script(&[&[25, 0], &[25, 1], PREPARE, EXECUTE])),
        seed("later_calls", script(&[&[26, 200], PREPARE, EXECUTE])),
        seed("no_message", script(&[PREPARE, EXECUTE, &[27, 1, 2, 3]])),
        seed("spans", script(&[&[28, 0], PREPARE, EXECUTE, &[28, 1]])),
        seed("kept", script(&[KEEP, EXECUTE, RESTORE, EXECUTE, BURST, RUN])),
        seed("kept_again", script(&[KEEP, &[30, 0, 0, 0, 0], RESTORE, &[4, 0], EXECUTE])),
        seed(
            "kept_in_files_of_other_kinds",
            script(&[&[30, 9, 1, 0, 0], &[30, 9, 2, 0, 0], &[30, 9, 3, 0, 0], RESTORE, EXECUTE]),
        ),
        seed("not_kept", script(&[RESTORE, &[30, 9, 0, 9, 0], &[30, 9, 0, 0, 9], RESTORE])),
        seed(
            "changed_files",
            script(&[
                KEEP,
                &[34, 0, 0, 2, 200, 0, 7],
                RESTORE,
                KEEP,
                &[34, 0, 1, 0, 9, 0, 0],
                RESTORE,
            ]),
        ),
        seed(
            "files_sent_wrongly",
            script(&[
                KEEP,
                &[32, 0, 1, 0, 0, 0],
                &[32, 0, 2, 0, 0, 0],
                &[32, 0, 3, 0, 0, 0],
                &[32, 0, 4, 0, 0, 0],
                &[32, 0, 0, 9, 0, 0],
                &[32, 0, 0, 0, 9, 0],
                &[32, 0, 0, 0, 0, 9],
                EXECUTE,
            ]),
        ),
        seed(
            "two_clients",
            script(&[PREPARE, BURST, OTHER, PREPARE, EXECUTE, BURST, RUN, OTHER, RUN]),
        ),
        seed(
            "numbers_of_another_client",
            script(&[
                PREPARE,
                PREPARE,
                BURST,
                &[21, 0, 0, 0],
                &[16, 0, 0, 0, 1],
                OTHER,
                &[4, 9],
                &[8, 9, 0, 0],
                &[13, 9],
                &[23, 9],
                &[19, 9],
                &[20, 9],
                OTHER,
                &[17, 0, 1],
                RUN,
                &[19, 0],
            ]),
        ),
        seed(
            "another_client_hangs_up",
            script(&[
                PREPARE,
                BURST,
                OTHER,
                PREPARE,
                BURST,
                RUN,
                &[16, 0, 0, 0, 1],
                &[HANG_UP],
                RUN,
                EXECUTE,
            ]),
        ),
        seed("another_client_sends_no_message", script(&[PREPARE, OTHER, &[27, 1, 2, 3], EXECUTE])),
        seed(
            "files_of_another_client",
            script(&[KEEP, OTHER, RESTORE, EXECUTE, KEEP, OTHER, RESTORE]),
        ),
    ]
}
