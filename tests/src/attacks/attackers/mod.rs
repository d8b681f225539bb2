//! What attackers do, each in a process of its own.
//!
//! Every attacker prints `under way` once its attack is in force, and goes on with it until it is killed.
//! A service that refuses it, or hangs up on it, has answered well: the attacker tries again.
//!
//! | file | what is used up |
//! |---|---|
//! | `preparing.rs` | what preparing a model takes: memory, time |
//! | `holding.rs` | what a client may keep: working memory of bursts, packed weights, address space |
//! | `questions.rs` | a connection that is busy with bursts while it is asked for memories |
//! | `requests.rs` | what executions take: a queue that is full of them, long ones, many bursts |
//! | `sockets.rs` | places at the sockets |
//! | `floods.rs` | set-up work, and wake-ups |

mod floods;
mod holding;
mod preparing;
mod questions;
mod requests;
mod sockets;

use std::path::Path;

use super::child::{Child, User};
use super::service::{Confinement, Service};
use super::users::{NEIGHBOUR, STRANGER, is_root};

/// What an attacker comes to; only one that cannot even begin fails.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What attackers say when their attack is in force.
const UNDER_WAY: &str = "under way";

/// Who attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A user who may use the service: another one than the honest client's, where that is possible.
    Client,
    /// A user who may not: needs root.
    Stranger,
}

/// One way to attack a service.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// What is done, in one line.
    pub what: &'static str,
    /// What the service may use meanwhile.
    pub confinement: Confinement,
    /// Flags of the service.
    pub flags: &'static [&'static str],
    by: By,
    run: fn(&Sockets<'_>) -> Outcome,
}

/// Where the service is reached.
struct Sockets<'s> {
    clients: &'s Path,
    admin: &'s Path,
}

const NO_FLAGS: &[&str] = &[];
const UNLIMITED: Confinement = Confinement { address_space: None, one_cpu: false };
const MEMORY: Confinement = Confinement::MEMORY;

impl Attack {
    const fn by_client(
        name: &'static str,
        what: &'static str,
        confinement: Confinement,
        run: fn(&Sockets<'_>) -> Outcome,
    ) -> Attack {
        Attack { name, what, confinement, flags: NO_FLAGS, by: By::Client, run }
    }

    const fn by_stranger(
        name: &'static str,
        what: &'static str,
        run: fn(&Sockets<'_>) -> Outcome,
    ) -> Attack {
        Attack { name, what, confinement: MEMORY, flags: NO_FLAGS, by: By::Stranger, run }
    }

    /// The same on a service with these flags.
    #[must_use]
    pub const fn with_flags(self, flags: &'static [&'static str]) -> Attack {
        Attack { flags, ..self }
    }

    /// Whether this process can carry it out: some need root, to be two users.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.by == By::Client || is_root()
    }

    /// Starts the service that is to stand it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_service(&self) -> Result<Service, String> {
        Service::start(self.confinement, self.flags)
    }

    /// Starts the attacker; returns when the attack is in force.
    ///
    /// # Errors
    /// It does not come that far.
    pub fn begin(&self, service: &Service) -> Result<Child, String> {
        self.begin_as(self.user(), service)
    }

    fn user(&self) -> User {
        match self.by {
            By::Stranger => User::Other(STRANGER),
            By::Client if is_root() => User::Other(NEIGHBOUR),
            By::Client => User::Same,
        }
    }

    /// The same as this user.
    ///
    /// # Errors
    /// As [`Attack::begin`].
    pub fn begin_as(&self, user: User, service: &Service) -> Result<Child, String> {
        let arguments = [service.socket(), service.admin()];
        // What an attacker says of its own failures goes to the log of the service.
        let mut attacker = Child::start(user, self.name, &arguments, service.append_log());
        let begun = attacker.hear(UNDER_WAY, super::child::HANG);
        begun.map_err(|error| format!("{error}; {}", service.standing()))?;
        Ok(attacker)
    }
}

/// Every attack, by name.
pub const ATTACKS: &[Attack] = &[
    PREPARE_MEMORY,
    PREPARE_TIME,
    SURVEY_MEMORY,
    SURVEY_TIME,
    BURSTS,
    WEIGHTS,
    SPARSE_MEMORIES,
    SPARSE_QUEUES,
    SILENT_STRANGERS,
    ADMIN_STRANGERS,
    FULL_QUEUE,
    DEEP_QUEUES,
    LONG_EXECUTIONS,
    SPINNING,
    BUSY_BURSTS,
    ONE_BUSY_BURST,
    EXECUTE_FLOOD,
    FLIPPED_EVENTS,
    QUESTIONS,
];

