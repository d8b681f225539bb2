//! Control messages: golden bytes, limits, models there and back.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ErrorStatus, ExtraParams, HeapMemory, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, Pool, Subgraph,
};

use super::*;
use crate::Features;

#[test]
fn greetings_say_versions_additions_and_limits() {
    let greeting =
        ClientGreeting { required: 1 << 40, ..ClientGreeting::new(Features::ALL, "camera") };
    let bytes = greeting.encode().unwrap();
    assert_eq!(ClientGreeting::decode(&bytes), Ok(greeting.clone()));
    assert_eq!(greeting.missing(Features::ALL), Features::from_bits(1 << 40));
    let limits = [(StatedLimit::SlowCalls, 2), (StatedLimit::QueueDatums, 100)];
    let greeting = ServerGreeting {
        welcome: Welcome::FeatureMissing,
        missing: 1 << 40,
        detail: Text::cut("no"),
        limits: limits.into_iter().collect(),
        ..ServerGreeting::accepting(Features::NONE, "d")
    };
    let bytes = greeting.encode().unwrap();
    assert_eq!(ServerGreeting::decode(&bytes), Ok(greeting));
}

#[test]
fn another_version_or_protocol_is_named() {
    let version = |peer| WireError::Version { ours: Versions::SPOKEN, peer };
    // The greetings of version 1, whose versions had to be the same.
    let client = b"burst-nn\x01\0\0\0\x0F\0\0\0\0\0\0\0\x03\0\0\0cam";
    assert_eq!(ClientGreeting::decode(client), Err(version(Versions::only(1))));
    let service = b"burst-nn\x01\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x02\x01\0\0\x01\0\0\0d";
    assert_eq!(ServerGreeting::decode(service), Err(version(Versions::only(1))));
    // A later one that this code cannot read, and that is named all the same.
    let later = b"burst-nn\x09\0\0\0whatever";
    assert_eq!(ServerGreeting::decode(later), Err(version(Versions::only(9))));
    let backwards = Versions { oldest: 3, newest: 2 };
    let greeting =
        ClientGreeting { versions: backwards, ..ClientGreeting::new(Features::NONE, "") };
    assert_eq!(ClientGreeting::decode(&greeting.encode().unwrap()), Err(version(backwards)));
    for other in [&b"HTTP/1.1 400 Bad Request"[..], b"", b"burst-nn", b"burst-nn\x01\0\0"] {
        assert_eq!(ServerGreeting::decode(other), Err(WireError::NotThisProtocol), "{other:?}");
    }
}

#[test]
fn the_newest_version_that_both_speak_is_taken() {
    let range = |oldest, newest| Versions { oldest, newest };
    for (one, other, want) in [
        ((2, 2), (2, 2), Some(2)),
        ((2, 5), (3, 9), Some(5)),
        ((2, 5), (5, 5), Some(5)),
        ((2, 5), (1, 3), Some(3)),
        ((2, 4), (5, 9), None),
        ((5, 2), (1, 9), None),
    ] {
        let (one, other) = (range(one.0, one.1), range(other.0, other.1));
        assert_eq!((one.common(other), other.common(one)), (want, want), "{one}, {other}");
    }
    assert_eq!(range(2, 2).to_string(), "version 2");
    assert_eq!(range(2, 5).to_string(), "versions 2 to 5");
}

#[test]
fn a_longer_greeting_is_understood() {
    let longer = |mut bytes: Vec<u8>| {
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) + 5;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(b"later");
        bytes
    };
    let client = ClientGreeting::new(Features::ALL, "camera");
    assert_eq!(ClientGreeting::decode(&longer(client.encode().unwrap())), Ok(client));
    let service = ServerGreeting::accepting(Features::ALL, "service");
    assert_eq!(ServerGreeting::decode(&longer(service.encode().unwrap())), Ok(service));
}

/// A message that is a copy of `bytes`, whose kinds at these places all have `more` bytes more at
/// their end. Each place is that of a length.
fn with_tail(bytes: &[u8], lengths_at: &[usize], more: &[u8]) -> Vec<u8> {
    let mut longer = [bytes, more].concat();
    for at in lengths_at {
        let length = u32::from_le_bytes(bytes[*at..*at + 4].try_into().unwrap());
        let length = length + u32::try_from(more.len()).unwrap();
        longer[*at..*at + 4].copy_from_slice(&length.to_le_bytes());
    }
    longer
}

