//! The reading end of a synchronized queue.

use std::cell::Cell;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;

use burst_shm::{Memory, Shared, SharedRegion};

use crate::ahead::Way;
use crate::clock::Deadline;
use crate::closer::Closer;
use crate::descriptor::{Descriptor, SYNCHRONIZED};
use crate::error::QueueError;
use crate::event_flag::{NOT_EMPTY, NOT_FULL, announce_awake, wake};
use crate::gauge::Gauge;
use crate::queue_memory::{Parts, QueueConfig};
use crate::readiness::Readiness;
use crate::ring::ReadSide;
use crate::span::{Span, copy_out, copy_piece_out};
use crate::sync::{AtomicU64, EventWord, Ordering};
use crate::wait::{POLLS, Sleeper, Wait, WaitCondition, Waiter, looks_in_turn};
use crate::wake_up::{failed_wake, waitable, wake_other_end};

/// The reading end. One per queue; one thread at a time.
#[derive(Debug)]
pub struct Consumer {
    pub(crate) side: ReadSide,
    pub(crate) parts: Parts,
    pub(crate) waiter: Waiter,
    pub(crate) way: Way,
    /// `Send`, not `Sync`: one thread per end is a compile-time fact.
    not_sync: PhantomData<Cell<()>>,
}

impl Consumer {
    /// Makes a new queue and takes its reading end.
    ///
    /// # Errors
    /// [`QueueError::BadConfig`], [`QueueError::Memory`].
    pub fn create(config: &QueueConfig) -> Result<Consumer, QueueError> {
        Consumer::from_parts(Parts::create(config, SYNCHRONIZED, None)?)
    }

    /// As [`create`](Consumer::create), with the ring in memory of the caller's choice; only its
    /// first bytes, as many as the queue needs, are used.
    ///
    /// # Errors
    /// As [`create`](Consumer::create); [`QueueError::Descriptor`] where the memory is too small.
    pub fn create_in(config: &QueueConfig, ring: Memory) -> Result<Consumer, QueueError> {
        Consumer::from_parts(Parts::create(config, SYNCHRONIZED, Some(ring))?)
    }

    /// Takes the reading end of a queue that the peer made. Counters are not reset: what was
    /// written before is read.
    ///
    /// # Errors
    /// [`QueueError::Descriptor`] and [`QueueError::Memory`] say what is wrong with the
    /// descriptor, [`QueueError::Corrupt`] that the counters are.
    pub fn attach(descriptor: Descriptor) -> Result<Consumer, QueueError> {
        Consumer::from_parts(Parts::attach(descriptor, SYNCHRONIZED)?)
    }

    fn from_parts(parts: Parts) -> Result<Consumer, QueueError> {
        // Acquire: a queue with a history; see `ReadSide::available`.
        let read = parts.read.load(Ordering::Acquire);
        let write = parts.write.load(Ordering::Acquire);
        let side = ReadSide::attach(parts.layout.geometry, read, write)?;
        if let Some(event) = &parts.event {
            announce_awake(event, NOT_EMPTY).map_err(failed_wake)?;
        }
        let waiter = Waiter::new(Wait::default());
        let way = Way::of_this_cpu();
        Ok(Consumer { side, parts, waiter, way, not_sync: PhantomData })
    }

    /// What the writing end needs to attach, with descriptors of its own.
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

