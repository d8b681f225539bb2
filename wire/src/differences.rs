//! Packets that say where they differ from the one before in the same queue, and nothing else.
//!
//! ```text
//! as before   how many datums there are, this one included
//! difference  a datum of the packet that is meant; its bytes 2 and 3 say its place there
//! ...         in the order of their places
//! ```
//!
//! Only where [`Features::DIFFERENCES`](crate::Features::DIFFERENCES) was negotiated. Most requests of a burst, and most
//! results, differ from the one before in a place or two: where an input lies, a time, a number. Both ends keep the packet
//! before as a whole, whatever became of it, so that a difference is put into the same packet at both.

use std::hint::black_box;

use crate::cursor::{PacketSlots, PutDatum};
use crate::datum::{DATUM_BYTES, DatumBytes, DatumWords, PacketHead, store, u32_at, words_of};
use crate::{Features, WireError};

/// Datums of the longest packet whose differences can be said: a place has two bytes.
const DATUMS_MAX: usize = u16::MAX as usize + 1;
/// Where a difference says its place.
const PLACE: usize = 2;

/// The place of a difference in the packet that is meant.
#[inline(always)]
pub(crate) fn place_of(difference: &DatumBytes) -> usize {
    u16::from_ne_bytes([difference[PLACE], difference[PLACE + 1]]).into()
}

/// The first word of a datum with these bytes where a difference says its place, and zeros elsewhere.
#[inline(always)]
fn place_word([low, high]: [u8; 2]) -> u64 {
    u64::from_ne_bytes([0, 0, low, high, 0, 0, 0, 0])
}

/// What the writing end of a queue keeps of packets.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Whether the other end knows differences.
    by_differences: bool,
    /// The packet that was encoded last, as a whole.
    packet: Vec<DatumBytes>,
    /// Where it differs from the one before, behind the datum that says so: room for as many datums as the packet has.
    differences: Vec<DatumBytes>,
    /// How many of these there are. None: the packet is to be sent as a whole.
    count: usize,
    /// Whether the other end has that packet, or is going to.
    is_sent: bool,
}

impl Sent {
    /// Of a burst with these additions to HAL 1.2.
    pub(crate) fn new(features: Features) -> Self {
        let by_differences = features.contains(Features::DIFFERENCES);
        let (packet, differences) = (Vec::new(), Vec::new());
        Sent { by_differences, packet, differences, count: 0, is_sent: false }
    }

    /// Notes that the packet that was encoded last is in the queue.
    #[inline(always)]
    pub(crate) fn sent(&mut self) {
        self.is_sent = true;
    }

    /// What is to be sent of the packet that was encoded last.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        let datums = match self.count {
            0 => &self.packet,
            count => self.differences.get(..count).unwrap_or_default(),
        };
        datums.as_flattened()
    }

    /// Changes the packet before, if the other end has it, to the next one by `change`, which gives `None` where that has
    /// another form. After a `None` what is kept is neither packet, and [`encode_whole`](Sent::encode_whole) has to follow.
    #[inline(always)]
    pub(crate) fn change(
        &mut self,
        head: PacketHead,
        change: impl FnOnce(&mut Changes<'_>) -> Option<()>,
    ) -> Option<()> {
        if !std::mem::take(&mut self.is_sent) {
            return None;
        }
        let (first, room) = self.differences.split_first_mut()?;
        let mut changes =
            Changes { len: self.packet.len(), rest: &mut self.packet, room, noted: 0 };
        change(&mut changes)?;
        if !changes.rest.is_empty() {
            return None;
        }
        self.count = 1 + changes.noted;
        store(first, head.as_before(u32::try_from(self.count).ok()?));
        Some(())
    }

    /// Encodes a packet as a whole, which `fill` puts. Most are as long as the one before, so that is tried first;
    /// `datums` is asked where it does not do. Makes room for the differences of the next one, if there can be any.
    #[inline(never)]
    pub(crate) fn encode_whole(
        &mut self,
        datums: impl FnOnce() -> Result<u32, WireError>,
        fill: impl Fn(PacketSlots<'_>) -> Option<()>,
    ) -> Result<(), WireError> {
        (self.count, self.is_sent) = (0, false);
        if fill(PacketSlots::new(&mut self.packet)).is_some() {
            return Ok(());
        }
        let datums = datums()?;
        let too_long = || WireError::TooLong { datums: u64::from(datums) };
        let len = usize::try_from(datums).map_err(|_| too_long())?;
        resize(&mut self.packet, len);
        let room = if self.by_differences && len <= DATUMS_MAX { len } else { 0 };
        resize(&mut self.differences, room);
        fill(PacketSlots::new(&mut self.packet)).ok_or_else(too_long)
    }
}

/// No more room is kept than the longest packet so far took.
fn resize(datums: &mut Vec<DatumBytes>, len: usize) {
    datums.reserve_exact(len.saturating_sub(datums.len()));
    datums.resize(len, DatumBytes::default());
}

/// A packet that is being changed to another one of the same form, from its first datum to its last. `None` where there
/// are too few datums, or where what is to be sent would be longer than the packet.
pub(crate) struct Changes<'a> {
    len: usize,
    /// Those behind the ones that were taken.
    rest: &'a mut [DatumBytes],
    /// For differences.
    room: &'a mut [DatumBytes],
    /// How many there are.
    noted: usize,
}

