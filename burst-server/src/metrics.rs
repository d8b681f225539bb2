//! What a service counts about itself, and that as OpenMetrics text.
//!
//! A burst's server is the only writer of its counters, so that counting a request is a handful of plain
//! loads and stores. A reader adds up the counters of all bursts. A burst that ends adds its counts to
//! those of its model, and a model to those of the service, so that no total ever goes back.

mod admin;
mod board;
mod computing;
mod counts;
#[cfg(test)]
mod rules_tests;
mod sessions;
mod tally;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use admin::serve_admin;
use board::Board;
pub(crate) use board::Probe;
use computing::SocketTurns;
pub use counts::BurstCounts;
pub(crate) use tally::Tally;

use crate::admission::{LimitMeters, ModelAccount, Peer, Users};
use crate::panics::lock;
use crate::process::{Performance, SandboxReport};
use crate::scheduler::TurnMeter;

/// Why a burst ended before its client closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GivenUp {
    /// The client broke a queue, or it is unknown where its next packet begins.
    Queue,
    /// The client did not take its results.
    ResultsNotTaken,
    /// The driver panicked.
    Panicked,
    /// The client had more requests in its queue than were agreed on.
    DepthExceeded,
    /// The driver gave it up for a reason of its own.
    Driver,
}

impl GivenUp {
    const NAMES: [&'static str; 5] =
        ["queue", "results_not_taken", "panicked", "depth_exceeded", "driver"];
}

/// Counters and gauges of one service; [`Metrics::encode`] makes a text of them.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) limits: Arc<LimitMeters>,
    users: Arc<Users>,
    /// All requests are timed, also those that did not ask for it.
    timed: bool,
    started: SystemTime,
    begun: Instant,
    board: Board,
    clients: AtomicU64,
    bursts: AtomicU64,
    given_up: [AtomicU64; GivenUp::NAMES.len()],
    releases: AtomicU64,
    malformed_packets: AtomicU64,
    malformed_messages: AtomicU64,
    models: Mutex<Models>,
    performance: Arc<Performance>,
    sandbox: SandboxReport,
    turns: Arc<TurnMeter>,
}

/// Tallies of models that live, by a number that is shown as their label, and of those that are gone.
#[derive(Debug, Default)]
struct Models {
    next: u64,
    alive: BTreeMap<u64, Arc<ModelTally>>,
    gone: PathTallies,
}

/// One tally for executions over bursts, one for those over the socket.
#[derive(Debug, Default)]
struct PathTallies {
    burst: Tally,
    socket: Tally,
}

/// Counts of the requests for one prepared model.
#[derive(Debug)]
struct ModelTally {
    client: u64,
    /// The client's user.
    uid: u32,
    device: String,
    /// What it holds.
    account: Arc<ModelAccount>,
    socket: Tally,
    turns: SocketTurns,
    bursts: Mutex<Bursts>,
}

#[derive(Debug, Default)]
struct Bursts {
    next: u64,
    alive: BTreeMap<u64, Counted>,
    gone: Tally,
}

/// A burst that lives.
#[derive(Debug, Clone)]
struct Counted {
    counts: Arc<Tally>,
    /// Set once it is known how it can be looked at.
    probe: Arc<OnceLock<Probe>>,
}

impl ModelTally {
    /// Calls back for each burst that can be looked at.
    fn for_each_burst(&self, mut look: impl FnMut(&Tally, &Probe)) {
        // Without the lock: a look reads words in memory of the client, which can have it wait there, and who
        // ends asks for this lock with that of all models held.
        let alive: Vec<Counted> = lock(&self.bursts).alive.values().cloned().collect();
        for Counted { counts, probe } in &alive {
            if let Some(probe) = probe.get() {
                look(counts, probe);
            }
        }
    }
}

