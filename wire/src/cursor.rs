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
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (datums, rest) = bytes.as_chunks::<DATUM_BYTES>();
        if datums.is_empty() || !rest.is_empty() {
            return Err(WireError::Ragged { bytes: bytes.len() });
        }
        Ok(Cursor { datums, next: 0 })
    }

    /// Datums in the packet.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.datums.len()
    }

    /// Takes the next datum, which must be of this kind.
    #[inline]
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

    /// Takes one datum of this kind for each place of `out`, and puts a value of it there. There must
    /// be so many: see [`check_remaining`](Cursor::check_remaining).
    ///
    /// Looks at all of them before it decides: a branch for each would cost more than the copy.
    #[inline]
    pub(crate) fn take_values<T>(
        &mut self,
        kind: u8,
        wanted: &'static str,
        out: &mut [T],
        value: impl Fn(&DatumBytes) -> T,
    ) -> Result<(), WireError> {
        let rest = self.datums.get(self.next..).unwrap_or_default();
        let Some(datums) = rest.get(..out.len()) else {
            return Err(WireError::Short { at: self.len(), wanted });
        };
        let mut differences = 0;
        for (slot, datum) in out.iter_mut().zip(datums) {
            differences |= datum[0] ^ kind;
            *slot = value(datum);
        }
        if differences != 0 {
            return Err(self.wrong_kind(datums, kind, wanted));
        }
        self.next += datums.len();
        Ok(())
    }

    /// The first of these next datums that is not of this kind.
    #[cold]
    fn wrong_kind(&self, datums: &[DatumBytes], kind: u8, wanted: &'static str) -> WireError {
        let at = datums.iter().position(|datum| datum[0] != kind).unwrap_or(0);
        WireError::Discriminator { at: self.next + at, found: datums[at][0], wanted }
    }

    /// Takes the next datum if there is one of this kind.
    #[inline]
    pub(crate) fn take_if(&mut self, kind: u8) -> Option<&'a DatumBytes> {
        let datum = self.datums.get(self.next).filter(|datum| datum[0] == kind)?;
        self.next += 1;
        Some(datum)
    }

    /// Checks the length the packet says, and that its counts can be true, before anything is
    /// reserved for them.
    #[inline]
    pub(crate) fn check_size(&self, said: u32, needed: u64) -> Result<(), WireError> {
        let received = self.len();
        if u64::from(said) != received as u64 {
            return Err(WireError::PacketSize { said, received });
        }
        self.check_room(needed)
    }

    /// Whether the packet has at least this many datums.
    #[inline]
    pub(crate) fn check_room(&self, needed: u64) -> Result<(), WireError> {
        let received = self.len();
        if needed > received as u64 {
            return Err(WireError::Counts { needed, received });
        }
        Ok(())
    }

    /// Whether `count` more datums are there.
    #[inline]
    pub(crate) fn check_remaining(&self, count: u32) -> Result<(), WireError> {
        self.check_room(self.next as u64 + u64::from(count))
    }

    /// Nothing may follow the last record.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), WireError> {
        if self.next == self.len() {
            return Ok(());
        }
        Err(WireError::Trailing { end: self.next, received: self.len() })
    }
}

/// Brings `out` to `datums` datums and gives them to `fill` to be overwritten, all of them.
#[inline]
pub(crate) fn fill_packet(
    out: &mut Vec<u8>,
    datums: u32,
    fill: impl FnOnce(&mut PacketSlots<'_>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let too_long = WireError::TooLong { datums: u64::from(datums) };
    let bytes = usize::try_from(u64::from(datums) * DATUM_BYTES as u64).map_err(|_| too_long)?;
    out.resize(bytes, 0);
    let (slots, _) = out.as_chunks_mut::<DATUM_BYTES>();
    fill(&mut PacketSlots { slots: slots.iter_mut() })
}

/// The places of a packet's datums, filled one after the other.
pub(crate) struct PacketSlots<'a> {
    slots: std::slice::IterMut<'a, DatumBytes>,
}

impl PacketSlots<'_> {
    /// Fills the next place.
    #[inline(always)]
    pub(crate) fn put(&mut self, datum: DatumBytes) {
        // There is a place for each: the packet was made as long as its datums were counted.
        if let Some(slot) = self.slots.next() {
            *slot = datum;
        }
    }

    /// Fills as many places as there are datums.
    #[inline(always)]
    pub(crate) fn put_all(&mut self, datums: impl Iterator<Item = DatumBytes>) {
        datums.for_each(|datum| self.put(datum));
    }
}