/// Models of a few KiB that are prepared into GiB.
pub const PREPARE_MEMORY: Attack = Attack::by_client(
    "prepare-memory",
    "models of a few KiB become GiB of constants",
    MEMORY,
    |sockets| preparing::prepare_and_keep(sockets.clients, &super::models::large_constants(2048)?),
);
/// Models that take a minute to prepare.
pub const PREPARE_TIME: Attack = Attack::by_client(
    "prepare-time",
    "models of a few hundred bytes take a minute to prepare",
    MEMORY,
    |sockets| preparing::prepare(sockets.clients, &super::models::slow_constants()?),
);
/// The first of these as a question.
pub const SURVEY_MEMORY: Attack = Attack::by_client(
    "survey-memory",
    "the same models as questions about their operations: memory",
    MEMORY,
    |sockets| preparing::survey(sockets.clients, &super::models::large_constants(2048)?),
);
/// The second of these as a question.
pub const SURVEY_TIME: Attack = Attack::by_client(
    "survey-time",
    "the same models as questions about their operations: time",
    MEMORY,
    |sockets| preparing::survey(sockets.clients, &super::models::slow_constants()?),
);
/// Bursts with large working memory.
pub const BURSTS: Attack = Attack::by_client(
    "bursts",
    "many connections with many bursts that need much working memory",
    MEMORY,
    |sockets| holding::bursts(sockets.clients),
);
/// Prepared models with large weights.
pub const WEIGHTS: Attack = Attack::by_client(
    "weights",
    "many connections with many models whose weights are packed",
    MEMORY,
    |sockets| holding::weights(sockets.clients),
);
/// Memories that are larger than what is said of them.
pub const SPARSE_MEMORIES: Attack = Attack::by_client(
    "sparse-memories",
    "memories of up to 1 TiB of which 4 KiB are stated",
    UNLIMITED,
    |sockets| holding::sparse_memories(sockets.clients),
);
/// The same as queues.
pub const SPARSE_QUEUES: Attack = Attack::by_client(
    "sparse-queues",
    "queues of a page in memories of up to 1 TiB",
    UNLIMITED,
    |sockets| holding::sparse_queues(sockets.clients),
);
/// Users who may not come in hold places.
pub const SILENT_STRANGERS: Attack = Attack::by_stranger(
    "silent-strangers",
    "a user who is not let in keeps as many silent connections as there are places",
    |sockets| sockets::silent_clients(sockets.clients),
);
/// The same at the admin socket.
pub const ADMIN_STRANGERS: Attack = Attack::by_stranger(
    "admin-strangers",
    "a user who is not let in keeps silent connections to the admin socket",
    |sockets| sockets::silent_scrapers(sockets.admin),
);
/// More requests than anybody will wait for.
pub const FULL_QUEUE: Attack = Attack::by_client(
    "full-queue",
    "thousands of requests queued on one burst, over and over",
    MEMORY,
    |sockets| requests::full_queues(sockets.clients),
);
/// As many requests as a client may have under way.
pub const DEEP_QUEUES: Attack = Attack::by_client(
    "deep-queues",
    "as many requests under way as may be, each of which takes a while",
    MEMORY,
    |sockets| requests::deep_queues(sockets.clients),
);
/// Executions of a minute each.
pub const LONG_EXECUTIONS: Attack = Attack::by_client(
    "long-executions",
    "many bursts that each execute for a minute",
    UNLIMITED,
    |sockets| requests::long_executions(sockets.clients),
);
/// Idle bursts that asked to be polled for.
pub const SPINNING: Attack = Attack::by_client(
    "spinning",
    "500 idle bursts that asked the service to spin",
    UNLIMITED,
    |sockets| requests::spinning(sockets.clients),
)
.with_flags(&["--idle-release", "1"]);
/// One user's many busy bursts.
pub const BUSY_BURSTS: Attack = Attack::by_client(
    "busy-bursts",
    "64 bursts of one user, each busy all the time",
    UNLIMITED,
    |sockets| requests::busy(sockets.clients, 64),
);
/// One burst that is busy all the time.
pub const ONE_BUSY_BURST: Attack = Attack::by_client(
    "one-busy-burst",
    "one burst that is busy all the time",
    UNLIMITED,
    |sockets| requests::busy(sockets.clients, 1),
);
/// Calls with as many descriptors as there may be.
pub const EXECUTE_FLOOD: Attack = Attack::by_client(
    "execute-flood",
    "executions over the socket with 128 descriptors each, as fast as can be",
    MEMORY,
    |sockets| floods::executions(sockets.clients),
);
/// A peer that changes the event words of its queues.
pub const FLIPPED_EVENTS: Attack = Attack::by_client(
    "flipped-events",
    "bursts whose client flips the bits of their event words all the time",
    MEMORY,
    |sockets| floods::flipped_events(sockets.clients),
);

/// A client that keeps its own connection busy.
pub const QUESTIONS: Attack = Attack::by_client(
    "questions",
    "bursts are closed and started while the service asks for the memories of another one",
    UNLIMITED,
    |sockets| questions::while_setting_up(sockets.clients),
);

/// The role of an attacker; `None` where no attack has this name.
pub(super) fn play(name: &str, arguments: &[String]) -> Option<Outcome> {
    let attack = ATTACKS.iter().find(|attack| attack.name == name)?;
    let [clients, admin] = arguments else { return Some(Err("two sockets".into())) };
    Some((attack.run)(&Sockets { clients: Path::new(clients), admin: Path::new(admin) }))
}
