//! Hostile and malformed packets: every mutation of the conformance tests for bursts, and more.
//! Each gets one well-formed answer, and the burst works afterwards.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use burst_hal::{DataLocation, ErrorStatus, ExecutionResult, RequestArgument, Timing};
use burst_server::ServiceOptions;
use burst_wire::control::{ClientMessage, List, ServerMessage};
use burst_wire::{DATUM_BYTES, DatumBytes, InformationDatum, OperandDatum, RequestDatum};

use crate::burst_support::raw::{INPUT_SLOT, OUTPUT_SLOT, RawBurst, packet, request};
use crate::burst_support::{Private, model, wide_model};

fn start(count: u32) -> (Private, RawBurst) {
    let (service, socket) = Private::start(ServiceOptions::default());
    (service, RawBurst::start(socket, &wide_model(count), 1024))
}

/// The seven bad datums of the conformance tests.
fn bad_datums() -> [DatumBytes; 7] {
    let operand = OperandDatum { number_of_dimensions: 10, ..OperandDatum::default() };
    [
        RequestDatum::PacketInformation(InformationDatum {
            packet_size: 10,
            number_of_input_operands: 10,
            number_of_output_operands: 10,
            number_of_pools: 10,
        }),
        RequestDatum::InputOperandInformation(operand),
        RequestDatum::InputOperandDimensionValue(0),
        RequestDatum::OutputOperandInformation(operand),
        RequestDatum::OutputOperandDimensionValue(0),
        RequestDatum::PoolIdentifier(i32::MAX),
        RequestDatum::MeasureTiming(1),
    ]
    .map(RequestDatum::encode)
}

/// Nothing but a status that is not NONE.
fn assert_refused(result: &ExecutionResult, what: &str) {
    assert_ne!(result.status, ErrorStatus::None, "{what}");
    assert!(result.output_shapes.is_empty(), "{what}");
    assert_eq!(result.timing, Timing::UNAVAILABLE, "{what}");
}

fn assert_works(burst: &mut RawBurst, after: &str) {
    let result = burst.run(&request(2, true), 2);
    assert_eq!(result.status, ErrorStatus::None, "a legal request after {after}");
}

fn assert_refused_and_usable(burst: &mut RawBurst, datums: &[DatumBytes], what: &str) {
    // No datum at all is no packet, and has no answer.
    if !datums.is_empty() {
        let result = burst.run(datums, 2);
        assert_refused(&result, what);
    }
    assert_works(burst, what);
}

#[test]
fn every_removed_datum_is_refused() {
    let (_service, mut burst) = start(2);
    let valid = request(2, true);
    for index in 0..valid.len() {
        let mut datums = valid.clone();
        datums.remove(index);
        assert_refused_and_usable(&mut burst, &datums, &format!("datum {index} removed"));
    }
}

#[test]
fn every_added_datum_is_refused() {
    let (_service, mut burst) = start(2);
    let valid = request(2, true);
    for index in 0..=valid.len() {
        for (which, bad) in bad_datums().into_iter().enumerate() {
            let mut datums = valid.clone();
            datums.insert(index, bad);
            let what = format!("bad datum {which} added at {index}");
            assert_refused_and_usable(&mut burst, &datums, &what);
        }
    }
}

#[test]
fn every_changed_datum_is_refused() {
    let (_service, mut burst) = start(2);
    let valid = request(2, true);
    for index in 0..valid.len() {
        for (which, bad) in bad_datums().into_iter().enumerate() {
            let same_dimension = matches!(bad[0], 2 | 4) && bad[0] == valid[index][0];
            if bad == valid[index] || same_dimension {
                continue; // not a mutation, or another legal value
            }
            let mut datums = valid.clone();
            datums[index] = bad;
            let what = format!("bad datum {which} instead of datum {index}");
            assert_refused_and_usable(&mut burst, &datums, &what);
        }
    }
}