impl<'a> Changes<'a> {
    /// The next datum as it was.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<&'a mut DatumBytes> {
        let (datum, rest) = std::mem::take(&mut self.rest).split_first_mut()?;
        self.rest = rest;
        Some(datum)
    }

    /// As many as that.
    #[inline(always)]
    pub(crate) fn take_all(&mut self, count: usize) -> Option<&'a mut [DatumBytes]> {
        let (datums, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(count)?;
        self.rest = rest;
        Some(datums)
    }

    /// Changes the datum that was taken last.
    #[inline(always)]
    pub(crate) fn set(&mut self, datum: &mut DatumBytes, words: DatumWords) -> Option<()> {
        store(datum, words);
        let place = self.len - self.rest.len() - 1;
        note(self.room.get_mut(self.noted)?, place, words)?;
        self.noted += 1;
        Some(())
    }

    /// Changes those of the ones that were taken last that are others than they were.
    #[inline(always)]
    pub(crate) fn set_all<T: Copy>(
        &mut self,
        datums: &mut [DatumBytes],
        values: &[T],
        words: impl Fn(T) -> DatumWords,
    ) -> Option<()> {
        let first = self.len - self.rest.len() - datums.len();
        self.noted += note_all(self.room.get_mut(self.noted..)?, first, datums, values, words)?;
        Some(())
    }
}

/// Changes the next datum, where it is another one than it was.
impl PutDatum for Changes<'_> {
    #[inline(always)]
    fn put(&mut self, words: DatumWords) -> Option<()> {
        let datum = self.take()?;
        if is_same(datum, words) { Some(()) } else { self.set(datum, words) }
    }
}

#[inline(always)]
fn is_same(datum: &DatumBytes, [first, second, third]: DatumWords) -> bool {
    // Word by word: compared as a whole they would be put into memory first and waited for there.
    let [one, two, three] = words_of(datum);
    (one ^ first) | (two ^ second) | (three ^ third) == 0
}

/// Writes down that these words are at this place now.
#[inline(always)]
fn note(difference: &mut DatumBytes, place: usize, words: DatumWords) -> Option<()> {
    let [first, second, third] = words;
    let place = place_word(u16::try_from(place).ok()?.to_ne_bytes());
    store(difference, [first | place, second, third]);
    Some(())
}

/// Changes datums, the first of which has this place, and gives how many were others before. It is apart, and is not handed
/// [`Changes`] themselves, so that the compiler keeps those in registers while it goes through a packet.
#[cold]
#[inline(never)]
fn note_all<T: Copy>(
    room: &mut [DatumBytes],
    first: usize,
    datums: &mut [DatumBytes],
    values: &[T],
    words: impl Fn(T) -> DatumWords,
) -> Option<usize> {
    let mut noted = 0;
    for (at, (datum, value)) in datums.iter_mut().zip(values).enumerate() {
        let words = words(*value);
        if !is_same(datum, words) {
            store(datum, words);
            note(room.get_mut(noted)?, first + at, words)?;
            noted += 1;
        }
    }
    Some(noted)
}

/// The packet before, as the reading end of a queue keeps it.
#[derive(Debug, Default)]
pub(crate) struct Before(Vec<DatumBytes>);

impl Before {
    /// Its datums; none where there was no packet before.
    #[inline(always)]
    pub(crate) fn datums(&self) -> &[DatumBytes] {
        &self.0
    }

    /// Bytes that it takes on the heap.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.0.capacity() * DATUM_BYTES
    }

    /// Keeps a packet that came as a whole.
    pub(crate) fn put(&mut self, packet: &[u8]) {
        let datums = packet.as_chunks().0;
        self.0.clear();
        if datums.len() <= DATUMS_MAX {
            self.0.reserve_exact(datums.len()); // as it is paid for
            self.0.extend_from_slice(datums);
        }
    }

    /// Changes it by the differences in `packet`, and gives those. After an error there is no packet before.
    #[inline(always)]
    pub(crate) fn change<'p>(
        &mut self,
        packet: &'p [u8],
        head: PacketHead,
    ) -> Result<&'p [DatumBytes], WireError> {
        let changed = self.try_change(packet, head);
        if changed.is_err() {
            self.0.clear();
        }
        changed
    }

    #[inline(always)]
    fn try_change<'p>(
        &mut self,
        packet: &'p [u8],
        head: PacketHead,
    ) -> Result<&'p [DatumBytes], WireError> {
        let (datums, ragged) = packet.as_chunks::<DATUM_BYTES>();
        let ([first, differences @ ..], []) = (datums, ragged) else {
            return Err(WireError::Ragged { bytes: packet.len() });
        };
        let (said, received) = (u32_at(first, head.length_at), datums.len());
        if said as usize != received {
            return Err(WireError::PacketSize { said, received });
        }
        if self.0.is_empty() {
            return Err(WireError::NothingBefore);
        }
        // The first datum says what form the packet has, and that is as before.
        let mut last = 0;
        for difference in differences {
            let place = place_of(difference);
            let slot = self.0.get_mut(place).filter(|_| place > last);
            let slot = slot.ok_or(WireError::Place { place, after: last })?;
            let [first, second, third] = words_of(difference);
            // By itself: copied together with the second, as the compiler would, it lies in two of the pieces in which the packet
            // was stored an instant ago, and is waited for.
            let first = black_box(first & !place_word([u8::MAX; 2]));
            store(slot, [first, second, third]);
            last = place;
        }
        Ok(differences)
    }
}

#[cfg(test)]
#[path = "differences_tests.rs"]
mod tests;
