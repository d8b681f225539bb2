//! Request packets: arguments and slots to datums and back.
//!
//! Order: packet information; each input, then its dimensions; each output, then its dimensions;
//! the slots; whether to measure; then whatever was negotiated.

mod decoder;
mod encoder;

use std::hint::black_box;
use std::time::Duration;

use burst_hal::validate::RequestRules;
use burst_hal::{DataLocation, RequestArgument, TimePoint};

use crate::cursor::{Cursor, PacketSlots, PutDatum, fill_packet, sizes_again};
use crate::datum::{
    self, DATUM_BYTES, DatumBytes, InformationDatum, OperandDatum, RequestDatum, request_kind,
};
use crate::{Features, RequestExtras, WireError};

pub use decoder::RequestDecoder;
pub use encoder::RequestEncoder;

/// A request about to be sent: borrowed, so that encoding copies nothing but the datums.
#[derive(Debug, Clone, Copy)]
pub struct RequestPacket<'a> {
    /// One per input of the model.
    pub inputs: &'a [RequestArgument],
    /// One per output of the model.
    pub outputs: &'a [RequestArgument],
    /// One per pool that the arguments refer to.
    pub slots: &'a [i32],
    /// Whether to measure how long it takes.
    pub measure_timing: bool,
    /// What goes beyond HAL 1.2; only where negotiated.
    pub extras: RequestExtras,
}

/// A request as received; its storage is used again for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotRequest {
    /// One per input of the model.
    pub inputs: Vec<RequestArgument>,
    /// One per output of the model.
    pub outputs: Vec<RequestArgument>,
    /// One per pool that the arguments refer to.
    pub slots: Vec<i32>,
    /// Whether to measure how long it takes.
    pub measure_timing: bool,
    /// What goes beyond HAL 1.2.
    pub extras: RequestExtras,
}

/// Packet information, and whether to measure.
const FIXED_DATUMS: usize = 2;
/// What may be negotiated in addition: deadline, loop time-out, number.
const EXTRA_DATUMS: usize = 3;
/// Dimensions that a request may give for an argument whose rank the model leaves open.
const UNKNOWN_RANK: usize = 8;

/// Datums of the longest packet that a request by these rules takes when each argument lies in a
/// memory of its own and says all its dimensions. Results are shorter.
#[must_use]
pub fn longest_packet(rules: &RequestRules) -> usize {
    let arguments = rules.ranks().map(|rank| {
        let rank = if rank == 0 { UNKNOWN_RANK } else { rank };
        2 + rank // the argument and its memory
    });
    FIXED_DATUMS + EXTRA_DATUMS + arguments.sum::<usize>()
}