    /// Items that can be read now; never more than the capacity.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub fn available_to_read(&mut self) -> Result<usize, QueueError> {
        let available = self.side.available(&self.parts.write)?;
        let items = self.side.geometry().items(available).unwrap_or(0);
        Ok(usize::try_from(items).unwrap_or(usize::MAX))
    }

    /// A descriptor for `poll` and event loops that says when there may be something to read: see
    /// [`Readiness`], which has a thread.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`], [`QueueError::System`].
    pub fn readiness(&self) -> Result<Readiness, QueueError> {
        let event = self.parts.event.clone().ok_or(QueueError::NoEventFlag)?;
        Readiness::new(self.parts.write.clone(), event, NOT_EMPTY, Arc::clone(&self.parts.closed))
    }

    /// Reads whole items, as many as `items` holds: all of them or none, gives their room back
    /// to the writer and wakes it if it sleeps on a full queue.
    ///
    /// # Errors
    /// [`QueueError::Empty`], [`QueueError::TooLarge`], [`QueueError::NotWhole`],
    /// [`QueueError::Corrupt`]; [`QueueError::System`], should the kernel refuse to wake: the items are
    /// read then.
    #[inline]
    pub fn read(&mut self, items: &mut [u8]) -> Result<(), QueueError> {
        self.read_quiet(items)?;
        wake_other_end(self.parts.event.as_deref(), NOT_FULL)
    }

    /// As [`read`](Consumer::read), but lets the writer sleep: for who reads several times and then
    /// [wakes](Consumer::wake) once, and for queues that never fill up.
    ///
    /// # Errors
    /// As [`read`](Consumer::read), but for `System`.
    #[inline]
    pub fn read_quiet(&mut self, items: &mut [u8]) -> Result<(), QueueError> {
        self.read_deferred(items)?;
        self.side.release(&self.parts.read);
        Ok(())
    }

    /// As [`read`](Consumer::read), but keeps the room until [`release`](Consumer::release).
    ///
    /// The writer's cache line is touched by the release alone, so it pays to answer a request
    /// first and to release after.
    ///
    /// # Errors
    /// As [`read_quiet`](Consumer::read_quiet).
    #[inline(always)]
    pub fn read_deferred(&mut self, items: &mut [u8]) -> Result<(), QueueError> {
        if self.read_at_once(items) { Ok(()) } else { self.read_with_care(items) }
    }

    /// Reads them where they are whole items, known to be there, and end before the ring does. Otherwise nothing is read:
    /// [`read_with_care`](Self::read_with_care) knows what to do. Inlined, as `Producer::write_at_once`.
    #[inline(always)]
    fn read_at_once(&mut self, items: &mut [u8]) -> bool {
        let (len, ring) = (items.len() as u64, self.parts.ring.region());
        let can_be_read = self.side.geometry().items(len).is_some() && self.side.has(len);
        if !can_be_read || !copy_piece_out(&ring, self.side.position(), items) {
            return false;
        }
        self.side.take(len);
        true
    }

    #[inline(never)]
    fn read_with_care(&mut self, items: &mut [u8]) -> Result<(), QueueError> {
        let len = items.len() as u64;
        if self.side.geometry().items(len).is_none() {
            return Err(QueueError::NotWhole { len, quantum: self.side.geometry().quantum() });
        }
        self.side.peek(&self.parts.write, len)?;
        copy_out(&self.parts.ring.region(), self.side.position(), items)?;
        self.side.take(len);
        Ok(())
    }

    /// Gives the room of everything read so far back to the writer and wakes it if it sleeps on a
    /// full queue. Without such room: no effect.
    ///
    /// # Errors
    /// [`QueueError::System`], should the kernel refuse to wake: the room is given back then.
    #[inline]
    pub fn release(&mut self) -> Result<(), QueueError> {
        if !self.side.has_unreleased() {
            return Ok(());
        }
        self.release_quiet();
        wake_other_end(self.parts.event.as_deref(), NOT_FULL)
    }

    /// As [`release`](Consumer::release), but lets the writer sleep: see
    /// [`read_quiet`](Consumer::read_quiet).
    #[inline]
    pub fn release_quiet(&mut self) {
        if self.side.has_unreleased() {
            self.side.release(&self.parts.read);
        }
    }

    /// Looks at `items` items without taking them. Dropping the claim leaves them unread.
    ///
    /// # Errors
    /// [`QueueError::Empty`], [`QueueError::TooLarge`], [`QueueError::Corrupt`].
    #[inline]
    pub fn peek(&mut self, items: usize) -> Result<ReadClaim<'_>, QueueError> {
        let len = self.side.geometry().bytes(items);
        self.side.peek(&self.parts.write, len)?;
        let span = Span::new(self.side.geometry(), self.side.position(), len);
        let Consumer { side, parts, .. } = self;
        let event = parts.event.as_deref();
        Ok(ReadClaim { side, ring: &parts.ring, read: &parts.read, event, span })
    }

    /// Wakes the writer if it sleeps on a full queue, for room that was given back quietly. A system
    /// call only then.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`].
    #[inline]
    pub fn wake(&self) -> Result<(), QueueError> {
        self.wake_bits(NOT_FULL)
    }

    /// As [`wake`](Consumer::wake), for a bit that both sides agreed on.
    ///
    /// # Errors
    /// [`QueueError::NoEventFlag`].
    pub fn wake_bits(&self, bits: u32) -> Result<(), QueueError> {
        let event = self.parts.event.as_ref().ok_or(QueueError::NoEventFlag)?;
        wake(event, bits).map_err(failed_wake)
    }

    /// Waits until at least `min_items` items are readable; gives the number that are.
    ///
    /// # Errors
    /// [`QueueError::Timeout`], [`QueueError::PeerDied`], [`QueueError::TooLarge`],
    /// [`QueueError::NoEventFlag`], [`QueueError::Corrupt`].
    // Inlined as far as a busy conversation goes: see `Producer::write_at_once`.
    #[inline(always)]
    pub fn wait(&mut self, min_items: usize, deadline: Deadline) -> Result<usize, QueueError> {
        match self.first_looks(min_items) {
            Some(items) => Ok(items),
            None => self.wait_bits(min_items, NOT_EMPTY, deadline),
        }
    }

    /// Only looks for news, if that is likely to be all that there is to do. What is there already, and room to give back, is the
    /// business of [`wait_bits`](Self::wait_bits).
    #[inline(always)]
    fn first_looks(&mut self, min_items: usize) -> Option<usize> {
        let wanted = self.side.geometry().bytes(min_items);
        if self.side.has(wanted) || self.side.has_unreleased() {
            return None;
        }
        let Consumer { side, parts, waiter, way, .. } = self;
        let (write, ring) = (&parts.write, &parts.ring);
        waiter.first_looks(&mut Items { side, write, ring, way: *way, wanted })
    }

    /// As [`wait`](Consumer::wait), for a bit that both sides agreed on.
    ///
    /// # Errors
    /// As [`wait`](Consumer::wait); [`QueueError::BadBits`].
    pub fn wait_bits(
        &mut self,
        min_items: usize,
        bits: u32,
        deadline: Deadline,
    ) -> Result<usize, QueueError> {
        let wanted = self.side.geometry().bytes(min_items);
        let limit = self.side.geometry().capacity();
        if wanted > limit {
            return Err(QueueError::TooLarge { wanted, limit });
        }
        let bits = waitable(bits)?;
        // Room that we kept may be what the writer waits for: who waits for the writer gives it back.
        self.release()?;
        let Consumer { side, parts, waiter, way, .. } = self;
        let event = parts.event.as_deref().ok_or(QueueError::NoEventFlag)?;
        let (write, ring) = (&parts.write, &parts.ring);
        let mut awaited = Items { side, write, ring, way: *way, wanted };
        waiter.wait(&mut awaited, &Sleeper { event, bits, closed: &parts.closed, deadline })
    }

    /// Reads whole items, waiting for them, and wakes the writer.
    ///
    /// # Errors
    /// As [`read`](Consumer::read) without `Empty`, and as [`wait`](Consumer::wait).
    #[inline]
    pub fn read_blocking(
        &mut self,
        items: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), QueueError> {
        self.read_blocking_bits(items, NOT_EMPTY, NOT_FULL, deadline)
    }

    /// As [`read_blocking`](Consumer::read_blocking): waits for the `wait_for` bits and wakes the
    /// `then_wake` bits, which both sides agreed on. `then_wake` may be zero.
    ///
    /// # Errors
    /// As [`read_blocking`](Consumer::read_blocking); [`QueueError::BadBits`].
    pub fn read_blocking_bits(
        &mut self,
        items: &mut [u8],
        wait_for: u32,
        then_wake: u32,
        deadline: Deadline,
    ) -> Result<(), QueueError> {
        waitable(wait_for)?;
        if self.parts.event.is_none() {
            return Err(QueueError::NoEventFlag);
        }
        match self.read_quiet(items) {
            Err(QueueError::Empty { .. }) => {
                let whole = self.side.geometry().items(items.len() as u64).unwrap_or(0);
                let whole = usize::try_from(whole).unwrap_or(usize::MAX);
                self.wait_bits(whole, wait_for, deadline)?;
                self.read_quiet(items)?;
            }
            other => other?,
        }
        self.wake_bits(then_wake)
    }
}

