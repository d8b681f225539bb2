//! The unsynchronized ring: one writer that never waits, any number of readers.
//!
//! The writer overwrites what is oldest. A reader keeps its counter to itself; the writer never
//! looks at it. So a reader has to find out by itself that it was overtaken, before *and after* it
//! copied: the writer may have overwritten the bytes in between.
//!
//! The write counter cannot tell that last case: it moves after the bytes did. Hence a third
//! counter, the *intent*: the writer raises it to where it is going to write, before it touches a
//! byte. A reader that saw any of the new bytes sees the intent too, and throws its copy away. A
//! plain libfmq writer has no intent, nor does it move one that the queue has room for: an intent
//! behind the write counter is nobody's. There the write counter is loaded again, as libfmq does,
//! and a copy made while the writer was inside its own can be torn without a trace.

use crate::error::QueueError;
use crate::geometry::Geometry;
use crate::sync::{AtomicU64, Ordering, PeerCounter, fence};

/// What the writer knows.
#[derive(Debug)]
pub struct UnsyncWriteSide {
    geometry: Geometry,
    write: u64,
    /// `write` modulo capacity.
    position: u64,
    /// Highest counter up to which bytes may have been touched.
    intent: u64,
}

impl UnsyncWriteSide {
    /// Goes on where the counters stand; they are not reset. `intent` is where a writer before us
    /// may have left half-written bytes.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`] where the counter is no whole number of items.
    pub fn attach(geometry: Geometry, write: u64, intent: u64) -> Result<Self, QueueError> {
        if geometry.items(write).is_none() {
            return Err(geometry.corrupt(0, write));
        }
        let position = geometry.position(write);
        let believable = geometry.in_flight(write, intent).is_ok();
        let intent = if believable { intent } else { write };
        Ok(UnsyncWriteSide { geometry, write, position, intent })
    }

