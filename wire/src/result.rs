//! Result packets: status, shapes and timing to datums and back.
//!
//! Order: packet information; each output, then its dimensions; timing; then whatever was
//! negotiated.

mod decoder;
mod encoder;

use burst_hal::{ErrorStatus, ExecutionResult, OutputShape, Timing};

use crate::cursor::{Cursor, PacketSlots, PutDatum, fill_packet, sizes_again};
use crate::datum::{self, DATUM_BYTES, DatumBytes, ResultDatum, result_kind};
use crate::{Features, ResultExtras, WireError};

pub use decoder::{DecodedResult, ResultDecoder};
pub use encoder::ResultEncoder;

/// A result about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct ResultPacket<'a> {
    status: ErrorStatus,
    shapes: &'a [OutputShape],
    timing: Timing,
    nanos: Option<[u64; 2]>,
    id: Option<u64>,
}

/// Packet information and timing.
const FIXED_DATUMS: u64 = 2;

impl<'a> ResultPacket<'a> {
    /// The packet for a result, with no more in it than its status and the features allow.
    #[must_use]
    pub fn new(result: &'a ExecutionResult, extras: ResultExtras, features: Features) -> Self {
        let status = sendable(result.status, features);
        let shaped = matches!(status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize);
        let timed = status == ErrorStatus::None;
        let nanos = extras
            .in_driver_ns
            .filter(|_| timed && features.contains(Features::TIMING_NANOS))
            .map(|in_driver| [extras.on_device_ns.unwrap_or(u64::MAX), in_driver]);
        ResultPacket {
            status,
            shapes: if shaped { &result.output_shapes } else { &[] },
            timing: if timed { result.timing } else { Timing::UNAVAILABLE },
            nanos,
            id: extras.id.filter(|_| features.contains(Features::PIPELINING)),
        }
    }

    /// The packet of a failure: no shapes, no timing, no number, two datums.
    #[must_use]
    pub fn failure(status: ErrorStatus, features: Features) -> ResultPacket<'static> {
        ResultPacket {
            status: sendable(status, features),
            shapes: &[],
            timing: Timing::UNAVAILABLE,
            nanos: None,
            id: None,
        }
    }

    /// The status it will be sent with.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        self.status
    }

    /// Datums it takes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] when that is more than a packet can say.
    pub fn datums(&self) -> Result<u32, WireError> {
        let shapes = self.shapes.iter().map(|shape| 1 + shape.dimensions.len() as u64);
        let datums = FIXED_DATUMS
            + shapes.sum::<u64>()
            + u64::from(self.nanos.is_some())
            + u64::from(self.id.is_some());
        u32::try_from(datums).map_err(|_| WireError::TooLong { datums })
    }

    /// Bytes it takes.
    ///
    /// # Errors
    /// As [`ResultPacket::datums`].
    pub fn bytes(&self) -> Result<usize, WireError> {
        let datums = self.datums()?;
        usize::try_from(u64::from(datums) * DATUM_BYTES as u64)
            .map_err(|_| WireError::TooLong { datums: u64::from(datums) })
    }

    /// Writes the packet into `out`, which holds it and nothing else afterwards. Its storage is used
    /// again.
    ///
    /// # Errors
    /// As [`ResultPacket::datums`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        fill_packet(out, || self.datums(), |to| self.fill(to))
    }

    /// Fills slots, as many as there are [datums](ResultPacket::datums).
    #[inline(always)]
    fn fill(&self, mut to: PacketSlots<'_>) -> Option<()> {
        let information = ResultDatum::PacketInformation {
            packet_size: count(to.len())?,
            error_status: self.status.code(),
            number_of_operands: count(self.shapes.len())?,
        };
        to.put(information.words())?;
        for shape in self.shapes {
            let (is_sufficient, sizes) = (shape.is_sufficient, &shape.dimensions[..]);
            let number_of_dimensions = count(sizes.len())?;
            let operand = ResultDatum::OperandInformation { is_sufficient, number_of_dimensions };
            to.put(operand.words())?;
            to.put_all(sizes, |size| ResultDatum::OperandDimensionValue(size).words())?;
        }
        self.put_end(&mut to)?;
        to.finish()
    }

    /// Puts what follows after the shapes.
    #[inline(always)]
    fn put_end(&self, to: &mut impl PutDatum) -> Option<()> {
        let Timing { time_on_device_us, time_in_driver_us } = self.timing;
        to.put(ResultDatum::ExecutionTiming { time_on_device_us, time_in_driver_us }.words())?;
        if let Some([on_device_ns, in_driver_ns]) = self.nanos {
            to.put(ResultDatum::TimingNanos { on_device_ns, in_driver_ns }.words())?;
        }
        if let Some(id) = self.id {
            to.put(ResultDatum::RequestId(id).words())?;
        }
        Some(())
    }
}