impl RequestPacket<'_> {
    /// Datums it takes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] when that is more than a packet can say.
    pub fn datums(&self) -> Result<u32, WireError> {
        let arguments = self.inputs.iter().chain(self.outputs);
        let datums = FIXED_DATUMS as u64
            + self.slots.len() as u64
            + arguments.map(|argument| 1 + argument.dimensions.len() as u64).sum::<u64>()
            + u64::from(self.extras.deadline.is_some())
            + u64::from(self.extras.loop_timeout.is_some())
            + u64::from(self.extras.id.is_some());
        u32::try_from(datums).map_err(|_| WireError::TooLong { datums })
    }

    /// Bytes it takes.
    ///
    /// # Errors
    /// As [`RequestPacket::datums`].
    pub fn bytes(&self) -> Result<usize, WireError> {
        let datums = self.datums()?;
        usize::try_from(u64::from(datums) * DATUM_BYTES as u64)
            .map_err(|_| WireError::TooLong { datums: u64::from(datums) })
    }

    /// Writes the packet into `out`, which holds it and nothing else afterwards. Its storage is used
    /// again.
    ///
    /// # Errors
    /// As [`RequestPacket::datums`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        fill_packet(out, || self.datums(), |to| self.fill(to))
    }

    /// Fills slots, as many as there are [datums](RequestPacket::datums).
    #[inline(always)]
    fn fill(&self, mut to: PacketSlots<'_>) -> Option<()> {
        to.put(RequestDatum::PacketInformation(self.information(to.len())?).words())?;
        let (information, size) =
            (RequestDatum::InputOperandInformation, RequestDatum::InputOperandDimensionValue);
        put_arguments(&mut to, self.inputs, information, size)?;
        let (information, size) =
            (RequestDatum::OutputOperandInformation, RequestDatum::OutputOperandDimensionValue);
        put_arguments(&mut to, self.outputs, information, size)?;
        to.put_all(self.slots, |slot| RequestDatum::PoolIdentifier(slot).words())?;
        self.put_end(&mut to)?;
        to.finish()
    }

    /// Puts what follows after the slots.
    #[inline(always)]
    fn put_end(&self, to: &mut impl PutDatum) -> Option<()> {
        to.put(RequestDatum::MeasureTiming(i32::from(self.measure_timing)).words())?;
        if let Some(deadline) = self.extras.deadline {
            to.put(RequestDatum::DeadlineNanos(deadline.nanos).words())?;
        }
        if let Some(timeout) = self.extras.loop_timeout {
            to.put(RequestDatum::LoopTimeoutNanos(nanos(timeout)).words())?;
        }
        if let Some(id) = self.extras.id {
            to.put(RequestDatum::RequestId(id).words())?;
        }
        Some(())
    }

    fn information(&self, datums: usize) -> Option<InformationDatum> {
        Some(InformationDatum {
            packet_size: count(datums)?,
            number_of_input_operands: count(self.inputs.len())?,
            number_of_output_operands: count(self.outputs.len())?,
            number_of_pools: count(self.slots.len())?,
        })
    }
}

fn count(len: usize) -> Option<u32> {
    u32::try_from(len).ok()
}

/// Inputs or outputs, each followed by its dimensions.
#[inline(always)]
fn put_arguments(
    to: &mut PacketSlots<'_>,
    arguments: &[RequestArgument],
    information: impl Fn(OperandDatum) -> RequestDatum,
    size: impl Fn(u32) -> RequestDatum,
) -> Option<()> {
    for argument in arguments {
        let sizes = &argument.dimensions[..];
        // A field that was stored an instant ago is not there yet for a load of two at once, which the compiler would make.
        let DataLocation { pool_index, offset, length } = argument.location;
        let operand = OperandDatum {
            has_no_value: argument.has_no_value,
            location: DataLocation { pool_index, offset: black_box(offset), length },
            number_of_dimensions: count(sizes.len())?,
        };
        to.put(information(operand).words())?;
        to.put_all(sizes, |value| size(value).words())?;
    }
    Some(())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads a packet into `out`, using its storage again.
///
/// Every count is checked against the packet before anything is reserved for it. After an error
/// `out` holds no meaning.
///
/// # Errors
/// A [`WireError`] for a packet that is malformed, or well formed with an argument that cannot
/// be ([`WireError::status`] tells these apart).
pub fn decode_request(
    bytes: &[u8],
    features: Features,
    out: &mut SlotRequest,
) -> Result<(), WireError> {
    let SlotRequest { inputs, outputs, slots, measure_timing, extras } = out;
    decode(bytes, features, &mut Storage { inputs, outputs, slots, measure_timing, extras })
}

/// Where a request goes that is decoded.
struct Storage<'a> {
    inputs: &'a mut Vec<RequestArgument>,
    outputs: &'a mut Vec<RequestArgument>,
    slots: &'a mut Vec<i32>,
    measure_timing: &'a mut bool,
    extras: &'a mut RequestExtras,
}

/// See [`decode_request`].
#[inline(always)]
fn decode(bytes: &[u8], features: Features, out: &mut Storage<'_>) -> Result<(), WireError> {
    match decode_again(bytes, features, out) {
        Some(()) => Ok(()),
        None => decode_anew(bytes, features, out),
    }
}

