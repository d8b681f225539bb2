//! From a test to a model, with constants laid out as the original suites lay them out.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ExtraParams, HeapMemory, Model, OperandLifeTime, OperandType, OperandValues,
    Operation, OperationType, Subgraph,
};

use crate::VectorError;
use crate::vectors::{Graph, Operand, Test, Vectors};

/// Alignment of constants and arguments in their pools, in bytes.
pub(crate) const ALIGNMENT: usize = 4;

/// What the model says of its outputs' shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputShapes {
    /// What the test says.
    Declared,
    /// The rank alone: every size is 0.
    Unknown,
}

/// A test made into a model.
#[derive(Debug)]
pub struct Built {
    /// The model.
    pub model: Model,
    /// Bytes of each input; `None`: the request leaves it out.
    pub inputs: Vec<Option<Vec<u8>>>,
    /// Expected bytes of each output.
    pub outputs: Vec<Vec<u8>>,
}

/// Makes the model of a test.
///
/// # Errors
/// [`VectorError::Test`] for names or ranges that mean nothing.
pub fn build(vectors: &Vectors, test: &Test, shapes: OutputShapes) -> Result<Built, VectorError> {
    let mut constants = Constants { copied: Vec::new(), referenced: Vec::new() };
    let mut main = subgraph(vectors, test, &test.main, &mut constants)?;
    let referenced = test
        .referenced
        .iter()
        .map(|graph| subgraph(vectors, test, graph, &mut constants))
        .collect::<Result<Vec<_>, _>>()?;
    if shapes == OutputShapes::Unknown {
        for index in &test.main.outputs {
            main.operands[*index as usize].dimensions.fill(0);
        }
    }
    let pools = if constants.referenced.is_empty() {
        Vec::new()
    } else {
        vec![Arc::new(HeapMemory::new(constants.referenced)) as burst_hal::Pool]
    };
    let model = Model {
        main,
        referenced,
        operand_values: OperandValues::new(constants.copied),
        pools,
        relax_computation_float32_to_float16: test.relaxed,
        extension_name_to_prefix: Vec::new(),
    };
    let inputs = test
        .main
        .inputs
        .iter()
        .map(|index| {
            let operand = &test.main.operands[*index as usize];
            let bytes = vectors.bytes(test, operand)?;
            Ok(operand.data.is_some().then(|| bytes.to_vec()))
        })
        .collect::<Result<_, VectorError>>()?;
    let outputs = test
        .main
        .outputs
        .iter()
        .map(|index| Ok(vectors.bytes(test, &test.main.operands[*index as usize])?.to_vec()))
        .collect::<Result<_, VectorError>>()?;
    Ok(Built { model, inputs, outputs })
}

struct Constants {
    copied: Vec<u8>,
    referenced: Vec<u8>,
}

