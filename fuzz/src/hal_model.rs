//! A model as a client sends it, and a request for it.
//!
//! Looked at: what decodes is encoded to the same bytes; what validation accepts at one version it
//! accepts at every later one, and an independent look at the rules that memory safety rests on
//! agrees; requests that pass lie inside their pools; dumps take any legal model, and what is made of it for
//! an older version is legal there.

use std::sync::Arc;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs, validate_model, validate_model_of};
use burst_hal::versions::{model_to, slice};
use burst_hal::{
    DataLocation, ExtraParams, HalVersion, HeapMemory, Model, ModelBuilder, Operand,
    OperandLifeTime, OperandType, OperationType, OutputSpec, Pool, Request, RequestArgument,
    RequestPool, Subgraph, compliant_with, dump_graph, request_complies,
};
use burst_wire::control::{decode_model, encode_model};

use crate::{Input, Script, Seed};

const VERSIONS: [HalVersion; 4] =
    [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3];
/// Arguments of one request: enough for every seed, few enough for the time of a run.
const ARGUMENTS_MAX: usize = 64;

/// Sixteen bytes (lengths of the constants and of two pools, then what the request is like); the
/// others are the model's structure.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let values = vec![0; usize::from(input.u16())];
    let pools: Vec<Pool> = [input.u16(), input.u16()]
        .into_iter()
        .filter(|len| *len > 0)
        .map(|len| Arc::new(HeapMemory::new(vec![0; usize::from(len)])) as Pool)
        .collect();
    let like = input.bytes(10);
    let structure = input.rest();
    let Ok(model) = decode_model(structure, values.into(), pools) else { return false };
    let (again, body) = encode_model(&model).unwrap();
    assert!(again == structure, "another encoding of the same model");
    assert_eq!(body.values_bytes, model.operand_values.len() as u64);
    validate(&model, like)
}

fn validate(model: &Model, like: &[u8]) -> bool {
    let verdicts = VERSIONS.map(|version| validate_model(model, version));
    for error in verdicts.iter().filter_map(|verdict| verdict.as_ref().err()) {
        assert!(!error.to_string().is_empty());
    }
    let accepted = verdicts.map(|verdict| verdict.is_ok());
    assert!(accepted.is_sorted(), "accepted by version: {accepted:?}");
    if !accepted[3] {
        return false;
    }
    check_safety(model);
    check_versions(model);
    let mut drawing = String::new();
    assert!(dump_graph("model", model, &mut drawing).is_ok() && !drawing.is_empty());
    ask(model, like);
    true
}

/// What a version can carry of a model, every later one can; what is made for a version is legal there.
fn check_versions(model: &Model) {
    let mut before: Option<Vec<u32>> = None;
    // What breaks a rule of its operations in the newest version does so in what is made of it, too.
    let newest = VERSIONS[VERSIONS.len() - 1];
    let is_legal = validate_model_of(model, newest).is_ok();
    for version in VERSIONS {
        let compliance = compliant_with(model, version);
        let lacking = &compliance.noncompliant_operations;
        assert!(before.is_none_or(|more| lacking.iter().all(|one| more.contains(one))));
        before = Some(lacking.clone());
        if let Some(slice) = slice(model, version) {
            assert_eq!(slice.operations.len() + lacking.len(), model.main.operations.len());
            let verdict = validate_model_of(&slice.model, version);
            // A slice has the subgraphs of the whole, whatever their operations are.
            let may_fail = !is_legal || !model.referenced.is_empty();
            assert!(verdict.is_ok() || may_fail, "{verdict:?}");
        }
        match model_to(model, version) {
            Ok(converted) => {
                assert!(compliance.is_compliant());
                let verdict = validate_model_of(&converted.value, version);
                assert!(verdict.is_ok() || !is_legal, "{verdict:?}");
            }
            Err(found) => assert_eq!(found, compliance),
        }
    }
}

/// What a driver relies on without looking again.
fn check_safety(model: &Model) {
    for graph in std::iter::once(&model.main).chain(&model.referenced) {
        let exists = |index: &u32| (*index as usize) < graph.operands.len();
        let lists = [&graph.input_indexes, &graph.output_indexes];
        let operations = graph.operations.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
        assert!(lists.into_iter().flatten().chain(operations).all(exists));
        for operand in &graph.operands {
            check_operand(model, operand);
        }
        check_order(graph);
    }
}

