//! The writing end of a synchronized queue.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use burst_shm::Memory;

use crate::ahead::{Audience, Way};
use crate::clock::Deadline;
use crate::closer::Closer;
use crate::descriptor::{Descriptor, SYNCHRONIZED};
use crate::error::QueueError;
use crate::event_flag::{NOT_EMPTY, NOT_FULL, announce_awake, wake};
use crate::gauge::Gauge;
use crate::queue_memory::{Parts, QueueConfig};
use crate::readiness::Readiness;
use crate::ring::WriteSide;
use crate::span::{Span, copy_in, copy_piece_in};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::{Sleeper, Wait, WaitCondition, Waiter};
use crate::wake_up::{failed_wake, waitable, wake_other_end};

/// The writing end. One per queue; one thread at a time.
#[derive(Debug)]
pub struct Producer {
    side: WriteSide,
    parts: Parts,
    waiter: Waiter,
    way: Way,
    /// `Send`, not `Sync`: one thread per end is a compile-time fact.
    not_sync: PhantomData<Cell<()>>,
}

impl Producer {
    /// Makes a new queue and takes its writing end.
    ///
    /// # Errors
    /// [`QueueError::BadConfig`], [`QueueError::Memory`].
    pub fn create(config: &QueueConfig) -> Result<Producer, QueueError> {
        Producer::from_parts(Parts::create(config, SYNCHRONIZED, None)?)
    }

    /// As [`create`](Producer::create), with the ring in memory of the caller's choice; only its
    /// first bytes, as many as the queue needs, are used.
    ///
    /// # Errors
    /// As [`create`](Producer::create); [`QueueError::Descriptor`] where the memory is too small.
    pub fn create_in(config: &QueueConfig, ring: Memory) -> Result<Producer, QueueError> {
        Producer::from_parts(Parts::create(config, SYNCHRONIZED, Some(ring))?)
    }

    /// Takes the writing end of a queue that the peer made. Counters are not reset.
    ///
    /// # Errors
    /// [`QueueError::Descriptor`] and [`QueueError::Memory`] say what is wrong with the
    /// descriptor, [`QueueError::Corrupt`] that the counters are.
    pub fn attach(descriptor: Descriptor) -> Result<Producer, QueueError> {
        Producer::from_parts(Parts::attach(descriptor, SYNCHRONIZED)?)
    }

    fn from_parts(parts: Parts) -> Result<Producer, QueueError> {
        // Acquire: a queue with a history; see `WriteSide::free`.
        let read = parts.read.load(Ordering::Acquire);
        let write = parts.write.load(Ordering::Acquire);
        let side = WriteSide::attach(parts.layout.geometry, read, write)?;
        if let Some(event) = &parts.event {
            announce_awake(event, NOT_FULL).map_err(failed_wake)?;
        }
        let waiter = Waiter::new(Wait::default());
        let way = Way::of_this_cpu();
        Ok(Producer { side, parts, waiter, way, not_sync: PhantomData })
    }

    /// What the reading end needs to attach, with descriptors of its own.
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

    /// Chooses how blocking calls of this end wait.
    pub fn set_wait(&mut self, wait: Wait) {
        self.waiter.set_policy(wait);
    }

    /// A handle that ends the blocking calls of this end.
    pub fn closer(&self) -> Closer {
        Closer { closed: Arc::clone(&self.parts.closed), event: self.parts.event.clone() }
    }

    /// Says how full the queue is, from any thread.
    pub fn gauge(&self) -> Gauge {
        self.parts.gauge()
    }