/// Reads a packet that has the form of the one before, whose storage then fits, and no argument that is left out: most
/// of them. `None` where there is more to it, or something is wrong: [`decode_anew`] finds out which.
#[inline(always)]
fn decode_again(bytes: &[u8], features: Features, out: &mut Storage<'_>) -> Option<()> {
    let (datums, ragged) = bytes.as_chunks::<DATUM_BYTES>();
    let (first, mut rest) = datums.split_first()?;
    let information = InformationDatum::decode(first);
    let InformationDatum { packet_size, number_of_pools, .. } = information;
    let has_form = first[0] == request_kind::PACKET_INFORMATION
        && packet_size as usize == datums.len()
        && information.number_of_input_operands as usize == out.inputs.len()
        && information.number_of_output_operands as usize == out.outputs.len()
        && number_of_pools as usize == out.slots.len();
    if !has_form || !ragged.is_empty() {
        return None;
    }
    for argument in &mut *out.inputs {
        rest = argument_again(rest, INPUT_KINDS, number_of_pools, argument)?;
    }
    for argument in &mut *out.outputs {
        rest = argument_again(rest, OUTPUT_KINDS, number_of_pools, argument)?;
    }
    for slot in &mut *out.slots {
        let (datum, behind) = rest.split_first()?;
        (*slot, rest) = (datum::i32_at(datum, 4), behind);
        if datum[0] != request_kind::POOL_IDENTIFIER || *slot < 0 {
            return None;
        }
    }
    let (measure, rest) = rest.split_first()?;
    *out.measure_timing = match datum::i32_at(measure, 4) {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mut cursor = Cursor::over(datums.len(), rest);
    let extras = extras(&mut cursor, features);
    if measure[0] != request_kind::MEASURE_TIMING || cursor.finish().is_err() {
        return None;
    }
    *out.extras = extras;
    Some(())
}

/// An argument, see [`decode_again`]; gives what is left.
#[inline(always)]
fn argument_again<'a>(
    datums: &'a [DatumBytes],
    [information, dimension]: Kinds,
    pools: u32,
    argument: &mut RequestArgument,
) -> Option<&'a [DatumBytes]> {
    let (datum, rest) = datums.split_first()?;
    let OperandDatum { has_no_value, location, number_of_dimensions } =
        OperandDatum::of_value(datum);
    let sizes = &mut argument.dimensions[..];
    let is_value = (datum[0] ^ information) | datum[4] == 0;
    let has_form = number_of_dimensions as usize == sizes.len() && location.pool_index < pools;
    (argument.has_no_value, argument.location) = (has_no_value, location);
    if is_value && has_form { sizes_again(rest, dimension, 4, sizes) } else { None }
}

#[cold]
#[inline(never)]
fn decode_anew(bytes: &[u8], features: Features, out: &mut Storage<'_>) -> Result<(), WireError> {
    let mut cursor = Cursor::new(bytes)?;
    let information = information(&mut cursor)?;
    let pools = information.number_of_pools;
    let (inputs, outputs) =
        (information.number_of_input_operands, information.number_of_output_operands);
    let odd_inputs = arguments(&mut cursor, INPUT_KINDS, inputs, pools, out.inputs)?;
    let odd_outputs = arguments(&mut cursor, OUTPUT_KINDS, outputs, pools, out.outputs)?;
    slots(&mut cursor, pools, out.slots)?;
    *out.measure_timing = measure_timing(&mut cursor)?;
    *out.extras = extras(&mut cursor, features);
    cursor.finish()?;
    // Only a packet that is whole can have values that are wrong, so this comes last.
    if odd_inputs || odd_outputs || out.slots.iter().any(|slot| *slot < 0) {
        check_values(out)?;
    }
    Ok(())
}

fn information(cursor: &mut Cursor<'_>) -> Result<InformationDatum, WireError> {
    let bytes =
        cursor.take_if(request_kind::PACKET_INFORMATION).ok_or(WireError::NoPacketInformation)?;
    let information = InformationDatum::decode(bytes);
    let needed = FIXED_DATUMS as u64
        + u64::from(information.number_of_input_operands)
        + u64::from(information.number_of_output_operands)
        + u64::from(information.number_of_pools);
    cursor.check_size(information.packet_size, needed)?;
    Ok(information)
}

