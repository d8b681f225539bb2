//! The very steps that threads take, without threads: all interleavings of a few runs, and simulations of
//! many on a clock of their own. `patience_tests.rs` has those in which a device does not give way, `random_tests.rs`
//! many that nobody thought of.

use std::time::Duration;

use burst_hal::Priority;

use super::super::beside::BESIDE_PER_USER;
use super::super::claims::QUANTUM_NS;
use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// In place of a run: somebody looks after those that wait.
const LOOK: usize = usize::MAX;

fn of(user: u32, connection: u64) -> Claimant {
    Claimant { user, connection, priority: Priority::Medium }
}

/// What a run does next, one atomic step at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Take,
    TakeOrWait,
    /// Waits for a token; it may leave.
    Waits,
    GiveWay(Slice),
    EndQuietly(Slice),
    End(Slice),
    Done,
}

const QUIET: Slice = Slice { since: None, charged: 0, is_beside: false };

fn slice(now: u64, is_beside: bool) -> Slice {
    Slice { since: Some(now), charged: now, is_beside }
}

/// A few runs, each of which computes so many times and gives way once in each.
struct Model {
    turns: Turns<usize>,
    tokens: u64,
    runs: Vec<(Claimant, Next, u32)>,
    /// Where a run comes to when it gets the token that it waits for.
    resumes: Vec<fn(Slice) -> Next>,
    now: u64,
    /// How often somebody may still look after those that wait.
    looks: u32,
}

impl Model {
    fn new(tokens: u32, claimants: &[Claimant], rounds: u32, looks: u32) -> Self {
        let runs: Vec<_> = claimants.iter().map(|of| (*of, Next::Take, rounds)).collect();
        let resumes = vec![Next::GiveWay as fn(Slice) -> Next; runs.len()];
        // Every look finds that patience is over.
        let turns = Turns::new(tokens, (looks > 0).then_some(0), Arc::default());
        Model { turns, tokens: tokens.into(), runs, resumes, now: 1, looks }
    }

    /// Every step that is possible now: a run, and whether it leaves; behind them, somebody looks.
    fn possible(&self) -> Vec<(usize, bool)> {
        let looks = (self.looks > 0 && self.turns.counts().1 > 0).then_some((LOOK, false));
        self.steps().into_iter().chain(looks).collect()
    }

    fn steps(&self) -> Vec<(usize, bool)> {
        let step = |(at, (_, next, _)): (usize, &(Claimant, Next, u32))| match next {
            Next::Done => None,
            Next::Waits => Some((at, true)),
            _ => Some((at, false)),
        };
        self.runs.iter().enumerate().filter_map(step).collect()
    }

    fn step(&mut self, at: usize) {
        self.now += QUANTUM_NS; // whoever gives way has had its quantum
        if at == LOOK {
            self.looks -= 1;
            let watched = self.turns.watch(self.now);
            watched
                .granted
                .into_iter()
                .for_each(|run| self.grant(Granted { run, is_beside: true }));
            return;
        }
        let (of, next, _) = self.runs[at];
        let next = match next {
            Next::Take if self.turns.try_take() => Next::GiveWay(QUIET),
            Next::Take => Next::TakeOrWait,
            Next::TakeOrWait => {
                self.resumes[at] = Next::GiveWay;
                match self.turns.take_or_wait(of, at, self.now) {
                    Asked::Token => Next::GiveWay(QUIET),
                    Asked::Beside => Next::GiveWay(slice(self.now, true)),
                    Asked::Waits { .. } => Next::Waits,
                }
            }
            Next::Waits => {
                assert!(self.turns.leave(of, &at, self.now), "who waits can leave");
                Next::Done
            }
            Next::GiveWay(slice) if !self.turns.are_wanted() => Next::EndQuietly(slice),
            Next::GiveWay(slice) => match self.turns.give_way(of, at, slice, self.now) {
                Verdict::GoOn(slice) => Next::EndQuietly(slice),
                Verdict::Waits(next) => {
                    self.resumes[at] = Next::EndQuietly;
                    self.runs[at].1 = Next::Waits;
                    next.into_iter().for_each(|next| self.grant(next));
                    return;
                }
            },
            Next::EndQuietly(slice) if !slice.is_beside && self.turns.try_give_back() => {
                self.after_round(at)
            }
            Next::EndQuietly(slice) => Next::End(slice),
            Next::End(slice) => {
                if let Some(next) = self.turns.give_back(of, slice, self.now) {
                    self.grant(next);
                }
                self.after_round(at)
            }
            Next::Done => unreachable!("it has nothing to do"),
        };
        self.runs[at].1 = next;
    }

