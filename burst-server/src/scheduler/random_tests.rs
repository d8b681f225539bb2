//! Many runs that come, compute, give way and leave at random, what holds after every step of theirs, and
//! how long any of them waits at most.

use std::collections::BTreeSet;

use super::super::super::beside::BESIDE_MAX;
use super::*;

/// Different sets of runs.
const SEEDS: u64 = 60;
const LENGTH: u64 = 2_000 * MS;
const PATIENCE: u64 = 20 * MS;
/// The longest that any of them computes without a question whose turn it is, in most sets.
const STEP_MAX: u64 = 5 * MS;
/// The same of runs that hardly ever ask.
const STUBBORN_MAX: u64 = 100 * MS;

/// Numbers that are the same in each run of the test (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn place(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// A length of time between 10 us and `most`, small ones as likely as large ones.
    fn time(&mut self, most: u64) -> u64 {
        let most = 1 + self.below(most);
        10 * US + self.below(most)
    }
}

fn claimant(numbers: &mut Numbers, with_priorities: bool) -> Claimant {
    let user = 1 + numbers.below(5);
    // A connection belongs to one user.
    let connection = 10 * user + numbers.below(4);
    let priorities = [Priority::Medium, Priority::Low, Priority::High];
    let priority = if with_priorities { priorities[numbers.place(3)] } else { Priority::Medium };
    Claimant { priority, ..of(u32::try_from(user).unwrap(), connection) }
}

fn actor(numbers: &mut Numbers, step_max: u64, with_priorities: bool) -> Actor {
    let of = claimant(numbers, with_priorities);
    let step = numbers.time(step_max);
    // Some are never done: they only ever give way.
    let request = if numbers.one_in(4) { LENGTH } else { numbers.time(4 * step_max) };
    let pause = if numbers.one_in(3) { 0 } else { numbers.time(30 * MS) };
    let mut actor = Actor::new(of, request, step, pause);
    actor.state = State::Pauses { until: numbers.below(LENGTH / 4) };
    actor
}

/// What holds whenever nobody takes a step.
fn check(simulation: &Simulation, tokens: u64, patience: Option<u64>) {
    let Simulation { turns, actors, now, look_at, .. } = simulation;
    let beside = |actor: &&Actor| {
        matches!(actor.state, State::Computes { slice: Slice { is_beside: true, .. }, .. })
    };
    let computing = |actor: &&Actor| matches!(actor.state, State::Computes { .. });
    let waits = |actor: &&Actor| matches!(actor.state, State::Waits { .. });
    let [beside, computing, waits] = [
        actors.iter().filter(beside).count(),
        actors.iter().filter(computing).count(),
        actors.iter().filter(waits).count(),
    ];
    let (free, waiting) = turns.counts();
    assert_eq!(free + (computing - beside) as u64, tokens, "no token is lost or doubled");
    assert_eq!((turns.beside(), waiting), (beside, waits as u64));
    assert!(beside <= BESIDE_MAX);
    assert!(waiting == 0 || free == 0, "nobody waits while a token is free");
    assert!(!turns.keeps_a_place_beside(), "nobody waits who may compute beside");
    let Some(patience) = patience else { return };
    assert!(waiting == 0 || look_at.is_some(), "somebody looks after those that wait");
    if let Some(moved) = turns.waits_without_a_move_since() {
        assert!(
            *now <= moved + patience,
            "patience was over at {}, now it is {now}",
            moved + patience
        );
    }
}

/// Lets these take turns, checking every step, and some leave while they wait. Gives what came of each.
fn let_take_turns(
    numbers: &mut Numbers,
    tokens: u32,
    patience: Option<u64>,
    actors: Vec<Actor>,
) -> Vec<Actor> {
    let turns = Turns::new(tokens, patience, Arc::default());
    let mut simulation = Simulation { turns, actors, now: 0, look_at: None, most_beside: 0 };
    while simulation.now < LENGTH {
        simulation.next();
        check(&simulation, tokens.into(), patience);
        if numbers.one_in(500) {
            let at = numbers.place(simulation.actors.len());
            leave(&mut simulation, at);
            check(&simulation, tokens.into(), patience);
        }
    }
    for actor in &mut simulation.actors {
        if let State::Waits { since, .. } = actor.state {
            actor.longest_wait = actor.longest_wait.max(simulation.now - since);
        }
    }
    simulation.actors
}

/// One that waits gives up: its client is gone, or its deadline passed.
fn leave(simulation: &mut Simulation, at: usize) {
    let (now, actor) = (simulation.now, &mut simulation.actors[at]);
    if let State::Waits { .. } = actor.state {
        assert!(simulation.turns.leave(actor.of, &at, now), "who waits can leave");
        actor.state = State::Pauses { until: now + actor.pause };
    }
}

/// Sets of runs, with or without priorities, on one to three tokens. Gives the longest that anybody waited.
fn explore_at_random(patience: Option<u64>, step_max: u64, with_priorities: bool) -> u64 {
    let mut longest = 0;
    for seed in 1..=SEEDS {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let tokens = 1 + numbers.below(3);
        let runs = 2 + numbers.below(24);
        let actors = (0..runs).map(|_| actor(&mut numbers, step_max, with_priorities)).collect();
        let tokens = u32::try_from(tokens).unwrap();
        let after = let_take_turns(&mut numbers, tokens, patience, actors);
        // The least urgent may wait for ever.
        if !with_priorities {
            after
                .iter()
                .for_each(|one| check_wait(seed, one, &after, patience.unwrap_or(0) + step_max));
        }
        longest = after.iter().map(|one| one.longest_wait).max().unwrap_or(0).max(longest);
    }
    longest
}

/// It waits for each other run of its user once, and meanwhile each other user computes as long as its own:
/// a run may be a quantum behind when it comes, and goes a quantum ahead, and then as far as it is until it
/// asks, or until others compute beside it.
fn check_wait(seed: u64, one: &Actor, all: &[Actor], until_it_asks: u64) {
    let users: BTreeSet<u32> = all.iter().map(|one| one.of.user).collect();
    let of_user = all.iter().filter(|other| other.of.user == one.of.user).count();
    let most = (users.len() * of_user) as u64 * (2 * QUANTUM_NS + until_it_asks);
    let waited = one.longest_wait;
    assert!(waited <= most, "seed {seed}, {:?}: {waited} ns, at most {most}", one.of);
}

#[test]
fn whoever_waits_has_its_turn_soon_and_no_token_is_idle_meanwhile() {
    for patience in [None, Some(PATIENCE)] {
        let longest = explore_at_random(patience, STEP_MAX, false);
        println!("patience {patience:?}: waited {} ms at most", longest / MS);
    }
}

#[test]
fn whoever_waits_for_runs_that_hardly_ask_has_its_turn_and_no_place_beside_is_idle_meanwhile() {
    let longest = explore_at_random(Some(PATIENCE), STUBBORN_MAX, false);
    println!("waited {} ms at most", longest / MS);
}

#[test]
fn nobody_is_forgotten_whatever_the_priorities() {
    for step_max in [STEP_MAX, STUBBORN_MAX] {
        explore_at_random(Some(PATIENCE), step_max, true);
    }
}
