//! The event word where nobody sleeps: what a wake costs that wakes nobody, what it costs to take a
//! notification that is there, and beside them the same with the system call that both avoid.

#![allow(missing_docs, reason = "criterion's macros make functions without documentation")]
#![allow(clippy::unwrap_used, reason = "a measurement of a call that fails is none")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use burst_shm::{Mapping, Memory, Shared};
use criterion::{Criterion, criterion_group, criterion_main};
use fmq::{Deadline, EventError, EventFlag};

const NEWS: u32 = 2;
const OTHER: u32 = 4;

fn event_flag(criterion: &mut Criterion) {
    let memory = Memory::create("bench", 8).unwrap();
    let mapping = Arc::new(Mapping::map(&memory).unwrap());
    let flag = EventFlag::at(&mapping, 0).unwrap();
    let word: Shared<AtomicU32> = Shared::new(mapping, 0).unwrap();
    let mut group = criterion.benchmark_group("event_flag");
    flag.wake(NEWS).unwrap();
    group.bench_function("wake_nobody_asleep", |bencher| {
        bencher.iter(|| black_box(&flag).wake(black_box(NEWS)).unwrap());
    });
    group.bench_function("check_what_is_there", |bencher| {
        bencher.iter(|| {
            // Set by hand: a wake would call the kernel, as the bit is clear.
            word.fetch_or(OTHER, Ordering::Release);
            black_box(&flag).wait_once(OTHER, Deadline::never()).unwrap()
        });
    });
    group.bench_function("wake_with_system_call", |bencher| {
        bencher.iter(|| {
            word.fetch_and(!OTHER, Ordering::Relaxed);
            black_box(&flag).wake(OTHER).unwrap();
        });
    });
    word.fetch_and(!OTHER, Ordering::Relaxed);
    group.bench_function("check_in_vain_with_system_call", |bencher| {
        bencher.iter(|| {
            let result = black_box(&flag).wait_once(OTHER, Deadline::at_ns(0));
            assert_eq!(result, Err(EventError::Timeout));
        });
    });
    group.finish();
}

criterion_group! {
    name = event_flags;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(50);
    targets = event_flag
}
criterion_main!(event_flags);
