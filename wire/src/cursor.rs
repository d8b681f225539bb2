//! Walks over the datums of a received packet, never past its end.

use burst_hal::Dimensions;

use crate::WireError;
use crate::datum::{DATUM_BYTES, DatumBytes, DatumWords, store, u32_at};

/// The datums of one packet, and how far they have been read.
pub(crate) struct Cursor<'a> {
    /// Datums in the packet.
    len: usize,
    /// Those that have not been read.
    rest: &'a [DatumBytes],
}

impl<'a> Cursor<'a> {
    /// Over a whole number of datums, at least one.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (datums, ragged) = bytes.as_chunks::<DATUM_BYTES>();
        if datums.is_empty() || !ragged.is_empty() {
            return Err(WireError::Ragged { bytes: bytes.len() });
        }
        Ok(Cursor { len: datums.len(), rest: datums })
    }

    /// Over the datums of a packet of `len` that have not been read.
    #[inline(always)]
    pub(crate) fn over(len: usize, rest: &'a [DatumBytes]) -> Self {
        Cursor { len, rest }
    }

    /// Index of the next datum in the packet.
    #[inline]
    fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Takes the next datum, which must be of this kind.
    #[inline]
    pub(crate) fn take(
        &mut self,
        kind: u8,
        wanted: &'static str,
    ) -> Result<&'a DatumBytes, WireError> {
        match self.rest.split_first() {
            Some((datum, rest)) if datum[0] == kind => {
                self.rest = rest;
                Ok(datum)
            }
            other => Err(self.not_this(other.map(|(datum, _)| datum), wanted)),
        }
    }

    #[cold]
    fn not_this(&self, found: Option<&DatumBytes>, wanted: &'static str) -> WireError {
        let at = self.at();
        match found {
            Some(datum) => WireError::Discriminator { at, found: datum[0], wanted },
            None => WireError::Short { at, wanted },
        }
    }

    /// Takes one datum of this kind for each slot of `out` and puts its value there. There must
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
        let Some((datums, rest)) = self.rest.split_at_checked(out.len()) else {
            return Err(WireError::Short { at: self.len, wanted });
        };
        let mut differences = 0;
        for (slot, datum) in out.iter_mut().zip(datums) {
            differences |= datum[0] ^ kind;
            *slot = value(datum);
        }
        if differences != 0 {
            return Err(self.wrong_kind(datums, kind, wanted));
        }
        self.rest = rest;
        Ok(())
    }

    /// The first of these next datums that is not of this kind.
    #[cold]
    fn wrong_kind(&self, datums: &[DatumBytes], kind: u8, wanted: &'static str) -> WireError {
        let at = datums.iter().position(|datum| datum[0] != kind).unwrap_or(0);
        WireError::Discriminator { at: self.at() + at, found: datums[at][0], wanted }
    }

    /// Takes the next datum if there is one of this kind.
    #[inline]
    pub(crate) fn take_if(&mut self, kind: u8) -> Option<&'a DatumBytes> {
        let (datum, rest) = self.rest.split_first().filter(|(datum, _)| datum[0] == kind)?;
        self.rest = rest;
        Some(datum)
    }

    /// Checks the length the packet says, and that its counts can be true, before anything is
    /// reserved for them.
    #[inline]
    pub(crate) fn check_size(&self, said: u32, needed: u64) -> Result<(), WireError> {
        let received = self.len;
        if u64::from(said) != received as u64 {
            return Err(WireError::PacketSize { said, received });
        }
        self.check_room(needed)
    }

    /// Whether the packet has at least this many datums.
    #[inline]
    pub(crate) fn check_room(&self, needed: u64) -> Result<(), WireError> {
        let received = self.len;
        if needed > received as u64 {
            return Err(WireError::Counts { needed, received });
        }
        Ok(())
    }

    /// Whether `count` more datums are there.
    #[inline]
    pub(crate) fn check_remaining(&self, count: u32) -> Result<(), WireError> {
        if u64::from(count) > self.rest.len() as u64 {
            return Err(self.too_few(count));
        }
        Ok(())
    }

    #[cold]
    fn too_few(&self, count: u32) -> WireError {
        WireError::Counts { needed: self.at() as u64 + u64::from(count), received: self.len }
    }

    /// `dimensions` as a slice of so many sizes, to be overwritten. Most packets have the ranks of the
    /// one before, and `resize` takes its time to do nothing.
    ///
    /// Room on the heap is given back where the rank is another one: a peer whose packets give one argument after the
    /// other a long list would have all of them keep theirs, many times the packet together.
    #[inline(always)]
    pub(crate) fn sized<'d>(
        &self,
        dimensions: &'d mut Dimensions,
        rank: u32,
    ) -> Result<&'d mut [u32], WireError> {
        self.check_remaining(rank)?;
        if dimensions.len() != rank as usize {
            if dimensions.spilled() {
                *dimensions = Dimensions::new();
            }
            dimensions.reserve_exact(rank as usize);
            dimensions.resize(rank as usize, 0);
        }
        Ok(dimensions)
    }

    /// Nothing may follow the last record.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(WireError::Trailing { end: self.at(), received: self.len })
    }
}

