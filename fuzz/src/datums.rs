//! Requests and results of any content, through datums and back.
//!
//! The other way round than [`request_packet`](crate::request_packet): values come first. Looked
//! at: every value arrives as it was sent; every datum has the length and the discriminator of its
//! kind, and zeros where it carries nothing; requests of one burst arrive as they were sent whatever
//! was sent before.

use std::time::Duration;

use burst_hal::{
    DataLocation, Dimensions, ErrorStatus, ExecutionResult, OutputShape, RequestArgument,
    TimePoint, Timing,
};
use burst_wire::{
    DATUM_BYTES, DatumBytes, Features, RequestDatum, RequestDecoder, RequestEncoder, RequestExtras,
    ResultDatum, ResultExtras, ResultPacket, SlotRequest, WireError, decode_request, decode_result,
};

use crate::request_packet::{comes_back, packet};
use crate::{Input, Script, Seed, seed};

/// Records of one kind in a request or result.
const RECORDS_MAX: usize = 20;
/// Axes of one record.
const RANK_MAX: usize = 9;
/// Requests of one burst.
const REQUESTS_MAX: usize = 32;

/// Makes a value and sends it there and back.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.u8() % 4 {
        0 => request(&mut input),
        1 => result(&mut input),
        2 => single(&mut input),
        _ => requests(&mut input),
    }
    data.len() > 1
}

fn any_request(input: &mut Input<'_>) -> SlotRequest {
    let slots: Vec<i32> =
        (0..input.below(RECORDS_MAX)).map(|_| (input.u32() & 0x7FFF_FFFF).cast_signed()).collect();
    let mut arguments = || -> Vec<RequestArgument> {
        (0..input.below(RECORDS_MAX)).map(|_| argument(input, slots.len() as u32)).collect()
    };
    let (inputs, outputs) = (arguments(), arguments());
    let measure_timing = input.flag();
    let extras = RequestExtras {
        deadline: input.flag().then(|| TimePoint { nanos: input.u64() }),
        loop_timeout: input.flag().then(|| Duration::from_nanos(input.u64())),
        id: input.flag().then(|| input.u64()),
    };
    SlotRequest { inputs, outputs, slots, measure_timing, extras }
}

fn request(input: &mut Input<'_>) {
    let sent = any_request(input);
    let mut bytes = Vec::new();
    packet(&sent).encode_into(&mut bytes).unwrap();
    assert_eq!(Ok(bytes.len()), packet(&sent).bytes());
    let mut received = SlotRequest::default();
    assert_eq!(decode_request(&bytes, Features::ALL, &mut received), Ok(()));
    assert_eq!(received, sent);
    // Who did not negotiate them never takes them for something else.
    let plain = decode_request(&bytes, Features::NONE, &mut received);
    match sent.extras == RequestExtras::default() {
        true => assert_eq!(plain, Ok(())),
        false => assert!(matches!(plain, Err(WireError::Trailing { .. })), "{plain:?}"),
    }
}

/// Requests of one burst, most of which differ from the one before in a place or two.
fn requests(input: &mut Input<'_>) {
    let features = Features::from_bits(u64::from(input.u8()));
    let features = features.union(Features::DEADLINES).union(Features::PIPELINING);
    let mut ends = (RequestEncoder::new(features), RequestDecoder::new(features));
    let mut request = any_request(input);
    comes_back(&request, &mut ends);
    for _ in 0..REQUESTS_MAX {
        if input.is_empty() {
            break;
        }
        change(input, &mut request);
        comes_back(&request, &mut ends);
    }
}

fn change(input: &mut Input<'_>, request: &mut SlotRequest) {
    let pools = request.slots.len() as u32;
    let arguments = request.inputs.len() + request.outputs.len();
    let chosen = input.below(arguments.max(1));
    let chosen = request.inputs.iter_mut().chain(&mut request.outputs).nth(chosen);
    match (input.u8() % 8, chosen) {
        (0, _) => *request = any_request(input),
        (1, Some(chosen)) => *chosen = argument(input, pools),
        (2, Some(chosen)) if !chosen.has_no_value => chosen.location.offset = input.u32(),
        (3, Some(chosen)) => chosen.dimensions.iter_mut().for_each(|size| *size = input.u32()),
        (4, _) => request.measure_timing = input.flag(),
        (5, _) => request.extras.deadline = Some(TimePoint { nanos: input.u64() }),
        (6, _) => request.extras.id = input.flag().then(|| input.u64()),
        (7, _) if pools > 0 => request.slots[0] = (input.u32() & 0x7FFF_FFFF).cast_signed(),
        _ => {} // the same once more
    }
}

fn dimensions(input: &mut Input<'_>) -> Dimensions {
    (0..input.below(RANK_MAX)).map(|_| input.u32()).collect()
}

fn argument(input: &mut Input<'_>, pools: u32) -> RequestArgument {
    if pools == 0 || input.flag() {
        return RequestArgument { has_no_value: true, ..RequestArgument::default() };
    }
    let pool_index = input.u32() % pools;
    let location = DataLocation { pool_index, offset: input.u32(), length: input.u32() };
    RequestArgument { has_no_value: false, location, dimensions: dimensions(input) }
}

