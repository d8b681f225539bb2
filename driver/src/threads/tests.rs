use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use super::*;

const ONE_BY_ONE: Tiling =
    Tiling { row_len: 3, step: 1, share_step: None, least: 1, most: 5, nanos: 1_000_000_000 };

/// With more threads than these helpers do not poll.
const CPUS: usize = 4;

/// Turns a hang into a failure.
const LONG: Duration = Duration::from_secs(60);

/// Runs `compute` on an output of so many rows of 3, on a pool of so many threads.
fn run(
    threads: usize,
    rows: usize,
    tiling: Tiling,
    compute: impl Fn(usize, &mut [usize], &mut Scratch) -> Result<(), OpError> + Sync,
) -> (Vec<usize>, Result<(), OpError>) {
    let pool = ThreadPool::new(threads, CPUS);
    let scope = pool.begin(true);
    let mut out = vec![usize::MAX; rows * 3];
    let parallelism = Parallelism::eager(&scope);
    let result =
        parallelism.tiles(&tiling, &mut out, &mut Scratch::default(), Stop::default(), compute);
    (out, result)
}

fn number(first: usize, out: &mut [usize]) {
    for (index, value) in out.iter_mut().enumerate() {
        *value = first * 3 + index;
    }
}

#[test]
fn every_row_is_computed_once_by_someone() {
    for threads in [1, 2, 3, 8, 17] {
        for (rows, step) in [(1, 1), (2, 1), (7, 2), (64, 1), (100, 14), (196, 24), (1000, 6)] {
            for share_step in [None, Some(1), Some(step)] {
                let calls = AtomicUsize::new(0);
                let tiling = Tiling { step, share_step, ..ONE_BY_ONE };
                let (out, result) = run(threads, rows, tiling, |row, out, _| {
                    calls.fetch_add(out.len() / 3, Ordering::Relaxed);
                    assert!(share_step.is_some() || row.is_multiple_of(step));
                    number(row, out);
                    Ok(())
                });
                assert_eq!(result, Ok(()));
                assert_eq!(
                    out,
                    (0..rows * 3).collect::<Vec<_>>(),
                    "{threads} threads, {rows} rows"
                );
                assert_eq!(calls.into_inner(), rows);
            }
        }
    }
}

/// Has rounds of work done until each thread of the pool took part. Whether a helper comes to a
/// certain round is up to the machine: one that has no CPU for itself stays away.
fn all_take_part(pool: &ThreadPool, is_expected: bool) {
    let until = Instant::now() + LONG;
    let there = Mutex::new(HashSet::new());
    loop {
        let scope = pool.begin(is_expected);
        let mut out = vec![0u8; 3 * pool.threads()];
        let mut scratch = Scratch::default();
        let parallelism = Parallelism::eager(&scope);
        let result =
            parallelism.tiles(&ONE_BY_ONE, &mut out, &mut scratch, Stop::default(), |_, _, _| {
                lock(&there).insert(std::thread::current().id());
                yield_until(|| lock(&there).len() == pool.threads());
                Ok(())
            });
        assert_eq!(result, Ok(()));
        assert!(scope.has_shared_work());
        if lock(&there).len() == pool.threads() {
            return;
        }
        assert!(Instant::now() < until, "a helper never comes");
        drop(scope);
        // Those who had no CPU look again, and lie down as those who had nothing to do.
        drop(pool.begin(true));
        yield_until(|| false);
    }
}

