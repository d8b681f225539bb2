//! Two looks beside each other: rates, times, shares, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::look::{Burst, Counts, Look, Model, User, as_f64};

/// A client has more than its share of the computing where it has so much more than that, as a part of all.
const SHARE_MARGIN: f64 = 0.1;
/// Memory of a user's account from which on there is little left.
const NEARLY_ALL: f64 = 0.9;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SortBy {
    /// Who computes most.
    Busy,
    /// Who asks most often.
    Rate,
    /// Whose slowest requests take longest.
    P99,
    /// Whose queue is longest.
    Queue,
    /// By the number of the client.
    Client,
}

/// What is wrong with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trouble {
    /// Anything of the below.
    #[serde(skip)]
    Any,
    /// It waits on a queue that is full: its client takes no results, or it is not done with requests that
    /// fill their queue.
    FullQueue,
    /// A core is polled on for it.
    Spins,
    /// Its client computes more than its share, while others wait.
    OverShare,
}

impl Trouble {
    pub(super) fn word(self) -> &'static str {
        match self {
            Trouble::Any => "any",
            Trouble::FullQueue => "full-queue",
            Trouble::Spins => "spins",
            Trouble::OverShare => "over-share",
        }
    }
}

/// What somebody wants to see.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) user: Option<u32>,
    pub(super) client: Option<u64>,
    pub(super) device: Option<String>,
    pub(super) trouble: Option<Trouble>,
    pub(super) sort: SortBy,
}

/// What was so between two looks.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) service_version: String,
    /// Between the looks; `null` for figures since the start.
    pub(super) seconds: Option<f64>,
    /// How many runs wait for their turn just now, and how many compute beside those that do not give way.
    pub(super) waiting_for_turn: u64,
    pub(super) computing_beside: u64,
    pub(super) users: Vec<UserFigures>,
    pub(super) sessions: Vec<SessionFigures>,
    pub(super) models: Vec<ModelFigures>,
    pub(super) bursts: Vec<BurstFigures>,
    pub(super) left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct UserFigures {
    pub(super) uid: u32,
    pub(super) name: Option<String>,
    pub(super) memory_bytes: u64,
    pub(super) memory_limit_bytes: u64,
    /// Nearly all of its memory is in use.
    pub(super) is_short_of_memory: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SessionFigures {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
    pub(super) uid: u32,
    /// What it calls itself.
    pub(super) program: String,
    /// Its command line, where this process may read it.
    pub(super) command: Option<String>,
    pub(super) connected_seconds: f64,
    pub(super) bursts: usize,
    pub(super) models: usize,
    pub(super) requests_per_second: Option<f64>,
    /// Of all computing that was done for clients.
    pub(super) computing_share: f64,
    pub(super) is_over_share: bool,
}

/// A model, with what was executed over the socket.
#[derive(Debug, Serialize)]
pub(super) struct ModelFigures {
    pub(super) client: u64,
    pub(super) model: u64,
    pub(super) device: String,
    #[serde(flatten)]
    pub(super) times: Times,
}

#[derive(Debug, Serialize)]
pub(super) struct BurstFigures {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
    pub(super) uid: u32,
    pub(super) model: u64,
    pub(super) burst: u32,
    pub(super) device: String,
    pub(super) state: String,
    pub(super) wait: String,
    pub(super) polls: bool,
    pub(super) depth: u16,
    pub(super) requests_queued: usize,
    pub(super) requests_room: usize,
    pub(super) results_queued: usize,
    pub(super) results_room: usize,
    /// Of the time between the looks: waiting for its turn, and at work on requests otherwise.
    pub(super) waiting_share: Option<f64>,
    pub(super) busy_share: Option<f64>,
    /// Of all computing that was done for clients.
    pub(super) computing_share: f64,
    pub(super) trouble: Vec<Trouble>,
    #[serde(flatten)]
    pub(super) times: Times,
}

/// Requests and their times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) requests_per_second: Option<f64>,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

impl Times {
    fn new(counts: &Counts, seconds: Option<f64>, bounds: &[u64]) -> Times {
        let us = |q| counts.quantile_ns(q, bounds).map(|ns| ns / 1e3);
        Times {
            requests: counts.requests,
            failed: counts.failed,
            requests_per_second: seconds.map(|seconds| as_f64(counts.requests) / seconds),
            p50_us: us(0.5),
            p99_us: us(0.99),
        }
    }
}

/// A burst and what changed about it.
struct Change<'l> {
    now: &'l Burst,
    counts: Counts,
    waited_ns: u64,
    /// Of both looks; `None` where there is only one.
    seconds: Option<f64>,
    was_stuck: bool,
}

impl<'l> Change<'l> {
    fn new(before: Option<&Look>, burst: &'l Burst, seconds: Option<f64>) -> Self {
        let is_it = |other: &&Burst| key(other) == key(burst);
        let was = before.and_then(|before| before.bursts.iter().find(is_it));
        let waited_before = was.map_or(0, |was| was.waited_for_turn_ns);
        Change {
            now: burst,
            counts: burst.counts.since(was.map(|was| &was.counts)),
            waited_ns: burst.waited_for_turn_ns.saturating_sub(waited_before),
            seconds,
            was_stuck: before.is_none() || was.is_some_and(has_full_queue),
        }
    }