    /// Items that can be written now.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub fn available_to_write(&mut self) -> Result<usize, QueueError> {
        let free = self.side.free(&self.parts.read)?;
        let items = self.side.geometry().items(free).unwrap_or(0);
        Ok(usize::try_from(items).unwrap_or(usize::MAX))
    }

    /// A descriptor for `poll` and event loops that says when there may be room again: see
    /// [`Readiness`], which has a thread.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`], [`QueueError::System`].
    pub fn readiness(&self) -> Result<Readiness, QueueError> {
        let event = self.parts.event.clone().ok_or(QueueError::NoEventFlag)?;
        Readiness::new(self.parts.read.clone(), event, NOT_FULL, Arc::clone(&self.parts.closed))
    }

    /// Writes whole items: all of them or none. Wakes the reader if it sleeps.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::TooLarge`], [`QueueError::NotWhole`],
    /// [`QueueError::Corrupt`]; [`QueueError::System`], should the kernel refuse to wake: the items are
    /// written then.
    #[inline]
    pub fn write(&mut self, items: &[u8]) -> Result<(), QueueError> {
        self.write_quiet(items)?;
        wake_other_end(self.parts.event.as_deref(), NOT_EMPTY)
    }

    /// As [`write`](Producer::write), but lets the reader sleep: for who writes several times and
    /// then [wakes](Producer::wake) once. Until that a sleeping reader knows of nothing.
    ///
    /// # Errors
    /// As [`write`](Producer::write), but for `System`.
    #[inline(always)]
    pub fn write_quiet(&mut self, items: &[u8]) -> Result<(), QueueError> {
        if self.write_at_once(items) { Ok(()) } else { self.write_with_care(items) }
    }

    /// Writes them where they are whole items, known to fit, and end before the ring does. Otherwise nothing is written:
    /// [`write_with_care`](Self::write_with_care) knows what to do.
    ///
    /// Inlined, with nothing in it that seldom happens: between a message and its answer a CPU that shares its core with another one
    /// is held up by each instruction (`docs/decisions/0055-fewer-instructions-between-two-messages.md`).
    #[inline(always)]
    fn write_at_once(&mut self, items: &[u8]) -> bool {
        let (len, position) = (items.len() as u64, self.side.position());
        if self.side.geometry().items(len).is_none() || !self.side.has_room(len) {
            return false;
        }
        let ring = self.parts.ring.region();
        let audience = audience(&self.side, self.way, &self.waiter);
        self.way.take_to_write(&ring, position, len, audience);
        if !copy_piece_in(&ring, position, items, audience.wants_wide_stores()) {
            return false;
        }
        publish(&mut self.side, &self.parts, (self.way, &mut self.waiter), len);
        true
    }

    #[inline(never)]
    fn write_with_care(&mut self, items: &[u8]) -> Result<(), QueueError> {
        let len = items.len() as u64;
        if self.side.geometry().items(len).is_none() {
            return Err(QueueError::NotWhole { len, quantum: self.side.geometry().quantum() });
        }
        self.side.claim(&self.parts.read, len)?;
        let ring = self.parts.ring.region();
        let audience = audience(&self.side, self.way, &self.waiter);
        self.way.take_to_write(&ring, self.side.position(), len, audience);
        copy_in(&ring, self.side.position(), items)?;
        publish(&mut self.side, &self.parts, (self.way, &mut self.waiter), len);
        Ok(())
    }

    /// Reserves room for `items` items, to be filled in place. Dropping the claim abandons it.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::TooLarge`], [`QueueError::Corrupt`].
    #[inline]
    pub fn claim(&mut self, items: usize) -> Result<Claim<'_>, QueueError> {
        let len = self.side.geometry().bytes(items);
        self.side.claim(&self.parts.read, len)?;
        let span = Span::new(self.side.geometry(), self.side.position(), len);
        let Producer { side, parts, waiter, way, .. } = self;
        Ok(Claim { side, parts, waiter, way: *way, span })
    }

    /// Wakes the reader if it sleeps, for what was written quietly. A system call only then.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`].
    #[inline]
    pub fn wake(&self) -> Result<(), QueueError> {
        self.wake_bits(NOT_EMPTY)
    }

    /// As [`wake`](Producer::wake), for a bit that both sides agreed on.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`].
    pub fn wake_bits(&self, bits: u32) -> Result<(), QueueError> {
        let event = self.parts.event.as_ref().ok_or(QueueError::NoEventFlag)?;
        wake(event, bits).map_err(failed_wake)
    }

    /// Waits until at least `items` items fit; gives the number that do.
    ///
    /// # Errors
    /// [`QueueError::Timeout`], [`QueueError::PeerDied`], [`QueueError::TooLarge`],
    /// [`QueueError::NoEventFlag`], [`QueueError::Corrupt`].
    pub fn wait(&mut self, items: usize, deadline: Deadline) -> Result<usize, QueueError> {
        self.wait_bits(items, NOT_FULL, deadline)
    }

    /// As [`wait`](Producer::wait), for a bit that both sides agreed on.
    ///
    /// # Errors
    /// As [`wait`](Producer::wait); [`QueueError::BadBits`].
    pub fn wait_bits(
        &mut self,
        items: usize,
        bits: u32,
        deadline: Deadline,
    ) -> Result<usize, QueueError> {
        let wanted = self.side.geometry().bytes(items);
        let limit = self.side.geometry().capacity();
        if wanted > limit {
            return Err(QueueError::TooLarge { wanted, limit });
        }
        let Producer { side, parts, waiter, .. } = self;
        let event = parts.event.as_deref().ok_or(QueueError::NoEventFlag)?;
        let bits = waitable(bits)?;
        let mut awaited = Room { side, read: &parts.read, wanted };
        waiter.wait(&mut awaited, &Sleeper { event, bits, closed: &parts.closed, deadline })
    }

    /// Writes whole items, waiting for room, and wakes the reader.
    ///
    /// # Errors
    /// As [`write`](Producer::write) without `Full`, and as [`wait`](Producer::wait).
    #[inline]
    pub fn write_blocking(&mut self, items: &[u8], deadline: Deadline) -> Result<(), QueueError> {
        self.write_blocking_bits(items, NOT_FULL, NOT_EMPTY, deadline)
    }

    /// As [`write_blocking`](Producer::write_blocking): waits for the `wait_for` bits and wakes the
    /// `then_wake` bits, which both sides agreed on. `then_wake` may be zero.
    ///
    /// # Errors
    /// As [`write_blocking`](Producer::write_blocking); [`QueueError::BadBits`].
    pub fn write_blocking_bits(
        &mut self,
        items: &[u8],
        wait_for: u32,
        then_wake: u32,
        deadline: Deadline,
    ) -> Result<(), QueueError> {
        waitable(wait_for)?;
        if self.parts.event.is_none() {
            return Err(QueueError::NoEventFlag);
        }
        match self.write_quiet(items) {
            Err(QueueError::Full { .. }) => {
                let whole = self.side.geometry().items(items.len() as u64).unwrap_or(0);
                let whole = usize::try_from(whole).unwrap_or(usize::MAX);
                self.wait_bits(whole, wait_for, deadline)?;
                self.write_quiet(items)?;
            }
            other => other?,
        }
        self.wake_bits(then_wake)
    }
}