    fn after_round(&mut self, at: usize) -> Next {
        self.runs[at].2 -= 1;
        if self.runs[at].2 == 0 { Next::Done } else { Next::Take }
    }

    fn grant(&mut self, Granted { run, is_beside }: Granted<usize>) {
        assert_eq!(self.runs[run].1, Next::Waits, "only who waits is given a token");
        self.runs[run].1 = self.resumes[run](slice(self.now, is_beside));
    }

    fn check(&self) {
        let holds = |next: &Next| match next {
            Next::GiveWay(slice) | Next::EndQuietly(slice) | Next::End(slice) => Some(*slice),
            _ => None,
        };
        let computing: Vec<_> =
            self.runs.iter().filter_map(|(of, next, _)| Some((of.user, holds(next)?))).collect();
        let beside: Vec<_> = computing.iter().filter(|(_, slice)| slice.is_beside).collect();
        for (user, _) in &beside {
            let of_user = beside.iter().filter(|(one, _)| one == user).count();
            assert!(of_user <= BESIDE_PER_USER, "user {user} has {of_user} beside");
        }
        assert_eq!(beside.len(), self.turns.beside());
        let held = (computing.len() - beside.len()) as u64;
        let waits = self.runs.iter().filter(|(_, next, _)| *next == Next::Waits).count() as u64;
        let (free, waiting) = self.turns.counts();
        assert_eq!(free + held, self.tokens, "no token is lost or doubled");
        assert_eq!(waiting, waits);
        assert!(waiting == 0 || free == 0, "nobody waits while a token is free");
    }
}

/// Runs every order of steps of these runs; gives how many there are. Runs leave in all the ways that
/// they can where `leaving`, and otherwise wait to the end. So many times somebody looks after them, and
/// finds their patience over.
fn explore(tokens: u32, claimants: &[Claimant], rounds: u32, leaving: bool, looks: u32) -> u64 {
    let mut orders = 0;
    // The choices of the current order, and how many there were at each.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut model = Model::new(tokens, claimants, rounds, looks);
        for at in 0.. {
            let mut possible = model.possible();
            if !leaving {
                possible.retain(|(_, leaves)| !leaves);
            }
            if possible.is_empty() {
                break;
            }
            if at == choices.len() {
                choices.push((0, possible.len()));
            }
            model.step(possible[choices[at].0].0);
            model.check();
        }
        let done = model.runs.iter().all(|(_, next, _)| *next == Next::Done);
        assert!(done, "somebody waits for ever: {:?} after {choices:?}", model.runs);
        assert_eq!(model.turns.counts(), (tokens.into(), 0));
        assert_eq!(model.turns.beside(), 0);
        orders += 1;
        while let Some((choice, count)) = choices.pop() {
            if choice + 1 < count {
                choices.push((choice + 1, count));
                break;
            }
        }
        if choices.is_empty() {
            return orders;
        }
    }
}

#[test]
fn no_token_is_lost_or_doubled_and_nobody_waits_for_ever_in_any_interleaving() {
    let three = [of(1, 1), of(1, 2), of(2, 3)];
    let orders = [
        explore(1, &three, 1, false, 0),
        explore(2, &three, 1, false, 0),
        explore(1, &three[1..], 2, true, 0),
        explore(1, &[of(1, 1), of(1, 1), of(2, 3)], 1, true, 0),
        explore(2, &three, 1, true, 0),
        explore(1, &three, 1, false, 1),
        explore(1, &three[1..], 1, true, 2),
        explore(1, &three[1..], 2, false, 2),
        explore(2, &three, 1, false, 1),
    ];
    println!("interleavings explored: {orders:?}");
    assert!(orders.iter().all(|orders| *orders > 100), "{orders:?}");
}

/// Somebody who computes again and again.
#[derive(Debug, Clone)]
struct Actor {
    of: Claimant,
    /// How long a request takes, how long a step of it, and how long until the next request.
    request: u64,
    step: u64,
    pause: u64,
    state: State,
    computed: u64,
    /// How long it has computed or waited.
    wanted: u64,
    longest_wait: u64,
}

#[derive(Debug, Clone)]
enum State {
    Pauses { until: u64 },
    Waits { since: u64, left: u64 },
    Computes { slice: Slice, until: u64, left: u64 },
}

impl Actor {
    fn new(of: Claimant, request: u64, step: u64, pause: u64) -> Self {
        let state = State::Pauses { until: 0 };
        Actor { of, request, step, pause, state, computed: 0, wanted: 0, longest_wait: 0 }
    }
}

