//! The synchronized ring: two counters, one owned by each end.
//!
//! Pure protocol. An end keeps its own counter in private memory and never reads the shared copy
//! back; of the other's counter it keeps the last value it saw, and loads it again only when that
//! value says "maybe full" or "maybe empty": without that load a call is on the fast path. It is one load, checked once, used from the
//! local copy.

#[cfg(not(loom))]
use std::num::NonZeroU32;

#[cfg(not(loom))]
use burst_shm::LookAhead;

use crate::error::QueueError;
use crate::geometry::Geometry;
use crate::sync::{AtomicU64, Ordering};

/// Who finds unread messages so often in a row writes a stream. Once is none yet: a reader gives room back when it has answered, or a
/// little later, so that a message that was answered may seem unread.
const UNREAD_IN_A_STREAM: u8 = 2;

/// What the writing end knows.
#[derive(Debug)]
pub struct WriteSide {
    geometry: Geometry,
    /// Ours: the peer cannot change our mind about it.
    write: u64,
    /// `write` modulo capacity.
    position: u64,
    /// The peer's counter as last seen.
    read_cached: u64,
    /// How often the writer has yet to hear of unread messages until this is no conversation any more.
    conversation: u8,
    /// Set once and for ever by an impossible counter.
    corrupt: Option<QueueError>,
}

impl WriteSide {
    /// Goes on where the counters stand; they are not reset.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`] where they are impossible.
    pub fn attach(geometry: Geometry, read: u64, write: u64) -> Result<WriteSide, QueueError> {
        check_start(&geometry, read, write)?;
        let position = geometry.position(write);
        let (read_cached, conversation) = (read, 0);
        Ok(WriteSide { geometry, write, position, read_cached, conversation, corrupt: None })
    }

    /// The shape of the ring.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the next byte goes.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The reader's counter as last loaded.
    #[inline]
    pub fn seen(&self) -> u64 {
        self.read_cached
    }

    /// Our counter.
    #[inline]
    pub fn written(&self) -> u64 {
        self.write
    }

    /// Checks that `wanted` bytes are free. Wait-free; touches the peer's cache line only when it
    /// must.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::TooLarge`], [`QueueError::Corrupt`].
    #[inline]
    pub fn claim(&mut self, read: &AtomicU64, wanted: u64) -> Result<(), QueueError> {
        let mut free = self.free_cached();
        if free < wanted {
            if wanted > self.geometry.capacity() {
                return Err(QueueError::TooLarge { wanted, limit: self.geometry.capacity() });
            }
            free = self.free(read)?;
        }
        if free < wanted {
            return Err(QueueError::Full { wanted, free });
        }
        self.check_room_below_2_64(wanted)
    }

    /// Whether so many bytes are known to be free. What [`claim`](Self::claim) checks first.
    #[inline(always)]
    pub(crate) fn has_room(&self, wanted: u64) -> bool {
        wanted <= self.free_cached() && self.write.checked_add(wanted).is_some()
    }

    /// Free bytes, by one load of the peer's counter.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    #[inline]
    pub fn free(&mut self, read: &AtomicU64) -> Result<u64, QueueError> {
        if let Some(error) = self.corrupt {
            return Err(error);
        }
        // Acquire: pairs with Release in `ReadSide::release`; the reader is done with these bytes
        // before we overwrite them.
        let seen = read.load(Ordering::Acquire);
        match self.geometry.in_flight(seen, self.write) {
            Ok(in_flight) => {
                self.read_cached = seen;
                Ok(self.geometry.capacity() - in_flight)
            }
            Err(error) => Err(self.poison(error)),
        }
    }

    /// Whether the peer's counter moved since it was last read. A hint for polling.
    #[inline]
    pub fn changed(&self, read: &AtomicU64) -> bool {
        read.load(Ordering::Relaxed) != self.read_cached
    }

    /// Loads the peer's counter, and gives whether it moved since it was last read. `last` is how long the last message is. An
    /// impossible counter is the next call's error.
    #[inline]
    pub(crate) fn hears_of_reader(&mut self, read: &AtomicU64, last: u64) -> bool {
        let seen = self.read_cached;
        let Ok(free) = self.free(read) else { return false };
        let had_read_all = self.geometry.capacity() - free <= last;
        self.conversation = match had_read_all {
            true => UNREAD_IN_A_STREAM,
            false => self.conversation.saturating_sub(1),
        };
        self.read_cached != seen
    }

    /// Whether the reader takes each message before the next comes, as far as the writer has [heard](Self::hears_of_reader): a
    /// conversation, and no stream of messages.
    #[inline]
    pub(crate) fn is_conversation(&self) -> bool {
        self.conversation > 0
    }

    /// Hands `written` bytes, at most what was claimed, to the reader.
    #[inline]
    pub fn publish(&mut self, write: &AtomicU64, written: u64) {
        // No overflow: `claim` checked it.
        self.write += written;
        self.position = self.geometry.advance(self.position, written);
        // Release: pairs with Acquire in `ReadSide::available`; payload first, counter second.
        write.store(self.write, Ordering::Release);
    }

    /// `read_cached` passed `in_flight`, so this cannot be negative; it is nothing once the
    /// end is poisoned, see `poison`.
    #[inline]
    fn free_cached(&self) -> u64 {
        self.geometry.capacity() - self.write.wrapping_sub(self.read_cached)
    }

    /// Counters never wrap: 2^64 bytes are centuries. A queue started close to it by a peer ends
    /// there.
    #[inline]
    fn check_room_below_2_64(&mut self, wanted: u64) -> Result<(), QueueError> {
        if self.write.checked_add(wanted).is_none() {
            let error = self.geometry.corrupt(self.read_cached, self.write);
            return Err(self.poison(error));
        }
        Ok(())
    }