/// Gives the CPU to others, a number of times at the most.
fn yield_until(is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn helpers_take_part() {
    all_take_part(&ThreadPool::new(2, CPUS), true);
}

#[test]
fn an_error_in_any_tile_is_the_result_and_ends_the_work() {
    let begun = AtomicUsize::new(0);
    let (_, result) = run(3, 100_000, ONE_BY_ONE, |row, _, _| {
        begun.fetch_add(1, Ordering::Relaxed);
        if row >= 50 { Err(OpError::NotYet) } else { Ok(()) }
    });
    assert_eq!(result, Err(OpError::NotYet));
    assert!(begun.into_inner() < 1000, "most tiles were never begun");
}

#[test]
fn a_deadline_that_passed_stops_all_threads() {
    let pool = ThreadPool::new(2, CPUS);
    let scope = pool.begin(true);
    let stop = Stop {
        deadline: Some(burst_hal::TimePoint::after(std::time::Duration::ZERO)),
        ..Stop::default()
    };
    let result = Parallelism::eager(&scope).tiles(
        &ONE_BY_ONE,
        &mut [0u8; 99],
        &mut Scratch::default(),
        stop,
        |_, _, _| panic!("nothing is begun"),
    );
    assert_eq!(result, Err(OpError::Deadline));
}

#[test]
fn a_cancelled_execution_begins_no_further_tile() {
    let pool = ThreadPool::new(2, CPUS);
    let scope = pool.begin(true);
    let (caller, begun) = (burst_hal::Caller::default(), AtomicUsize::new(0));
    let stop = Stop { caller: Some(&caller), ..Stop::default() };
    for parallelism in [Parallelism::ALONE, Parallelism::eager(&scope)] {
        let mut scratch = Scratch::default();
        let result =
            parallelism.tiles(&ONE_BY_ONE, &mut [0u8; 99], &mut scratch, stop, |_, _, _| {
                begun.fetch_add(1, Ordering::Relaxed);
                caller.cancel_word().cancel();
                Ok(())
            });
        assert_eq!(result, Err(OpError::Cancelled));
    }
    assert_eq!(begun.into_inner(), 1, "the word stays set");
}

#[test]
fn a_panic_in_a_helper_is_an_error_and_the_pool_goes_on() {
    let pool = ThreadPool::new(2, CPUS);
    let own = std::thread::current().id();
    let until = Instant::now() + LONG;
    let error = loop {
        let scope = pool.begin(true);
        let panics = AtomicBool::new(false);
        let (mut out, mut scratch) = ([0u8; 6], Scratch::default());
        let parallelism = Parallelism::eager(&scope);
        let result =
            parallelism.tiles(&ONE_BY_ONE, &mut out, &mut scratch, Stop::default(), |_, _, _| {
                if std::thread::current().id() != own {
                    panics.store(true, Ordering::Relaxed);
                    panic!("on purpose");
                }
                yield_until(|| panics.load(Ordering::Relaxed));
                Ok(())
            });
        match result {
            Ok(()) => assert!(!panics.into_inner(), "a panic that nobody hears of"),
            Err(error) => break error,
        }
        assert!(Instant::now() < until, "the helper never comes");
    };
    assert!(matches!(error, OpError::Internal { .. }), "{error:?}");
    all_take_part(&pool, true);
}

#[test]
fn work_within_work_and_a_second_execution_are_done_alone() {
    let pool = ThreadPool::new(2, CPUS);
    let (first, second) = (pool.begin(true), pool.begin(true));
    let mut out = [0u8; 6];
    let result = Parallelism::eager(&first).tiles(
        &ONE_BY_ONE,
        &mut out,
        &mut Scratch::default(),
        Stop::default(),
        |_, _, scratch| {
            let mut inner = [0u8; 60];
            let own = std::thread::current().id();
            Parallelism::eager(&second).tiles(
                &ONE_BY_ONE,
                &mut inner,
                scratch,
                Stop::default(),
                |_, out, _| {
                    assert_eq!(std::thread::current().id(), own, "the helper is busy");
                    out.fill(1);
                    Ok(())
                },
            )?;
            assert_eq!(inner, [1; 60]);
            Ok(())
        },
    );
    assert_eq!(result, Ok(()));
}

#[test]
fn sleeping_helpers_come_when_they_are_called() {
    let pool = ThreadPool::new(3, CPUS);
    // Helpers that have to share one CPU with their caller rarely come.
    let has_more_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    for _ in 0..if has_more_cpus { 50 } else { 1 } {
        all_take_part(&pool, false);
    }
}

#[test]
fn little_work_is_not_shared_and_large_tiles_are_cut() {
    let pool = ThreadPool::new(2, CPUS);
    let scope = pool.begin(true);
    let parallelism = Parallelism::of(Some(&scope));
    let tiling = Tiling {
        row_len: 1,
        step: 4,
        share_step: None,
        least: 4,
        most: 1000,
        nanos: LEAST_SHARED - 1,
    };
    let lens = |tiling: &Tiling, rows: usize| {
        let lens = Mutex::new(Vec::new());
        let mut out = vec![0u8; rows];
        parallelism
            .tiles(tiling, &mut out, &mut Scratch::default(), Stop::default(), |row, out, _| {
                lock(&lens).push((row, out.len()));
                Ok(())
            })
            .unwrap();
        let mut lens = lens.into_inner().unwrap();
        lens.sort_unstable();
        lens
    };
    assert_eq!(lens(&tiling, 100), [(0, 100)]);
    assert_eq!(lens(&tiling, 1500), [(0, 1000), (1000, 500)]);
    let worth = Tiling { nanos: 4 * LEAST_TILE, ..tiling };
    let halves = [(0, 28), (28, 24), (52, 28), (80, 20)];
    assert_eq!(lens(&worth, 100), halves, "a tile's least time, and each thread half of the rows");
    let short = Tiling { nanos: LEAST_TILE, ..tiling };
    assert_eq!(lens(&short, 100), [(0, 52), (52, 48)], "one tile for each thread");
    let rest_first = Tiling { share_step: Some(24), step: 24, ..short };
    assert_eq!(lens(&rest_first, 196), [(0, 100), (100, 96)], "what is no whole step goes first");
    let evenly = Tiling { share_step: Some(2), ..rest_first };
    assert_eq!(lens(&evenly, 196), [(0, 98), (98, 98)], "a step of shares is not one of tiles");
    assert_eq!(lens(&evenly, 49), [(0, 25), (25, 24)]);
    let most = Tiling { least: 80, most: 20, ..worth };
    assert_eq!(lens(&most, 100)[0], (0, 20), "never more than the most");
    let long = Tiling { nanos: 100 * LEAST_TILE, ..tiling };
    let cut = lens(&long, 100);
    assert_eq!(cut[..2], [(0, 16), (16, 16)], "two threads, four tiles each");
    assert_eq!(cut.iter().map(|(_, len)| len).sum::<usize>(), 100);
}

#[test]
fn sizes_at_the_edges_do_not_overflow() {
    let tiling = Tiling {
        row_len: usize::MAX,
        step: 7,
        share_step: None,
        least: 1,
        most: usize::MAX,
        nanos: u64::MAX,
    };
    let (out, result) = run(2, 4, Tiling { row_len: 3, ..tiling }, |row, out, _| {
        number(row, out);
        Ok(())
    });
    assert_eq!((out.len(), result), (12, Ok(())));
    let (_, result) = run(2, 4, tiling, |_, _, _| Ok(()));
    assert_eq!(result, Ok(()));
    let (_, result) = run(2, 0, ONE_BY_ONE, |_, _, _| Ok(()));
    assert_eq!(result, Ok(()));
}
