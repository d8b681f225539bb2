//! Packets by differences, byte by byte.
#![cfg(target_endian = "little")]

use burst_hal::{DataLocation, ErrorStatus, ExecutionResult, OutputShape, RequestArgument, Timing};

use super::requests::packet;
use crate::{
    DatumBytes, Features, RequestEncoder, RequestExtras, ResultEncoder, ResultExtras, ResultPacket,
    SlotRequest,
};

const FEATURES: Features = Features::DIFFERENCES.union(Features::PIPELINING);

fn argument(offset: u32, dimensions: &[u32]) -> RequestArgument {
    let location = DataLocation { pool_index: 0, offset, length: 8 };
    RequestArgument { has_no_value: false, location, dimensions: dimensions.into() }
}

fn request() -> SlotRequest {
    SlotRequest {
        inputs: vec![argument(64, &[5, 6])],
        outputs: vec![argument(128, &[7])],
        slots: vec![3],
        measure_timing: false,
        extras: RequestExtras { id: Some(1), ..RequestExtras::default() },
    }
}

/// What a request after another one is sent as.
fn request_after(before: &SlotRequest, request: &SlotRequest) -> Vec<DatumBytes> {
    let mut encoder = RequestEncoder::new(FEATURES);
    encoder.encode(&packet(before)).unwrap();
    encoder.sent();
    encoder.encode(&packet(request)).unwrap().as_chunks().0.to_vec()
}

#[test]
fn a_request_that_lies_elsewhere_says_its_place_and_its_number() {
    let mut moved = request();
    moved.inputs[0].location.offset = 0x0102;
    moved.extras.id = Some(2);
    assert_eq!(
        request_after(&request(), &moved),
        [
            [0x43, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0],
            [0x42, 0, 8, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    );
}

#[test]
fn a_request_of_other_sizes_and_slots_says_each_in_a_datum_of_its_kind() {
    let mut other = request();
    other.inputs[0].dimensions[1] = 60;
    other.outputs[0].dimensions[0] = 70;
    other.outputs[0].location.offset = 130;
    (other.slots[0], other.measure_timing) = (30, true);
    assert_eq!(
        request_after(&request(), &other),
        [
            [0x43, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [2, 0, 3, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0],
            [4, 0, 5, 0, 70, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [5, 0, 6, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [6, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    );
}

#[test]
fn the_same_request_once_more_is_one_datum() {
    let same = [0x43, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(request_after(&request(), &request()), [same]);
}

#[test]
fn a_place_takes_two_bytes() {
    let mut long = request();
    long.inputs[0].dimensions = (0..400).collect();
    let mut other = long.clone();
    other.inputs[0].dimensions[299] = 1000; // datum 301 of the packet
    assert_eq!(
        request_after(&long, &other)[1],
        [2, 0, 0x2D, 1, 0xE8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

fn result() -> ExecutionResult {
    let shape = OutputShape { dimensions: [4, 5].as_slice().into(), is_sufficient: true };
    ExecutionResult {
        status: ErrorStatus::None,
        output_shapes: vec![shape],
        timing: Timing { time_on_device_us: 5, time_in_driver_us: 9 },
    }
}

/// What a result with number 2 is sent as, after one with number 1.
fn result_after(before: &ExecutionResult, result: &ExecutionResult) -> Vec<DatumBytes> {
    let features = FEATURES.union(Features::TIMING_NANOS);
    let extras = |id, nanos| {
        let in_driver_ns = Some(nanos);
        ResultExtras { id: Some(id), in_driver_ns, on_device_ns: None }
    };
    let mut encoder = ResultEncoder::new(features, 100);
    encoder.encode(&ResultPacket::new(before, extras(1, 700), features)).unwrap();
    encoder.sent();
    let packet = ResultPacket::new(result, extras(2, 800), features);
    encoder.encode(&packet).unwrap().as_chunks().0.to_vec()
}

#[test]
fn a_result_of_other_sizes_and_times_says_each_in_a_datum_of_its_kind() {
    let mut other = result();
    other.output_shapes[0].dimensions[1] = 50;
    other.timing.time_on_device_us = 6;
    assert_eq!(
        result_after(&result(), &other),
        [
            [0x42, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [2, 0, 3, 0, 0, 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [3, 0, 4, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
            [
                0x40, 0, 5, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 32, 3, 0, 0, 0,
                0, 0, 0
            ],
            [0x41, 0, 6, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    );
}

#[test]
fn a_result_of_another_form_or_status_comes_as_a_whole() {
    let mut of_another_rank = result();
    of_another_rank.output_shapes[0].dimensions.push(6);
    let insufficient = OutputShape { is_sufficient: false, ..result().output_shapes[0].clone() };
    let too_small = ExecutionResult {
        status: ErrorStatus::OutputInsufficientSize,
        output_shapes: vec![insufficient],
        ..result()
    };
    let failed = ExecutionResult::of(ErrorStatus::GeneralFailure);
    for other in [of_another_rank, too_small, failed] {
        for packet in [result_after(&result(), &other), result_after(&other, &result())] {
            assert_eq!(packet[0][0], 0, "{other:?}");
            assert_eq!(packet[0][8] as usize, packet.len());
        }
    }
}