struct Simulation {
    turns: Turns<usize>,
    actors: Vec<Actor>,
    now: u64,
    /// When somebody looks after those that wait.
    look_at: Option<u64>,
    /// The most runs that computed without a token at once.
    most_beside: usize,
}

impl Simulation {
    fn run(tokens: u32, actors: Vec<Actor>, length: u64) -> Vec<Actor> {
        Simulation::run_with(tokens, None, actors, length).actors
    }

    fn run_with(tokens: u32, patience: Option<u64>, actors: Vec<Actor>, length: u64) -> Simulation {
        let turns = Turns::new(tokens, patience, Arc::default());
        let mut simulation = Simulation { turns, actors, now: 0, look_at: None, most_beside: 0 };
        while simulation.now < length {
            simulation.next();
            simulation.most_beside = simulation.most_beside.max(simulation.turns.beside());
        }
        simulation
    }

    fn next(&mut self) {
        let due = |actor: &Actor| match actor.state {
            State::Pauses { until } | State::Computes { until, .. } => Some(until),
            State::Waits { .. } => None,
        };
        let next =
            self.actors.iter().enumerate().filter_map(|(at, one)| Some((due(one)?, at))).min();
        let (now, at) = match (next, self.look_at) {
            (Some((now, _)), Some(look)) if look < now => return self.look(look),
            (None, Some(look)) => return self.look(look),
            (next, _) => next.expect("somebody goes on"),
        };
        self.now = now;
        match self.actors[at].state.clone() {
            State::Pauses { .. } => self.begin(at),
            State::Computes { slice, left, .. } => self.after_step(at, slice, left),
            State::Waits { .. } => unreachable!("it is due for nothing"),
        }
    }

    fn look(&mut self, now: u64) {
        self.now = now;
        let watched = self.turns.watch(now);
        self.look_at = watched.again_at;
        watched.granted.into_iter().for_each(|run| self.grant(Granted { run, is_beside: true }));
    }

    fn begin(&mut self, at: usize) {
        let (of, left) = (self.actors[at].of, self.actors[at].request);
        if self.turns.try_take() {
            return self.compute(at, QUIET, left);
        }
        match self.turns.take_or_wait(of, at, self.now) {
            Asked::Token => self.compute(at, QUIET, left),
            Asked::Beside => self.compute(at, slice(self.now, true), left),
            Asked::Waits { watch_at } => {
                self.look_at = self.look_at.or(watch_at);
                self.actors[at].state = State::Waits { since: self.now, left };
            }
        }
    }

    fn compute(&mut self, at: usize, slice: Slice, left: u64) {
        let until = self.now + self.actors[at].step.min(left);
        self.actors[at].state = State::Computes { slice, until, left };
    }

    fn after_step(&mut self, at: usize, slice: Slice, left: u64) {
        let actor = &mut self.actors[at];
        let (of, took) = (actor.of, actor.step.min(left));
        actor.computed += took;
        actor.wanted += took;
        let left = left - took;
        if left == 0 {
            actor.state = State::Pauses { until: self.now + actor.pause };
            if (slice.is_beside || !self.turns.try_give_back())
                && let Some(next) = self.turns.give_back(of, slice, self.now)
            {
                self.grant(next);
            }
        } else if !self.turns.are_wanted() {
            self.compute(at, slice, left);
        } else {
            match self.turns.give_way(of, at, slice, self.now) {
                Verdict::GoOn(slice) => self.compute(at, slice, left),
                Verdict::Waits(next) => {
                    self.actors[at].state = State::Waits { since: self.now, left };
                    next.into_iter().for_each(|next| self.grant(next));
                }
            }
        }
    }

    fn grant(&mut self, Granted { run: at, is_beside }: Granted<usize>) {
        let State::Waits { since, left } = self.actors[at].state else {
            panic!("it does not wait")
        };
        let waited = self.now - since;
        self.actors[at].wanted += waited;
        self.actors[at].longest_wait = self.actors[at].longest_wait.max(waited);
        self.compute(at, slice(self.now, is_beside), left);
    }
}

fn share(part: u64, whole: u64) -> f64 {
    let [part, whole] = [part, whole].map(Duration::from_nanos);
    part.as_secs_f64() / whole.as_secs_f64()
}