    /// What was computed for it: the time of its requests without waiting for their turn.
    fn computed_ns(&self) -> u64 {
        self.counts.nanos.saturating_sub(self.waited_ns)
    }
}

fn key(burst: &Burst) -> (u64, u64, u32) {
    (burst.client, burst.model, burst.burst)
}

/// Whether one of its queues is more than half full: where it holds one packet, another of that length does not fit.
fn has_full_queue(burst: &Burst) -> bool {
    let is_full = |queued: usize, room: usize| room > 0 && queued * 2 > room;
    burst.state == "results-full"
        || (burst.state != "idle" && is_full(burst.requests_queued, burst.requests_room))
}

impl Report {
    /// What changed between two looks, or since the start where there is only one; as much of it as is wanted.
    pub(super) fn of(before: Option<&Look>, now: &Look, wanted: &Wanted) -> Report {
        let seconds = before.map(|before| {
            (as_f64(now.time_ns.saturating_sub(before.time_ns)) / 1e9).max(f64::MIN_POSITIVE)
        });
        let changes: Vec<Change<'_>> =
            now.bursts.iter().map(|burst| Change::new(before, burst, seconds)).collect();
        let shares = Shares::of(&changes);
        let pids: BTreeMap<u64, Option<u32>> =
            now.sessions.iter().map(|session| (session.client, session.pid)).collect();
        let pid = |client: u64| pids.get(&client).copied().flatten();
        let seen = |uid: u32, client: u64| {
            let by_client = |number| {
                number == client || pid(client).is_some_and(|pid| u64::from(pid) == number)
            };
            wanted.user.is_none_or(|user| user == uid) && wanted.client.is_none_or(by_client)
        };
        let on_device = |device: &str| wanted.device.as_ref().is_none_or(|name| name == device);
        let bursts = changes
            .iter()
            .filter(|one| seen(one.now.uid, one.now.client) && on_device(&one.now.device));
        let bursts = bursts.map(|one| {
            let pid = pid(one.now.client);
            BurstFigures::new(one, pid, &shares, &now.bounds_ns)
        });
        let mut bursts: Vec<BurstFigures> =
            bursts.filter(|burst| burst.is_wanted(wanted)).collect();
        sort(&mut bursts, wanted.sort);
        let models = now
            .models
            .iter()
            .filter(|model| seen(model.uid, model.client) && on_device(&model.device));
        let users = now.users.iter().filter(|user| wanted.user.is_none_or(|uid| uid == user.uid));
        Report {
            service_version: now.version.clone(),
            seconds,
            waiting_for_turn: now.waiting_for_turn,
            computing_beside: now.computing_beside,
            users: users.map(UserFigures::new).collect(),
            sessions: sessions(now, &changes, &shares, seen),
            models: models
                .map(|model| ModelFigures::new(before, model, seconds, &now.bounds_ns))
                .collect(),
            bursts,
            left_out: now.left_out,
        }
    }
}

fn sessions(
    now: &Look,
    changes: &[Change<'_>],
    shares: &Shares,
    seen: impl Fn(u32, u64) -> bool,
) -> Vec<SessionFigures> {
    let sessions = now.sessions.iter().filter(|session| seen(session.uid, session.client));
    sessions
        .map(|session| {
            let client = session.client;
            let own = || changes.iter().filter(|one| one.now.client == client);
            let rates = own().map(|one| Some(as_f64(one.counts.requests) / one.seconds?));
            SessionFigures {
                client,
                pid: session.pid,
                uid: session.uid,
                program: session.program.clone(),
                command: session.pid.and_then(command),
                connected_seconds: as_f64(session.connected_ns) / 1e9,
                bursts: own().count(),
                models: now.models.iter().filter(|model| model.client == client).count(),
                requests_per_second: rates.sum(),
                computing_share: shares.of_client(client),
                is_over_share: shares.is_over(client),
            }
        })
        .collect()
}

/// Longest command line that is shown.
const COMMAND_MAX: usize = 200;

/// The command line of a process, where this one may read it.
fn command(pid: u32) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = text.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    // A process chooses its own: what would move a terminal's cursor is not shown.
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let line: String = words.join(" ").chars().take(COMMAND_MAX).map(shown).collect();
    (!line.is_empty()).then_some(line)
}

/// Who computed how much.
struct Shares {
    /// By client: its user, and what was computed for it.
    clients: BTreeMap<u64, (u32, u64)>,
    all: u64,
    /// Clients that waited for their turn.
    waited: BTreeSet<u64>,
}