#[test]
fn tails_are_skipped_at_the_end_of_messages_calls_and_options() {
    let prepare = Call::Prepare {
        device: 1,
        model: ModelBody { structure_bytes: 9, values_bytes: 8, pool_lengths: List(vec![7]) },
        options: WirePrepareOptions::from(&burst_hal::PrepareOptions::default()),
    };
    let message = ClientMessage::Call { id: 3, call: prepare };
    let bytes = encode(&message).unwrap();
    // Kind, length, id, call, length, device, body, then the options: length, three fields.
    let options_at = bytes.len() - 9 - 4;
    for lengths in [&[4][..], &[4, 20], &[4, 20, options_at]] {
        let longer = with_tail(&bytes, lengths, b"whatever a later version says");
        assert_eq!(decode::<ClientMessage>(&longer), Ok(message.clone()), "{lengths:?}");
    }
    let reply = ServerMessage::Reply(Reply { id: 3, outcome: Ok(Answer::Prepared { model: 4 }) });
    let bytes = encode(&reply).unwrap();
    for lengths in [&[4][..], &[4, 20], &[4, 20, 28]] {
        let longer = with_tail(&bytes, lengths, &[0xFF; 3]);
        assert_eq!(decode::<ServerMessage>(&longer), Ok(reply.clone()), "{lengths:?}");
    }
}

#[test]
fn what_a_later_version_says_is_known_by_its_number() {
    let unknown = |number: u32, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap();
        [&number.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat()
    };
    let message = unknown(7, b"fields");
    assert_eq!(decode(&message), Ok(ClientMessage::Unknown { kind: 7 }));
    assert_eq!(decode(&message), Ok(ServerMessage::Unknown { kind: 7 }));
    let call = unknown(0, &[&5_u64.to_le_bytes()[..], &unknown(99, b"fields")].concat());
    let call_99 = ClientMessage::Call { id: 5, call: Call::Unknown { number: 99 } };
    assert_eq!(decode(&call), Ok(call_99));
    let answer = unknown(0, &unknown(98, b""));
    let reply = unknown(0, &[&6_u64.to_le_bytes()[..], &answer].concat());
    let reply_98 = ServerMessage::Reply(Reply { id: 6, outcome: Ok(Answer::Unknown { kind: 98 }) });
    assert_eq!(decode(&reply), Ok(reply_98));
}

#[test]
fn a_record_is_never_longer_than_what_holds_it_nor_shorter_than_its_fields() {
    let call = ClientMessage::Call { id: 1, call: Call::FreeMemory { burst: 2, slot: 3 } };
    let bytes = encode(&call).unwrap();
    for (at, length) in [(4, 0), (4, 23), (4, 25), (4, u32::MAX), (20, 7), (20, 9), (20, u32::MAX)]
    {
        let mut damaged = bytes.clone();
        damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(length));
        let decoded = decode::<ClientMessage>(&damaged);
        assert!(decoded.is_err(), "{length} at {at}: {decoded:?}");
    }
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
    assert_eq!(call_number(&bytes), Some(1), "it can be refused by its number");
    assert_eq!(call_number(&bytes[..15]), None);
    bytes[0] = 1;
    assert_eq!(call_number(&bytes), None, "not a call");
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
    let reply = [0, 24, 1, 0, 7, 0].map(u32::to_le_bytes).concat(); // an outcome of kind 7
    assert_eq!(
        decode::<ServerMessage>(&[&reply[..], &[0; 8]].concat()),
        Err(WireError::Malformed { reason: "a reply is neither an answer nor a refusal" })
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
    let text_at = bytes.len() - 5; // behind it is the cause
    bytes[text_at] = 0xFF;
    assert_eq!(
        decode::<ServerMessage>(&bytes),
        Err(WireError::Malformed { reason: "a text is not UTF-8" })
    );
}

#[test]
fn a_refusal_never_claims_success_and_its_text_is_cut_at_a_character() {
    let refusal = Refusal { status: 0, ..Refusal::new(ErrorStatus::None, "") };
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