/// Takes a size for each of `sizes` off the front of `datums`, whose kind is `kind` and whose value stands at `at`; gives
/// what is left. `None` where there are too few, or one is of another kind.
#[inline(always)]
pub(crate) fn sizes_again<'a>(
    datums: &'a [DatumBytes],
    kind: u8,
    at: usize,
    sizes: &mut [u32],
) -> Option<&'a [DatumBytes]> {
    let (datums, rest) = datums.split_at_checked(sizes.len())?;
    // Tensors of rank 4 and 2 are what there is most of, and a loop costs more than what it does here.
    let differences = match (sizes, datums) {
        ([a, b, c, d], [w, x, y, z]) => {
            (*a, *b, *c, *d) = (u32_at(w, at), u32_at(x, at), u32_at(y, at), u32_at(z, at));
            (w[0] ^ kind) | (x[0] ^ kind) | (y[0] ^ kind) | (z[0] ^ kind)
        }
        ([a, b], [x, y]) => {
            (*a, *b) = (u32_at(x, at), u32_at(y, at));
            (x[0] ^ kind) | (y[0] ^ kind)
        }
        (sizes, datums) => {
            let mut differences = 0;
            for (size, datum) in sizes.iter_mut().zip(datums) {
                *size = u32_at(datum, at);
                differences |= datum[0] ^ kind;
            }
            differences
        }
    };
    (differences == 0).then_some(rest)
}

/// Brings `out` to the datums that `fill` puts, and to nothing else. Most packets are as long as the one before, so that
/// is tried first; `datums` is asked where it does not do.
#[inline(always)]
pub(crate) fn fill_packet(
    out: &mut Vec<u8>,
    datums: impl FnOnce() -> Result<u32, WireError>,
    fill: impl Fn(PacketSlots<'_>) -> Option<()>,
) -> Result<(), WireError> {
    let (slots, ragged) = out.as_chunks_mut();
    if ragged.is_empty() && fill(PacketSlots::new(slots)).is_some() {
        return Ok(());
    }
    fill_resized(out, datums()?, &fill)
}

#[cold]
#[inline(never)]
fn fill_resized(
    out: &mut Vec<u8>,
    datums: u32,
    fill: &dyn Fn(PacketSlots<'_>) -> Option<()>,
) -> Result<(), WireError> {
    let too_long = || WireError::TooLong { datums: u64::from(datums) };
    let bytes = usize::try_from(u64::from(datums) * DATUM_BYTES as u64);
    out.resize(bytes.map_err(|_| too_long())?, 0);
    fill(PacketSlots::new(out.as_chunks_mut().0)).ok_or_else(too_long)
}

/// Whoever a packet's datums are put into, one after the other. `None` where there are too few slots for them.
pub(crate) trait PutDatum {
    /// Puts the next datum.
    fn put(&mut self, words: DatumWords) -> Option<()>;
}

impl PutDatum for PacketSlots<'_> {
    #[inline(always)]
    fn put(&mut self, words: DatumWords) -> Option<()> {
        let (slot, rest) = std::mem::take(&mut self.slots).split_first_mut()?;
        store(slot, words);
        self.slots = rest;
        Some(())
    }
}

/// The slots of a packet's datums, filled one after the other. `None` where there are too few.
pub(crate) struct PacketSlots<'a> {
    slots: &'a mut [DatumBytes],
}

impl<'a> PacketSlots<'a> {
    #[inline(always)]
    pub(crate) fn new(slots: &'a mut [DatumBytes]) -> Self {
        PacketSlots { slots }
    }

    /// Those that are left.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether all are filled.
    #[inline(always)]
    pub(crate) fn finish(self) -> Option<()> {
        self.slots.is_empty().then_some(())
    }

    /// Fills as many slots as there are values.
    #[inline(always)]
    pub(crate) fn put_all<T: Copy>(
        &mut self,
        values: &[T],
        datum: impl Fn(T) -> DatumWords,
    ) -> Option<()> {
        let slots = std::mem::take(&mut self.slots);
        let (slots, rest) = slots.split_at_mut_checked(values.len())?;
        self.slots = rest;
        // Tensors of rank 4 and 2 are what there is most of, and a loop costs more than what it does here.
        match (slots, values) {
            ([a, b, c, d], [w, x, y, z]) => {
                store(a, datum(*w));
                store(b, datum(*x));
                store(c, datum(*y));
                store(d, datum(*z));
            }
            ([a, b], [w, x]) => {
                store(a, datum(*w));
                store(b, datum(*x));
            }
            (slots, values) => {
                for (slot, value) in slots.iter_mut().zip(values) {
                    store(slot, datum(*value));
                }
            }
        }
        Some(())
    }
}
