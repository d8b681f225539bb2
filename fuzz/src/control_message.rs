//! Every kind of message on the control socket.
//!
//! Looked at: whatever decodes is encoded to the very same bytes, or, where it came with tails or is of
//! a kind that only a later version knows, to fewer, which say the same; lists and texts keep to what
//! the bytes can hold; everything that client and service compute from a message can be computed.

use std::fmt::Debug;

use burst_hal::{
    BufferRole, CacheFiles, ErrorStatus, ExecutionInfo, ExecutionResult, OutputShape,
    PrepareOptions, RequestArgument, Timing,
};
use burst_wire::control::{
    Answer, CachePlace, Call, ClientGreeting, ClientMessage, DETAIL_MAX, Executed, FencedRequest,
    List, ModelBody, PoolSource, PreparedHow, QueueDescriptor, QueueGrantor, Refusal, Reply,
    ServerGreeting, ServerMessage, StatedLimit, SynchronousRequest, Text, VALUES_ALIGNMENT,
    Versions, WaitStyle, Welcome, WireArgument, WireBufferRequest, WirePrepareOptions, WireRole,
    decode, encode,
};
use burst_wire::{Features, WireError};

use crate::{Input, Script, Seed, seed};

/// The first byte says which message the others are.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let kind = input.u8();
    let bytes = input.rest();
    match kind % 4 {
        0 => both_ways(bytes, ClientGreeting::decode, ClientGreeting::encode).is_some_and(
            |greeting| {
                let missing = greeting.missing(Features::ALL);
                assert_eq!(missing.bits(), greeting.required & !Features::ALL.bits());
                let common = greeting.versions.common(Versions::SPOKEN);
                assert!(common.is_none_or(|version| greeting.versions.contain(version)));
                is_part_of(greeting.common(Features::ALL), greeting.features)
            },
        ),
        1 => both_ways(bytes, ServerGreeting::decode, ServerGreeting::encode)
            .is_some_and(|greeting| is_part_of(greeting.common(Features::ALL), greeting.features)),
        2 => both_ways(bytes, decode::<ClientMessage>, encode).is_some_and(|m| client(&m)),
        _ => both_ways(bytes, decode::<ServerMessage>, encode).is_some_and(|m| server(&m)),
    }
}

/// What decodes is encoded to the same bytes: there is one way to say a thing. Only what a decoder
/// skips is lost, and then the message is shorter.
fn both_ways<M: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<M, WireError>,
    encode: impl Fn(&M) -> Result<Vec<u8>, WireError>,
) -> Option<M> {
    let message = decode(bytes).ok()?;
    let encoded = encode(&message).expect("what decodes can be said");
    if encoded.len() == bytes.len() {
        assert_eq!(encoded, bytes, "{message:?}");
    } else {
        assert!(encoded.len() < bytes.len(), "{message:?}");
        let again = encode(&decode(&encoded).expect("what is said can be understood"));
        assert_eq!(again.as_ref(), Ok(&encoded), "{message:?}");
    }
    Some(message)
}

fn is_part_of(common: Features, features: u64) -> bool {
    assert_eq!(common.bits() & !features, 0);
    Features::ALL.contains(common)
}

fn client(message: &ClientMessage) -> bool {
    match message {
        ClientMessage::Call { call, .. } => look_at_call(call),
        ClientMessage::Memories { status, .. } => {
            let _ = ErrorStatus::from_code(*status);
        }
        ClientMessage::Unknown { kind } => assert!(*kind > 1),
    }
    true
}

fn look_at_call(call: &Call) {
    // Of fences and cache files a client states a number, which the service holds against what came.
    let states_a_number = matches!(
        call,
        Call::ExecuteFenced(_) | Call::PrepareCaching { .. } | Call::PrepareFromCache { .. }
    );
    let descriptors = call.descriptors();
    assert!(descriptors <= 2 * 255 || states_a_number, "no message needs so many descriptors");
    let _ = call.is_slow();
    match call {
        Call::SupportedOperations { model, .. } => look_at_body(model),
        Call::Prepare { model, options, .. } => {
            look_at_body(model);
            let _ = options.decode();
        }
        Call::Execute(request) => {
            for argument in request.inputs.0.iter().chain(&request.outputs.0) {
                let back = WireArgument::from(&RequestArgument::from(argument));
                assert_eq!(back, *argument);
            }
        }
        _ => {}
    }
}