    /// Poisons this end: from here on nothing seems free, so that every call takes the slow path and gets
    /// the error there, and the fast path needs no check.
    #[cold]
    fn poison(&mut self, error: QueueError) -> QueueError {
        self.corrupt = Some(error);
        self.read_cached = self.write.wrapping_sub(self.geometry.capacity());
        error
    }
}

/// What the reading end knows.
#[derive(Debug)]
pub struct ReadSide {
    geometry: Geometry,
    /// Ours, including bytes that were copied out but not yet released.
    read: u64,
    /// `read` modulo capacity.
    position: u64,
    /// Bytes consumed by the last read: a guess at the next.
    last_read: u64,
    /// The read counter as last published to the writer.
    released: u64,
    /// The peer's counter as last seen.
    write_cached: u64,
    /// Set once and for ever by an impossible counter.
    corrupt: Option<QueueError>,
}

impl ReadSide {
    /// Goes on where the counters stand; they are not reset.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`] where they are impossible.
    pub fn attach(geometry: Geometry, read: u64, write: u64) -> Result<ReadSide, QueueError> {
        check_start(&geometry, read, write)?;
        let position = geometry.position(read);
        let (released, write_cached) = (read, write);
        let last_read = 0;
        Ok(ReadSide { geometry, read, position, last_read, released, write_cached, corrupt: None })
    }

    /// The shape of the ring.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the next byte comes from.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The writer's counter as last loaded.
    #[inline]
    pub fn seen(&self) -> u64 {
        self.write_cached
    }

    /// Bytes consumed by the last read.
    #[inline]
    pub fn last_read(&self) -> u64 {
        self.last_read
    }

    /// Checks that `wanted` bytes are readable; loads the writer's counter only when it must.
    ///
    /// # Errors
    /// [`QueueError::Empty`], [`QueueError::TooLarge`], [`QueueError::Corrupt`].
    #[inline]
    pub fn peek(&mut self, write: &AtomicU64, wanted: u64) -> Result<(), QueueError> {
        let mut available = self.available_cached();
        if available < wanted {
            if wanted > self.geometry.capacity() {
                return Err(QueueError::TooLarge { wanted, limit: self.geometry.capacity() });
            }
            available = self.available(write)?;
        }
        if available < wanted {
            return Err(QueueError::Empty { wanted, available });
        }
        Ok(())
    }

    /// Whether so many bytes are known to be readable. What [`peek`](Self::peek) checks first.
    #[inline(always)]
    pub(crate) fn has(&self, wanted: u64) -> bool {
        wanted <= self.available_cached()
    }

    /// Readable bytes, by one load of the writer's counter.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    #[inline]
    pub fn available(&mut self, write: &AtomicU64) -> Result<u64, QueueError> {
        if let Some(error) = self.corrupt {
            return Err(error);
        }
        // Acquire: pairs with Release in `WriteSide::publish`; these bytes are written.
        let seen = write.load(Ordering::Acquire);
        // The writer may fill what was released; it knows no other counter of ours.
        let most = self.geometry.capacity() - (self.read - self.released);
        match seen.checked_sub(self.read) {
            Some(available) if available <= most && self.geometry.items(available).is_some() => {
                self.write_cached = seen;
                Ok(available)
            }
            _ => Err(self.poison(seen)),
        }
    }

    /// Whether the peer's counter moved since it was last read. A hint for polling.
    #[inline]
    pub fn changed(&self, write: &AtomicU64) -> bool {
        write.load(Ordering::Relaxed) != self.write_cached
    }

    /// As so many [`changed`](Self::changed), until one is true; what lies at the position is fetched
    /// together with the counter then.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn look_ahead(
        &mut self,
        ahead: LookAhead,
        write: &AtomicU64,
        looks: NonZeroU32,
    ) -> bool {
        ahead.has_moved(write, self.write_cached, looks, &mut self.position)
    }

    /// Moves past `bytes` bytes, at most what was peeked, without telling the writer yet.
    #[inline]
    pub fn take(&mut self, bytes: u64) {
        self.read += bytes;
        self.last_read = bytes;
        self.position = self.geometry.advance(self.position, bytes);
    }

    /// Whether bytes were consumed that the writer does not know to be free.
    #[inline]
    pub fn has_unreleased(&self) -> bool {
        self.released != self.read
    }

    /// Gives the consumed bytes back to the writer.
    #[inline]
    pub fn release(&mut self, read: &AtomicU64) {
        self.released = self.read;
        // Release: pairs with Acquire in `WriteSide::free`; our copies are done before these bytes
        // are overwritten.
        read.store(self.read, Ordering::Release);
    }

    /// Nothing once the end is poisoned, see `poison`.
    #[inline]
    fn available_cached(&self) -> u64 {
        self.write_cached - self.read
    }

    /// Poisons this end: from here on nothing seems readable, so that every call takes the slow path and
    /// gets the error there, and the fast path needs no check.
    #[cold]
    fn poison(&mut self, seen: u64) -> QueueError {
        // The writer knows our counter as it was released, and may not have gone back behind it.
        let went_back = (self.released..self.read).contains(&seen);
        let ours = if went_back { self.read } else { self.released };
        let error = self.geometry.corrupt(ours, seen);
        self.corrupt = Some(error);
        self.write_cached = self.read;
        error
    }
}

/// Both counters as found on attach: a legal distance, and whole items each.
fn check_start(geometry: &Geometry, read: u64, write: u64) -> Result<(), QueueError> {
    geometry.in_flight(read, write)?;
    match geometry.items(read) {
        Some(_) => Ok(()),
        None => Err(geometry.corrupt(read, write)),
    }
}
