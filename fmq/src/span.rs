//! A span of the ring, which may wrap around the end of the ring, and copies in and out of it.

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

/// Copies `bytes` to `position` if they end before the ring does, `wide` or word by word. Otherwise nothing is copied.
#[inline(always)]
pub(crate) fn copy_piece_in(ring: &Region<'_>, position: u64, bytes: &[u8], wide: bool) -> bool {
    let Ok(position) = usize::try_from(position) else { return false };
    match wide {
        true => ring.copy_in_wide(position, bytes).is_ok(),
        false => ring.copy_in(position, bytes).is_ok(),
    }
}

/// Fills `bytes` from `position` if as many lie before the end of the ring. Otherwise nothing is copied.
#[inline(always)]
pub(crate) fn copy_piece_out(ring: &Region<'_>, position: u64, bytes: &mut [u8]) -> bool {
    let Ok(position) = usize::try_from(position) else { return false };
    ring.copy_out(position, bytes).is_ok()
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