#[test]
fn hostile_fields_are_refused() {
    let (service, mut burst) = start(2);
    let executions = || service.controls.begun.load(Ordering::SeqCst);
    let valid = request(2, true);
    // Datums of the packet: 0 information; 1 and 4 inputs; 7 and 10 outputs, each with two
    // dimensions; 13 and 14 slots; 15 timing.
    let words = |datum: usize, at: usize, word: u32| {
        let mut datums = valid.clone();
        datums[datum][at..at + 4].copy_from_slice(&word.to_ne_bytes());
        datums
    };
    let cases = [
        ("packet size 0", words(0, 4, 0)),
        ("packet size 1", words(0, 4, 1)),
        ("packet size 2^32-1", words(0, 4, u32::MAX)),
        ("inputs 2^32-1", words(0, 8, u32::MAX)),
        ("outputs 2^32-1", words(0, 12, u32::MAX)),
        ("pools 2^32-1", words(0, 16, u32::MAX)),
        ("dimensions 2^32-1", words(1, 20, u32::MAX)),
        ("bool 2", words(1, 4, u32::from_ne_bytes([2, 0, 0, 0]))),
        ("omitted, with a location", words(1, 4, u32::from_ne_bytes([1, 0, 0, 0]))),
        ("pool 2 of 2", words(1, 8, 2)),
        ("offset past the pool", words(1, 12, 4096)),
        ("offset and length beyond 2^32", words(1, 12, u32::MAX)),
        ("input longer than its value", words(1, 16, 17)),
        ("input shorter than its value", words(1, 16, 15)),
        ("dimension of another size", words(3, 4, 5)),
        ("slot -1", words(13, 4, u32::MAX)),
        ("slot nobody pushed", words(13, 4, 77)),
        ("measure timing 7", words(15, 4, 7)),
        ("unknown kind", {
            let mut datums = valid.clone();
            datums[5][0] = 0xFF;
            datums
        }),
    ];
    for (what, datums) in cases {
        // The service asks for the slot that nobody pushed; it is told that there is none.
        if what == "slot nobody pushed" {
            burst.send(&datums);
            let (message, _) = burst.client.receive();
            let ServerMessage::GetMemories { id, slots, .. } = message else {
                panic!("{message:?}");
            };
            assert_eq!(slots.0, [77]);
            let status = ErrorStatus::InvalidArgument.code();
            let none = ClientMessage::Memories { id, status, lengths: List::default() };
            burst.client.send(&none, &[]);
            let answer = burst.receive();
            assert_eq!(answer.len(), 2);
            assert_eq!(answer[0][12..16], 4_i32.to_ne_bytes(), "INVALID_ARGUMENT");
            assert_works(&mut burst, what);
            continue;
        }
        let before = executions();
        assert_refused(&burst.run(&datums, 2), what);
        assert_eq!(executions(), before, "{what} reached the device");
        assert_works(&mut burst, what);
    }
}

#[test]
fn one_slot_may_stand_for_both_pools() {
    let argument = |pool_index, offset| RequestArgument {
        location: DataLocation { pool_index, offset, length: 16 },
        ..RequestArgument::default()
    };
    let (_service, mut burst) = start(1);
    // The bytes decide: they are the same memory in both.
    for (offset, want) in [(16, ErrorStatus::None), (8, ErrorStatus::InvalidArgument)] {
        let slots = [INPUT_SLOT; 2];
        let datums = packet(&[argument(0, 0)], &[argument(1, offset)], &slots, true);
        assert_eq!(burst.run(&datums, 1).status, want, "output from byte {offset} on");
    }
}

#[test]
fn two_packets_at_once_are_one_malformed_packet_answered_once() {
    let (_service, mut burst) = start(2);
    let twice = [request(2, true), request(2, true)].concat();
    assert_refused(&burst.run(&twice, 2), "two packets");
    assert_works(&mut burst, "two packets");
    assert_eq!(burst.results.available_to_read(), Ok(0), "a second answer");
}

#[test]
fn a_packet_as_long_as_the_queue_is_taken() {
    let (_service, mut burst) = start(2);
    let filler = RequestDatum::PoolIdentifier(INPUT_SLOT).encode();
    assert_refused_and_usable(&mut burst, &vec![filler; 1024], "a full queue of rubbish");
}

#[test]
fn requests_with_an_argument_too_few_are_invalid_as_over_the_socket() {
    let argument = |pool_index, offset| RequestArgument {
        location: DataLocation { pool_index, offset, length: 16 },
        ..RequestArgument::default()
    };
    let (inputs, outputs) = ([argument(0, 0), argument(0, 16)], [argument(1, 0), argument(1, 16)]);
    let slots = [INPUT_SLOT, OUTPUT_SLOT];
    for measure in [false, true] {
        let (_service, mut burst) = start(2);
        for (what, datums) in [
            ("an input", packet(&inputs[1..], &outputs, &slots, measure)),
            ("an output", packet(&inputs, &outputs[1..], &slots, measure)),
        ] {
            let result = burst.run(&datums, 2);
            assert_eq!(result, ExecutionResult::of(ErrorStatus::InvalidArgument), "{what}");
        }
        assert_works(&mut burst, "a request with too few arguments");
    }
}

#[test]
fn a_result_that_does_not_fit_its_queue_is_a_general_failure() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start(socket, &wide_model(2), 8);
    // One output shape of three dimensions is four datums; two of them and the rest are ten.
    service.controls.insufficient.store(true, Ordering::SeqCst);
    let result = burst.run(&request(2, false), 2);
    assert_eq!(result, ExecutionResult::of(ErrorStatus::GeneralFailure));
    service.controls.insufficient.store(false, Ordering::SeqCst);
    assert_works(&mut burst, "a result that did not fit");
}

