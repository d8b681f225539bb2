//! The ends of an unsynchronized queue: one writer that never waits, many readers that find out
//! when they were too slow. There are no blocking calls.

use std::cell::Cell;
use std::marker::PhantomData;

use burst_shm::{Memory, Shared, SharedRegion};

use crate::descriptor::{Descriptor, UNSYNCHRONIZED};
use crate::error::QueueError;
use crate::queue_memory::{Parts, QueueConfig, ReaderParts};
use crate::span::{Span, copy_in, copy_out};
use crate::sync::{AtomicU64, Ordering};
use crate::unsync_ring::{UnsyncReadSide, UnsyncWriteSide};

/// The writing end of an unsynchronized queue.
#[derive(Debug)]
pub struct UnsyncProducer {
    side: UnsyncWriteSide,
    parts: Parts,
    not_sync: PhantomData<Cell<()>>,
}

impl UnsyncProducer {
    /// Makes a new queue. It has an event word whatever `config` says, because the writer's intent
    /// comes after it.
    ///
    /// # Errors
    /// [`QueueError::BadConfig`], [`QueueError::Memory`].
    pub fn create(config: &QueueConfig) -> Result<UnsyncProducer, QueueError> {
        UnsyncProducer::from_parts(Parts::create(config, UNSYNCHRONIZED, None)?)
    }

    /// As [`create`](UnsyncProducer::create), with the ring in memory of the caller's choice.
    ///
    /// # Errors
    /// As [`create`](UnsyncProducer::create); [`QueueError::Descriptor`] where it is too small.
    pub fn create_in(config: &QueueConfig, ring: Memory) -> Result<UnsyncProducer, QueueError> {
        UnsyncProducer::from_parts(Parts::create(config, UNSYNCHRONIZED, Some(ring))?)
    }

    /// As [`create`](UnsyncProducer::create), but no other process can write a byte of the queue: no
    /// reader can disturb another one. libfmq readers have to attach without resetting counters.
    ///
    /// # Errors
    /// As [`create`](UnsyncProducer::create); [`QueueError::Memory`] on kernels before 5.1.
    pub fn create_for_readers_only(config: &QueueConfig) -> Result<UnsyncProducer, QueueError> {
        UnsyncProducer::from_parts(Parts::create_sealed(config, UNSYNCHRONIZED)?)
    }

    /// Takes the writing end of a queue that the peer made. Counters are not reset.
    ///
    /// # Errors
    /// [`QueueError::Descriptor`], [`QueueError::Memory`], [`QueueError::Corrupt`].
    pub fn attach(descriptor: Descriptor) -> Result<UnsyncProducer, QueueError> {
        UnsyncProducer::from_parts(Parts::attach(descriptor, UNSYNCHRONIZED)?)
    }

    fn from_parts(parts: Parts) -> Result<UnsyncProducer, QueueError> {
        let write = parts.write.load(Ordering::Acquire);
        let intent = parts.intent.as_ref().map_or(write, |word| word.load(Ordering::Acquire));
        let side = UnsyncWriteSide::attach(parts.layout.geometry, write, intent)?;
        Ok(UnsyncProducer { side, parts, not_sync: PhantomData })
    }

    /// What a reader needs to attach, with descriptors of its own.
    ///
    /// # Errors
    /// [`QueueError::Memory`] when no descriptor is left.
    pub fn descriptor(&self) -> Result<Descriptor, QueueError> {
        self.parts.layout.descriptor()
    }

    /// Items that fit.
    pub fn capacity(&self) -> usize {
        self.parts.layout.capacity_items()
    }

    /// Bytes per item.
    pub fn quantum(&self) -> usize {
        self.parts.layout.quantum_bytes()
    }

