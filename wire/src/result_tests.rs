//! Result packets: round trips, the HAL's rules about shapes and timing, hostile bytes.

use super::*;
use crate::datum::DatumBytes;

fn shape(dimensions: &[u32], is_sufficient: bool) -> OutputShape {
    OutputShape { dimensions: dimensions.into(), is_sufficient }
}

fn good() -> ExecutionResult {
    ExecutionResult {
        status: ErrorStatus::None,
        output_shapes: vec![shape(&[1, 4], true), shape(&[], true)],
        timing: Timing { time_on_device_us: 5, time_in_driver_us: 9 },
    }
}

fn packet(result: &ExecutionResult, extras: ResultExtras, features: Features) -> Vec<DatumBytes> {
    let packet = ResultPacket::new(result, extras, features);
    let len = packet.bytes().unwrap();
    let mut bytes = vec![0xff; len];
    packet.encode_into(&mut bytes).unwrap();
    for before in [0, len - 24, len + 1] {
        let mut again = vec![0xff; before];
        packet.encode_into(&mut again).unwrap();
        assert_eq!(again, bytes, "over {before} bytes");
    }
    assert_eq!(bytes.len(), len);
    bytes.as_chunks().0.to_vec()
}

fn plain(result: &ExecutionResult) -> Vec<DatumBytes> {
    packet(result, ResultExtras::default(), Features::NONE)
}

fn decode_from(
    datums: &[DatumBytes],
    features: Features,
    measured: bool,
) -> (Result<ResultExtras, WireError>, ExecutionResult) {
    let decode_into = |mut out: ExecutionResult| {
        let extras = decode_result(datums.as_flattened(), features, 2, measured, &mut out);
        (extras, out)
    };
    let decoded = decode_into(ExecutionResult::of(ErrorStatus::DeviceUnavailable));
    // Whatever was read before into the same storage.
    for output_shapes in [
        vec![shape(&[9, 9], true), shape(&[], true)],
        vec![shape(&[9, 9], false), shape(&[], false)],
        vec![shape(&[9, 9], true)],
        decoded.1.output_shapes.clone(),
    ] {
        assert_eq!(decode_into(ExecutionResult { output_shapes, ..good() }), decoded);
    }
    decoded
}

#[test]
fn what_is_encoded_is_decoded_again() {
    let (extras, out) = decode_from(&plain(&good()), Features::NONE, true);
    assert_eq!((extras, out), (Ok(ResultExtras::default()), good()));
    let small = ExecutionResult {
        status: ErrorStatus::OutputInsufficientSize,
        output_shapes: vec![shape(&[2], false), shape(&[3], true)],
        timing: Timing::UNAVAILABLE,
    };
    assert_eq!(decode_from(&plain(&small), Features::NONE, true).1, small);
}

#[test]
fn a_failure_is_two_datums_without_shapes_and_timing() {
    let failed = ExecutionResult { status: ErrorStatus::InvalidArgument, ..good() };
    let datums = plain(&failed);
    assert_eq!(datums.len(), 2);
    assert!(datums[1][8..].iter().all(|byte| *byte == 0xFF), "timing is not available");
    assert_eq!(
        decode_from(&datums, Features::NONE, true).1,
        ExecutionResult::of(ErrorStatus::InvalidArgument)
    );
}

#[test]
fn padding_of_every_datum_is_zero() {
    for datum in plain(&good()) {
        assert_eq!(datum[1..8], [0; 7]);
        if datum[0] == result_kind::OPERAND_INFORMATION {
            assert_eq!(datum[9..12], [0; 3]);
        }
    }
}

#[test]
fn timing_that_was_not_asked_for_is_dropped() {
    let (_, out) = decode_from(&plain(&good()), Features::NONE, false);
    assert_eq!(out.timing, Timing::UNAVAILABLE);
}

#[test]
fn nanoseconds_travel_where_negotiated() {
    let extras = ResultExtras { in_driver_ns: Some(9_400), ..ResultExtras::default() };
    let datums = packet(&good(), extras, Features::TIMING_NANOS);
    assert_eq!(decode_from(&datums, Features::TIMING_NANOS, true), (Ok(extras), good()));
    assert!(matches!(
        decode_from(&datums, Features::NONE, true).0,
        Err(WireError::Trailing { .. })
    ));
    assert_eq!(packet(&good(), extras, Features::NONE), plain(&good()));
}

