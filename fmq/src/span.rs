//! A span of the ring, which may wrap around the end of the ring, and copies in and out of it.

use std::sync::LazyLock;

use burst_shm::Region;

use crate::error::QueueError;
use crate::geometry::Geometry;

/// `len` bytes from `position`; at most the capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    position: u64,
    len: u64,
}

impl Span {
    pub(crate) fn new(geometry: &Geometry, position: u64, len: u64) -> Span {
        debug_assert!(position < geometry.capacity() && len <= geometry.capacity());
        Span { position, len }
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }

    pub(crate) fn items(&self, geometry: &Geometry) -> usize {
        usize::try_from(geometry.items(self.len).unwrap_or(0)).unwrap_or(usize::MAX)
    }

    pub(crate) fn piece_lens(&self, geometry: &Geometry) -> [usize; 2] {
        let first = self.len.min(geometry.capacity() - self.position);
        [first, self.len - first].map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// Position in the ring of `len` bytes at `offset` of the span.
    #[inline]
    pub(crate) fn at(
        &self,
        geometry: &Geometry,
        offset: usize,
        len: usize,
    ) -> Result<u64, QueueError> {
        let (offset, len) = (offset as u64, len as u64);
        // Two comparisons and no addition: nothing can overflow.
        if offset > self.len || len > self.len - offset {
            return Err(QueueError::TooLarge {
                wanted: offset.saturating_add(len),
                limit: self.len,
            });
        }
        Ok(geometry.advance(self.position, offset))
    }

    #[inline]
    pub(crate) fn check_len(&self, wanted: u64) -> Result<(), QueueError> {
        if wanted > self.len {
            return Err(QueueError::TooLarge { wanted, limit: self.len });
        }
        Ok(())
    }
}

/// Copies `bytes`, at most a ring full, to `position`, going on at the beginning.
#[inline]
pub(crate) fn copy_in(ring: &Region<'_>, position: u64, bytes: &[u8]) -> Result<(), QueueError> {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let to_end = ring.len().saturating_sub(position);
    if bytes.len() <= to_end {
        return Ok(ring.copy_in(position, bytes)?);
    }
    let (first, rest) = bytes.split_at(to_end);
    ring.copy_in(position, first)?;
    Ok(ring.copy_in(0, rest)?)
}

/// Copies out of the ring, at most a ring full, from `position`, going on at the beginning.
#[inline]
pub(crate) fn copy_out(
    ring: &Region<'_>,
    position: u64,
    bytes: &mut [u8],
) -> Result<(), QueueError> {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let to_end = ring.len().saturating_sub(position);
    if bytes.len() <= to_end {
        return Ok(ring.copy_out(position, bytes)?);
    }
    let (first, rest) = bytes.split_at_mut(to_end);
    ring.copy_out(position, first)?;
    Ok(ring.copy_out(0, rest)?)
}

/// Longest message that both ends fetch early. The lines of a longer one are the writer's alone until they are written
/// (`docs/decisions/0050-the-place-of-the-next-message.md`).
const MAX_SHARED_BYTES: u64 = 512;
/// Longest message whose place the writer fetches early: longer ones gained nothing.
const MAX_FETCHED_BYTES: u64 = 2048;

/// Whether both ends fetch the place of a message of `len` bytes early, and so hold its lines when the writer stores to
/// them. On one generation of CPUs that costs the writer more than it saves the reader, and no message is treated so.
#[inline]
fn is_shared(len: u64) -> bool {
    static NEVER: LazyLock<bool> = LazyLock::new(burst_shm::is_zen4);
    len <= MAX_SHARED_BYTES && !*NEVER
}

/// Brings the place of a message that the reader waits for into its CPU's caches, if both ends fetch it; as far as it lies
/// before the end of the ring. A hint.
#[inline]
pub(crate) fn prefetch_to_read(ring: &Region<'_>, position: u64, len: u64) {
    if is_shared(len) {
        let (position, len) = before_end(ring, position, len);
        ring.prefetch(position, len);
    }
}

/// Brings the place of the writer's next message into its CPU's caches. A hint, as above.
#[inline]
pub(crate) fn prefetch_to_write(ring: &Region<'_>, position: u64, len: u64) {
    if len > MAX_FETCHED_BYTES {
        return;
    }
    let is_shared = is_shared(len);
    let (position, len) = before_end(ring, position, len);
    if is_shared {
        ring.prefetch(position, len);
    } else {
        ring.prefetch_to_write(position, len);
    }
}

/// Where that is in the ring, and how much of it lies before the ring's end.
#[inline]
fn before_end(ring: &Region<'_>, position: u64, len: u64) -> (usize, usize) {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    (position, len.min(ring.len().saturating_sub(position)))
}