impl Metrics {
    pub(crate) fn new(
        timed: bool,
        performance: Arc<Performance>,
        sandbox: SandboxReport,
        users: Arc<Users>,
        turns: Arc<TurnMeter>,
    ) -> Self {
        Metrics {
            limits: Arc::clone(users.meters()),
            users,
            timed,
            started: SystemTime::now(),
            begun: Instant::now(),
            board: Board::default(),
            clients: AtomicU64::new(0),
            bursts: AtomicU64::new(0),
            given_up: Default::default(),
            releases: AtomicU64::new(0),
            malformed_packets: AtomicU64::new(0),
            malformed_messages: AtomicU64::new(0),
            models: Mutex::default(),
            performance,
            sandbox,
            turns,
        }
    }

    /// Whether every request is timed.
    pub(crate) fn timed(&self) -> bool {
        self.timed
    }

    pub(crate) fn client_accepted(&self) {
        self.clients.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn burst_started(&self) {
        self.bursts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn burst_given_up(&self, why: GivenUp) {
        self.given_up[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn resources_released(&self) {
        self.releases.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn malformed_packet(&self) {
        self.malformed_packets.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn malformed_message(&self) {
        self.malformed_messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to count for a prepared model of a client of this user, whose memory this account has.
    pub(crate) fn model(
        self: &Arc<Self>,
        client: u64,
        uid: u32,
        device: &str,
        account: Arc<ModelAccount>,
    ) -> ModelMeter {
        let tally = Arc::new(ModelTally {
            client,
            uid,
            device: device.to_owned(),
            account,
            socket: Tally::default(),
            turns: SocketTurns::default(),
            bursts: Mutex::default(),
        });
        let mut models = lock(&self.models);
        let number = models.next;
        models.next += 1;
        models.alive.insert(number, Arc::clone(&tally));
        ModelMeter { metrics: Arc::clone(self), number, tally }
    }

    fn seconds_since_epoch(&self) -> f64 {
        self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// A prepared model's counters, kept until the last of its bursts is gone too.
#[derive(Debug)]
pub(crate) struct ModelMeter {
    metrics: Arc<Metrics>,
    number: u64,
    tally: Arc<ModelTally>,
}

impl ModelMeter {
    /// The device that the model was prepared for.
    pub(crate) fn device(&self) -> &str {
        &self.tally.device
    }

    /// What pays for the memory that is held for it.
    pub(crate) fn account(&self) -> Arc<ModelAccount> {
        Arc::clone(&self.tally.account)
    }

    /// Where executions over the socket are counted, by several threads.
    pub(crate) fn socket(&self) -> &Tally {
        &self.tally.socket
    }

    /// Begins to count for a burst on this model.
    pub(crate) fn burst(&self) -> BurstMeter {
        let (counts, probe) = (Arc::new(Tally::default()), Arc::default());
        let mut bursts = lock(&self.tally.bursts);
        let number = bursts.next;
        bursts.next += 1;
        let counted = Counted { counts: Arc::clone(&counts), probe: Arc::clone(&probe) };
        bursts.alive.insert(number, counted);
        BurstMeter { model: Arc::clone(&self.tally), number, counts, probe }
    }
}

impl Drop for ModelMeter {
    fn drop(&mut self) {
        let mut models = lock(&self.metrics.models);
        models.alive.remove(&self.number);
        let bursts = lock(&self.tally.bursts);
        bursts.alive.values().for_each(|one| models.gone.burst.add(&one.counts));
        models.gone.burst.add(&bursts.gone);
        models.gone.socket.add(&self.tally.socket);
    }
}

/// A burst's counters, which only its server writes.
#[derive(Debug)]
pub(crate) struct BurstMeter {
    model: Arc<ModelTally>,
    number: u64,
    pub(crate) counts: Arc<Tally>,
    probe: Arc<OnceLock<Probe>>,
}

impl BurstMeter {
    /// From now on it can be looked at.
    pub(crate) fn observe(&self, probe: Probe) {
        // Said once, by whoever starts it.
        let _ = self.probe.set(probe);
    }
}

impl Drop for BurstMeter {
    fn drop(&mut self) {
        let mut bursts = lock(&self.model.bursts);
        bursts.alive.remove(&self.number);
        bursts.gone.add(&self.counts);
    }
}

/// Who reads the metrics. Totals are for everybody who may read them at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Root, or the service's own user: sees what every user and every client has.
    Owner,
    /// Sees what its own clients have, and of others nothing but their sum.
    User(u32),
}

impl Reader {
    fn new(peer: Peer) -> Self {
        if peer.is_owner() { Reader::Owner } else { Reader::User(peer.uid) }
    }

    fn may_see(self, uid: u32) -> bool {
        self == Reader::Owner || self == Reader::User(uid)
    }
}

/// What a scrape sees of a model.
struct ModelView {
    uid: u32,
    labels: [(&'static str, String); 3],
    burst: tally::Counts,
    socket: tally::Counts,
}

impl Metrics {
    /// Every model that lives, and the sums over all that ever lived.
    fn look(&self) -> (Vec<ModelView>, tally::Counts, tally::Counts) {
        let models = lock(&self.models);
        let (mut burst, mut socket) = (models.gone.burst.look(), models.gone.socket.look());
        let view = |(number, tally): (&u64, &Arc<ModelTally>)| {
            let bursts = lock(&tally.bursts);
            let mut of_bursts = bursts.gone.look();
            bursts.alive.values().for_each(|one| of_bursts.add(&one.counts.look()));
            let of_socket = tally.socket.look();
            burst.add(&of_bursts);
            socket.add(&of_socket);
            let labels = [
                ("client", tally.client.to_string()),
                ("model", number.to_string()),
                ("device", tally.device.clone()),
            ];
            ModelView { uid: tally.uid, labels, burst: of_bursts, socket: of_socket }
        };
        let views = models.alive.iter().map(view).collect();
        (views, burst, socket)
    }

    /// Calls back for every model that lives, with its number.
    fn for_each_model(&self, mut look: impl FnMut(u64, &ModelTally)) {
        // Without the lock: a look is not to hold up who begins or ends.
        let alive: Vec<(u64, Arc<ModelTally>)> = {
            let models = lock(&self.models);
            models.alive.iter().map(|(number, tally)| (*number, Arc::clone(tally))).collect()
        };
        alive.iter().for_each(|(number, tally)| look(*number, tally));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use burst_hal::ErrorStatus;

    use super::*;
    use crate::admission::{Limit, Limits};

    impl Metrics {
        pub(crate) fn model_of(
            self: &Arc<Self>,
            client: u64,
            uid: u32,
            device: &str,
        ) -> ModelMeter {
            let account = ModelAccount::new(&self.users.find(uid));
            self.model(client, uid, device, account)
        }
    }

    pub(crate) fn metrics() -> Arc<Metrics> {
        let performance = Arc::new(Performance::off());
        let users = Arc::new(Users::new(&Limits::default()));
        let turns = Arc::default();
        Arc::new(Metrics::new(true, performance, SandboxReport::off(), users, turns))
    }

    #[test]
    fn totals_never_go_back_when_bursts_and_models_go() {
        let metrics = metrics();
        let totals = || {
            let (_, burst, socket) = metrics.look();
            (burst.requests(), socket.requests())
        };
        let model = metrics.model_of(1, 0, "cpu");
        let burst = model.burst();
        let other = model.burst();
        burst.counts.count_alone(ErrorStatus::None, Some(1000));
        other.counts.count_alone(ErrorStatus::InvalidArgument, None);
        model.socket().count(ErrorStatus::None, Some(5));
        assert_eq!(totals(), (2, 1));
        drop(burst);
        assert_eq!(totals(), (2, 1));
        drop(other);
        drop(model);
        assert_eq!(totals(), (2, 1));
        assert!(metrics.look().0.is_empty());
    }

    #[test]
    fn the_text_is_whole_and_names_what_was_counted() {
        let metrics = metrics();
        let model = metrics.model_of(7, 0, "c\"pu\n");
        let burst = model.burst();
        burst.counts.count_alone(ErrorStatus::None, Some(3_000));
        burst.counts.executing_alone();
        metrics.limits.refused(Limit::Bursts);
        metrics.malformed_packet();
        let text = metrics.encode();
        for line in [
            "# TYPE burst_requests counter",
            "burst_requests_total{path=\"burst\",status=\"OK\"} 1",
            "burst_requests_total{path=\"socket\",status=\"OK\"} 0",
            "burst_executions_total{path=\"burst\"} 1",
            "burst_refusals_total{limit=\"bursts\"} 1",
            "burst_malformed_packets_total 1",
            "burst_request_duration_seconds_count{path=\"burst\"} 1",
            "burst_request_duration_seconds_bucket{le=\"0.000005\",path=\"burst\"} 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        assert!(text.contains("device=\"c\\\"pu\\n\""), "labels are escaped");
    }

    #[test]
    fn a_client_sees_its_own_sessions_and_the_owner_all() {
        let metrics = metrics();
        let peer = |uid| crate::admission::Peer { pid: Some(7), uid, gid: uid };
        let shown = [(1, 1001), (2, 1002)].map(|(client, uid)| {
            let session = metrics.session(client, peer(uid), "an \"app\"");
            (session, metrics.model_of(client, uid, "cpu"), metrics.users.find(uid))
        });
        shown[0].1.socket().count(ErrorStatus::None, Some(1_500));
        let sees = |reader| {
            let look: serde_json::Value =
                serde_json::from_str(&metrics.sessions_for(reader)).unwrap();
            let count = |key: &str| look[key].as_array().unwrap().len();
            assert_eq!(count("sessions"), count("models"), "{look}");
            assert_eq!(count("sessions"), count("users"), "{look}");
            (count("sessions"), look["models"][0]["requests"].as_u64())
        };
        assert_eq!(sees(Reader::User(1001)), (1, Some(1)));
        assert_eq!(sees(Reader::User(1002)), (1, Some(0)));
        assert_eq!(sees(Reader::User(1003)), (0, None));
        assert_eq!(sees(Reader::Owner), (2, Some(1)));
        drop(shown);
        assert_eq!(sees(Reader::Owner).0, 0, "who is gone is not shown");
    }

    #[test]
    fn each_user_reads_the_totals_and_its_own_figures_and_the_owner_reads_all() {
        let metrics = metrics();
        let models =
            [(1, 1001), (2, 1002)].map(|(client, uid)| metrics.model_of(client, uid, "cpu"));
        models.iter().for_each(|model| model.socket().count(ErrorStatus::None, Some(5)));
        let held = [1001, 1002].map(|uid| metrics.users.find(uid));
        let sees = |reader| {
            let text = metrics.text_for(reader);
            let total = "burst_requests_total{path=\"socket\",status=\"OK\"} 2";
            assert!(text.contains(total), "{text}");
            assert!(text.contains("burst_service_limit{resource=\"memory_bytes\"}"), "{text}");
            [1, 2].map(|user| {
                let account = format!("burst_user_used{{user=\"100{user}\",");
                let client = format!("{{client=\"{user}\",");
                assert_eq!(text.contains(&account), text.contains(&client), "{text}");
                text.contains(&account)
            })
        };
        assert_eq!(sees(Reader::User(1001)), [true, false]);
        assert_eq!(sees(Reader::User(1002)), [false, true]);
        assert_eq!(sees(Reader::User(1003)), [false, false]);
        assert_eq!(sees(Reader::Owner), [true, true]);
        drop((models, held));
        assert!(!metrics.encode().contains("burst_user_used{"), "who is gone is not shown");
    }
}