impl Shares {
    fn of(changes: &[Change<'_>]) -> Shares {
        let mut clients = BTreeMap::new();
        let mut waited = BTreeSet::new();
        for change in changes {
            let entry = clients.entry(change.now.client).or_insert((change.now.uid, 0_u64));
            entry.1 = entry.1.saturating_add(change.computed_ns());
            if change.waited_ns > 0 {
                waited.insert(change.now.client);
            }
        }
        let all = clients.values().fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
        Shares { clients, all, waited }
    }

    fn part(&self, ns: u64) -> f64 {
        if self.all == 0 { 0.0 } else { as_f64(ns) / as_f64(self.all) }
    }

    fn of_client(&self, client: u64) -> f64 {
        self.clients.get(&client).map_or(0.0, |(_, ns)| self.part(*ns))
    }

    /// What a client would have if users had equal shares, and a user's clients too, of those that want any.
    fn fair(&self, client: u64) -> f64 {
        let wants = |one: &u64, ns: u64| ns > 0 || self.waited.contains(one) || *one == client;
        let wanting = || self.clients.iter().filter(|(one, (_, ns))| wants(one, *ns));
        let Some((own, _)) = self.clients.get(&client) else { return 1.0 };
        let users: BTreeSet<u32> = wanting().map(|(_, (uid, _))| *uid).collect();
        let own_clients = wanting().filter(|(_, (uid, _))| uid == own).count();
        1.0 / as_f64((users.len() * own_clients).max(1) as u64)
    }

    /// It has a good deal more than its fair share, while somebody else waited for it.
    fn is_over(&self, client: u64) -> bool {
        let somebody_waited = self.waited.iter().any(|one| *one != client);
        somebody_waited && self.of_client(client) > self.fair(client) + SHARE_MARGIN
    }
}

impl UserFigures {
    fn new(user: &User) -> UserFigures {
        let memory = user.accounts.iter().find(|account| account.resource == "memory_bytes");
        let (used, limit) = memory.map_or((0, 0), |memory| (memory.used, memory.limit));
        UserFigures {
            uid: user.uid,
            name: user_name(user.uid),
            memory_bytes: used,
            memory_limit_bytes: limit,
            is_short_of_memory: as_f64(used) > as_f64(limit) * NEARLY_ALL,
        }
    }
}

/// A user's name, by the file that most systems have them in.
fn user_name(uid: u32) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(&uid)).then(|| name.to_owned())
    })
}

impl ModelFigures {
    fn new(before: Option<&Look>, model: &Model, seconds: Option<f64>, bounds: &[u64]) -> Self {
        let is_it = |other: &&Model| (other.client, other.model) == (model.client, model.model);
        let was = before.and_then(|before| before.models.iter().find(is_it));
        let counts = model.counts.since(was.map(|was| &was.counts));
        ModelFigures {
            client: model.client,
            model: model.model,
            device: model.device.clone(),
            times: Times::new(&counts, seconds, bounds),
        }
    }
}

impl BurstFigures {
    fn new(change: &Change<'_>, pid: Option<u32>, shares: &Shares, bounds: &[u64]) -> Self {
        let Change { now, counts, waited_ns, seconds, .. } = change;
        let seconds_of_life = seconds.unwrap_or(as_f64(now.age_ns) / 1e9);
        let part = |ns: u64| (seconds_of_life > 0.0).then(|| as_f64(ns) / 1e9 / seconds_of_life);
        let mut trouble = Vec::new();
        // A queue may be full for an instant: at both looks, with nothing answered in between, it is stuck.
        let answered = seconds.is_some() && counts.requests > 0;
        if has_full_queue(now) && change.was_stuck && !answered {
            trouble.push(Trouble::FullQueue);
        }
        if now.polls {
            trouble.push(Trouble::Spins);
        }
        if shares.is_over(now.client) && change.computed_ns() > 0 {
            trouble.push(Trouble::OverShare);
        }
        BurstFigures {
            client: now.client,
            pid,
            uid: now.uid,
            model: now.model,
            burst: now.burst,
            device: now.device.clone(),
            state: now.state.clone(),
            wait: now.wait.clone(),
            polls: now.polls,
            depth: now.depth,
            requests_queued: now.requests_queued,
            requests_room: now.requests_room,
            results_queued: now.results_queued,
            results_room: now.results_room,
            waiting_share: part(*waited_ns),
            busy_share: part(change.computed_ns()),
            computing_share: shares.part(change.computed_ns()),
            trouble,
            times: Times::new(counts, *seconds, bounds),
        }
    }

    fn is_wanted(&self, wanted: &Wanted) -> bool {
        match wanted.trouble {
            None => true,
            Some(Trouble::Any) => !self.trouble.is_empty(),
            Some(one) => self.trouble.contains(&one),
        }
    }
}

fn sort(bursts: &mut [BurstFigures], by: SortBy) {
    let figure = |burst: &BurstFigures| match by {
        SortBy::Busy => burst.computing_share,
        SortBy::Rate => {
            let requests = as_f64(burst.times.requests);
            burst.times.requests_per_second.unwrap_or(requests)
        }
        SortBy::P99 => burst.times.p99_us.unwrap_or(0.0),
        SortBy::Queue => as_f64((burst.requests_queued + burst.results_queued) as u64),
        SortBy::Client => 0.0,
    };
    bursts.sort_by(|a, b| {
        let by_number = (a.client, a.model, a.burst).cmp(&(b.client, b.model, b.burst));
        figure(b).total_cmp(&figure(a)).then(by_number)
    });
}
