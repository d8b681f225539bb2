//! Walks over the datums of a received packet, never past its end.

use crate::WireError;
use crate::datum::{DATUM_BYTES, DatumBytes};

/// The datums of one packet, and how far they have been read.
pub(crate) struct Cursor<'a> {
    datums: &'a [DatumBytes],
    next: usize,
}

impl<'a> Cursor<'a> {
    /// Over a whole number of datums, at least one.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (datums, rest) = bytes.as_chunks::<DATUM_BYTES>();
        if datums.is_empty() || !rest.is_empty() {
            return Err(WireError::Ragged { bytes: bytes.len() });
        }
        Ok(Cursor { datums, next: 0 })
    }

    /// Datums in the packet.
    pub(crate) fn len(&self) -> usize {
        self.datums.len()
    }

    /// Takes the next datum, which must be of this kind.
    pub(crate) fn take(
        &mut self,
        kind: u8,
        wanted: &'static str,
    ) -> Result<&'a DatumBytes, WireError> {
        let at = self.next;
        let datum = self.datums.get(at).ok_or(WireError::Short { at, wanted })?;
        if datum[0] != kind {
            return Err(WireError::Discriminator { at, found: datum[0], wanted });
        }
        self.next += 1;
        Ok(datum)
    }

    /// Takes the next datum if there is one of this kind.
    pub(crate) fn take_if(&mut self, kind: u8) -> Option<&'a DatumBytes> {
        let datum = self.datums.get(self.next).filter(|datum| datum[0] == kind)?;
        self.next += 1;
        Some(datum)
    }

    /// Checks the length the packet says, and that its counts can be true, before anything is
    /// reserved for them.
    pub(crate) fn check_size(&self, said: u32, needed: u64) -> Result<(), WireError> {
        let received = self.len();
        if u64::from(said) != received as u64 {
            return Err(WireError::PacketSize { said, received });
        }
        self.check_room(needed)
    }

    /// Whether the packet has at least this many datums.
    pub(crate) fn check_room(&self, needed: u64) -> Result<(), WireError> {
        let received = self.len();
        if needed > received as u64 {
            return Err(WireError::Counts { needed, received });
        }
        Ok(())
    }

    /// Whether `count` more datums are there.
    pub(crate) fn check_remaining(&self, count: u32) -> Result<(), WireError> {
        self.check_room(self.next as u64 + u64::from(count))
    }

    /// Nothing may follow the last record.
    pub(crate) fn finish(&self) -> Result<(), WireError> {
        if self.next == self.len() {
            return Ok(());
        }
        Err(WireError::Trailing { end: self.next, received: self.len() })
    }
}