#[test]
fn results_leak_no_bytes_in_their_padding() {
    let (service, mut burst) = start(2);
    service.controls.insufficient.store(true, Ordering::SeqCst);
    burst.send(&request(2, true));
    let answer = burst.receive();
    let shapes: Vec<_> = answer.iter().filter(|datum| datum[0] == 1).collect();
    assert_eq!(shapes.len(), 2);
    for datum in &answer {
        assert_eq!(datum[1..8], [0; 7], "between kind and payload");
    }
    for datum in shapes {
        assert_eq!(datum[9..12], [0; 3], "after the bool");
    }
}

#[test]
fn counters_that_cannot_be_end_this_burst_and_no_other() {
    const CAPACITY: u64 = 1024 * DATUM_BYTES as u64;
    const DATUM: u64 = DATUM_BYTES as u64;
    for (what, written) in [
        ("as far as can be", u64::MAX),
        ("2^63", 1 << 63),
        ("a datum over the capacity", CAPACITY + DATUM),
        ("a byte over the capacity", CAPACITY + 1),
        ("half a datum", DATUM / 2),
        ("a byte more than a datum", DATUM + 1),
    ] {
        let (service, mut burst) = start(2);
        // The request queue's write counter, as the client has them mapped.
        let descriptor = burst.requests.descriptor().unwrap();
        let fd = descriptor.fds.into_iter().next().unwrap();
        let memory = burst_shm::Memory::from_fd(fd).unwrap();
        let mapping = burst_shm::Mapping::map(&memory).unwrap();
        let at = usize::try_from(descriptor.grantors[1].offset).unwrap();
        let region = mapping.region(0, mapping.len()).unwrap();
        region.copy_in(at, &written.to_ne_bytes()).unwrap();
        burst.requests.wake().unwrap();
        let (message, _) = burst.client.receive();
        assert!(matches!(message, ServerMessage::BurstEnded { .. }), "{what}: {message:?}");
        // The session lives on.
        let again = burst.client.prepare(&model());
        assert!(again > 0, "{what}");
        drop(burst);
        service.join();
    }
}

#[test]
fn memories_that_were_not_pushed_are_asked_for_once() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start_without_memories(socket, &wide_model(2), 1024);
    burst.send(&request(2, true));
    let (message, _) = burst.client.receive();
    let ServerMessage::GetMemories { id, burst: number, slots } = message else {
        panic!("{message:?}");
    };
    assert_eq!((number, slots.0), (burst.number, vec![INPUT_SLOT, OUTPUT_SLOT]));
    let memories = ClientMessage::Memories { id, status: 0, lengths: List(vec![4096, 4096]) };
    burst.client.send(&memories, &[burst.input.as_fd(), burst.output.as_fd()]);
    assert_eq!(burst.receive()[0][12..16], [0; 4]);
    assert_works(&mut burst, "the memories were given");
}

#[test]
fn wrong_answers_to_the_question_for_memories_fail_the_request_alone() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start_without_memories(socket, &wide_model(2), 1024);
    let (read, write) = rustix::pipe::pipe().unwrap();
    let lengths = |lengths: &[u64]| List(lengths.to_vec());
    let input = burst.input.try_clone().unwrap();
    let cases: [(&str, i32, List<u64, 128>, Vec<_>, i32); 5] = [
        ("another status", 4, lengths(&[]), vec![], 4),
        ("a status that is none", 99, lengths(&[]), vec![], 2),
        ("one memory for two slots", 0, lengths(&[4096]), vec![input.as_fd()], 2),
        ("a length without a descriptor", 0, lengths(&[1, 1]), vec![input.as_fd()], 2),
        ("pipes", 0, lengths(&[1, 1]), vec![read.as_fd(), write.as_fd()], 4),
    ];
    for (what, status, lengths, descriptors, want) in cases {
        burst.send(&request(2, true));
        let (message, _) = burst.client.receive();
        let ServerMessage::GetMemories { id, .. } = message else { panic!("{message:?}") };
        burst.client.send(&ClientMessage::Memories { id, status, lengths }, &descriptors);
        let answer = burst.receive();
        assert_eq!(answer.len(), 2, "{what}");
        assert_eq!(answer[0][12..16], want.to_ne_bytes(), "{what}");
    }
    // Nobody answers: the request fails after a moment, and the burst goes on.
    burst.send(&request(2, true));
    let answer = burst.receive();
    assert_eq!(answer[0][12..16], 4_i32.to_ne_bytes(), "no answer");
}

#[test]
fn a_client_that_takes_no_results_loses_its_burst() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start(socket, &wide_model(2), 4);
    // Two answers of two datums fill the queue; the third finds no room.
    for _ in 0..3 {
        let before = service.controls.begun.load(Ordering::SeqCst);
        burst.send(&request(2, false));
        service.controls.wait_begun(before + 1);
    }
    let (message, _) = burst.client.receive();
    assert!(matches!(message, ServerMessage::BurstEnded { .. }), "{message:?}");
}
