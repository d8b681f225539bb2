//! Requests of one burst, each encoded over the one before.

use burst_hal::{DataLocation, RequestArgument};

use super::RequestPacket;
use crate::datum::{self, InformationDatum, OperandDatum, PacketHead, RequestDatum};
use crate::differences::{Changes, Sent};
use crate::{Features, WireError};

/// Encodes the requests of one burst: as [`RequestPacket::encode_into`], and where
/// [`DIFFERENCES`](Features::DIFFERENCES) was negotiated by where they differ from the one before.
#[derive(Debug)]
pub struct RequestEncoder {
    sent: Sent,
}

impl RequestEncoder {
    /// For a burst with these additions to HAL 1.2.
    #[must_use]
    pub fn new(features: Features) -> Self {
        RequestEncoder { sent: Sent::new(features) }
    }

    /// The bytes to send for a request. Where they were written into the queue, [`sent`](RequestEncoder::sent) has to
    /// be called before the next request; otherwise the next one comes as a whole.
    ///
    /// # Errors
    /// As [`RequestPacket::datums`].
    #[inline]
    pub fn encode(&mut self, request: &RequestPacket<'_>) -> Result<&[u8], WireError> {
        if self.sent.change(PacketHead::REQUEST, |packet| change(packet, request)).is_none() {
            self.sent.encode_whole(|| request.datums(), |slots| request.fill(slots))?;
        }
        Ok(self.sent.bytes())
    }

    /// What [`encode`](RequestEncoder::encode) gave.
    #[must_use]
    #[inline]
    pub fn packet(&self) -> &[u8] {
        self.sent.bytes()
    }

    /// The request that was encoded last is in the queue.
    #[inline]
    pub fn sent(&mut self) {
        self.sent.sent();
    }
}

/// Changes the packet before to that of a request of the same form. `None` where it has another one.
#[inline(always)]
fn change(packet: &mut Changes<'_>, request: &RequestPacket<'_>) -> Option<()> {
    let said = InformationDatum::decode(packet.take()?);
    let RequestPacket { inputs, outputs, slots, .. } = *request;
    let has_form = said.number_of_input_operands as usize == inputs.len()
        && said.number_of_output_operands as usize == outputs.len()
        && said.number_of_pools as usize == slots.len();
    if !has_form {
        return None;
    }
    let (information, size) =
        (RequestDatum::InputOperandInformation, RequestDatum::InputOperandDimensionValue);
    change_arguments(packet, inputs, information, size)?;
    let (information, size) =
        (RequestDatum::OutputOperandInformation, RequestDatum::OutputOperandDimensionValue);
    change_arguments(packet, outputs, information, size)?;
    let datums = packet.take_all(slots.len())?;
    if datum::differ(datums, 4, slots, i32::cast_unsigned) {
        packet.set_all(datums, slots, |slot| RequestDatum::PoolIdentifier(slot).words())?;
    }
    request.put_end(packet)
}

/// Inputs or outputs, see [`change`].
#[inline(always)]
fn change_arguments(
    packet: &mut Changes<'_>,
    arguments: &[RequestArgument],
    information: impl Fn(OperandDatum) -> RequestDatum,
    size: impl Fn(u32) -> RequestDatum,
) -> Option<()> {
    for argument in arguments {
        let datum = packet.take()?;
        let sizes = &argument.dimensions[..];
        let said = OperandDatum::of_value(datum);
        if said.number_of_dimensions as usize != sizes.len() {
            return None;
        }
        // Each field is loaded by itself, and all are: one that was stored an instant ago is not there yet for a load of two.
        let DataLocation { pool_index, offset, length } = argument.location;
        let differs = (said.location.pool_index ^ pool_index)
            | (said.location.offset ^ offset)
            | (said.location.length ^ length);
        if differs != 0 || (datum[4] != 0) != argument.has_no_value {
            let operand = OperandDatum {
                has_no_value: argument.has_no_value,
                location: DataLocation { pool_index, offset, length },
                number_of_dimensions: said.number_of_dimensions,
            };
            packet.set(datum, information(operand).words())?;
        }
        let datums = packet.take_all(sizes.len())?;
        if datum::differ(datums, 4, sizes, |size| size) {
            packet.set_all(datums, sizes, |value| size(value).words())?;
        }
    }
    Some(())
}