/// The condition of a reader: so many bytes are readable.
pub(crate) struct Items<'a> {
    pub(crate) side: &'a mut ReadSide,
    pub(crate) write: &'a AtomicU64,
    pub(crate) ring: &'a SharedRegion,
    pub(crate) way: Way,
    pub(crate) wanted: u64,
}

impl WaitCondition for Items<'_> {
    #[inline]
    fn has_moved(&self) -> bool {
        self.side.changed(self.write)
    }

    #[inline]
    fn looks_between_clocks(&self) -> NonZeroU32 {
        self.way.looks_between_clocks(POLLS)
    }

    #[inline]
    fn looks_singly(&self) -> bool {
        self.way.gives_lines_away()
    }

    #[inline(always)]
    fn moves_within(&mut self, looks: NonZeroU32) -> bool {
        if let Some(ahead) = self.way.look_ahead() {
            self.side.look_ahead(ahead, self.write, looks)
        } else {
            looks_in_turn(self, looks)
        }
    }

    fn progress(&self) -> u64 {
        self.side.seen()
    }

    #[inline]
    fn prefetch(&self) {
        let (position, len) = (self.side.position(), self.side.last_read());
        self.way.prefetch_to_read(&self.ring.region(), position, len);
    }

    #[inline]
    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        let available = self.side.available(self.write)?;
        let items = self.side.geometry().items(available).and_then(|n| usize::try_from(n).ok());
        Ok(items.filter(|_| available >= self.wanted))
    }
}

