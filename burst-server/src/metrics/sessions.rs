//! What the admin socket says of each client, model and burst, as JSON: counters that only grow, and what is
//! so just now. Whoever looks twice has rates. The keys are in `docs/SERVICE.md`.

use std::time::Duration;

use serde::Serialize;

use super::board::Probe;
use super::tally::{BOUNDS_NS, Counts};
use super::{Metrics, Reader};
use crate::admission::Balance;

/// Grows where a key goes or comes to mean something else.
const SCHEMA: u32 = 1;
/// Bursts, models and clients that are shown, of each so many; others are counted.
const SHOWN: usize = 1024;

/// Everything that one reader may see.
#[derive(Debug, Serialize)]
struct View {
    schema: u32,
    version: &'static str,
    /// When this was looked at, on a clock of the service's that only goes on.
    time_ns: u64,
    /// Upper bounds of the buckets, of which there is one more.
    bounds_ns: [u64; BOUNDS_NS.len()],
    waiting_for_turn: u64,
    computing_beside: u64,
    users: Vec<UserView>,
    sessions: Vec<SessionView>,
    models: Vec<ModelView>,
    bursts: Vec<BurstView>,
    /// How many clients, models and bursts are not shown, as there are too many.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct UserView {
    uid: u32,
    accounts: Vec<AccountView>,
}

#[derive(Debug, Serialize)]
struct AccountView {
    resource: &'static str,
    used: u64,
    limit: u64,
}

#[derive(Debug, Serialize)]
struct SessionView {
    client: u64,
    pid: Option<u32>,
    uid: u32,
    gid: u32,
    program: String,
    connected_ns: u64,
}

#[derive(Debug, Serialize)]
struct ModelView {
    client: u64,
    uid: u32,
    model: u64,
    device: String,
    /// What is held for it, working memory that its executions leave to the next ones included.
    memory_bytes: u64,
    /// Of executions over the socket that have got their turn, as below.
    waited_for_turn_ns: u64,
    computed_ns: u64,
    /// Executions over the socket.
    #[serde(flatten)]
    counts: CountsView,
}

#[derive(Debug, Serialize)]
struct BurstView {
    client: u64,
    uid: u32,
    model: u64,
    burst: u32,
    device: String,
    state: &'static str,
    wait: &'static str,
    polls: bool,
    depth: u16,
    requests_queued: usize,
    requests_room: usize,
    results_queued: usize,
    results_room: usize,
    waited_for_turn_ns: u64,
    age_ns: u64,
    #[serde(flatten)]
    counts: CountsView,
}

#[derive(Debug, Serialize)]
struct CountsView {
    requests: u64,
    failed: u64,
    executions: u64,
    /// From arrival to answer, of those that were timed, waiting for their turn included.
    nanos: u64,
    buckets: Vec<u64>,
}

impl CountsView {
    fn new(counts: &Counts) -> Self {
        let [fine, failed @ ..] = &counts.statuses;
        let failed = failed.iter().sum();
        CountsView {
            requests: fine + failed,
            failed,
            executions: counts.executions,
            nanos: counts.nanos,
            buckets: counts.buckets.to_vec(),
        }
    }
}

impl Metrics {
    /// What this reader may see of clients, models and bursts, as one JSON object.
    pub(super) fn sessions_for(&self, reader: Reader) -> String {
        // Numbers and strings always have a form in JSON.
        serde_json::to_string(&self.view(reader)).unwrap_or_default()
    }

    fn view(&self, reader: Reader) -> View {
        let (mut models, mut bursts) = self.models_and_bursts(reader);
        let mut sessions: Vec<SessionView> = self
            .board
            .sessions()
            .into_iter()
            .filter(|(_, entry)| reader.may_see(entry.peer.uid))
            .map(|(client, entry)| SessionView {
                client,
                pid: entry.peer.pid,
                uid: entry.peer.uid,
                gid: entry.peer.gid,
                program: entry.program,
                connected_ns: nanos(entry.since.elapsed()),
            })
            .collect();
        let lengths = [sessions.len(), models.len(), bursts.len()];
        let left_out = lengths.map(|length| length.saturating_sub(SHOWN)).iter().sum();
        sessions.truncate(SHOWN);
        models.truncate(SHOWN);
        bursts.truncate(SHOWN);
        View {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            time_ns: nanos(self.begun.elapsed()),
            bounds_ns: BOUNDS_NS,
            waiting_for_turn: self.turns.waiting(),
            computing_beside: self.turns.beside(),
            users: self.accounts_of_users(reader),
            sessions,
            models,
            bursts,
            left_out,
        }
    }

    fn accounts_of_users(&self, reader: Reader) -> Vec<UserView> {
        let users = self.users.all();
        let seen = users.iter().filter(|(uid, _)| reader.may_see(*uid)).take(SHOWN);
        let account = |Balance { resource, used, limit }| AccountView { resource, used, limit };
        seen.map(|(uid, user)| UserView {
            uid: *uid,
            accounts: user.account().balances().map(account).into(),
        })
        .collect()
    }

    fn models_and_bursts(&self, reader: Reader) -> (Vec<ModelView>, Vec<BurstView>) {
        let (mut models, mut bursts) = (Vec::new(), Vec::new());
        self.for_each_model(|model, tally| {
            if !reader.may_see(tally.uid) {
                return;
            }
            models.push(ModelView {
                client: tally.client,
                uid: tally.uid,
                model,
                device: tally.device.clone(),
                memory_bytes: tally.account.bytes(),
                waited_for_turn_ns: tally.turns.waited_ns(),
                computed_ns: tally.turns.computed_ns(),
                counts: CountsView::new(&tally.socket.look()),
            });
            tally.for_each_burst(|counts, probe| {
                let (client, uid, device) = (tally.client, tally.uid, tally.device.clone());
                let of_model = (client, uid, model, device);
                bursts.push(BurstView::new(of_model, &counts.look(), probe));
            });
        });
        (models, bursts)
    }
}

impl BurstView {
    fn new(
        (client, uid, model, device): (u64, u32, u64, String),
        counts: &Counts,
        probe: &Probe,
    ) -> Self {
        BurstView {
            client,
            uid,
            model,
            burst: probe.burst,
            device,
            state: probe.state(),
            wait: probe.wait_name(),
            polls: probe.polls(),
            depth: probe.depth,
            requests_queued: probe.requests.items(),
            requests_room: probe.requests.capacity(),
            results_queued: probe.results.items(),
            results_room: probe.results.capacity(),
            waited_for_turn_ns: probe.run.waited_ns(),
            age_ns: nanos(probe.since.elapsed()),
            counts: CountsView::new(counts),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
