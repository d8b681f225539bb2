//! The bytes of every message, kept in a folder for each version of the protocol (`wire/golden/`).
//!
//! They stay as they are for ever: a client that sends those of version 2 is served by every later
//! service, and a client understands every service that answers with them. A later version adds
//! files; it changes none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burst_hal::{
    BufferRole, CacheFiles, Capabilities, Device, ErrorStatus, ExecutionInfo, ExecutionResult,
    Failure, HalVersion, Model, ModelBuilder, OperandType, OperationType, OutputShape, OutputSpec,
    PerformanceInfo, PrepareOptions, PreparedModel, Priority, Timing,
};

use super::values::WireArgument;
use super::*;
use crate::Features;

fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/version_{version}"))
}

/// The bytes in a file: hexadecimal, with comments from `#` to the end of the line.
fn golden(version: u32, name: &str) -> Vec<u8> {
    let path = folder(version).join(format!("{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let bytes = lines.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect()
}

/// A device that says of itself what the fake device of other tests says.
struct Fake(HalVersion);

impl Device for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn version_string(&self) -> &str {
        "fake-1"
    }

    fn hal_version(&self) -> HalVersion {
        self.0
    }

    fn supported_operations(&self, _: &Model) -> Result<Vec<bool>, Failure> {
        Err(Failure::invalid("it is there to be described"))
    }

    fn prepare_model(
        &self,
        _: &Model,
        _: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Err(Failure::invalid("it is there to be described"))
    }
}

fn device(version: HalVersion) -> DeviceInfo {
    let info = PerformanceInfo { exec_time: 0.5, power_usage: 2.0 };
    let capabilities = Capabilities {
        relaxed_float32_to_float16_scalar: info,
        relaxed_float32_to_float16_tensor: info,
        operand_performance: vec![(OperandType::TensorFloat32, info)],
        if_performance: PerformanceInfo::UNSUPPORTED,
        while_performance: info,
    };
    DeviceInfo::new(&Fake(version), &capabilities)
}

fn argument(pool_index: u32, dimensions: &[u32]) -> WireArgument {
    let dimensions = List(dimensions.to_vec());
    WireArgument { has_no_value: false, pool_index, offset: 0, length: 16, dimensions }
}

fn queue() -> QueueDescriptor {
    let part = |offset, extent| QueueGrantor { fd_index: 0, offset, extent };
    let grantors = List(vec![part(0, 8), part(128, 8), part(512, 24 * 64), part(256, 4)]);
    QueueDescriptor { quantum: 24, flags: 1, descriptors: 1, grantors }
}

/// A RELU of four floats, as a structure.
fn structure() -> Vec<u8> {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[1, 4]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[1, 4]));
    builder.output(output);
    encode_model(&builder.build().unwrap()).unwrap().0
}

/// A conversation that a service can be held to: the calls in the order in which they can be done,
/// with numbers in the order of the calls.
fn calls() -> Vec<(&'static str, Call)> {
    let structure_bytes = structure().len() as u64;
    let body = ModelBody { structure_bytes, values_bytes: 0, pool_lengths: List(vec![64]) };
    let options = WirePrepareOptions::from(&burst_hal::PrepareOptions {
        deadline: Some(burst_hal::TimePoint { nanos: u64::MAX }),
        ..Default::default()
    });
    let shared = PoolSource::Shared { memory: 40 };
    let request = SynchronousRequest {
        model: 1,
        inputs: List(vec![argument(0, &[1, 4])]),
        outputs: List(vec![argument(1, &[])]),
        pools: List(vec![shared, PoolSource::Descriptor { length: 64 }]),
        measure_timing: false,
        deadline: Some(u64::MAX),
        loop_timeout: Some(1_000_000_000),
    };
    let configure = Call::ConfigureBurst {
        model: 1,
        request_queue: queue(),
        result_queue: queue(),
        features: FIRST_FEATURES.bits(),
        wait: WaitStyle::Adaptive,
        depth: 4,
    };
    vec![
        ("list_devices", Call::ListDevices),
        ("device_info", Call::DeviceInfo { device: 0 }),
        ("device_status", Call::DeviceStatus { device: 0 }),
        ("supported_operations", Call::SupportedOperations { device: 0, model: body.clone() }),
        ("prepare", Call::Prepare { device: 0, model: body, options }),
        ("share_memory", Call::ShareMemory { memory: 40, length: 64 }),
        ("allocate_memory", Call::AllocateMemory { memory: 41, length: 64 }),
        ("execute", Call::Execute(request)),
        ("configure_burst", configure),
        ("push_memory", Call::PushMemory { burst: 2, slot: 3, source: shared }),
        (
            "push_memory_token",
            Call::PushMemory { burst: 2, slot: 4, source: PoolSource::Token { token: 9 } },
        ),
        ("free_memory", Call::FreeMemory { burst: 2, slot: 3 }),
        ("close_burst", Call::CloseBurst { burst: 2 }),
        ("forget_memory", Call::ForgetMemory { memory: 40 }),
        ("release_model", Call::ReleaseModel { model: 1 }),
        ("unknown_call", Call::Unknown { number: 999 }),
    ]
}

