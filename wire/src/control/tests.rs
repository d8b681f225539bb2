//! Control messages: golden bytes, limits, models there and back.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ErrorStatus, ExtraParams, HeapMemory, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, Pool, Subgraph,
};

use super::*;
use crate::Features;

#[test]
fn greetings_have_these_bytes_for_ever() {
    let greeting = ClientGreeting { features: Features::ALL.bits(), name: Text::cut("cam") };
    let bytes = greeting.encode().unwrap();
    assert_eq!(bytes, b"burst-nn\x01\0\0\0\x0F\0\0\0\0\0\0\0\x03\0\0\0cam");
    assert_eq!(ClientGreeting::decode(&bytes), Ok(greeting));
    let greeting = ServerGreeting {
        welcome: Welcome::NotPermitted,
        features: 2,
        pid: 0x0102,
        name: Text::cut("d"),
    };
    let bytes = greeting.encode().unwrap();
    assert_eq!(bytes, b"burst-nn\x01\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x02\x01\0\0\x01\0\0\0d");
    assert_eq!(ServerGreeting::decode(&bytes), Ok(greeting));
}

#[test]
fn another_version_or_protocol_is_named() {
    let mut bytes = ClientGreeting { features: 0, name: Text::default() }.encode().unwrap();
    bytes[8] = 9;
    bytes.push(0xFF); // whatever follows in that version
    assert_eq!(ClientGreeting::decode(&bytes), Err(WireError::Version { ours: 1, peer: 9 }));
    for other in [&b"HTTP/1.1 400 Bad Request"[..], b"", b"burst-nn", b"burst-nn\x01\0\0"] {
        assert_eq!(ServerGreeting::decode(other), Err(WireError::NotThisProtocol), "{other:?}");
    }
}

#[test]
fn calls_have_golden_bytes() {
    let message = ClientMessage::Call {
        id: 7,
        call: Call::PushMemory { burst: 1, slot: -2, source: PoolSource::Descriptor { length: 3 } },
    };
    let bytes = encode(&message).unwrap();
    let want = [
        &[0, 0, 0, 0][..],         // Call
        &[7, 0, 0, 0, 0, 0, 0, 0], // id
        &[11, 0, 0, 0],            // PushMemory
        &[1, 0, 0, 0],             // burst
        &[0xFE, 0xFF, 0xFF, 0xFF], // slot
        &[1, 0, 0, 0],             // Descriptor
        &[3, 0, 0, 0, 0, 0, 0, 0], // length
    ]
    .concat();
    assert_eq!(bytes, want);
    assert_eq!(decode::<ClientMessage>(&bytes), Ok(message));
}

#[test]
fn replies_have_golden_bytes() {
    let message = ServerMessage::Reply(Reply {
        id: 1,
        outcome: Err(Refusal::new(ErrorStatus::InvalidArgument, "no")),
    });
    let bytes = encode(&message).unwrap();
    let want = [
        &[0, 0, 0, 0][..],         // Reply
        &[1, 0, 0, 0, 0, 0, 0, 0], // id
        &[1, 0, 0, 0],             // Err
        &[4, 0, 0, 0],             // status
        &[2, 0, 0, 0],             // length of the text
        b"no",
    ]
    .concat();
    assert_eq!(bytes, want);
    assert_eq!(decode::<ServerMessage>(&bytes), Ok(message));
}