    /// The shape of the ring.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the next byte goes.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Announces that the next `wanted` bytes are going to be overwritten. Never waits.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`]; [`QueueError::Corrupt`] where the counter would pass 2^64.
    #[inline]
    pub fn claim(&mut self, intent: Option<&AtomicU64>, wanted: u64) -> Result<(), QueueError> {
        if wanted > self.geometry.capacity() {
            return Err(QueueError::TooLarge { wanted, limit: self.geometry.capacity() });
        }
        let Some(end) = self.write.checked_add(wanted) else {
            return Err(self.geometry.corrupt(0, self.write));
        };
        // Never backwards: a larger claim that was abandoned may have left its bytes behind.
        self.intent = self.intent.max(end);
        if let Some(intent) = intent {
            intent.store(self.intent, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire fence in `UnsyncReadSide::confirm`; a reader that saw a byte
        // written after this fence sees the intent stored before it.
        fence(Ordering::Release);
        Ok(())
    }

    /// Shows `written` bytes, at most what was claimed, to the readers.
    #[inline]
    pub fn publish(&mut self, write: &AtomicU64, written: u64) {
        self.write += written;
        self.position = self.geometry.advance(self.position, written);
        // Release: pairs with Acquire in `UnsyncReadSide::available`; payload first, counter second.
        write.store(self.write, Ordering::Release);
    }
}

/// What one reader knows. Its counter is its own: no word of it is shared.
#[derive(Debug)]
pub struct UnsyncReadSide {
    geometry: Geometry,
    read: u64,
    /// `read` modulo capacity.
    position: u64,
    /// The write counter as last seen.
    write_cached: u64,
    /// The writer was seen to announce nothing.
    writes_unannounced: bool,
    /// Set once and for ever by an impossible counter.
    corrupt: Option<QueueError>,
}

impl UnsyncReadSide {
    /// A reader that has read nothing: its counter is zero, as in libfmq. Where the writer is more
    /// than a ring ahead already, the first poll reports an overrun and goes on from there.
    pub fn new(geometry: Geometry) -> UnsyncReadSide {
        UnsyncReadSide {
            geometry,
            read: 0,
            position: 0,
            write_cached: 0,
            writes_unannounced: false,
            corrupt: None,
        }
    }

    /// Whether the last writer that was read from left the intent alone, as libfmq does.
    pub fn writes_unannounced(&self) -> bool {
        self.writes_unannounced
    }

    /// The shape of the ring.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the next byte comes from.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Checks that `wanted` bytes are readable.
    ///
    /// # Errors
    /// [`QueueError::Empty`], [`QueueError::TooLarge`], [`QueueError::Overrun`],
    /// [`QueueError::Corrupt`].
    #[inline]
    pub fn peek(&mut self, write: &impl PeerCounter, wanted: u64) -> Result<(), QueueError> {
        let mut available = self.write_cached - self.read;
        if available < wanted || self.corrupt.is_some() {
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

    /// Readable bytes, by one load of the write counter.
    ///
    /// # Errors
    /// [`QueueError::Overrun`] once, then on from what is written now; [`QueueError::Corrupt`].
    #[inline]
    pub fn available(&mut self, write: &impl PeerCounter) -> Result<u64, QueueError> {
        if let Some(error) = self.corrupt {
            return Err(error);
        }
        let seen = load_acquire(write);
        let ahead = self.ahead(seen)?;
        if ahead > self.geometry.capacity() {
            return Err(self.resync(seen));
        }
        self.write_cached = seen;
        Ok(ahead)
    }

    /// After the bytes were copied out: whether the copy can be trusted. If not it has to be thrown
    /// away. Then moves past `bytes` bytes.
    ///
    /// # Errors
    /// [`QueueError::Overrun`], [`QueueError::Corrupt`].
    #[inline]
    pub fn confirm(
        &mut self,
        write: &impl PeerCounter,
        intent: Option<&impl PeerCounter>,
        bytes: u64,
    ) -> Result<(), QueueError> {
        // Acquire: pairs with the Release fence in `UnsyncWriteSide::claim`; the copy comes before
        // the load of the intent.
        fence(Ordering::Acquire);
        // A writer that announces has raised the intent at least to the write counter that we saw,
        // before it stored that.
        let announced = intent.map(PeerCounter::load_relaxed).filter(|to| *to >= self.write_cached);
        self.writes_unannounced = announced.is_none();
        let touched = announced.unwrap_or_else(|| write.load_relaxed());
        if touched < self.write_cached {
            let error = self.geometry.corrupt(self.read, touched);
            return Err(self.poison(error));
        }
        if self.ahead(touched)? > self.geometry.capacity() {
            let seen = load_acquire(write);
            self.ahead(seen)?;
            return Err(self.resync(seen));
        }
        self.read += bytes;
        self.position = self.geometry.advance(self.position, bytes);
        Ok(())
    }

    /// Distance from our counter to one of the writer's.
    #[inline]
    fn ahead(&mut self, theirs: u64) -> Result<u64, QueueError> {
        match theirs.checked_sub(self.read) {
            Some(ahead) if self.geometry.items(ahead).is_some() => Ok(ahead),
            _ => {
                let error = self.geometry.corrupt(self.read, theirs);
                Err(self.poison(error))
            }
        }
    }

    /// Gives up what was unread and goes on at `write`.
    #[cold]
    fn resync(&mut self, write: u64) -> QueueError {
        let lost = write.saturating_sub(self.read);
        self.read = write;
        self.write_cached = write;
        self.position = self.geometry.position(write);
        QueueError::Overrun { lost }
    }

    /// Poisons this end: every later call gives the same error.
    #[cold]
    fn poison(&mut self, error: QueueError) -> QueueError {
        self.corrupt = Some(error);
        error
    }
}

/// The write counter; what was written before it was stored is visible.
#[inline]
fn load_acquire(write: &impl PeerCounter) -> u64 {
    let seen = write.load_relaxed();
    // Acquire: pairs with Release in `UnsyncWriteSide::publish`; these bytes are written. A fence
    // behind a relaxed load, as the counter may lie in a mapping for reading.
    fence(Ordering::Acquire);
    seen
}