fn result(input: &mut Input<'_>) {
    let status = ErrorStatus::from_code(i32::from(input.u8() % 9)).unwrap();
    let measured = input.flag();
    let shaped = matches!(status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize);
    let mut output_shapes: Vec<OutputShape> = (0..input.below(RECORDS_MAX))
        .filter(|_| shaped)
        .map(|_| OutputShape {
            is_sufficient: status == ErrorStatus::None || input.flag(),
            dimensions: dimensions(input),
        })
        .collect();
    if status == ErrorStatus::OutputInsufficientSize {
        output_shapes.push(OutputShape::default());
    }
    let timed = measured && status == ErrorStatus::None;
    let timing = Timing { time_on_device_us: input.u64(), time_in_driver_us: input.u64() };
    let timing = if timed { timing } else { Timing::UNAVAILABLE };
    let extras = ResultExtras {
        in_driver_ns: timed.then(|| input.u64().min(u64::MAX - 1)),
        on_device_ns: (timed && input.flag()).then(|| input.u64().min(u64::MAX - 1)),
        id: input.flag().then(|| input.u64()),
    };
    let sent = ExecutionResult { status, output_shapes, timing };
    let packet = ResultPacket::new(&sent, extras, Features::ALL);
    let mut bytes = Vec::new();
    packet.encode_into(&mut bytes).unwrap();
    assert_eq!(Ok(bytes.len()), packet.bytes());
    let mut received = ExecutionResult::of(ErrorStatus::None);
    let outputs = sent.output_shapes.len();
    let back = decode_result(&bytes, Features::ALL, outputs, measured, &mut received);
    assert_eq!((back, received), (Ok(extras), sent));
}

/// One datum of any kind: its discriminator, and zeros behind its payload.
fn single(input: &mut Input<'_>) {
    let (kind, word, long) = (input.u8(), input.u32(), input.u64());
    let (bytes, discriminator, payload): (DatumBytes, u8, usize) = match kind % 9 {
        0 => (RequestDatum::InputOperandDimensionValue(word).encode(), 2, 8),
        1 => (RequestDatum::OutputOperandDimensionValue(word).encode(), 4, 8),
        2 => (RequestDatum::PoolIdentifier(word.cast_signed()).encode(), 5, 8),
        3 => (RequestDatum::MeasureTiming(word.cast_signed()).encode(), 6, 8),
        4 => (RequestDatum::DeadlineNanos(long).encode(), 0x40, 16),
        5 => (RequestDatum::LoopTimeoutNanos(long).encode(), 0x41, 16),
        6 => (RequestDatum::RequestId(long).encode(), 0x42, 16),
        7 => (ResultDatum::RequestId(long).encode(), 0x41, 16),
        _ => (ResultDatum::OperandDimensionValue(word).encode(), 2, 12),
    };
    assert_eq!(bytes.len(), DATUM_BYTES);
    assert_eq!(bytes[0], discriminator);
    assert!(bytes[1..4].iter().chain(&bytes[payload..]).all(|byte| *byte == 0), "{bytes:?}");
}

/// One of each, small and large.
pub fn seeds() -> Vec<Seed> {
    let record =
        |script: Script| script.bytes(&[0]).u32(1).u32(64).u32(32).bytes(&[2]).u32(4).u32(5);
    let request =
        record(record(Script::new().bytes(&[0, 2]).u32(3).u32(7).bytes(&[1])).bytes(&[1]))
            .bytes(&[1, 1])
            .u64(17)
            .bytes(&[1])
            .u64(5);
    let shape = |script: Script| script.bytes(&[2]).u32(1).u32(10);
    let result = shape(shape(Script::new().bytes(&[1, 0, 1, 2]))).u64(17).u64(23).u64(23_456);
    let insufficient = Script::new().bytes(&[1, 3, 0, 1, 1, 1]).u32(9);
    let mut seeds = vec![
        seed("request", request),
        seed("request_of_nothing", Script::new().bytes(&[0, 0, 0, 0, 0])),
        seed("result", result.bytes(&[1]).u64(9).bytes(&[1]).u64(77)),
        seed("too_little_room", insufficient),
        seed("status_of_1_3", Script::new().bytes(&[1, 6, 1, 0])),
        seed("requests_of_a_burst", requests_of_a_burst()),
    ];
    seeds.extend((0..9).map(|kind| {
        (format!("datum_{kind}"), Script::new().bytes(&[2, kind]).u32(0xFEDC_BA98).u64(77).into())
    }));
    seeds
}

/// A request with an input of two dimensions, then one change after the other.
fn requests_of_a_burst() -> Script {
    Script::new()
        .bytes(&[3, Features::ALL.bits() as u8, 2])
        .u32(3)
        .u32(7)
        .bytes(&[1, 0]) // one input, with a value
        .u32(1)
        .u32(64)
        .u32(32)
        .bytes(&[2])
        .u32(4)
        .u32(5)
        .bytes(&[0, 1, 0, 0, 1]) // no output, timing, a number and nothing else
        .u64(1)
        .bytes(&[0, 2])
        .u32(128)
        .bytes(&[0, 3])
        .u32(6)
        .u32(5)
        .bytes(&[0, 6, 1])
        .u64(2)
        .bytes(&[0, 7])
        .u32(9)
        .bytes(&[0, 4, 0])
}
