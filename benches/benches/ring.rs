//! What one call on a queue costs while the other end keeps up: both ends in one thread, nobody
//! asleep, no cache line on its way. What two processes make of it is `benches transport`'s to say.

#![allow(missing_docs, reason = "criterion's macros make functions without documentation")]
#![allow(clippy::unwrap_used, reason = "a measurement of a call that fails is none")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fmq::{Consumer, Deadline, Producer, QueueConfig, QueueError, UnsyncConsumer, UnsyncProducer};

const SIZES: [usize; 3] = [8, 64, 1024];
/// Items in each ring.
const CAPACITY: usize = 64;

fn queue(bytes: usize) -> (Producer, Consumer) {
    fmq::pair(&QueueConfig::new(bytes, CAPACITY)).unwrap()
}

/// Measures passing one item, for items of each size: `ready` makes what passes it.
fn pass<P>(criterion: &mut Criterion, name: &str, ready: impl Fn(usize) -> P)
where
    P: FnMut(&[u8], &mut [u8]) -> Result<(), QueueError>,
{
    let mut group = criterion.benchmark_group(name);
    for bytes in SIZES {
        let mut pass = ready(bytes);
        let (sent, mut received) = (vec![1; bytes], vec![0; bytes]);
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| pass(black_box(&sent), black_box(&mut received)).unwrap());
        });
    }
    group.finish();
}

/// One item in and out again, by copy.
fn write_and_read(criterion: &mut Criterion) {
    pass(criterion, "ring/write_read", |bytes| {
        let (mut producer, mut consumer) = queue(bytes);
        move |sent, received| {
            producer.write_quiet(sent)?;
            consumer.read_quiet(received)
        }
    });
}

/// The same through claims on both sides.
fn claim_and_commit(criterion: &mut Criterion) {
    pass(criterion, "ring/claim_commit", |bytes| {
        let (mut producer, mut consumer) = queue(bytes);
        move |sent, received| {
            let mut claim = producer.claim(1)?;
            claim.copy_in(0, sent)?;
            claim.commit_quiet(1)?;
            let claim = consumer.peek(1)?;
            claim.copy_out(0, received)?;
            claim.commit_quiet(1)
        }
    });
}

/// One item through the flavour with many readers.
fn unsynchronized(criterion: &mut Criterion) {
    pass(criterion, "ring/unsynchronized_write_read", |bytes| {
        let config = QueueConfig::new(bytes, CAPACITY);
        let mut producer = UnsyncProducer::create(&config).unwrap();
        let mut consumer = UnsyncConsumer::attach(producer.descriptor().unwrap()).unwrap();
        move |sent, received| {
            producer.write(sent)?;
            consumer.read(received)
        }
    });
}

/// Looks at a queue in which there is nothing, and writes to one without room.
fn in_vain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring/in_vain");
    let (_producer, mut consumer) = queue(64);
    group.bench_function("poll_empty", |bencher| {
        bencher.iter(|| assert_eq!(consumer.available_to_read(), Ok(0)));
    });
    let (mut producer, _consumer) = queue(64);
    producer.write(&[1; 64 * CAPACITY]).unwrap();
    group.bench_function("write_full", |bencher| {
        bencher.iter(|| {
            let result = producer.write(black_box(&[1; 64]));
            assert!(matches!(result, Err(QueueError::Full { .. })));
        });
    });
    group.finish();
}

/// A blocking call whose item is there already, with the wake of a peer that is awake.
fn blocking(criterion: &mut Criterion) {
    let (mut producer, mut consumer) = queue(64);
    let mut received = [0; 64];
    criterion.bench_function("ring/blocking_write_read_64", |bencher| {
        bencher.iter(|| {
            producer.write_blocking(black_box(&[1; 64]), Deadline::never()).unwrap();
            consumer.read_blocking(black_box(&mut received), Deadline::never()).unwrap();
        });
    });
}

criterion_group! {
    name = ring;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(50);
    targets = write_and_read, claim_and_commit, unsynchronized, in_vain, blocking
}
criterion_main!(ring);
