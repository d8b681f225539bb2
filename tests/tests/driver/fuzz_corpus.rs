//! Models that Android's own fuzzer arrived at, valid and broken ones, against the CPU driver.
//!
//! There is no right answer to them but this: the driver refuses or answers, and keeps the rules of
//! the HAL while it does. Needs `../shared`. Each model is filled in two ways: with random bytes of
//! lengths that have nothing to do with its shapes, and with fitting ones.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_hal::validate::validate_model;
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, ExtraParams, HalVersion, HeapMemory,
    Model, Operand, OperandLifeTime, OperandType, Operation, OperationType, Pool, PrepareOptions,
    Request, RequestArgument, RequestPool, Subgraph, TimePoint, Timing,
};
use burst_testing::shared;
use burst_wire::check_shapes;
use flate2::read::GzDecoder;
use serde_json::Value;

burst_testing::tests![
    models_of_androids_fuzzer_are_refused_or_run_and_break_nothing(&shared("fuzz-corpus")?),
    random_bytes_are_those_of_the_converter(),
];

/// Longest execution: some models ask for work without end.
const EXECUTION_NS: u64 = 300_000_000;
/// Longest output of a model whose shapes say more than any machine has.
const OUTPUT_MAX: u64 = 1 << 20;

/// How buffers are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// Random bytes of a random length.
    Random,
    /// As long as the shapes say, where the corpus has such bytes.
    Fitting,
}

fn models_of_androids_fuzzer_are_refused_or_run_and_break_nothing(folder: &Path) {
    let document: Value = serde_json::from_slice(&unpack(&folder.join("corpus.json.gz"))).unwrap();
    let blob = unpack(&folder.join("corpus.bin.gz"));
    let device = CpuDevice::default();
    let mut counts = [0; 4];
    for seed in document["tests"].as_array().unwrap() {
        for fill in [Fill::Random, Fill::Fitting] {
            let reached = one(&device, seed, &blob, fill);
            counts[reached] += 1;
        }
    }
    let [illegal, unprepared, failed, ran] = counts;
    println!("{illegal} illegal, {unprepared} not prepared, {failed} failed, {ran} ran");
    assert!(ran > 0 && illegal > 0, "the corpus has both");
}

/// How far a model gets: 0 illegal, 1 not prepared, 2 execution failed, 3 ran.
fn one(device: &CpuDevice, seed: &Value, blob: &[u8], fill: Fill) -> usize {
    let name = seed["name"].as_str().unwrap();
    let mut builder = Builder { seed, blob, fill, values: Vec::new(), pool: Vec::new() };
    let model = builder.model();
    let legal = validate_model(&model, HalVersion::V1_3).is_ok();
    let supported = device.supported_operations(&model);
    let prepared = device.prepare_model(&model, &PrepareOptions::default());
    let is_invalid = |refusal: Option<&burst_hal::Failure>| {
        refusal.is_some_and(|failure| failure.status == ErrorStatus::InvalidArgument)
    };
    let invalid = is_invalid(supported.as_ref().err());
    assert!(legal || invalid, "{name} {fill:?}: an illegal model");
    // What is illegal is so to both; what cannot be prepared has an operation that the query says is
    // not supported, and what can be has none.
    assert_eq!(invalid, is_invalid(prepared.as_ref().err()), "{name} {fill:?}: illegal to one");
    let all = supported.is_ok_and(|supported| supported.into_iter().all(|is| is));
    assert_eq!(all, prepared.is_ok(), "{name} {fill:?}: supported and prepared differ");
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(_) => return usize::from(!invalid),
    };
    let request = builder.request(&model);
    let options = ExecutionOptions {
        measure_timing: true,
        deadline: Some(TimePoint { nanos: fmq::clock::now_ns() + EXECUTION_NS }),
        loop_timeout: None,
    };
    let result = prepared.execute_synchronously(&request, &options);
    assert_eq!(check_shapes(&result, request.outputs.len()), Ok(()), "{name} {fill:?}");
    if result.status == ErrorStatus::None {
        return 3;
    }
    assert_eq!(result.timing, Timing::UNAVAILABLE, "{name} {fill:?}");
    2
}