fn count(len: usize) -> Option<u32> {
    u32::try_from(len).ok()
}

/// A status of HAL 1.3 is a general failure to those who know only HAL 1.2.
fn sendable(status: ErrorStatus, features: Features) -> ErrorStatus {
    if is_hal_1_3(status) && !features.contains(Features::STATUS_1_3) {
        return ErrorStatus::GeneralFailure;
    }
    status
}

fn is_hal_1_3(status: ErrorStatus) -> bool {
    status.code() > ErrorStatus::InvalidArgument.code()
}

/// Reads a packet into `out`, using its storage again, and brings it into the form the HAL
/// promises: shapes only with NONE and OUTPUT_INSUFFICIENT_SIZE, timing only with NONE and where
/// it was asked for, an unknown status as GENERAL_FAILURE.
///
/// `outputs` is how many outputs the request had.
///
/// # Errors
/// A [`WireError`] for a malformed packet, and for a result that contradicts itself: a success
/// with an insufficient output, an insufficient size without an insufficient output, or another
/// number of shapes than outputs. `out` then is GENERAL_FAILURE.
pub fn decode_result(
    bytes: &[u8],
    features: Features,
    outputs: usize,
    measured: bool,
    out: &mut ExecutionResult,
) -> Result<ResultExtras, WireError> {
    if let Some(extras) = decode_again(bytes, features, outputs, measured, out) {
        return Ok(extras);
    }
    decode_anew(bytes, features, outputs, measured, out)
}

/// Reads the result of a success that has the form of the one before, whose storage then fits: most of them. `None`
/// where there is more to it, or something is wrong: [`decode_anew`] finds out which.
#[inline(always)]
fn decode_again(
    bytes: &[u8],
    features: Features,
    outputs: usize,
    measured: bool,
    out: &mut ExecutionResult,
) -> Option<ResultExtras> {
    let (datums, ragged) = bytes.as_chunks::<DATUM_BYTES>();
    let (first, mut rest) = datums.split_first()?;
    let shapes = &mut out.output_shapes[..];
    let has_form = first[0] == result_kind::PACKET_INFORMATION
        && datum::u32_at(first, 8) as usize == datums.len()
        && datum::i32_at(first, 12) == ErrorStatus::None.code()
        && datum::u32_at(first, 16) as usize == shapes.len();
    if !has_form || shapes.len() != outputs || !ragged.is_empty() {
        return None;
    }
    for shape in shapes {
        let (datum, behind) = rest.split_first()?;
        let sizes = &mut shape.dimensions[..];
        let is_sufficient = (datum[0] ^ result_kind::OPERAND_INFORMATION) | (datum[8] ^ 1) == 0;
        if !is_sufficient || datum::u32_at(datum, 12) as usize != sizes.len() {
            return None;
        }
        shape.is_sufficient = true;
        rest = sizes_again(behind, result_kind::OPERAND_DIMENSION_VALUE, 8, sizes)?;
    }
    let (timing, extras) = read_end(datums.len(), rest, features)?;
    Some(success(out, timing, extras, measured))
}

/// What follows after the shapes of a packet of so many datums. `None` where something is wrong.
#[inline(always)]
fn read_end(
    datums: usize,
    end: &[DatumBytes],
    features: Features,
) -> Option<(Timing, ResultExtras)> {
    let (timing, rest) = end.split_first()?;
    let mut cursor = Cursor::over(datums, rest);
    let extras = extras(&mut cursor, features);
    let is_whole = timing[0] == result_kind::EXECUTION_TIMING && cursor.finish().is_ok();
    is_whole.then(|| (timing_of(timing), extras))
}

/// Makes a result, whose shapes are there, a success; gives what is told of it beyond HAL 1.2.
#[inline(always)]
fn success(
    result: &mut ExecutionResult,
    timing: Timing,
    extras: ResultExtras,
    measured: bool,
) -> ResultExtras {
    result.status = ErrorStatus::None;
    result.timing = if measured { timing } else { Timing::UNAVAILABLE };
    if measured { extras } else { ResultExtras { id: extras.id, ..ResultExtras::default() } }
}