/// Calls of the HAL beyond a burst, in the order in which they can be done once a model is prepared and a
/// memory shared; their numbers go on.
fn later_calls() -> Vec<(&'static str, Call)> {
    let structure_bytes = structure().len() as u64;
    let body = ModelBody { structure_bytes, values_bytes: 0, pool_lengths: List(vec![64]) };
    let options = WirePrepareOptions::from(&burst_hal::PrepareOptions::default());
    let shared = PoolSource::Shared { memory: 40 };
    let request = SynchronousRequest {
        model: 1,
        inputs: List(vec![argument(0, &[1, 4])]),
        outputs: List(vec![argument(1, &[])]),
        pools: List(vec![shared, PoolSource::Descriptor { length: 64 }]),
        measure_timing: true,
        deadline: None,
        loop_timeout: None,
    };
    let fenced =
        FencedRequest { request: request.clone(), fences: 1, duration: Some(1_000_000_000) };
    let cache = CachePlace::new([7; 32], CacheFiles { model: 1, data: 1 });
    let role = WireRole::from(&BufferRole { model: 0, position: 0, frequency: 0.5 });
    let buffer = WireBufferRequest {
        dimensions: List(vec![1, 4]),
        models: List(vec![1]),
        inputs: List(vec![role]),
        outputs: List(vec![role]),
    };
    vec![
        ("execute_asynchronously", Call::ExecuteAsynchronously { execution: 70, request }),
        ("execute_fenced", Call::ExecuteFenced(fenced)),
        ("cancel_execution", Call::CancelExecution { execution: 70 }),
        ("execution_info", Call::ExecutionInfo { execution: 3 }),
        ("release_execution", Call::ReleaseExecution { execution: 3 }),
        ("prepare_caching", Call::PrepareCaching { device: 0, model: body, options, cache }),
        ("prepare_from_cache", Call::PrepareFromCache { device: 0, cache, deadline: Some(1) }),
        ("allocate_buffer", Call::AllocateBuffer { device: 0, request: buffer }),
        (
            "copy_to_buffer",
            Call::CopyToBuffer { token: 5, from: shared, dimensions: List(vec![1, 4]) },
        ),
        ("copy_from_buffer", Call::CopyFromBuffer { token: 5, to: shared }),
        ("release_buffer", Call::ReleaseBuffer { token: 5 }),
        ("begin_trace", Call::BeginTrace { length: 4096 }),
        ("end_trace", Call::EndTrace),
    ]
}

