//! What a program needs that uses this crate and no other: each type of the interface has a path
//! here, items have types, claims must be used.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use fmq::{
    DescriptorError, Item, QueueConfig, QueueError, Typed, TypedConsumer, TypedProducer,
    TypedUnsyncConsumer, TypedUnsyncProducer,
};

/// Compiles where every type that the interface takes or gives can be named through `fmq`.
#[allow(dead_code, reason = "that it compiles is the test")]
mod every_type_has_a_path {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    fn memory(ring: fmq::Memory) -> Result<fmq::Producer, fmq::QueueError> {
        fmq::Producer::create_in(&fmq::QueueConfig::new(8, 8), ring)
    }

    fn mapping(mapping: &Arc<fmq::Mapping>) -> Result<fmq::EventFlag, fmq::ShmError> {
        fmq::EventFlag::at(mapping, 0)
    }

    fn word(word: fmq::Shared<AtomicU32>) -> fmq::EventFlag {
        fmq::EventFlag::new(word)
    }

    fn causes(error: fmq::QueueError) -> Option<(Option<fmq::Errno>, Option<fmq::Refusal>)> {
        match error {
            fmq::QueueError::System { errno, .. } => Some((Some(errno), None)),
            fmq::QueueError::Memory(fmq::ShmError::Refused(refusal)) => Some((None, Some(refusal))),
            _ => None,
        }
    }

    /// One name per error, wherever it comes from.
    fn names(error: fmq::EventError) -> Option<fmq::QueueError> {
        match error {
            fmq::EventError::BadBits { bits } => Some(fmq::QueueError::BadBits { bits }),
            fmq::EventError::Timeout => Some(fmq::QueueError::Timeout),
            fmq::EventError::System { call, errno } => {
                Some(fmq::QueueError::System { call, errno })
            }
            _ => None,
        }
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
)]
#[repr(C)]
struct Sample {
    channel: u32,
    value: f32,
    time_ns: u64,
}

fn sample(n: u16) -> Sample {
    Sample { channel: n.into(), value: f32::from(n) / 2.0, time_ns: 1000 * u64::from(n) }
}

#[test]
fn items_with_a_type_come_out_as_they_went_in() {
    let mut producer = TypedProducer::<Sample>::create(8).unwrap();
    let mut consumer =
        TypedConsumer::<Sample>::attach(producer.get_ref().descriptor().unwrap()).unwrap();
    let mut got = [sample(0); 3];
    for round in 0..10 {
        let sent = [sample(round), sample(round + 1), sample(round + 2)];
        producer.write(&sent).unwrap();
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
        producer.write_quiet(&sent[..1]).unwrap();
        producer.write_blocking(&sent[1..2], fmq::Deadline::never()).unwrap();
        consumer.read_deferred(&mut got[..1]).unwrap();
        consumer.read_quiet(&mut got[1..2]).unwrap();
        assert_eq!(got[..2], sent[..2]);
    }
    let empty = consumer.read(&mut got);
    assert!(matches!(empty, Err(QueueError::Empty { wanted: 48, available: 0 })), "{empty:?}");
    assert_eq!(producer.get_mut().available_to_write(), Ok(8));
    assert_eq!(consumer.into_inner().quantum(), size_of::<Sample>());
}

#[test]
fn unsynchronized_items_have_types_too() {
    let mut producer = TypedUnsyncProducer::<[u16; 2]>::create(4).unwrap();
    let descriptor = || producer.get_ref().descriptor().unwrap();
    let mut readers = [descriptor(), descriptor()]
        .map(|descriptor| TypedUnsyncConsumer::<[u16; 2]>::attach(descriptor).unwrap());
    producer.write(&[[1, 2], [3, 4]]).unwrap();
    for reader in &mut readers {
        let mut got = [[0; 2]; 2];
        reader.read(&mut got).unwrap();
        assert_eq!(got, [[1, 2], [3, 4]]);
    }
}

#[test]
fn ends_of_another_item_size_are_refused() {
    let quantum =
        |quantum, expected| QueueError::Descriptor(DescriptorError::Quantum { quantum, expected });
    let producer = TypedProducer::<u64>::create(4).unwrap();
    let descriptor = || producer.get_ref().descriptor().unwrap();
    assert_eq!(TypedConsumer::<u32>::attach(descriptor()).unwrap_err(), quantum(8, 4));
    let (_, consumer) = fmq::pair(&QueueConfig::new(8, 4)).unwrap();
    assert_eq!(TypedConsumer::<[u8; 3]>::from_bytes(consumer).unwrap_err(), quantum(8, 3));
    assert!(TypedConsumer::<[u8; 8]>::attach(descriptor()).is_ok(), "as long, and plain data");
    let nothing = TypedProducer::<[u8; 0]>::create(4);
    assert!(matches!(nothing, Err(QueueError::BadConfig { .. })));
}

/// Ends of one type fit into another program's generic code.
#[test]
fn typed_ends_are_sent_to_threads() {
    fn is_send<T: Send>() {}
    fn ends<T: Item + Send>() {
        is_send::<Typed<fmq::Producer, T>>();
        is_send::<Typed<fmq::UnsyncConsumer, T>>();
    }
    ends::<Sample>();
}