#[test]
fn one_burst_of_one_user_gets_its_share_beside_sixty_four_of_another() {
    // Tokens, what the many do, what the one does.
    for (tokens, many, one) in [
        (1, (10 * MS, 50 * US), (10 * MS, 50 * US)),
        (2, (10 * MS, 50 * US), (10 * MS, 50 * US)),
        (2, (150 * US, 25 * US), (10 * MS, 50 * US)),
        (2, (150 * US, 25 * US), (150 * US, 25 * US)),
        (2, (100 * MS, 25 * US), (150 * US, 25 * US)),
        (1, (100 * MS, 25 * US), (300 * US, 25 * US)),
    ] {
        let mut actors = vec![Actor::new(of(2, 99), one.0, one.1, 10 * US)];
        actors.extend((0..64).map(|burst| Actor::new(of(1, burst % 4), many.0, many.1, 10 * US)));
        let after = Simulation::run(tokens, actors, 2_000 * MS);
        let got = share(after[0].computed, after[0].wanted * u64::from(tokens));
        println!("{tokens} tokens, many {many:?}, one {one:?}: {:.1} % of computing", got * 100.0);
        assert!(got >= 0.4, "{got} with {tokens} tokens, many {many:?}, one {one:?}");
        let all: u64 = after.iter().map(|actor| actor.computed).sum();
        let busy = share(all, 2_000 * MS * u64::from(tokens));
        assert!(busy > 0.99, "no core idles while somebody waits: {busy}");
    }
}

#[test]
fn users_that_want_more_than_there_is_get_equal_shares() {
    let actors: Vec<_> = [(1, 40), (2, 4), (3, 8)]
        .into_iter()
        .flat_map(|(user, bursts)| {
            (0..bursts).map(move |burst| {
                Actor::new(of(user, burst), (1 + burst % 5) * MS, 100 * US, 5 * US)
            })
        })
        .collect();
    let after = Simulation::run(2, actors, 3_000 * MS);
    for user in 1..=3 {
        let of_user = after.iter().filter(|actor| actor.of.user == user);
        let got = share(of_user.map(|actor| actor.computed).sum(), 2 * 3_000 * MS);
        println!("user {user}: {:.1} %", got * 100.0);
        assert!((got - 1.0 / 3.0).abs() < 0.02, "user {user}: {got}");
    }
}

#[test]
fn connections_of_a_user_have_equal_shares_and_so_have_bursts_of_a_connection() {
    let mut actors: Vec<_> = (0..9).map(|_| Actor::new(of(1, 1), 50 * MS, 100 * US, 0)).collect();
    actors.push(Actor::new(of(1, 2), 50 * MS, 100 * US, 0));
    let after = Simulation::run(1, actors, 3_000 * MS);
    let alone = share(after[9].computed, 3_000 * MS);
    assert!((alone - 0.5).abs() < 0.02, "{alone}");
    for actor in &after[..9] {
        let got = share(actor.computed, 3_000 * MS);
        assert!((got - 0.5 / 9.0).abs() < 0.02, "{got}");
    }
}

#[test]
fn a_driver_that_never_gives_way_delays_others_by_one_execution_and_pays_for_it() {
    let mut actors = vec![Actor::new(of(2, 9), 30 * MS, 100 * US, 0)];
    actors.extend((0..8).map(|burst| Actor::new(of(1, burst), 30 * MS, 30 * MS, 0)));
    let after = Simulation::run(1, actors, 6_000 * MS);
    assert!(after[0].longest_wait <= 30 * MS, "{}", after[0].longest_wait);
    let got = share(after[0].computed, 6_000 * MS);
    assert!((got - 0.5).abs() < 0.02, "{got}");
}

#[test]
fn long_idleness_is_no_credit() {
    // The second one comes after a second in which the first was alone with its own bursts.
    let mut actors: Vec<_> =
        (0..2).map(|burst| Actor::new(of(1, burst), 50 * MS, 50 * US, 0)).collect();
    let mut late = Actor::new(of(2, 9), 50 * MS, 50 * US, 0);
    late.state = State::Pauses { until: 1_000 * MS };
    actors.push(late);
    let after = Simulation::run(1, actors, 1_200 * MS);
    let got = share(after[2].computed, 200 * MS);
    assert!((got - 0.5).abs() < 0.03, "half from the beginning, not all: {got}");
}

#[test]
fn what_was_computed_alone_is_no_debt() {
    let mut one = Actor::new(of(1, 1), 10 * MS, 50 * US, 0);
    let mut other = Actor::new(of(2, 2), 10 * MS, 50 * US, 0);
    one.state = State::Pauses { until: 0 };
    other.state = State::Pauses { until: 2_000 * MS };
    let before = Simulation::run(1, vec![one.clone()], 2_000 * MS)[0].computed;
    let after = Simulation::run(1, vec![one, other], 2_400 * MS);
    let got = share(after[0].computed - before, 400 * MS);
    assert!((got - 0.5).abs() < 0.03, "{got}");
}

#[path = "patience_tests.rs"]
mod patience;

#[path = "random_tests.rs"]
mod random;
