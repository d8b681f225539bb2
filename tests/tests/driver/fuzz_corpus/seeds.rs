//! The models of the corpus, filled with values, and requests for them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::{
    DataLocation, ExtraParams, HeapMemory, Memory as _, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, Pool, Request, RequestArgument, RequestPool, Subgraph,
};
use flate2::read::GzDecoder;
use serde_json::Value;

/// Longest output of a model whose shapes say more than any machine has.
const OUTPUT_MAX: u64 = 1 << 20;

/// How buffers are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Random bytes of a random length.
    Random,
    /// As long as the shapes say, where the corpus has such bytes.
    Fitting,
    /// As long as those, with other values.
    Drawn(Draw),
}

/// Which random values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Any bytes.
    Any,
    /// Small numbers, from -2 on.
    Small,
    /// Numbers at the edges of their types.
    Edges,
}

impl Fill {
    /// Both ways of the corpus, and three random ones.
    pub(crate) const ALL: [Fill; 5] = [
        Fill::Random,
        Fill::Fitting,
        Fill::Drawn(Draw::Any),
        Fill::Drawn(Draw::Small),
        Fill::Drawn(Draw::Edges),
    ];
}

/// The corpus, unpacked.
pub(crate) struct Corpus {
    document: Value,
    blob: Vec<u8>,
}

impl Corpus {
    pub(crate) fn open(folder: &Path) -> Corpus {
        let document = unpack(&folder.join("corpus.json.gz"));
        let document = serde_json::from_slice(&document).unwrap();
        Corpus { document, blob: unpack(&folder.join("corpus.bin.gz")) }
    }

    fn seeds(&self) -> &[Value] {
        list(&self.document["tests"])
    }

    /// How many models there are.
    pub(crate) fn models(&self) -> usize {
        self.seeds().len()
    }

    /// A model, filled in a way.
    pub(crate) fn case(&self, model: usize, fill: Fill) -> Case<'_> {
        Case { seed: &self.seeds()[model], blob: &self.blob, fill }
    }
}

/// One model, filled in one way.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    seed: &'a Value,
    blob: &'a [u8],
    fill: Fill,
}

impl Case<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{} {:?}", self.seed["name"].as_str().unwrap(), self.fill)
    }

    pub(crate) fn model(&self) -> Model {
        let mut builder = Builder { case: *self, values: Vec::new(), pool: Vec::new() };
        builder.model()
    }

    /// A request for its model, in memory of its own.
    pub(crate) fn request(&self, model: &Model) -> Request {
        Builder { case: *self, values: Vec::new(), pool: Vec::new() }.request(model)
    }
}

struct Builder<'a> {
    case: Case<'a>,
    values: Vec<u8>,
    pool: Vec<u8>,
}

impl Builder<'_> {
    fn model(&mut self) -> Model {
        let main = &self.case.seed["main"];
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
            // One that is never empty, as no memory that goes to another process is.
            pools: vec![Arc::new(HeapMemory::new([&self.pool[..], &[0]].concat())) as Pool],
            relax_computation_float32_to_float16: self.case.seed["relaxed"] == true,
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
        let given = match (&operand["data"].as_array(), operand["seed"].as_u64()) {
            (Some(range), _) if self.case.fill != Fill::Random => {
                let at = |index: usize| usize::try_from(range[index].as_u64().unwrap()).unwrap();
                &self.case.blob[at(0)..at(0) + at(1)]
            }
            (_, Some(seed)) if self.case.fill == Fill::Random => return random(seed),
            _ => return Vec::new(),
        };
        match self.case.fill {
            Fill::Drawn(draw) => {
                let ty = OperandType::from_name(operand["type"].as_str().unwrap()).unwrap();
                let seed = given.iter().fold(given.len() as u64, |sum, byte| {
                    sum.wrapping_mul(31).wrapping_add((*byte).into())
                });
                drawn(draw, ty, given.len(), seed)
            }
            _ => given.to_vec(),
        }
    }

    /// Inputs one behind the other in the first pool, outputs in the second.
    fn request(&self, model: &Model) -> Request {
        let operands = list(&self.case.seed["main"]["operands"]);
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
            let len = match self.case.fill {
                Fill::Random => operands[*index as usize]["seed_len"].as_u64().unwrap_or(64),
                _ => operand.ty.byte_length(&operand.dimensions).unwrap_or(0),
            };
            let len = usize::try_from(len.clamp(1, OUTPUT_MAX)).unwrap();
            argument(&mut outputs, 1, &vec![0; len])
        });
        let wanted: Vec<RequestArgument> = wanted.collect();
        // Shared memory: it can go to another process over every route.
        let pool = |bytes: Vec<u8>| {
            let memory = ShmMemory::create(bytes.len()).unwrap();
            memory.write(0, &bytes).unwrap();
            RequestPool::Memory(Arc::new(memory) as Pool)
        };
        inputs.push(0);
        outputs.push(0);
        Request { inputs: given, outputs: wanted, pools: vec![pool(inputs), pool(outputs)] }
    }
}

/// Random bytes of a kind: any, small numbers as counts and axes are, and those at the edges of their type.
fn drawn(draw: Draw, ty: OperandType, length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut element = || -> [u8; 8] {
        let chosen = next();
        let small = chosen % 9;
        match (draw, ty) {
            (Draw::Any, _) => chosen.to_le_bytes(),
            (Draw::Small, OperandType::Float32 | OperandType::TensorFloat32) => {
                let value = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 255.0, 1e6][index(small)];
                u64::from(f32::to_bits(value)).to_le_bytes()
            }
            (Draw::Small, _) => small.wrapping_sub(2).to_le_bytes(),
            (Draw::Edges, OperandType::Float32 | OperandType::TensorFloat32) => {
                let [nan, inf] = [f32::NAN, f32::INFINITY];
                let values =
                    [nan, inf, -inf, f32::MAX, f32::MIN, f32::MIN_POSITIVE, -0.0, 1e-45, 1.0];
                u64::from(values[index(small)].to_bits()).to_le_bytes()
            }
            (Draw::Edges, _) => {
                let values = [
                    0,
                    1,
                    -1,
                    i64::from(i32::MAX),
                    i64::from(i32::MIN),
                    127,
                    128,
                    1 << 16,
                    1 << 30,
                ];
                values[index(small)].to_le_bytes()
            }
        }
    };
    let width = ty.element_bytes().unwrap_or(1).clamp(1, 8);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&element()[..width]);
    }
    bytes.truncate(length);
    bytes
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// The bytes that Android's converter makes of a number: `minstd_rand` of C++.
pub(crate) fn random(seed: u64) -> Vec<u8> {
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