#[test]
fn a_number_travels_where_negotiated_with_every_status() {
    let extras = ResultExtras { id: Some(7), ..ResultExtras::default() };
    for result in [good(), ExecutionResult::of(ErrorStatus::GeneralFailure)] {
        let datums = packet(&result, extras, Features::PIPELINING);
        let (read, out) = decode_from(&datums, Features::PIPELINING, true);
        assert_eq!((read, out), (Ok(extras), result.clone()));
        let (read, _) = decode_from(&datums, Features::NONE, true);
        assert!(matches!(read, Err(WireError::Trailing { .. })));
        assert_eq!(packet(&result, extras, Features::NONE), plain(&result));
    }
}

#[test]
fn statuses_of_hal_1_3_are_general_failure_below_it() {
    let late = ExecutionResult::of(ErrorStatus::MissedDeadlineTransient);
    let datums = packet(&late, ResultExtras::default(), Features::STATUS_1_3);
    assert_eq!(decode_from(&datums, Features::STATUS_1_3, true).1, late);
    let general = ExecutionResult::of(ErrorStatus::GeneralFailure);
    assert_eq!(decode_from(&plain(&late), Features::NONE, true).1, general);
    assert_eq!(decode_from(&datums, Features::NONE, true).1, general);
}

#[test]
fn an_unknown_status_is_a_general_failure_without_shapes() {
    for code in [-1_i32, 9, i32::MAX] {
        let mut datums = plain(&good());
        datums[0][12..16].copy_from_slice(&code.to_ne_bytes());
        let (extras, out) = decode_from(&datums, Features::ALL, true);
        assert_eq!(extras, Ok(ResultExtras::default()), "{code}");
        assert_eq!(out, ExecutionResult::of(ErrorStatus::GeneralFailure), "{code}");
    }
}

#[test]
fn results_that_contradict_themselves_are_general_failures() {
    let mut insufficient = good();
    insufficient.output_shapes[1].is_sufficient = false;
    let mut sufficient = good();
    sufficient.status = ErrorStatus::OutputInsufficientSize;
    let mut too_few = good();
    too_few.output_shapes.pop();
    let mut no_shapes = ExecutionResult::of(ErrorStatus::OutputInsufficientSize);
    no_shapes.output_shapes.clear();
    for (name, result) in [
        ("a success that is insufficient", insufficient),
        ("an insufficient size that suffices", sufficient),
        ("one shape for two outputs", too_few),
        ("an insufficient size without shapes", no_shapes),
    ] {
        let (extras, out) = decode_from(&plain(&result), Features::NONE, true);
        assert!(matches!(extras, Err(WireError::Contradiction { .. })), "{name}");
        assert_eq!(out, ExecutionResult::of(ErrorStatus::GeneralFailure), "{name}");
    }
    let empty = ExecutionResult { output_shapes: Vec::new(), ..good() };
    assert_eq!(decode_from(&plain(&empty), Features::NONE, true).1, empty);
}

#[test]
fn mutated_packets_are_refused_or_well_formed() {
    let datums = plain(&good());
    for index in 0..datums.len() {
        let mut shorter = datums.clone();
        shorter.remove(index);
        assert!(decode_from(&shorter, Features::NONE, true).0.is_err(), "without {index}");
        let mut kind = datums.clone();
        kind[index][0] = 0xFF;
        assert!(decode_from(&kind, Features::NONE, true).0.is_err(), "unknown kind {index}");
    }
    for (name, datum, at, word) in [
        ("packet size", 0, 8, u32::MAX),
        ("operands", 0, 16, u32::MAX),
        ("dimensions", 1, 12, u32::MAX),
        ("bool", 1, 8, u32::from_ne_bytes([2, 0, 0, 0])),
    ] {
        let mut hostile = datums.clone();
        hostile[datum][at..at + 4].copy_from_slice(&word.to_ne_bytes());
        let (extras, out) = decode_from(&hostile, Features::NONE, true);
        assert!(extras.is_err(), "{name}");
        assert_eq!(out, ExecutionResult::of(ErrorStatus::GeneralFailure), "{name}");
    }
}