fn check_operand(model: &Model, operand: &Operand) {
    let DataLocation { pool_index, offset, length } = operand.location;
    let end = u64::from(offset) + u64::from(length);
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => assert!(end <= model.operand_values.len() as u64),
        OperandLifeTime::ConstantReference => {
            assert!(end <= model.pools[pool_index as usize].len())
        }
        OperandLifeTime::Subgraph => assert!((offset as usize) < model.referenced.len()),
        _ => {}
    }
    if let ExtraParams::ChannelQuant { scales, channel_dim } = &operand.extra_params
        && operand.ty == OperandType::TensorQuant8SymmPerChannel
    {
        assert_eq!(operand.dimensions[*channel_dim as usize] as usize, scales.len());
        assert!(scales.iter().all(|scale| scale.is_finite() && *scale > 0.0));
    }
}

/// Every value is written once, and before it is read.
fn check_order(graph: &Subgraph) {
    let is_given = |operand: &Operand| {
        !matches!(
            operand.lifetime,
            OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput
        )
    };
    let mut has_value: Vec<bool> = graph.operands.iter().map(is_given).collect();
    for operation in &graph.operations {
        assert!(operation.inputs.iter().all(|index| has_value[*index as usize]));
        for index in &operation.outputs {
            assert!(!std::mem::replace(&mut has_value[*index as usize], true));
        }
    }
    assert!(has_value.into_iter().all(|value| value));
}

/// Asks for an execution, with arguments of the input's choice.
fn ask(model: &Model, like: &[u8]) {
    let rules = RequestRules::new(model).unwrap();
    let mut choices = like.iter().copied().cycle();
    let mut argument = |operand: &u32| {
        argument(&model.main.operands[*operand as usize], choices.next().unwrap_or(0))
    };
    let inputs = model.main.input_indexes.iter().take(ARGUMENTS_MAX).map(&mut argument).collect();
    let outputs = model.main.output_indexes.iter().take(ARGUMENTS_MAX).map(&mut argument).collect();
    let memory = |len| RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; len])) as Pool);
    let last = like.last().copied().unwrap_or(0);
    let pools = match last % 4 {
        0 => vec![memory(4096), memory(64)],
        1 => vec![memory(4096), RequestPool::Token(u32::from(last))],
        2 => vec![memory(16)],
        _ => vec![],
    };
    let request = Request { inputs, outputs, pools };
    let strict = rules.check(&request, UnspecifiedOutputs::Refused);
    let loose = rules.check(&request, UnspecifiedOutputs::Allowed);
    assert!(strict.is_err() || loose.is_ok(), "refused only where more is allowed");
    if loose.is_ok() {
        check_request(&request);
        let _ = request_complies(&request, HalVersion::V1_2);
    }
}

fn argument(operand: &Operand, choice: u8) -> RequestArgument {
    let whole = operand.ty.byte_length(&operand.dimensions).unwrap_or(0);
    let length = u32::try_from(whole).unwrap_or(u32::MAX);
    let location = |pool_index, offset, length| DataLocation { pool_index, offset, length };
    let dimensions = if choice & 8 == 0 {
        burst_hal::Dimensions::new()
    } else {
        operand.dimensions.iter().map(|size| (*size).max(u32::from(choice >> 6))).collect()
    };
    let location = match choice % 8 {
        0 | 1 => location(0, 64, length),
        2 => location(1, 0, length),
        3 => location(0, 4096, length),
        4 => location(0, u32::MAX, u32::MAX),
        5 => location(7, 0, length),
        6 => location(0, 0, length.saturating_add(1)),
        _ => DataLocation::default(),
    };
    RequestArgument { has_no_value: choice & 0x30 == 0x30, location, dimensions }
}

fn check_request(request: &Request) {
    for argument in request.inputs.iter().chain(&request.outputs) {
        if argument.has_no_value {
            continue;
        }
        match &request.pools[argument.location.pool_index as usize] {
            RequestPool::Memory(pool) => assert!(argument.location.range_in(pool.len()).is_some()),
            RequestPool::Token(token) => assert_ne!(*token, 0),
        }
    }
}

/// Models of each kind of operand, lifetime and extra parameter, and of control flow.
pub(crate) fn models() -> [(&'static str, Model); 6] {
    [
        ("add", add()),
        ("quantized", quantized()),
        ("control_flow", control_flow()),
        ("extension", extension()),
        ("constants_in_pools", constants_in_pools()),
        ("unknown_shapes", unknown_shapes()),
    ]
}

/// Each of them, with arguments of two kinds.
pub fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, model) in models() {
        for (what, like) in [("whole", [0; 10]), ("odd", [1, 2, 8, 0x30, 7, 6, 5, 4, 3, 1])] {
            seeds.push((format!("{name}_{what}"), bytes_of(&model, &like)));
        }
    }
    seeds
}