#[cold]
#[inline(never)]
fn decode_anew(
    bytes: &[u8],
    features: Features,
    outputs: usize,
    measured: bool,
    out: &mut ExecutionResult,
) -> Result<ResultExtras, WireError> {
    let decoded = decode(bytes, features, out).and_then(|extras| {
        check_shapes(out, outputs)?;
        Ok(extras)
    });
    match decoded {
        Ok(extras) if measured && out.status == ErrorStatus::None => Ok(extras),
        Ok(extras) => {
            out.timing = Timing::UNAVAILABLE;
            Ok(ResultExtras { id: extras.id, ..ResultExtras::default() })
        }
        Err(error) => {
            out.reset(ErrorStatus::GeneralFailure);
            Err(error)
        }
    }
}

fn decode(
    bytes: &[u8],
    features: Features,
    out: &mut ExecutionResult,
) -> Result<ResultExtras, WireError> {
    let mut cursor = Cursor::new(bytes)?;
    let information =
        cursor.take_if(result_kind::PACKET_INFORMATION).ok_or(WireError::NoPacketInformation)?;
    let operands = datum::u32_at(information, 16);
    cursor.check_size(datum::u32_at(information, 8), FIXED_DATUMS + u64::from(operands))?;
    out.status = received(datum::i32_at(information, 12), features);
    shapes(&mut cursor, operands, &mut out.output_shapes)?;
    out.timing = timing_of(cursor.take(result_kind::EXECUTION_TIMING, "the timing")?);
    let extras = extras(&mut cursor, features);
    cursor.finish()?;
    if !matches!(out.status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
        out.output_shapes.clear();
    }
    Ok(extras)
}

#[inline(always)]
fn timing_of(datum: &DatumBytes) -> Timing {
    Timing {
        time_on_device_us: datum::u64_at(datum, 8),
        time_in_driver_us: datum::u64_at(datum, 16),
    }
}

fn received(code: i32, features: Features) -> ErrorStatus {
    ErrorStatus::from_code(code)
        .map_or(ErrorStatus::GeneralFailure, |status| sendable(status, features))
}

fn shapes(
    cursor: &mut Cursor<'_>,
    count: u32,
    out: &mut Vec<OutputShape>,
) -> Result<(), WireError> {
    // `count` is no more than the datums in the packet: the caller checked that.
    if out.len() != count as usize {
        out.resize_with(count as usize, OutputShape::default);
    }
    for shape in out {
        let bytes = cursor.take(result_kind::OPERAND_INFORMATION, "an output")?;
        shape.is_sufficient = datum::bool_at(bytes, 8, "isSufficient")?;
        let dimensions = cursor.sized(&mut shape.dimensions, datum::u32_at(bytes, 12))?;
        let kind = result_kind::OPERAND_DIMENSION_VALUE;
        cursor.take_values(kind, "a dimension of the output", dimensions, |datum| {
            datum::u32_at(datum, 8)
        })?;
    }
    Ok(())
}

/// What was not negotiated stays where it is, and is trailing data then.
#[inline(always)]
fn extras(cursor: &mut Cursor<'_>, features: Features) -> ResultExtras {
    let mut negotiated =
        |feature, kind| features.contains(feature).then(|| cursor.take_if(kind)).flatten();
    let times = negotiated(Features::TIMING_NANOS, result_kind::TIMING_NANOS);
    let known = |at| {
        let nanos = datum::u64_at(times?, at);
        (nanos != u64::MAX).then_some(nanos)
    };
    ResultExtras {
        on_device_ns: known(8),
        in_driver_ns: known(16),
        id: negotiated(Features::PIPELINING, result_kind::REQUEST_ID)
            .map(|bytes| datum::u64_at(bytes, 8)),
    }
}

/// Whether status and shapes can belong together: all outputs sufficient with NONE, at least one
/// insufficient with OUTPUT_INSUFFICIENT_SIZE, one shape per output where there are any, none with
/// another status.
///
/// # Errors
/// [`WireError::Contradiction`].
pub fn check_shapes(result: &ExecutionResult, outputs: usize) -> Result<(), WireError> {
    let shapes = &result.output_shapes;
    let sufficient = shapes.iter().all(|shape| shape.is_sufficient);
    let complete = shapes.len() == outputs;
    let legal = match result.status {
        ErrorStatus::None => sufficient && (complete || shapes.is_empty()),
        ErrorStatus::OutputInsufficientSize => !sufficient && complete,
        _ => shapes.is_empty(),
    };
    if legal {
        return Ok(());
    }
    Err(WireError::Contradiction { status: result.status, shapes: shapes.len() })
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
