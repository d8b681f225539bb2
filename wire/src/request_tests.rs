//! Request packets: round trips, every mutation of the conformance tests, hostile counts.

use super::*;
use crate::datum::DatumBytes;
use burst_hal::ErrorStatus;

fn argument(pool: u32, offset: u32, length: u32, dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index: pool, offset, length },
        dimensions: dimensions.into(),
    }
}

fn sample() -> SlotRequest {
    SlotRequest {
        inputs: vec![
            argument(0, 0, 16, &[1, 4]),
            RequestArgument { has_no_value: true, ..RequestArgument::default() },
        ],
        outputs: vec![argument(1, 8, 16, &[]), argument(1, 24, 4, &[1])],
        slots: vec![3, 7],
        measure_timing: true,
        extras: RequestExtras::default(),
    }
}

/// Arguments of every rank, none left out.
fn whole() -> SlotRequest {
    SlotRequest {
        inputs: vec![argument(0, 0, 16, &[1, 2, 3, 4]), argument(1, 9, 7, &[5, 6, 7])],
        outputs: vec![
            argument(1, 8, 16, &[8, 9]),
            argument(0, 24, 4, &[]),
            argument(1, 3, 2, &[1; 9]),
            argument(1, 1, 1, &[6]),
        ],
        ..sample()
    }
}

fn packet(request: &SlotRequest) -> Vec<DatumBytes> {
    let packet = RequestPacket {
        inputs: &request.inputs,
        outputs: &request.outputs,
        slots: &request.slots,
        measure_timing: request.measure_timing,
        extras: request.extras,
    };
    let len = packet.bytes().unwrap();
    let mut bytes = Vec::new();
    packet.encode_into(&mut bytes).unwrap();
    // What was there before does not matter.
    for before in [7, 24, len - 24, len - 1, len, len + 1, len + 24] {
        let mut again = vec![0xff; before];
        packet.encode_into(&mut again).unwrap();
        assert_eq!(again, bytes, "over {before} bytes");
    }
    let datums = bytes.as_chunks().0.to_vec();
    assert_eq!(datums.len(), packet.datums().unwrap() as usize);
    datums
}

fn decode(datums: &[DatumBytes]) -> Result<SlotRequest, WireError> {
    decode_with(datums, Features::NONE)
}

fn decode_with(datums: &[DatumBytes], features: Features) -> Result<SlotRequest, WireError> {
    let decode_into = |mut out: SlotRequest| {
        decode_request(datums.as_flattened(), features, &mut out).map(|()| out)
    };
    let decoded = decode_into(SlotRequest::default());
    // Whatever was read before into the same storage.
    for before in [sample(), whole()] {
        assert_eq!(decode_into(before), decoded);
    }
    if let Ok(request) = &decoded {
        assert_eq!(decode_into(request.clone()), decoded);
    }
    decoded
}

#[test]
fn what_is_encoded_is_decoded_again() {
    for request in [sample(), whole()] {
        assert_eq!(decode(&packet(&request)), Ok(request));
    }
}

#[test]
fn storage_is_used_again() {
    let datums = packet(&sample());
    let mut out = SlotRequest::default();
    decode_request(datums.as_flattened(), Features::NONE, &mut out).unwrap();
    let at = [out.inputs.as_ptr().cast::<u8>(), out.slots.as_ptr().cast()];
    decode_request(datums.as_flattened(), Features::NONE, &mut out).unwrap();
    assert_eq!(at, [out.inputs.as_ptr().cast(), out.slots.as_ptr().cast()]);
    assert_eq!(out, sample());
}

#[test]
fn extras_are_read_only_where_negotiated() {
    for mut request in [sample(), whole()] {
        request.extras = RequestExtras {
            deadline: Some(TimePoint { nanos: 17 }),
            loop_timeout: Some(Duration::from_nanos(5)),
            id: Some(u64::MAX),
        };
        let datums = packet(&request);
        let both = Features::DEADLINES.union(Features::PIPELINING);
        assert_eq!(decode_with(&datums, both), Ok(request));
        for one in [Features::DEADLINES, Features::PIPELINING] {
            assert!(matches!(decode_with(&datums, one), Err(WireError::Trailing { .. })));
        }
        assert!(matches!(decode(&datums), Err(WireError::Trailing { .. })));
    }
}

/// The seven bad datums of the conformance tests.
fn bad_datums() -> [RequestDatum; 7] {
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
}

#[test]
fn removed_and_added_datums_are_refused() {
    let datums = packet(&whole());
    for index in 0..datums.len() {
        let mut shorter = datums.clone();
        shorter.remove(index);
        assert!(decode(&shorter).is_err(), "without datum {index}");
    }
    for index in 0..=datums.len() {
        for bad in bad_datums() {
            let mut longer = datums.clone();
            longer.insert(index, bad.encode());
            assert!(decode(&longer).is_err(), "{bad:?} at {index}");
        }
    }
}

#[test]
fn changed_datums_are_refused_unless_they_are_another_legal_value() {
    let datums = packet(&whole());
    for (index, original) in datums.iter().enumerate() {
        for bad in bad_datums() {
            let bytes = bad.encode();
            let legal = bytes[0] == original[0] && matches!(bytes[0], 2 | 4 | 5 | 6);
            if legal || bytes == *original {
                continue;
            }
            let mut changed = datums.clone();
            changed[index] = bytes;
            assert!(decode(&changed).is_err(), "{bad:?} instead of datum {index}");
        }
    }
}