struct Builder<'a> {
    seed: &'a Value,
    blob: &'a [u8],
    fill: Fill,
    values: Vec<u8>,
    pool: Vec<u8>,
}

impl Builder<'_> {
    fn model(&mut self) -> Model {
        let main = &self.seed["main"];
        let operands = list(&main["operands"]).iter().map(|operand| self.operand(operand));
        let operands = operands.collect();
        let operation = |operation: &Value| Operation {
            ty: OperationType::from_name(operation["type"].as_str().unwrap()).unwrap(),
            inputs: indexes(&operation["inputs"]),
            outputs: indexes(&operation["outputs"]),
        };
        let main = Subgraph {
            operands,
            operations: list(&main["operations"]).iter().map(operation).collect(),
            input_indexes: indexes(&main["inputs"]),
            output_indexes: indexes(&main["outputs"]),
        };
        Model {
            main,
            operand_values: self.values.clone().into(),
            pools: vec![Arc::new(HeapMemory::new(self.pool.clone())) as Pool],
            relax_computation_float32_to_float16: self.seed["relaxed"] == true,
            ..Model::default()
        }
    }

    fn operand(&mut self, operand: &Value) -> Operand {
        let ty = OperandType::from_name(operand["type"].as_str().unwrap()).unwrap();
        let lifetime = lifetime(operand["lifetime"].as_str().unwrap());
        let bytes = self.bytes(operand);
        let location = match lifetime {
            OperandLifeTime::ConstantCopy => store(&mut self.values, &bytes),
            OperandLifeTime::ConstantReference => store(&mut self.pool, &bytes),
            _ => DataLocation::default(),
        };
        let scale = |value: &Value, bits: &Value| match bits.as_u64() {
            Some(bits) => f32::from_bits(u32::try_from(bits).unwrap()),
            None => narrow(value.as_f64().unwrap_or(0.0)),
        };
        let quant = &operand["channel_quant"];
        let channels = |quant: &Value| match quant["scales_bits"].as_array() {
            Some(bits) => bits.iter().map(|bits| scale(&Value::Null, bits)).collect(),
            None => list(&quant["scales"]).iter().map(|s| scale(s, &Value::Null)).collect(),
        };
        Operand {
            dimensions: indexes(&operand["dims"]).as_slice().into(),
            number_of_consumers: number(operand["consumers"].as_i64().unwrap_or(1)),
            scale: scale(&operand["scale"], &operand["scale_bits"]),
            zero_point: i32::try_from(operand["zero_point"].as_i64().unwrap_or(0)).unwrap(),
            location,
            extra_params: match quant.is_object() {
                true => ExtraParams::ChannelQuant {
                    scales: channels(quant),
                    channel_dim: number(quant["dim"].as_i64().unwrap_or(0)),
                },
                false => ExtraParams::None,
            },
            ..Operand::new(ty, lifetime)
        }
    }

    /// The bytes of an input or a constant.
    fn bytes(&self, operand: &Value) -> Vec<u8> {
        match (self.fill, operand["data"].as_array(), operand["seed"].as_u64()) {
            (Fill::Fitting, Some(range), _) => {
                let at = |index: usize| usize::try_from(range[index].as_u64().unwrap()).unwrap();
                self.blob[at(0)..at(0) + at(1)].to_vec()
            }
            (Fill::Random, _, Some(seed)) => random(seed),
            _ => Vec::new(),
        }
    }

    /// Inputs one behind the other in the first pool, outputs in the second.
    fn request(&self, model: &Model) -> Request {
        let operands = list(&self.seed["main"]["operands"]);
        let [mut inputs, mut outputs] = [Vec::new(), Vec::new()];
        let argument = |pool: &mut Vec<u8>, pool_index, bytes: &[u8]| {
            let location = DataLocation { pool_index, ..store(pool, bytes) };
            let omitted = bytes.is_empty();
            let location = if omitted { DataLocation::default() } else { location };
            RequestArgument { has_no_value: omitted, location, ..RequestArgument::default() }
        };
        let given = model
            .main
            .input_indexes
            .iter()
            .map(|index| argument(&mut inputs, 0, &self.bytes(&operands[*index as usize])));
        let given: Vec<RequestArgument> = given.collect();
        let wanted = model.main.output_indexes.iter().map(|index| {
            let operand = &model.main.operands[*index as usize];
            let len = match self.fill {
                Fill::Random => operands[*index as usize]["seed_len"].as_u64().unwrap_or(64),
                Fill::Fitting => operand.ty.byte_length(&operand.dimensions).unwrap_or(0),
            };
            let len = usize::try_from(len.clamp(1, OUTPUT_MAX)).unwrap();
            argument(&mut outputs, 1, &vec![0; len])
        });
        let wanted: Vec<RequestArgument> = wanted.collect();
        let pool = |bytes: Vec<u8>| RequestPool::Memory(Arc::new(HeapMemory::new(bytes)) as Pool);
        inputs.push(0);
        outputs.push(0);
        Request { inputs: given, outputs: wanted, pools: vec![pool(inputs), pool(outputs)] }
    }
}

