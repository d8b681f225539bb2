//! A result packet as a client receives it.
//!
//! Looked at: what the HAL promises of results, whatever the packet says; no more records than the
//! packet has datums; storage used again gives the same as fresh storage; what decodes is encoded
//! to a packet that decodes to the same.

use burst_hal::{ErrorStatus, ExecutionResult, OutputShape, Timing};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, ResultExtras, ResultPacket, WireError, check_shapes,
    decode_result,
};

use crate::frames::packets;
use crate::{Input, Script, Seed, seed};

/// Three bytes: what was negotiated, how many outputs the request had, whether it measured. The
/// others are the packet, or packets one behind the other where that was negotiated.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let features = Features::from_bits(u64::from(input.u8()));
    let (outputs, measured) = (usize::from(input.u8()), input.flag());
    let all = packets(PacketKind::Result, input.rest(), features);
    all.into_iter().filter(|bytes| one_packet(bytes, features, outputs, measured)).count() > 0
}

fn one_packet(bytes: &[u8], features: Features, outputs: usize, measured: bool) -> bool {
    let mut result = used_storage();
    let decoded = decode_result(bytes, features, outputs, measured, &mut result);
    let mut fresh = ExecutionResult::of(ErrorStatus::None);
    assert_eq!(decode_result(bytes, features, outputs, measured, &mut fresh), decoded);
    assert_eq!(result, fresh);
    keeps_promises(&result, outputs, measured);
    let Ok(extras) = decoded else {
        assert_eq!(result, ExecutionResult::of(ErrorStatus::GeneralFailure));
        return false;
    };
    let records: usize = result.output_shapes.iter().map(|shape| 1 + shape.dimensions.len()).sum();
    assert!(records < bytes.len() / DATUM_BYTES, "more records than datums");
    comes_back(&result, extras, features, outputs, measured);
    true
}

/// Storage of another result: nothing of it may show.
fn used_storage() -> ExecutionResult {
    let shape = OutputShape { dimensions: [9, 9].as_slice().into(), is_sufficient: true };
    ExecutionResult {
        status: ErrorStatus::None,
        output_shapes: vec![shape; 3],
        timing: Timing { time_on_device_us: 1, time_in_driver_us: 2 },
    }
}

fn keeps_promises(result: &ExecutionResult, outputs: usize, measured: bool) {
    assert_eq!(check_shapes(result, outputs), Ok(()));
    if result.status != ErrorStatus::None || !measured {
        assert_eq!(result.timing, Timing::UNAVAILABLE);
    }
}

fn comes_back(
    result: &ExecutionResult,
    extras: ResultExtras,
    features: Features,
    outputs: usize,
    measured: bool,
) {
    let mut again = Vec::new();
    ResultPacket::new(result, extras, features).encode_into(&mut again).unwrap();
    let mut back = ExecutionResult::of(ErrorStatus::None);
    let decoded = decode_result(&again, features, outputs, measured, &mut back);
    assert_eq!(back, *result);
    // A time on the device alone is not sent: the driver's is the one that is always known.
    let sent = extras.in_driver_ns.and(extras.on_device_ns);
    let extras = ResultExtras { on_device_ns: sent, ..extras };
    assert_eq!(decoded, Ok::<_, WireError>(extras));
}

/// Results of each kind, with and without what can be negotiated.
pub fn seeds() -> Vec<Seed> {
    let shape = |dimensions: &[u32], is_sufficient| OutputShape {
        dimensions: dimensions.into(),
        is_sufficient,
    };
    let shapes = vec![shape(&[1, 10], true), shape(&[], true)];
    let timing = Timing { time_on_device_us: 17, time_in_driver_us: 23 };
    let good = ExecutionResult { status: ErrorStatus::None, output_shapes: shapes, timing };
    let short = ExecutionResult {
        output_shapes: vec![shape(&[1, 10], true), shape(&[5, 6, 7], false)],
        ..ExecutionResult::of(ErrorStatus::OutputInsufficientSize)
    };
    let extras = ResultExtras { in_driver_ns: Some(23_456), ..ResultExtras::default() };
    let missed = ExecutionResult::of(ErrorStatus::MissedDeadlinePersistent);
    let failed = ExecutionResult::of(ErrorStatus::GeneralFailure);
    let mut seeds: Vec<Seed> = [
        ("good", &good, ResultExtras::default(), Features::NONE),
        ("good_in_nanoseconds", &good, extras, Features::ALL),
        ("too_little_room", &short, ResultExtras::default(), Features::NONE),
        ("failed", &failed, ResultExtras::default(), Features::NONE),
        ("missed", &missed, ResultExtras::default(), Features::ALL),
        ("missed_as_failure", &missed, ResultExtras::default(), Features::NONE),
    ]
    .into_iter()
    .map(|(name, result, extras, features)| {
        let mut bytes = Vec::new();
        ResultPacket::new(result, extras, features).encode_into(&mut bytes).unwrap();
        let head = [features.bits() as u8, result.output_shapes.len() as u8, 1];
        seed(name, Script::new().bytes(&head).bytes(&bytes))
    })
    .collect();
    let mut two = Script::new().bytes(&[Features::PIPELINING.bits() as u8, 2, 1]);
    for result in [&good, &failed] {
        let mut bytes = Vec::new();
        let packet = ResultPacket::new(result, ResultExtras::default(), Features::NONE);
        packet.encode_into(&mut bytes).unwrap();
        two = two.bytes(&bytes);
    }
    seeds.push(seed("two_in_a_pipeline", two));
    seeds
}