/// One byte of a datum changed: index of the datum, index of the byte, its value, the error.
#[test]
fn hostile_bytes_are_refused_by_kind() {
    let word = |value: u32| value.to_ne_bytes();
    let cases: [(&str, usize, usize, [u8; 4], ErrorStatus); 11] = [
        ("packet size 0", 0, 4, word(0), ErrorStatus::GeneralFailure),
        ("packet size 1", 0, 4, word(1), ErrorStatus::GeneralFailure),
        ("packet size 2^32-1", 0, 4, word(u32::MAX), ErrorStatus::GeneralFailure),
        ("inputs 2^32-1", 0, 8, word(u32::MAX), ErrorStatus::GeneralFailure),
        ("outputs 2^32-1", 0, 12, word(u32::MAX), ErrorStatus::GeneralFailure),
        ("pools 2^32-1", 0, 16, word(u32::MAX), ErrorStatus::GeneralFailure),
        ("dimensions 2^32-1", 1, 20, word(u32::MAX), ErrorStatus::GeneralFailure),
        ("bool 2", 1, 4, [2, 0, 0, 0], ErrorStatus::GeneralFailure),
        ("pool index 2", 1, 8, word(2), ErrorStatus::InvalidArgument),
        ("omitted with a location", 4, 16, word(1), ErrorStatus::InvalidArgument),
        ("negative slot", 8, 4, word(u32::MAX), ErrorStatus::InvalidArgument),
    ];
    for (name, datum, at, bytes, status) in cases {
        let mut datums = packet(&sample());
        datums[datum][at..at + 4].copy_from_slice(&bytes);
        let error = decode(&datums).expect_err(name);
        assert_eq!(error.status(), status, "{name}: {error}");
    }
    let mut datums = packet(&sample());
    datums[10][4] = 7;
    assert_eq!(decode(&datums), Err(WireError::Value { what: "measureTiming", value: 7 }));
    let mut datums = packet(&sample());
    datums[5][0] = 0xFF;
    assert!(matches!(decode(&datums), Err(WireError::Discriminator { at: 5, found: 0xFF, .. })));
}

#[test]
fn padding_of_a_foreign_sender_is_ignored() {
    let mut datums = packet(&sample());
    datums[1][1..4].fill(0xAA);
    datums[1][5..8].fill(0xAA);
    datums[10][8..].fill(0xAA);
    assert_eq!(decode(&datums), Ok(sample()));
}

#[test]
fn a_packet_is_as_long_as_the_ranks_of_its_arguments_make_it() {
    use burst_hal::{Model, Operand, OperandLifeTime, OperandType};
    let longest = |ranks: &[usize]| {
        let operand = |rank: &usize| {
            let lifetime = OperandLifeTime::SubgraphInput;
            let mut operand = Operand::new(OperandType::TensorFloat32, lifetime);
            operand.dimensions.resize(*rank, 1);
            operand
        };
        let mut model = Model::default();
        model.main.operands = ranks.iter().map(operand).collect();
        model.main.input_indexes = (0..).take(ranks.len() - 1).collect();
        model.main.output_indexes = vec![u32::try_from(ranks.len() - 1).unwrap()];
        longest_packet(&RequestRules::new(&model).unwrap())
    };
    assert_eq!(longest(&[4, 2]), 5 + (2 + 4) + (2 + 2));
    assert_eq!(longest(&[0, 1]), 5 + (2 + 8) + (2 + 1), "a rank that the model leaves open");
    // Every argument with a memory of its own and all its dimensions, and all that is negotiated.
    let extras = RequestExtras {
        deadline: Some(TimePoint { nanos: 1 }),
        loop_timeout: Some(Duration::from_nanos(1)),
        id: Some(1),
    };
    let inputs = [argument(0, 0, 16, &[1; 4])];
    let outputs = [argument(1, 0, 16, &[1; 2])];
    let packet = RequestPacket {
        inputs: &inputs,
        outputs: &outputs,
        slots: &[0, 1],
        measure_timing: true,
        extras,
    };
    assert_eq!(packet.datums().unwrap() as usize, longest(&[4, 2]));
}

#[test]
fn two_packets_at_once_and_ragged_bytes_are_refused() {
    let datums = packet(&sample());
    let twice = [datums.clone(), datums.clone()].concat();
    assert!(matches!(decode(&twice), Err(WireError::PacketSize { .. })));
    let mut out = SlotRequest::default();
    let bytes = datums.as_flattened();
    for cut in [0, 1, 23, bytes.len() - 1] {
        let error = decode_request(&bytes[..cut], Features::NONE, &mut out).unwrap_err();
        assert_eq!(error, WireError::Ragged { bytes: cut });
    }
}

#[test]
fn random_packets_never_panic_and_what_decodes_encodes_to_the_same() {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let all = [packet(&sample()), packet(&whole())];
    let mut decoded = 0;
    for valid in all.iter().cycle().take(20_000) {
        let mut datums = valid.clone();
        for _ in 0..next() % 4 {
            let datum = usize::try_from(next() % valid.len() as u64).unwrap();
            let byte = usize::try_from(next() % 24).unwrap();
            datums[datum][byte] = u8::try_from(next() & 0xFF).unwrap();
        }
        if let Ok(request) = decode_with(&datums, Features::ALL) {
            decoded += 1;
            assert_eq!(decode_with(&packet(&request), Features::ALL), Ok(request));
        }
    }
    assert!(decoded > 1000, "only {decoded} of the packets were legal");
}
