//! Results of one burst, each encoded over the one before.

use super::ResultPacket;
use crate::datum::{self, PacketHead, ResultDatum};
use crate::differences::{Changes, Sent};
use crate::{Features, WireError};

/// Encodes the results of one burst: as [`ResultPacket::encode_into`], and where
/// [`DIFFERENCES`](Features::DIFFERENCES) was negotiated by where they differ from the one before.
#[derive(Debug)]
pub struct ResultEncoder {
    longest: usize,
    sent: Sent,
}

impl ResultEncoder {
    /// For a burst with these additions to HAL 1.2, whose results may have `longest` datums.
    #[must_use]
    pub fn new(features: Features, longest: usize) -> Self {
        ResultEncoder { longest, sent: Sent::new(features) }
    }

    /// The bytes to send for a result. Where they were written into the queue, [`sent`](ResultEncoder::sent) has to be
    /// called before the next result; otherwise the next one comes as a whole.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for more datums than a result may have.
    #[inline]
    pub fn encode(&mut self, result: &ResultPacket<'_>) -> Result<&[u8], WireError> {
        if self.sent.change(PacketHead::RESULT, |packet| change(packet, result)).is_none() {
            let longest = self.longest;
            let datums = || {
                let datums = result.datums()?;
                let fits = usize::try_from(datums).is_ok_and(|datums| datums <= longest);
                fits.then_some(datums).ok_or(WireError::TooLong { datums: u64::from(datums) })
            };
            self.sent.encode_whole(datums, |slots| result.fill(slots))?;
        }
        Ok(self.sent.bytes())
    }

    /// What [`encode`](ResultEncoder::encode) gave.
    #[must_use]
    #[inline]
    pub fn packet(&self) -> &[u8] {
        self.sent.bytes()
    }

    /// The result that was encoded last is in the queue.
    #[inline]
    pub fn sent(&mut self) {
        self.sent.sent();
    }
}

/// Changes the packet before to that of a result of the same form and status. `None` where it has another one.
#[inline(always)]
fn change(packet: &mut Changes<'_>, result: &ResultPacket<'_>) -> Option<()> {
    let first = packet.take()?;
    let has_form = datum::i32_at(first, 12) == result.status.code()
        && datum::u32_at(first, 16) as usize == result.shapes.len();
    if !has_form {
        return None;
    }
    for shape in result.shapes {
        let datum = packet.take()?;
        let (is_sufficient, sizes) = (shape.is_sufficient, &shape.dimensions[..]);
        let number_of_dimensions = datum::u32_at(datum, 12);
        if number_of_dimensions as usize != sizes.len() || (datum[8] != 0) != is_sufficient {
            return None;
        }
        let datums = packet.take_all(sizes.len())?;
        if datum::differ(datums, 8, sizes, |size| size) {
            packet
                .set_all(datums, sizes, |size| ResultDatum::OperandDimensionValue(size).words())?;
        }
    }
    result.put_end(packet)
}