/// The bytes that Android's converter makes of a number: `minstd_rand` of C++.
fn random(seed: u64) -> Vec<u8> {
    let mut state = match seed % 2_147_483_647 {
        0 => 1,
        other => other,
    };
    let mut below = |limit: u64| loop {
        state = state * 48_271 % 2_147_483_647;
        if state - 1 < limit {
            break state - 1;
        }
    };
    let length = loop {
        let drawn = below(0x7FFE_0000) & 0x1_FFFF;
        if drawn <= 65_536 {
            break usize::try_from(drawn).unwrap();
        }
    };
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let high = below(0x7FFF_0000) & 0xFFFF;
        let low = below(0x7FFF_0000) & 0xFFFF;
        bytes.extend(u32::try_from(high << 16 | low).unwrap().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn random_bytes_are_those_of_the_converter() {
    for (seed, length, first) in
        [(2, 44_995, 0x3e8c_a2fa_u32), (0, 48_270, 0x57e1_1f45), (1, 48_270, 0x57e1_1f45)]
    {
        let bytes = random(seed);
        assert_eq!((bytes.len(), &bytes[..4]), (length, &first.to_le_bytes()[..]), "{seed}");
    }
}

fn unpack(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn indexes(value: &Value) -> Vec<u32> {
    list(value).iter().map(|index| number(index.as_i64().unwrap())).collect()
}

/// Some indexes of the corpus lie outside of 32 bits or below 0: none of them exists.
fn number(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "the number was printed from an f32")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn lifetime(name: &str) -> OperandLifeTime {
    match name {
        "TEMPORARY_VARIABLE" => OperandLifeTime::TemporaryVariable,
        "SUBGRAPH_INPUT" => OperandLifeTime::SubgraphInput,
        "SUBGRAPH_OUTPUT" => OperandLifeTime::SubgraphOutput,
        "CONSTANT_COPY" => OperandLifeTime::ConstantCopy,
        "CONSTANT_REFERENCE" => OperandLifeTime::ConstantReference,
        "NO_VALUE" => OperandLifeTime::NoValue,
        other => panic!("no lifetime {other}"),
    }
}

fn store(pool: &mut Vec<u8>, bytes: &[u8]) -> DataLocation {
    pool.resize(pool.len().next_multiple_of(64), 0);
    let offset = u32::try_from(pool.len()).unwrap();
    pool.extend_from_slice(bytes);
    DataLocation { pool_index: 0, offset, length: u32::try_from(bytes.len()).unwrap() }
}