/// Hands `written` bytes to the reader. What the CPUs do about their lines: see [`ahead`](crate::ahead).
#[inline(always)]
fn publish(side: &mut WriteSide, parts: &Parts, (way, waiter): (Way, &mut Waiter), written: u64) {
    let at = side.position();
    side.publish(&parts.write, written);
    let audience = audience(side, way, waiter);
    way.after_publishing(
        &parts.ring.region(),
        (at, written),
        side.position(),
        (audience, &parts.write),
    );
    if way.gives_lines_away() {
        waiter.look_in_passing(|| side.hears_of_reader(&parts.read, written));
    }
}

/// Whom a writer writes for. Lines are given away in a conversation only: in a stream that would take from the writer what it is
/// about to write to.
#[inline(always)]
fn audience(side: &WriteSide, way: Way, waiter: &Waiter) -> Audience {
    if !way.gives_lines_away() {
        Audience::Any
    } else if waiter.is_beside() {
        Audience::Beside
    } else if waiter.is_far() && side.is_conversation() {
        Audience::FarInConversation
    } else {
        Audience::Any
    }
}

/// The condition of a writer: so many bytes are free.
struct Room<'a> {
    side: &'a mut WriteSide,
    read: &'a AtomicU64,
    wanted: u64,
}

impl WaitCondition for Room<'_> {
    #[inline]
    fn has_moved(&self) -> bool {
        self.side.changed(self.read)
    }

    fn progress(&self) -> u64 {
        self.side.seen()
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        let free = self.side.free(self.read)?;
        let items = self.side.geometry().items(free).and_then(|n| usize::try_from(n).ok());
        Ok(items.filter(|_| free >= self.wanted))
    }
}

/// Room in the ring, filled by copies and handed over by [`commit`](Claim::commit). Nobody else
/// sees it before that; dropping the claim abandons it.
///
/// A claim that nobody uses is an oversight, and the compiler says so:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # fn claim(end: &mut fmq::Producer) -> Result<(), fmq::QueueError> {
/// end.claim(1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "what is not committed never leaves this process"]
pub struct Claim<'p> {
    side: &'p mut WriteSide,
    parts: &'p Parts,
    waiter: &'p mut Waiter,
    way: Way,
    span: Span,
}

impl Claim<'_> {
    /// Items claimed.
    pub fn items(&self) -> usize {
        self.span.items(self.side.geometry())
    }

    /// Bytes claimed.
    pub fn len(&self) -> usize {
        self.span.len()
    }

    /// Whether nothing was claimed.
    pub fn is_empty(&self) -> bool {
        self.span.len() == 0
    }

    /// The one or two pieces of the ring that the claim covers: their lengths in bytes. The second
    /// is zero unless the claim wraps.
    pub fn piece_lens(&self) -> [usize; 2] {
        self.span.piece_lens(self.side.geometry())
    }

    /// Copies bytes to `offset` bytes from the start of the claim, across the end of the ring
    /// where need be.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] where they do not lie inside the claim; nothing is copied then.
    #[inline]
    pub fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> Result<(), QueueError> {
        let at = self.span.at(self.side.geometry(), offset, bytes.len())?;
        copy_in(&self.parts.ring.region(), at, bytes)
    }

    /// Hands over the first `items` items of the claim and wakes the reader if it sleeps; the rest is
    /// abandoned.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] for more than was claimed; nothing is handed over then.
    /// [`QueueError::System`], should the kernel refuse to wake: the items are handed over then.
    #[inline]
    pub fn commit(self, items: usize) -> Result<(), QueueError> {
        let event = self.parts.event.as_deref();
        self.commit_quiet(items)?;
        wake_other_end(event, NOT_EMPTY)
    }

    /// As [`commit`](Claim::commit), but lets the reader sleep: see
    /// [`write_quiet`](Producer::write_quiet).
    ///
    /// # Errors
    /// As [`commit`](Claim::commit), but for `System`.
    #[inline]
    pub fn commit_quiet(self, items: usize) -> Result<(), QueueError> {
        let written = self.side.geometry().bytes(items);
        self.span.check_len(written)?;
        publish(self.side, self.parts, (self.way, self.waiter), written);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