fn look_at_body(body: &ModelBody) {
    assert_eq!(body.descriptors(), 1 + body.pool_lengths.0.len());
    if let Ok(at) = body.values_at() {
        assert!(at >= body.structure_bytes && at.is_multiple_of(VALUES_ALIGNMENT));
    }
    if let Ok(total) = body.total_bytes() {
        assert!(total >= body.structure_bytes && total >= body.values_bytes);
    }
}

fn server(message: &ServerMessage) -> bool {
    let ServerMessage::Reply(reply) = message else { return true };
    match &reply.outcome {
        Err(refusal) => assert_ne!(refusal.status(), ErrorStatus::None),
        Ok(Answer::Executed(executed)) => {
            let result = executed.to_result();
            let shaped =
                matches!(result.status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize);
            assert!(shaped || result.output_shapes.is_empty());
        }
        Ok(Answer::Device(device)) => {
            let _ = (device.device_type(), device.capabilities(), device.cache_files());
            let _ = (device.extensions(), device.hal_version());
        }
        Ok(Answer::Restored { prepared, .. }) => assert_eq!(prepared.options().deadline, None),
        Ok(_) => {}
    }
    true
}

/// Each message with something in each of its lists.
pub fn seeds() -> Vec<Seed> {
    let mut seeds = greetings();
    let calls = calls().into_iter().chain(later_calls());
    seeds.extend(calls.enumerate().map(|(index, call)| {
        let message = ClientMessage::Call { id: index as u64 + 1, call };
        (format!("call_{index:02}"), bytes_of(2, &encode(&message).unwrap()))
    }));
    let memories = ClientMessage::Memories { id: 5, status: 0, lengths: List(vec![1, 4096]) };
    seeds.push(seed("memories", bytes_of(2, &encode(&memories).unwrap())));
    seeds.extend(tails());
    seeds.extend(server_messages().into_iter().enumerate().map(|(index, message)| {
        (format!("server_{index:02}"), bytes_of(3, &encode(&message).unwrap()))
    }));
    seeds
}

/// Messages of a later version: with tails, and of kinds that this one does not know.
fn tails() -> Vec<Seed> {
    let kind = |number: u32, fields: &[u8]| {
        let length = u32::try_from(fields.len()).unwrap();
        [&number.to_le_bytes()[..], &length.to_le_bytes(), fields].concat()
    };
    let id = 7_u64.to_le_bytes();
    let call = |call: &[u8], tail: &[u8]| kind(0, &[&id[..], call, tail].concat());
    let status = call(&kind(2, b"\0\0\0\0later"), b"and later");
    let source = kind(9, b"a source of a later version");
    let push = call(&kind(11, &[&[1, 0, 0, 0, 3, 0, 0, 0][..], &source].concat()), b"");
    let answer = kind(5, &[1, 0, 0, 0, 0xFF, 0xFF]);
    let reply = kind(0, &[&id[..], &kind(0, &answer), b"tail"].concat());
    let longer = |mut greeting: Vec<u8>| {
        let length = u32::from_le_bytes(greeting[12..16].try_into().unwrap()) + 4;
        greeting[12..16].copy_from_slice(&length.to_le_bytes());
        [greeting, b"tail".to_vec()].concat()
    };
    let (client, server) = (client_greeting(), server_greeting());
    vec![
        seed("tail_of_a_call", bytes_of(2, &status)),
        seed("tail_of_a_reply", bytes_of(3, &reply)),
        seed("tail_of_a_client_greeting", bytes_of(0, &longer(client.encode().unwrap()))),
        seed("tail_of_a_server_greeting", bytes_of(1, &longer(server.encode().unwrap()))),
        seed("unknown_call", bytes_of(2, &call(&kind(99, b"fields"), b""))),
        seed("unknown_source", bytes_of(2, &push)),
        seed("unknown_client_message", bytes_of(2, &kind(9, b"fields"))),
        seed("unknown_server_message", bytes_of(3, &kind(9, b"fields"))),
        seed(
            "unknown_answer",
            bytes_of(3, &kind(0, &[&id[..], &kind(0, &kind(99, b""))].concat())),
        ),
    ]
}

