//! A fast message queue in shared memory, after Android's FMQ.
#![forbid(unsafe_code)]

pub mod clock;
#[doc(hidden)]
pub mod closer;
pub mod error;
pub mod event_flag;
#[doc(hidden)]
pub mod futex;
#[doc(hidden)]
pub mod geometry;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod ring;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod unsync_ring;
#[doc(hidden)]
pub mod wait;

#[cfg(not(loom))]
mod consumer;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod producer;
#[cfg(not(loom))]
mod span;
#[cfg(not(loom))]
mod unsync;
#[cfg(not(loom))]
mod wait_set;

pub use clock::Deadline;
pub use error::{DescriptorError, Part, QueueError};
pub use geometry::MAX_RING_BYTES;
pub use machine::warm_up;
pub use wait::Wait;

#[cfg(not(loom))]
pub use self::{
    closer::Closer,
    consumer::{Consumer, ReadClaim},
    descriptor::{Descriptor, Grantor, MAX_PARTS, SYNCHRONIZED, UNSYNCHRONIZED},
    event_flag::{EventError, EventFlag},
    memory::QueueConfig,
    producer::{Claim, Producer},
    unsync::{UnsyncClaim, UnsyncConsumer, UnsyncProducer, UnsyncReadClaim},
    wait_set::{MAX_QUEUES, WaitSet},
};

/// Both ends of a new queue, for two threads of one process.
///
/// # Errors
/// As [`Producer::create`].
#[cfg(not(loom))]
pub fn pair(config: &QueueConfig) -> Result<(Producer, Consumer), QueueError> {
    let producer = Producer::create(config)?;
    let consumer = Consumer::attach(producer.descriptor()?)?;
    Ok((producer, consumer))
}