#[test]
fn bytes_after_the_end_and_missing_bytes_are_refused() {
    let mut bytes =
        encode(&ClientMessage::Call { id: 1, call: Call::ReleaseModel { model: 2 } }).unwrap();
    for cut in 0..bytes.len() {
        assert!(decode::<ClientMessage>(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    bytes.push(0);
    assert_eq!(decode::<ClientMessage>(&bytes), Err(WireError::TrailingBytes { bytes: 1 }));
}

#[test]
fn counts_over_their_limit_are_refused_before_anything_is_reserved() {
    let message = ServerMessage::GetMemories { id: 1, burst: 2, slots: List(vec![1]) };
    let mut bytes = encode(&message).unwrap();
    let count_at = bytes.len() - 8;
    bytes[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        decode::<ServerMessage>(&bytes),
        Err(WireError::Limit { count: u64::from(u32::MAX), limit: MEMORIES_MAX as u64 })
    );
    // Within the limit, but with fewer elements than said.
    bytes[count_at..count_at + 4].copy_from_slice(&100_u32.to_le_bytes());
    assert_eq!(
        decode::<ServerMessage>(&bytes),
        Err(WireError::Malformed { reason: "it ends too early" })
    );
    let many = ServerMessage::GetMemories { id: 1, burst: 2, slots: List(vec![0; 129]) };
    assert!(matches!(encode(&many), Err(WireError::Malformed { .. })));
}

#[test]
fn unknown_kinds_bad_bools_and_bad_texts_are_refused() {
    assert_eq!(
        decode::<ClientMessage>(&[9, 0, 0, 0]),
        Err(WireError::Malformed { reason: "it has an unknown kind of part" })
    );
    let reply =
        ServerMessage::Reply(Reply { id: 1, outcome: Ok(Answer::Supported(List(vec![true]))) });
    let mut bytes = encode(&reply).unwrap();
    *bytes.last_mut().unwrap() = 2;
    assert_eq!(
        decode::<ServerMessage>(&bytes),
        Err(WireError::Malformed { reason: "a yes or no is neither" })
    );
    let reply = ServerMessage::Reply(Reply {
        id: 1,
        outcome: Err(Refusal::new(ErrorStatus::GeneralFailure, "x")),
    });
    let mut bytes = encode(&reply).unwrap();
    *bytes.last_mut().unwrap() = 0xFF;
    assert_eq!(
        decode::<ServerMessage>(&bytes),
        Err(WireError::Malformed { reason: "a text is not UTF-8" })
    );
}

#[test]
fn a_refusal_never_claims_success_and_its_text_is_cut_at_a_character() {
    let refusal = Refusal { status: 0, detail: Text::default() };
    assert_eq!(refusal.status(), ErrorStatus::GeneralFailure);
    let long = "ä".repeat(DETAIL_MAX);
    let refusal = Refusal::new(ErrorStatus::GeneralFailure, &long);
    assert_eq!(refusal.detail.as_str().len(), DETAIL_MAX);
    assert_eq!(Text::<3>::cut("aää").as_str(), "aä");
}

#[test]
fn calls_say_how_many_descriptors_they_need() {
    let queue = |descriptors| QueueDescriptor {
        quantum: 24,
        flags: 1,
        descriptors,
        grantors: List::default(),
    };
    let configure = Call::ConfigureBurst {
        model: 1,
        request_queue: queue(1),
        result_queue: queue(2),
        features: 0,
        wait: WaitStyle::Spin,
        depth: 1,
    };
    assert_eq!(configure.descriptors(), 3);
    let body = ModelBody { structure_bytes: 1, values_bytes: 0, pool_lengths: List(vec![4, 4]) };
    assert_eq!(Call::SupportedOperations { device: 0, model: body }.descriptors(), 3);
    let source = PoolSource::Shared { memory: 1 };
    assert_eq!(Call::PushMemory { burst: 0, slot: 0, source }.descriptors(), 0);
    assert_eq!(Call::ListDevices.descriptors(), 0);
}

fn sample_model() -> Model {
    let mut filter =
        Operand::new(OperandType::TensorQuant8SymmPerChannel, OperandLifeTime::ConstantCopy);
    filter.dimensions = [2, 1, 1, 3].as_slice().into();
    filter.number_of_consumers = 1;
    filter.location = DataLocation { pool_index: 0, offset: 4, length: 6 };
    filter.extra_params =
        ExtraParams::ChannelQuant { scales: Arc::from([0.5, 0.25]), channel_dim: 0 };
    let mut input = Operand::new(OperandType::Extension(0x2_0001), OperandLifeTime::SubgraphInput);
    input.extra_params = ExtraParams::Extension(Arc::from([1_u8, 2, 3]));
    input.zero_point = -5;
    input.scale = 0.125;
    let main = Subgraph {
        operands: vec![input, filter],
        operations: vec![Operation {
            ty: OperationType::Conv2d,
            inputs: vec![0, 1],
            outputs: vec![1],
        }],
        input_indexes: vec![0],
        output_indexes: vec![1],
    };
    Model {
        referenced: vec![main.clone(), Subgraph::default()],
        main,
        operand_values: vec![9; 100].into(),
        pools: vec![Arc::new(HeapMemory::new(vec![0; 17])) as Pool],
        relax_computation_float32_to_float16: true,
        extension_name_to_prefix: vec![("com.example.x".into(), 2)],
    }
}

#[test]
fn models_come_back_as_they_went() {
    let model = sample_model();
    let (structure, body) = encode_model(&model).unwrap();
    assert_eq!(body.structure_bytes, structure.len() as u64);
    assert_eq!(body.values_at().unwrap() % VALUES_ALIGNMENT, 0);
    assert_eq!(body.total_bytes().unwrap(), body.values_at().unwrap() + 100);
    assert_eq!((body.values_bytes, body.pool_lengths.0.as_slice()), (100, &[17][..]));
    let back = decode_model(&structure, model.operand_values.clone(), model.pools.clone()).unwrap();
    assert_eq!(back.main, model.main);
    assert_eq!(back.referenced, model.referenced);
    assert_eq!(back.extension_name_to_prefix, model.extension_name_to_prefix);
    assert!(back.relax_computation_float32_to_float16);
}

#[test]
fn damaged_models_are_refused_or_decoded_but_never_panic() {
    let (structure, _) = encode_model(&sample_model()).unwrap();
    let decode = |bytes: &[u8]| decode_model(bytes, Vec::new().into(), Vec::new());
    for at in 0..structure.len() {
        assert!(decode(&structure[..at]).is_err(), "cut at {at}");
        for value in [0, 1, 0x7F, 0xFF] {
            let mut damaged = structure.clone();
            damaged[at] = value;
            let _ = decode(&damaged);
        }
    }
    let body = ModelBody {
        structure_bytes: u64::MAX,
        values_bytes: u64::MAX,
        pool_lengths: List::default(),
    };
    assert!(body.values_at().is_err());
    let body = ModelBody { structure_bytes: 64, ..body };
    assert!(body.total_bytes().is_err());
}
