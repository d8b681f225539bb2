//! Encoding and decoding of a burst's packets: a request of 19 datums (two inputs and two outputs
//! of an image model), its answer of 8, and the copy of both without a codec beside them; and both by where they differ
//! from the one before.

#![allow(missing_docs, reason = "criterion's macros make functions without documentation")]
#![allow(clippy::unwrap_used, reason = "a measurement of a call that fails is none")]

use std::hint::black_box;
use std::time::Duration;

use burst_hal::{DataLocation, ErrorStatus, ExecutionResult, OutputShape, RequestArgument, Timing};
use burst_wire::{
    DATUM_BYTES, DecodedResult, Features, RequestDecoder, RequestEncoder, RequestExtras,
    RequestPacket, ResultDecoder, ResultEncoder, ResultExtras, ResultPacket, SlotRequest,
    WireError, decode_request, decode_result,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const REQUEST_DATUMS: usize = 19;
const ANSWER_DATUMS: usize = 8;

fn argument(dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index: 0, offset: 64, length: 4096 },
        dimensions: dimensions.into(),
    }
}

fn arguments() -> ([RequestArgument; 2], [RequestArgument; 2]) {
    let inputs = [argument(&[1, 224, 224, 3]), argument(&[1, 112, 112, 4])];
    (inputs, [argument(&[1, 1001]), argument(&[1, 10])])
}

/// Measures one kind of packet: its bytes copied, encoded, decoded.
fn packet(
    criterion: &mut Criterion,
    (name, datums): (&str, usize),
    encode: impl Fn(&mut Vec<u8>) -> Result<(), WireError>,
    mut decode: impl FnMut(&[u8]) -> Result<(), WireError>,
) {
    let mut bytes = Vec::new();
    encode(&mut bytes).unwrap();
    assert_eq!(bytes.len(), datums * DATUM_BYTES);

    let mut group = criterion.benchmark_group(format!("codec/{name}_{datums}_datums"));
    group.throughput(Throughput::Elements(1));
    let mut copy = vec![0; bytes.len()];
    group.bench_function("copy", |bencher| {
        bencher.iter(|| black_box(&mut copy).copy_from_slice(black_box(&bytes)));
    });
    let mut encoded = Vec::new();
    group.bench_function("encode", |bencher| bencher.iter(|| encode(&mut encoded).unwrap()));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decode(black_box(&bytes)).unwrap());
    });
    group.finish();
}

fn request(criterion: &mut Criterion) {
    let (inputs, outputs) = arguments();
    let sent = RequestPacket {
        inputs: &inputs,
        outputs: &outputs,
        slots: &[3],
        measure_timing: true,
        extras: RequestExtras::default(),
    };
    let mut decoded = SlotRequest::default();
    packet(
        criterion,
        ("request", REQUEST_DATUMS),
        |bytes| black_box(&sent).encode_into(bytes),
        |bytes| decode_request(bytes, Features::NONE, black_box(&mut decoded)),
    );
}

fn result() -> ExecutionResult {
    let shape =
        |dimensions: &[u32]| OutputShape { dimensions: dimensions.into(), is_sufficient: true };
    ExecutionResult {
        status: ErrorStatus::None,
        output_shapes: vec![shape(&[1, 1001]), shape(&[1, 10])],
        timing: Timing { time_on_device_us: 1000, time_in_driver_us: 1010 },
    }
}

fn answer(criterion: &mut Criterion) {
    let result = result();
    let sent = ResultPacket::new(&result, ResultExtras::default(), Features::NONE);
    let mut decoded = ExecutionResult::of(ErrorStatus::None);
    packet(
        criterion,
        ("answer", ANSWER_DATUMS),
        |bytes| black_box(&sent).encode_into(bytes),
        |bytes| {
            decode_result(bytes, Features::NONE, 2, true, black_box(&mut decoded)).map(|extras| {
                black_box(extras);
            })
        },
    );
}

/// A request whose first input lies there, by where it differs from the one before.
fn place<'e>(
    encoder: &'e mut RequestEncoder,
    (inputs, outputs): &mut ([RequestArgument; 2], [RequestArgument; 2]),
    offset: u32,
) -> &'e [u8] {
    inputs[0].location.offset = offset;
    let (inputs, outputs, slots) = (&*inputs, &*outputs, &[3]);
    let extras = RequestExtras::default();
    let sent = RequestPacket { inputs, outputs, slots, measure_timing: true, extras };
    encoder.encode(black_box(&sent)).unwrap();
    encoder.sent();
    encoder.packet()
}

/// Another place for the first input, each time.
fn request_by_differences(criterion: &mut Criterion) {
    let mut arguments = arguments();
    let mut encoder = RequestEncoder::new(Features::DIFFERENCES);
    let packets = [0, 64].map(|offset| place(&mut encoder, &mut arguments, offset).to_vec());
    assert_eq!(packets.each_ref().map(Vec::len), [REQUEST_DATUMS, 2].map(|n| n * DATUM_BYTES));
    let mut group = criterion.benchmark_group("codec/request_by_differences");
    let mut offset = 0_u32;
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            offset = offset.wrapping_add(64);
            place(&mut encoder, &mut arguments, offset).len()
        });
    });
    let mut decoder = RequestDecoder::new(Features::DIFFERENCES);
    decoder.decode(&packets[0]).unwrap();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decoder.decode(black_box(&packets[1])).unwrap());
    });
    group.finish();
}

/// A result that took so long on the device, by where it differs from the one before.
fn took<'e>(encoder: &'e mut ResultEncoder, result: &mut ExecutionResult, us: u64) -> &'e [u8] {
    result.timing.time_on_device_us = us;
    let extras = ResultExtras::default();
    let packet = ResultPacket::new(black_box(result), extras, Features::DIFFERENCES);
    encoder.encode(&packet).unwrap();
    encoder.sent();
    encoder.packet()
}

/// Another time on the device, each time.
fn answer_by_differences(criterion: &mut Criterion) {
    let mut result = result();
    let mut encoder = ResultEncoder::new(Features::DIFFERENCES, ANSWER_DATUMS);
    let packets = [1, 2].map(|us| took(&mut encoder, &mut result, us).to_vec());
    assert_eq!(packets.each_ref().map(Vec::len), [ANSWER_DATUMS, 2].map(|n| n * DATUM_BYTES));
    let mut group = criterion.benchmark_group("codec/answer_by_differences");
    let mut us = 2;
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            us += 1;
            took(&mut encoder, &mut result, us).len()
        });
    });
    let mut decoder = ResultDecoder::new(Features::DIFFERENCES);
    let mut decoded = DecodedResult::default();
    decoder.decode(&packets[0], 2, true, &mut decoded).unwrap();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decoder.decode(black_box(&packets[1]), 2, true, &mut decoded).unwrap());
    });
    group.finish();
}

criterion_group! {
    name = codec;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(50);
    targets = request, answer, request_by_differences, answer_by_differences
}
criterion_main!(codec);