fn bytes_of(kind: u8, message: &[u8]) -> Vec<u8> {
    Script::new().bytes(&[kind]).bytes(message).into()
}

fn client_greeting() -> ClientGreeting {
    ClientGreeting { required: 1 << 40, ..ClientGreeting::new(Features::ALL, "camera") }
}

fn server_greeting() -> ServerGreeting {
    let limits = [(StatedLimit::SlowCalls, 4), (StatedLimit::QueueDatums, 1 << 16)];
    ServerGreeting {
        features: Features::ALL.bits() | 1 << 40,
        pid: 1234,
        limits: limits.into_iter().collect(),
        ..ServerGreeting::accepting(Features::ALL, "sérvice")
    }
}

fn greetings() -> Vec<Seed> {
    let (client, server) = (client_greeting(), server_greeting());
    let other = ServerGreeting {
        welcome: Welcome::FeatureMissing,
        missing: 1 << 40,
        detail: Text::cut("it lacks bit 40"),
        ..server.clone()
    };
    vec![
        seed("client_greeting", bytes_of(0, &client.encode().unwrap())),
        seed("server_greeting", bytes_of(1, &server.encode().unwrap())),
        seed("server_refuses", bytes_of(1, &other.encode().unwrap())),
    ]
}

fn argument(pool_index: u32, dimensions: &[u32]) -> WireArgument {
    let dimensions = List(dimensions.to_vec());
    WireArgument { has_no_value: false, pool_index, offset: 64, length: 32, dimensions }
}

fn queue(descriptors: u8) -> QueueDescriptor {
    let part = |offset, extent| QueueGrantor { fd_index: 0, offset, extent };
    let grantors = List(vec![part(0, 8), part(128, 8), part(512, 24 * 64), part(256, 4)]);
    QueueDescriptor { quantum: 24, flags: 1, descriptors, grantors }
}

fn calls() -> Vec<Call> {
    let body =
        ModelBody { structure_bytes: 999, values_bytes: 4096, pool_lengths: List(vec![17, 4096]) };
    let options = WirePrepareOptions::from(&PrepareOptions::default());
    let request = SynchronousRequest {
        model: 3,
        inputs: List(vec![argument(0, &[1, 2, 3]), argument(1, &[])]),
        outputs: List(vec![argument(2, &[4])]),
        pools: List(vec![
            PoolSource::Shared { memory: 1 },
            PoolSource::Descriptor { length: 4096 },
            PoolSource::Token { token: 9 },
        ]),
        measure_timing: true,
        deadline: Some(17),
        loop_timeout: None,
    };
    let configure = Call::ConfigureBurst {
        model: 1,
        request_queue: queue(1),
        result_queue: queue(2),
        features: 7,
        wait: WaitStyle::Adaptive,
        depth: 4,
    };
    vec![
        Call::ListDevices,
        Call::DeviceInfo { device: 0 },
        Call::DeviceStatus { device: 0 },
        Call::SupportedOperations { device: 0, model: body.clone() },
        Call::Prepare { device: 0, model: body, options },
        Call::ReleaseModel { model: 1 },
        Call::ShareMemory { memory: 1, length: 4096 },
        Call::AllocateMemory { memory: 2, length: 4096 },
        Call::ForgetMemory { memory: 1 },
        Call::Execute(request),
        configure,
        Call::PushMemory { burst: 1, slot: 7, source: PoolSource::Descriptor { length: 64 } },
        Call::FreeMemory { burst: 1, slot: 7 },
        Call::CloseBurst { burst: 1 },
    ]
}

