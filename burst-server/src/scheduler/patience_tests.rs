//! Devices that do not give way, and those whose turn it is meanwhile.

use super::super::super::beside::BESIDE_MAX;
use super::*;

const PATIENCE: u64 = 20 * MS;
const LENGTH: u64 = 2_000 * MS;
/// Longer than any of these simulations.
const ENDLESS: u64 = 10 * LENGTH;

fn stubborn(of: Claimant) -> Actor {
    Actor::new(of, ENDLESS, ENDLESS, 0)
}

/// Comes again and again with a request of a millisecond.
fn honest(of: Claimant) -> Actor {
    let mut honest = Actor::new(of, MS, 100 * US, 10 * US);
    honest.state = State::Pauses { until: 1 }; // after those that keep the tokens
    honest
}

#[test]
fn who_waits_for_a_run_that_never_ends_computes_beside_it_after_its_patience_and_then_at_once() {
    let actors = vec![stubborn(of(1, 1)), honest(of(2, 2))];
    let after = Simulation::run_with(1, Some(PATIENCE), actors, LENGTH);
    let honest = &after.actors[1];
    assert_eq!(honest.longest_wait, PATIENCE);
    // It waits once, and pauses for a hundredth of the time.
    let got = share(honest.computed, LENGTH);
    assert!(got > 0.95, "{got}");
    assert_eq!(after.most_beside, 1);
}

#[test]
fn without_an_end_of_patience_it_waits_as_long_as_that_takes() {
    let actors = vec![stubborn(of(1, 1)), honest(of(2, 2)), honest(of(3, 3))];
    let mut simulation = Simulation {
        turns: Turns::new(1, None, Arc::default()),
        actors,
        now: 0,
        look_at: None,
        most_beside: 0,
    };
    (0..3).for_each(|_| simulation.next()); // each comes
    assert_eq!((simulation.turns.counts(), simulation.look_at), ((0, 2), None));
    simulation.next(); // the end of the one that never gives way
    assert_eq!((simulation.now, simulation.turns.beside()), (ENDLESS, 0));
    assert_eq!(simulation.actors[1].longest_wait, ENDLESS - 1);
}

#[test]
fn all_runs_of_whoever_gives_no_way_have_one_core_more_and_not_those_of_others() {
    let mut actors: Vec<_> = (0..64).map(|burst| stubborn(of(1, burst % 4))).collect();
    actors.extend((2..6).map(|user| honest(of(user, user.into()))));
    let after = Simulation::run_with(2, Some(PATIENCE), actors, LENGTH);
    let begun = after.actors[..64].iter().filter(|one| !matches!(one.state, State::Waits { .. }));
    assert_eq!(begun.count(), 2 + BESIDE_PER_USER, "two have tokens");
    for honest in &after.actors[64..] {
        assert!(
            honest.longest_wait <= PATIENCE,
            "user {}: {}",
            honest.of.user,
            honest.longest_wait
        );
        let got = share(honest.computed, LENGTH);
        assert!(got > 0.9, "user {}: {got}", honest.of.user);
    }
    assert_eq!(after.most_beside, 5);
}

#[test]
fn never_more_compute_than_there_are_tokens_and_places_beside() {
    let users = 3 * u32::try_from(BESIDE_MAX).unwrap();
    let actors = (0..users).flat_map(|user| (0..3).map(move |burst| stubborn(of(user, burst))));
    let after = Simulation::run_with(3, Some(PATIENCE), actors.collect(), LENGTH);
    let computing = after.actors.iter().filter(|one| !matches!(one.state, State::Waits { .. }));
    assert_eq!(computing.count(), 3 + BESIDE_MAX);
    assert_eq!(after.most_beside, BESIDE_MAX);
}

#[test]
fn users_beyond_the_places_beside_take_turns_with_those_that_have_one() {
    let mut actors = vec![stubborn(of(0, 0))];
    let users = 2 * u32::try_from(BESIDE_MAX).unwrap();
    actors.extend((1..=users).map(|user| honest(of(user, user.into()))));
    let after = Simulation::run_with(1, Some(PATIENCE), actors, LENGTH);
    for honest in &after.actors[1..] {
        let got = share(honest.computed, LENGTH);
        assert!((got - 0.5).abs() < 0.05, "user {}: {got}", honest.of.user);
    }
    assert_eq!(after.most_beside, BESIDE_MAX);
}