    /// Writes whole items over the oldest ones. Never waits, never fails for lack of room.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] for more than the capacity, [`QueueError::NotWhole`].
    #[inline]
    pub fn write(&mut self, items: &[u8]) -> Result<(), QueueError> {
        let len = items.len() as u64;
        if self.side.geometry().items(len).is_none() {
            return Err(QueueError::NotWhole { len, quantum: self.side.geometry().quantum() });
        }
        self.side.claim(self.parts.intent.as_deref(), len)?;
        copy_in(&self.parts.ring.region(), self.side.position(), items)?;
        self.side.publish(&self.parts.write, len);
        Ok(())
    }

    /// Takes the room of the next `items` items, to be filled in place. From now on readers know
    /// that what lies there is lost, whether the claim is committed or dropped.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`].
    #[inline]
    pub fn claim(&mut self, items: usize) -> Result<UnsyncClaim<'_>, QueueError> {
        let len = self.side.geometry().bytes(items);
        self.side.claim(self.parts.intent.as_deref(), len)?;
        let span = Span::new(self.side.geometry(), self.side.position(), len);
        let UnsyncProducer { side, parts, .. } = self;
        Ok(UnsyncClaim { side, ring: &parts.ring, write: &parts.write, span })
    }
}

/// Room in an unsynchronized ring, handed over by [`commit`](UnsyncClaim::commit).
///
/// A claim that nobody uses is an oversight, and the compiler says so:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # fn claim(end: &mut fmq::UnsyncProducer) -> Result<(), fmq::QueueError> {
/// end.claim(1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "what is not committed never leaves this process"]
pub struct UnsyncClaim<'p> {
    side: &'p mut UnsyncWriteSide,
    ring: &'p SharedRegion,
    write: &'p Shared<AtomicU64>,
    span: Span,
}

impl UnsyncClaim<'_> {
    /// Items claimed.
    pub fn items(&self) -> usize {
        self.span.items(self.side.geometry())
    }

    /// The one or two pieces of the ring that the claim covers: their lengths in bytes.
    pub fn piece_lens(&self) -> [usize; 2] {
        self.span.piece_lens(self.side.geometry())
    }

    /// Copies bytes to `offset` bytes from the start of the claim.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] where they do not lie inside the claim.
    #[inline]
    pub fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> Result<(), QueueError> {
        let at = self.span.at(self.side.geometry(), offset, bytes.len())?;
        copy_in(&self.ring.region(), at, bytes)
    }

    /// Hands over the first `items` items.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] for more than was claimed.
    #[inline]
    pub fn commit(self, items: usize) -> Result<(), QueueError> {
        let written = self.side.geometry().bytes(items);
        self.span.check_len(written)?;
        self.side.publish(self.write, written);
        Ok(())
    }
}

/// A reading end of an unsynchronized queue. There may be any number; they know nothing of each
/// other.
#[derive(Debug)]
pub struct UnsyncConsumer {
    side: UnsyncReadSide,
    parts: ReaderParts,
    not_sync: PhantomData<Cell<()>>,
}

impl UnsyncConsumer {
    /// Takes a reading end. Works where the queue can only be mapped for reading.
    ///
    /// Reading begins at the first item ever written. Where that was overwritten already, the first
    /// read says [`QueueError::Overrun`] and reading goes on with what is written from then on.
    ///
    /// # Errors
    /// [`QueueError::Descriptor`], [`QueueError::Memory`].
    pub fn attach(descriptor: Descriptor) -> Result<UnsyncConsumer, QueueError> {
        let parts = ReaderParts::attach(descriptor, UNSYNCHRONIZED)?;
        let side = UnsyncReadSide::new(parts.layout.geometry);
        Ok(UnsyncConsumer { side, parts, not_sync: PhantomData })
    }

    /// What another reader needs to attach, with descriptors of its own.
    ///
    /// # Errors
    /// [`QueueError::Memory`] when no descriptor is left.
    pub fn descriptor(&self) -> Result<Descriptor, QueueError> {
        self.parts.layout.descriptor()
    }

    /// Items that fit.
    pub fn capacity(&self) -> usize {
        self.parts.layout.capacity_items()
    }

    /// Bytes per item.
    pub fn quantum(&self) -> usize {
        self.parts.layout.quantum_bytes()
    }