/// Every call with the number that it has in the files.
fn numbered_calls() -> impl Iterator<Item = (u64, (&'static str, Call))> {
    (1..).zip(calls().into_iter().chain(later_calls()))
}

/// A model that was taken from files.
fn restored() -> Answer {
    let options = PrepareOptions { priority: Priority::High, ..PrepareOptions::default() };
    let prepared = PreparedHow::from(&options);
    Answer::Restored { model: 4, inputs: 1, outputs: 1, longest_packet: 14, prepared }
}

/// What the service answers to each, in its own order. The numbers in them are made up: a RELU of four floats
/// takes packets of 13 datums, not of the 14 that stand in the restored model's answer.
fn answers() -> Vec<(&'static str, Result<Answer, Refusal>)> {
    let mut result = ExecutionResult::of(ErrorStatus::None);
    result.output_shapes =
        vec![OutputShape { dimensions: [1, 4].as_slice().into(), is_sufficient: true }];
    let refusal = Refusal::new(ErrorStatus::InvalidArgument, "there is no call 999");
    let timing = |time| Timing { time_on_device_us: time, time_in_driver_us: time + 1 };
    let info = ExecutionInfo {
        status: ErrorStatus::None,
        timing_launched: timing(8),
        timing_fenced: timing(6),
    };
    vec![
        ("done", Ok(Answer::Done)),
        ("devices", Ok(Answer::Devices(List(vec![Text::cut("fake")])))),
        ("device", Ok(Answer::Device(device(HalVersion::LATEST)))),
        ("device_status", Ok(Answer::DeviceStatus(0))),
        ("supported", Ok(Answer::Supported(List(vec![true])))),
        ("prepared", Ok(Answer::Prepared { model: 1 })),
        ("burst", Ok(Answer::Burst { burst: 2 })),
        ("executed", Ok(Answer::Executed(Executed::new(&result, Some(7))))),
        ("refused", Err(refusal.because(RefusalCause::UnknownCall))),
        ("fenced", Ok(Answer::Fenced { execution: 3 })),
        ("execution_info", Ok(Answer::ExecutionInfo((&info).into()))),
        ("restored", Ok(restored())),
        ("buffer", Ok(Answer::Buffer { token: 5 })),
        ("device_of_hal_1_1", Ok(Answer::Device(device(HalVersion::V1_1)))),
    ]
}

/// The features and the limits of the first services of version 2. Later ones know more: that changes
/// what greetings say, and not how they say it.
const FIRST_FEATURES: Features = Features::from_bits(0b1111);
const FIRST_LIMITS: usize = 13;

fn client_greeting() -> ClientGreeting {
    let features = FIRST_FEATURES.bits() | 1 << 40;
    let greeting = ClientGreeting::new(FIRST_FEATURES, "camera");
    ClientGreeting { features, required: Features::DEADLINES.bits(), ..greeting }
}

fn service_greeting() -> ServerGreeting {
    let limits = StatedLimit::ALL.into_iter().take(FIRST_LIMITS).zip(100..);
    let accepting = ServerGreeting::accepting(FIRST_FEATURES, "burst");
    ServerGreeting { pid: 4711, limits: limits.collect(), ..accepting }
}

fn refusing_greeting() -> ServerGreeting {
    ServerGreeting {
        welcome: Welcome::FeatureMissing,
        features: FIRST_FEATURES.bits(),
        missing: 1 << 40,
        detail: Text::cut("the service does not know bit 40"),
        limits: StatedLimits::default(),
        ..service_greeting()
    }
}

/// Every file of version 2, with its bytes.
fn made() -> Vec<(String, Vec<u8>)> {
    let mut made = vec![
        ("model".to_owned(), structure()),
        ("client/00_greeting".to_owned(), client_greeting().encode().unwrap()),
        ("service/greeting".to_owned(), service_greeting().encode().unwrap()),
        ("service/greeting_refuses".to_owned(), refusing_greeting().encode().unwrap()),
    ];
    for (id, (name, call)) in numbered_calls() {
        let bytes = encode(&ClientMessage::Call { id, call }).unwrap();
        made.push((format!("client/{id:02}_{name}"), bytes));
    }
    let memories = ClientMessage::Memories { id: 0, status: 0, lengths: List(vec![64]) };
    made.push(("client/memories".to_owned(), encode(&memories).unwrap()));
    for (id, (name, outcome)) in (1..).zip(answers()) {
        let bytes = encode(&ServerMessage::Reply(Reply { id, outcome })).unwrap();
        made.push((format!("service/{name}"), bytes));
    }
    let asked = ServerMessage::GetMemories { id: 0, burst: 2, slots: List(vec![5]) };
    made.push(("service/get_memories".to_owned(), encode(&asked).unwrap()));
    let ended = ServerMessage::BurstEnded { burst: 2, detail: Text::cut("the driver panicked") };
    made.push(("service/burst_ended".to_owned(), encode(&ended).unwrap()));
    let result = ExecutionResult::of(ErrorStatus::MissedDeadlineTransient);
    let executed = Executed::new(&result, None);
    let told = ServerMessage::Executed { execution: 70, executed };
    made.push(("service/executed_asynchronously".to_owned(), encode(&told).unwrap()));
    made
}

/// The content of a file with these bytes.
fn hexadecimal(bytes: &[u8]) -> String {
    let line = |line: &[u8]| {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    };
    bytes.chunks(16).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_message_of_version_2_has_these_bytes_for_ever() {
    for (name, bytes) in made() {
        let path = folder(2).join(format!("{name}.hex"));
        // Who adds a message finds its file in this failure.
        assert!(path.exists(), "{} is to hold\n\n{}\n", path.display(), hexadecimal(&bytes));
        assert_eq!(golden(2, &name), bytes, "{name}");
    }
}

#[test]
fn every_message_of_version_2_is_still_understood() {
    for (id, (name, call)) in numbered_calls() {
        let bytes = golden(2, &format!("client/{id:02}_{name}"));
        assert_eq!(decode(&bytes), Ok(ClientMessage::Call { id, call }), "{name}");
    }
    for (id, (name, outcome)) in (1..).zip(answers()) {
        let bytes = golden(2, &format!("service/{name}"));
        assert_eq!(decode(&bytes), Ok(ServerMessage::Reply(Reply { id, outcome })), "{name}");
    }
    assert_eq!(ClientGreeting::decode(&golden(2, "client/00_greeting")), Ok(client_greeting()));
    assert_eq!(ServerGreeting::decode(&golden(2, "service/greeting")), Ok(service_greeting()));
    let refused = ServerGreeting::decode(&golden(2, "service/greeting_refuses"));
    assert_eq!(refused, Ok(refusing_greeting()));
    let model = decode_model(&golden(2, "model"), Vec::new().into(), Vec::new()).unwrap();
    assert_eq!(model.main.operations[0].ty, OperationType::Relu);
}

#[test]
fn every_kind_of_call_and_answer_has_its_file() {
    let numbers: BTreeSet<u32> = numbered_calls().map(|(_, (_, call))| call.number()).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), (0..27).chain([999]).collect::<Vec<_>>());
    // A call of the next number is one that this code does not know.
    let next = ClientMessage::Call { id: 1, call: Call::Unknown { number: 27 } };
    assert_eq!(decode(&encode(&next).unwrap()), Ok(next));
    let files: BTreeSet<String> = made().into_iter().map(|(name, _)| name).collect();
    let mut kept = BTreeSet::new();
    for part in ["", "client/", "service/"] {
        for entry in std::fs::read_dir(folder(2).join(part)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            kept.extend(name.strip_suffix(".hex").map(|name| format!("{part}{name}")));
        }
    }
    assert_eq!(kept, files);
}

#[test]
fn the_greetings_of_version_1_are_known_by_their_version() {
    for (name, peer) in [("client_greeting", 1), ("service_greeting", 1)] {
        let bytes = golden(1, name);
        let version = WireError::Version { ours: Versions::SPOKEN, peer: Versions::only(peer) };
        assert_eq!(ClientGreeting::decode(&bytes), Err(version.clone()), "{name}");
        assert_eq!(ServerGreeting::decode(&bytes), Err(version), "{name}");
    }
}