#[test]
fn nobody_computes_beside_a_device_that_gives_way() {
    // Steps of a millisecond, and runs that are far longer than anybody's patience.
    let actors =
        (0..6).map(|user| Actor::new(of(user, user.into()), 400 * MS, MS, 10 * US)).collect();
    let after = Simulation::run_with(2, Some(PATIENCE), actors, LENGTH);
    assert_eq!(after.most_beside, 0);
    // Nor where it is never the turn of one that waits: its user has something more urgent.
    let low = Claimant { priority: Priority::Low, ..of(1, 2) };
    let mut less_urgent = honest(low);
    less_urgent.state = State::Pauses { until: 1 };
    let actors = vec![Actor::new(of(1, 1), ENDLESS, MS, 0), less_urgent];
    let after = Simulation::run_with(1, Some(PATIENCE), actors, LENGTH);
    assert_eq!((after.most_beside, after.actors[1].computed), (0, 0));
}

#[test]
fn tokens_that_move_again_are_shared_as_before() {
    // It ends after a quarter of the time, in which two have computed beside it.
    let slow = Actor::new(of(1, 1), LENGTH / 4, LENGTH / 4, ENDLESS);
    let actors = vec![slow, honest(of(2, 2)), honest(of(3, 3))];
    let after = Simulation::run_with(1, Some(PATIENCE), actors, LENGTH);
    assert_eq!((after.most_beside, after.turns.beside()), (2, 0));
    for honest in &after.actors[1..] {
        assert!(honest.longest_wait <= PATIENCE, "{}", honest.longest_wait);
        let got = share(honest.computed, LENGTH);
        assert!((got - (0.24 + 0.75 / 2.0)).abs() < 0.02, "{got}");
    }
}

#[test]
fn whoever_looks_says_when_to_look_again() {
    let turns = Turns::new(1, Some(PATIENCE), Arc::default());
    let (a, b, c) = (of(1, 1), of(2, 2), of(3, 3));
    let nothing = |again_at| Watched { granted: Vec::<u32>::new(), again_at };
    assert!(turns.try_take());
    assert_eq!(turns.take_or_wait(b, 2, 100), Asked::Waits { watch_at: Some(100 + PATIENCE) });
    assert_eq!(turns.take_or_wait(c, 3, 101), Asked::Waits { watch_at: None }, "one looks already");
    // The one with the token asks, and goes on: its patience begins anew.
    let verdict = turns.give_way(a, 1, QUIET, 200);
    let Verdict::GoOn(slice) = verdict else { panic!("{verdict:?}") };
    assert_eq!(turns.watch(100 + PATIENCE), nothing(Some(200 + PATIENCE)));
    let over = 200 + PATIENCE;
    // Nobody waits any more, and nobody has come since the last look.
    assert_eq!(turns.watch(over), Watched { granted: vec![2, 3], again_at: None });
    assert!(!turns.try_take() && !turns.try_give_back(), "it is to say that tokens move");
    assert!(turns.are_wanted());
    assert_eq!(turns.give_back(a, slice, over + 2 * PATIENCE), None);
    assert!(!turns.are_wanted());
    for of in [b, c] {
        let beside = Slice { since: Some(over), charged: over, is_beside: true };
        assert_eq!(turns.give_back(of, beside, over + 2 * PATIENCE), None);
    }
    assert_eq!((turns.counts(), turns.beside()), ((1, 0), 0));
    // Who has waited between two looks is a reason to look once more.
    assert!(turns.try_take());
    assert_eq!(turns.take_or_wait(b, 2, 0), Asked::Waits { watch_at: Some(PATIENCE) });
    assert!(turns.leave(b, &2, 1));
    assert_eq!(turns.watch(PATIENCE), nothing(Some(2 * PATIENCE)));
    assert_eq!(turns.watch(2 * PATIENCE), nothing(None));
    // Nobody could look: whoever waits next says it again.
    assert_eq!(turns.take_or_wait(b, 2, 0), Asked::Waits { watch_at: Some(PATIENCE) });
    turns.note_unwatched();
    assert_eq!(turns.take_or_wait(c, 3, 5), Asked::Waits { watch_at: Some(5 + PATIENCE) });
}