/// The kinds of an argument's datums: of the argument itself, and of each of its dimensions.
type Kinds = [u8; 2];

const INPUT_KINDS: Kinds =
    [request_kind::INPUT_OPERAND_INFORMATION, request_kind::INPUT_OPERAND_DIMENSION_VALUE];
const OUTPUT_KINDS: Kinds =
    [request_kind::OUTPUT_OPERAND_INFORMATION, request_kind::OUTPUT_OPERAND_DIMENSION_VALUE];

/// Inputs or outputs. Tells whether one of them is left out or names a pool that there is not:
/// [`check_values`] has to look then.
#[inline(always)]
fn arguments(
    cursor: &mut Cursor<'_>,
    [information, dimension]: Kinds,
    count: u32,
    pools: u32,
    out: &mut Vec<RequestArgument>,
) -> Result<bool, WireError> {
    // `count` is no more than the datums in the packet: `information` checked that. No more room is kept than the
    // longest packet so far took.
    if out.len() != count as usize {
        out.reserve_exact((count as usize).saturating_sub(out.len()));
        out.resize_with(count as usize, RequestArgument::default);
    }
    let mut is_odd = false;
    for argument in out {
        let operand = OperandDatum::decode(cursor.take(information, "an argument")?)?;
        argument.has_no_value = operand.has_no_value;
        argument.location = operand.location;
        is_odd |= operand.has_no_value | (operand.location.pool_index >= pools);
        let dimensions = cursor.sized(&mut argument.dimensions, operand.number_of_dimensions)?;
        cursor.take_values(dimension, "a dimension of the argument", dimensions, |datum| {
            datum::u32_at(datum, 4)
        })?;
    }
    Ok(is_odd)
}

fn slots(cursor: &mut Cursor<'_>, count: u32, out: &mut Vec<i32>) -> Result<(), WireError> {
    cursor.check_remaining(count)?;
    if out.len() != count as usize {
        out.reserve_exact((count as usize).saturating_sub(out.len()));
        out.resize(count as usize, 0);
    }
    cursor
        .take_values(request_kind::POOL_IDENTIFIER, "a slot", out, |datum| datum::i32_at(datum, 4))
}

fn measure_timing(cursor: &mut Cursor<'_>) -> Result<bool, WireError> {
    let bytes = cursor.take(request_kind::MEASURE_TIMING, "whether to measure")?;
    match datum::i32_at(bytes, 4) {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(WireError::Value { what: "measureTiming", value: i64::from(other) }),
    }
}

/// What was not negotiated stays where it is, and is trailing data then.
#[inline(always)]
fn extras(cursor: &mut Cursor<'_>, features: Features) -> RequestExtras {
    let mut long = |kind, feature| {
        let datum = features.contains(feature).then(|| cursor.take_if(kind)).flatten()?;
        Some(datum::u64_at(datum, 8))
    };
    RequestExtras {
        deadline: long(request_kind::DEADLINE, Features::DEADLINES)
            .map(|nanos| TimePoint { nanos }),
        loop_timeout: long(request_kind::LOOP_TIMEOUT, Features::DEADLINES)
            .map(Duration::from_nanos),
        id: long(request_kind::REQUEST_ID, Features::PIPELINING),
    }
}

/// What a well-formed packet can say that no request may.
#[cold]
fn check_values(request: &Storage<'_>) -> Result<(), WireError> {
    if let Some(slot) = request.slots.iter().find(|slot| **slot < 0) {
        return Err(WireError::Slot { slot: *slot });
    }
    for argument in request.inputs.iter().chain(&*request.outputs) {
        let location = argument.location;
        if argument.has_no_value {
            if location != DataLocation::default() || !argument.dimensions.is_empty() {
                return Err(WireError::OmittedWithValue);
            }
        } else if location.pool_index as usize >= request.slots.len() {
            let pools = request.slots.len();
            return Err(WireError::PoolIndex { pool: location.pool_index, pools });
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