fn subgraph(
    vectors: &Vectors,
    test: &Test,
    graph: &Graph,
    constants: &mut Constants,
) -> Result<Subgraph, VectorError> {
    let operands = graph
        .operands
        .iter()
        .map(|operand| convert(vectors, test, operand, constants))
        .collect::<Result<_, _>>()?;
    let operations = graph
        .operations
        .iter()
        .map(|op| {
            let ty = OperationType::from_name(&op.r#type)
                .ok_or_else(|| wrong(test, format!("unknown operation {}", op.r#type)))?;
            Ok(Operation { ty, inputs: op.inputs.clone(), outputs: op.outputs.clone() })
        })
        .collect::<Result<_, VectorError>>()?;
    Ok(Subgraph {
        operands,
        operations,
        input_indexes: graph.inputs.clone(),
        output_indexes: graph.outputs.clone(),
    })
}

fn convert(
    vectors: &Vectors,
    test: &Test,
    operand: &Operand,
    constants: &mut Constants,
) -> Result<burst_hal::Operand, VectorError> {
    let ty = OperandType::from_name(&operand.r#type)
        .ok_or_else(|| wrong(test, format!("unknown type {}", operand.r#type)))?;
    let lifetime = lifetime(&operand.lifetime)
        .ok_or_else(|| wrong(test, format!("unknown lifetime {}", operand.lifetime)))?;
    let location = match lifetime {
        OperandLifeTime::ConstantCopy => {
            store(&mut constants.copied, vectors.bytes(test, operand)?)
        }
        OperandLifeTime::ConstantReference => {
            store(&mut constants.referenced, vectors.bytes(test, operand)?)
        }
        OperandLifeTime::Subgraph => {
            DataLocation { offset: operand.subgraph.unwrap_or(u32::MAX), ..Default::default() }
        }
        _ => DataLocation::default(),
    };
    let extra_params = match &operand.channel_quant {
        None => ExtraParams::None,
        Some(quant) => ExtraParams::ChannelQuant {
            scales: quant.scales.iter().map(|scale| narrow(*scale)).collect(),
            channel_dim: quant.dim,
        },
    };
    Ok(burst_hal::Operand {
        ty,
        dimensions: operand.dims.iter().copied().collect(),
        number_of_consumers: operand.consumers,
        scale: narrow(operand.scale),
        zero_point: operand.zero_point,
        lifetime,
        location,
        extra_params,
    })
}

/// The files print the shortest decimal of an `f32`: reading it as `f64` loses nothing.
#[expect(clippy::cast_possible_truncation, reason = "the number was printed from an f32")]
fn narrow(number: f64) -> f32 {
    number as f32
}

fn lifetime(name: &str) -> Option<OperandLifeTime> {
    OperandLifeTime::ALL.into_iter().find(|lifetime| lifetime_name(*lifetime) == name)
}

/// How files spell a lifetime.
pub(crate) fn lifetime_name(lifetime: OperandLifeTime) -> &'static str {
    match lifetime {
        OperandLifeTime::TemporaryVariable => "TEMPORARY_VARIABLE",
        OperandLifeTime::SubgraphInput => "SUBGRAPH_INPUT",
        OperandLifeTime::SubgraphOutput => "SUBGRAPH_OUTPUT",
        OperandLifeTime::ConstantCopy => "CONSTANT_COPY",
        OperandLifeTime::ConstantReference => "CONSTANT_REFERENCE",
        OperandLifeTime::NoValue => "NO_VALUE",
        OperandLifeTime::Subgraph => "SUBGRAPH",
    }
}

fn store(pool: &mut Vec<u8>, bytes: &[u8]) -> DataLocation {
    let location = location(0, pool.len(), bytes.len());
    pool.extend_from_slice(bytes);
    pad(pool);
    location
}

fn wrong(test: &Test, what: String) -> VectorError {
    VectorError::Test { test: test.name.clone(), what }
}

/// The same test with every TENSOR_QUANT8_ASYMM turned into TENSOR_QUANT8_ASYMM_SIGNED: types, zero
/// points, and all bytes 128 lower.
///
/// # Errors
/// [`VectorError::Test`] for a range outside of the blob.
pub fn to_signed(vectors: &Vectors, test: &Test) -> Result<(Vectors, Test), VectorError> {
    let mut signed = test.clone();
    let mut blob = vectors.blob.clone();
    let graphs = std::iter::once(&mut signed.main).chain(&mut signed.referenced);
    for operand in graphs.flat_map(|graph| &mut graph.operands) {
        if operand.r#type != "TENSOR_QUANT8_ASYMM" {
            continue;
        }
        // Buffers may be shared with operands of other types: the signed bytes get a range of their own.
        let bytes: Vec<u8> = vectors.bytes(test, operand)?.iter().map(|byte| byte ^ 0x80).collect();
        if let Some(data) = &mut operand.data {
            *data = (blob.len(), bytes.len());
            blob.extend(bytes);
        }
        operand.r#type = "TENSOR_QUANT8_ASYMM_SIGNED".into();
        operand.zero_point = operand.zero_point.saturating_sub(128);
    }
    Ok((Vectors { tests: Vec::new(), blob }, signed))
}

/// A byte range of a pool. Vectors are far shorter than 4 GiB; one that were not would be refused.
pub(crate) fn location(pool_index: u32, offset: usize, length: usize) -> DataLocation {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    DataLocation { pool_index, offset: number(offset), length: number(length) }
}

pub(crate) fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}