/// Those that came with the rest of the HAL: executions that nobody waits for, compilations in files, buffers of the
/// driver, spans.
fn later_calls() -> Vec<Call> {
    let body = ModelBody { structure_bytes: 999, values_bytes: 0, pool_lengths: List(vec![]) };
    let options = WirePrepareOptions::from(&PrepareOptions::default());
    let request = SynchronousRequest {
        model: 3,
        inputs: List(vec![argument(0, &[1, 4])]),
        outputs: List(vec![argument(1, &[])]),
        pools: List(vec![PoolSource::Shared { memory: 1 }, PoolSource::Token { token: 9 }]),
        measure_timing: false,
        deadline: None,
        loop_timeout: Some(1_000_000_000),
    };
    let fenced = FencedRequest { request: request.clone(), fences: 2, duration: Some(5) };
    let cache = CachePlace::new([7; 32], CacheFiles { model: 1, data: 1 });
    let role = WireRole::from(&BufferRole { model: 0, position: 1, frequency: 0.5 });
    let buffer = WireBufferRequest {
        dimensions: List(vec![1, 4]),
        models: List(vec![3]),
        inputs: List(vec![role]),
        outputs: List(vec![role]),
    };
    let shared = PoolSource::Shared { memory: 1 };
    vec![
        Call::ExecuteAsynchronously { execution: 70, request },
        Call::ExecuteFenced(fenced),
        Call::CancelExecution { execution: 70 },
        Call::ExecutionInfo { execution: 3 },
        Call::ReleaseExecution { execution: 3 },
        Call::PrepareCaching { device: 0, model: body, options, cache },
        Call::PrepareFromCache { device: 0, cache, deadline: Some(1) },
        Call::AllocateBuffer { device: 0, request: buffer },
        Call::CopyFromBuffer { token: 5, to: shared },
        Call::CopyToBuffer { token: 5, from: shared, dimensions: List(vec![1, 4]) },
        Call::ReleaseBuffer { token: 5 },
        Call::BeginTrace { length: 4096 },
        Call::EndTrace,
    ]
}

/// Answers to them.
fn later_answers() -> Vec<Answer> {
    let timing = |time| Timing { time_on_device_us: time, time_in_driver_us: time + 1 };
    let info = ExecutionInfo {
        status: ErrorStatus::None,
        timing_launched: timing(8),
        timing_fenced: timing(6),
    };
    let prepared = PreparedHow::from(&PrepareOptions::default());
    vec![
        Answer::Fenced { execution: 3 },
        Answer::ExecutionInfo((&info).into()),
        Answer::Restored { model: 4, inputs: 1, outputs: 1, longest_packet: 14, prepared },
        Answer::Buffer { token: 5 },
    ]
}

fn server_messages() -> Vec<ServerMessage> {
    let result = ExecutionResult {
        output_shapes: vec![OutputShape {
            dimensions: [1, 10].as_slice().into(),
            is_sufficient: true,
        }],
        ..ExecutionResult::of(ErrorStatus::None)
    };
    let mut messages: Vec<ServerMessage> = [
        Answer::Done,
        Answer::Devices(List(vec![Text::cut("cpu"), Text::cut("cpu-float-fast")])),
        Answer::DeviceStatus(0),
        Answer::Supported(List(vec![true, false, true])),
        Answer::Prepared { model: 1 },
        Answer::Burst { burst: 1 },
        Answer::Executed(Executed::new(&result, Some(17))),
    ]
    .into_iter()
    .map(|answer| ServerMessage::Reply(Reply { id: 1, outcome: Ok(answer) }))
    .collect();
    let refusal = Refusal::new(ErrorStatus::InvalidArgument, "operand 3 has no type");
    messages.push(ServerMessage::Reply(Reply { id: 2, outcome: Err(refusal) }));
    messages.push(ServerMessage::GetMemories { id: 1, burst: 1, slots: List(vec![3, 7]) });
    let detail: Text<DETAIL_MAX> = Text::cut("its queue is corrupt");
    messages.push(ServerMessage::BurstEnded { burst: 1, detail });
    let later = later_answers().into_iter().map(|answer| Reply { id: 3, outcome: Ok(answer) });
    messages.extend(later.map(ServerMessage::Reply));
    let executed = Executed::new(&ExecutionResult::of(ErrorStatus::MissedDeadlineTransient), None);
    messages.push(ServerMessage::Executed { execution: 70, executed });
    messages.push(ServerMessage::Stopping);
    messages
}