    /// Whether the writer announces what it is about to overwrite, so that a torn copy is always
    /// noticed. A plain libfmq writer does not, also in a queue that has room for it; such a one is
    /// recognized when the first item is read.
    pub fn detects_torn_reads(&self) -> bool {
        self.parts.intent.is_some() && !self.side.writes_unannounced()
    }

    /// Items that can be read now.
    ///
    /// # Errors
    /// [`QueueError::Overrun`], [`QueueError::Corrupt`].
    pub fn available_to_read(&mut self) -> Result<usize, QueueError> {
        let available = self.side.available(&self.parts.write)?;
        let items = self.side.geometry().items(available).unwrap_or(0);
        Ok(usize::try_from(items).unwrap_or(usize::MAX))
    }

    /// Reads whole items, as many as `items` holds: all of them or none.
    ///
    /// # Errors
    /// [`QueueError::Empty`], [`QueueError::TooLarge`], [`QueueError::NotWhole`],
    /// [`QueueError::Corrupt`], and [`QueueError::Overrun`]: what `items` holds then is worthless.
    #[inline]
    pub fn read(&mut self, items: &mut [u8]) -> Result<(), QueueError> {
        let len = items.len() as u64;
        if self.side.geometry().items(len).is_none() {
            return Err(QueueError::NotWhole { len, quantum: self.side.geometry().quantum() });
        }
        self.side.peek(&self.parts.write, len)?;
        copy_out(&self.parts.ring.region(), self.side.position(), items)?;
        self.side.confirm(&self.parts.write, self.parts.intent.as_ref(), len)
    }

    /// Looks at `items` items without taking them.
    ///
    /// # Errors
    /// As [`read`](UnsyncConsumer::read).
    #[inline]
    pub fn peek(&mut self, items: usize) -> Result<UnsyncReadClaim<'_>, QueueError> {
        let len = self.side.geometry().bytes(items);
        self.side.peek(&self.parts.write, len)?;
        let span = Span::new(self.side.geometry(), self.side.position(), len);
        let UnsyncConsumer { side, parts, .. } = self;
        Ok(UnsyncReadClaim { side, parts, span })
    }
}

/// Items of an unsynchronized ring. What was copied out counts only when
/// [`commit`](UnsyncReadClaim::commit) says so.
///
/// A claim that nobody uses is an oversight, and the compiler says so:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # fn claim(end: &mut fmq::UnsyncConsumer) -> Result<(), fmq::QueueError> {
/// end.peek(1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "only what is committed was read"]
pub struct UnsyncReadClaim<'c> {
    side: &'c mut UnsyncReadSide,
    parts: &'c ReaderParts,
    span: Span,
}

impl UnsyncReadClaim<'_> {
    /// Items in the claim.
    pub fn items(&self) -> usize {
        self.span.items(self.side.geometry())
    }

    /// The one or two pieces of the ring that the claim covers: their lengths in bytes.
    pub fn piece_lens(&self) -> [usize; 2] {
        self.span.piece_lens(self.side.geometry())
    }

    /// Copies bytes from `offset` bytes after the start of the claim. Do not look at them before
    /// [`commit`](UnsyncReadClaim::commit) succeeded.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] where they do not lie inside the claim.
    #[inline]
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<(), QueueError> {
        let at = self.span.at(self.side.geometry(), offset, bytes.len())?;
        copy_out(&self.parts.ring.region(), at, bytes)
    }

    /// Takes the first `items` items, if none of the claim was overwritten meanwhile.
    ///
    /// # Errors
    /// [`QueueError::Overrun`]: throw the copies away; [`QueueError::TooLarge`] for more than was
    /// claimed; [`QueueError::Corrupt`].
    #[inline]
    pub fn commit(self, items: usize) -> Result<(), QueueError> {
        let bytes = self.side.geometry().bytes(items);
        self.span.check_len(bytes)?;
        self.side.confirm(&self.parts.write, self.parts.intent.as_ref(), bytes)
    }
}