/// The bytes that stand for this model.
#[must_use]
pub fn bytes_of(model: &Model, like: &[u8; 10]) -> Vec<u8> {
    let (structure, body) = encode_model(model).unwrap();
    let pool = |index: usize| body.pool_lengths.0.get(index).copied().unwrap_or(0) as u16;
    let head = Script::new().u16(body.values_bytes as u16).u16(pool(0)).u16(pool(1));
    head.bytes(like).bytes(&structure).into()
}

fn add() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1, 4]);
    let bias = b.constant_f32(&[1, 4], &[1.0; 4]);
    let none = b.scalar_i32(0);
    let sum = b.result_of(OperationType::Add, &[x, bias, none], OutputSpec::f32(&[1, 4]));
    let y = b.result_of(OperationType::Relu, &[sum], OutputSpec::f32(&[1, 4]));
    b.output(y);
    b.build().unwrap()
}

fn quantized() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.quant_input(OperandType::TensorQuant8AsymmSigned, &[1, 2, 2, 2], 0.5, -3);
    let weights = OutputSpec::new(OperandType::TensorQuant8SymmPerChannel, &[2, 1, 1, 2]);
    let weights = b.constant_i8(weights.per_channel(&[0.5, 0.25], 0), &[1, -2, 3, 4]);
    let bias = b.constant_i32(&[2], &[7, -7]);
    let mut inputs = vec![x, weights, bias];
    inputs.extend([1, 1, 1, 0].map(|value| b.scalar_i32(value)));
    let spec = OutputSpec::new(OperandType::TensorQuant8AsymmSigned, &[1, 2, 2, 2]);
    let y = b.result_of(OperationType::Conv2d, &inputs, spec.quantized(0.25, 5));
    b.output(y);
    b.relaxed(true);
    b.build().unwrap()
}

fn control_flow() -> Model {
    let mut b = ModelBuilder::new();
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let branch = |b: &mut ModelBuilder, ty| {
        b.referenced(|b| {
            let x = b.input(OperandType::TensorFloat32, &[2]);
            let y = b.result_of(ty, &[x], OutputSpec::f32(&[2]));
            b.output(y);
        })
    };
    let (then, otherwise) =
        (branch(&mut b, OperationType::Floor), branch(&mut b, OperationType::Relu));
    let (then, otherwise) = (b.subgraph(then), b.subgraph(otherwise));
    let inputs = [condition, then, otherwise, x];
    let y = b.result_of(OperationType::If, &inputs, OutputSpec::f32(&[2]));
    b.output(y);
    b.build().unwrap()
}

fn extension() -> Model {
    let mut b = ModelBuilder::new();
    b.extension("com.example.blur", 2);
    let mut operand = Operand::new(OperandType::from_code(0x2_0001), OperandLifeTime::ConstantCopy);
    operand.extra_params = ExtraParams::Extension(Arc::from([1_u8, 2, 3]));
    let x = b.input(OperandType::TensorFloat16, &[3]);
    let options = b.operand(operand);
    let missing = b.omitted(OperandType::TensorFloat16);
    let spec = OutputSpec::new(OperandType::TensorFloat16, &[3]);
    let y = b.result_of(OperationType::from_code(0x2_0000), &[x, options, missing], spec);
    b.output(y);
    b.build().unwrap()
}

fn constants_in_pools() -> Model {
    let mut b = ModelBuilder::new();
    let pool = |len| Arc::new(HeapMemory::new(vec![0; len])) as Pool;
    let (first, second) = (b.pool(pool(64)), b.pool(pool(16)));
    let x = b.input(OperandType::TensorFloat32, &[4]);
    let at = |pool_index, offset| DataLocation { pool_index, offset, length: 16 };
    let weights = b.constant_in_pool(OutputSpec::f32(&[4]), at(first, 48));
    let more = b.constant_in_pool(OutputSpec::f32(&[4]), at(second, 0));
    let none = b.scalar_i32(0);
    let product = b.result_of(OperationType::Mul, &[x, weights, none], OutputSpec::f32(&[4]));
    let y = b.result_of(OperationType::Add, &[product, more, none], OutputSpec::f32(&[4]));
    b.output(y);
    b.build().unwrap()
}

fn unknown_shapes() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[0, 4]);
    let y = b.result_of(OperationType::Logistic, &[x], OutputSpec::f32(&[]));
    let z = b.result_of(OperationType::Tanh, &[y], OutputSpec::f32(&[0, 4]));
    b.output(z);
    b.build().unwrap()
}