/// Readable items, copied out piece by piece and consumed by [`commit`](ReadClaim::commit).
///
/// A claim that nobody uses is an oversight, and the compiler says so:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # fn claim(end: &mut fmq::Consumer) -> Result<(), fmq::QueueError> {
/// end.peek(1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "what is not committed stays unread"]
pub struct ReadClaim<'c> {
    side: &'c mut ReadSide,
    ring: &'c SharedRegion,
    read: &'c Shared<AtomicU64>,
    event: Option<&'c EventWord>,
    span: Span,
}

impl ReadClaim<'_> {
    /// Items in the claim.
    pub fn items(&self) -> usize {
        self.span.items(self.side.geometry())
    }

    /// Bytes in the claim.
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

    /// Copies bytes from `offset` bytes after the start of the claim. A hostile writer can change
    /// what is in the ring at any time: copy once, then validate the copy.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] where they do not lie inside the claim; nothing is copied then.
    #[inline]
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<(), QueueError> {
        let at = self.span.at(self.side.geometry(), offset, bytes.len())?;
        copy_out(&self.ring.region(), at, bytes)
    }

    /// Takes the first `items` items of the claim, gives their room back to the writer and wakes it if
    /// it sleeps on a full queue; the rest stays unread.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`] for more than was claimed; nothing is consumed then.
    /// [`QueueError::System`], should the kernel refuse to wake: the items are consumed then.
    #[inline]
    pub fn commit(self, items: usize) -> Result<(), QueueError> {
        let event = self.event;
        self.commit_quiet(items)?;
        wake_other_end(event, NOT_FULL)
    }

    /// As [`commit`](ReadClaim::commit), but lets the writer sleep: see
    /// [`read_quiet`](Consumer::read_quiet).
    ///
    /// # Errors
    /// As [`commit`](ReadClaim::commit), but for `System`.
    #[inline]
    pub fn commit_quiet(self, items: usize) -> Result<(), QueueError> {
        let bytes = self.side.geometry().bytes(items);
        self.span.check_len(bytes)?;
        self.side.take(bytes);
        self.side.release(self.read);
        Ok(())
    }

    /// As [`commit`](ReadClaim::commit), but keeps the room until [`Consumer::release`].
    ///
    /// # Errors
    /// As [`commit_quiet`](ReadClaim::commit_quiet).
    #[inline]
    pub fn commit_deferred(self, items: usize) -> Result<(), QueueError> {
        let bytes = self.side.geometry().bytes(items);
        self.span.check_len(bytes)?;
        self.side.take(bytes);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
