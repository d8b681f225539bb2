//! A model as a vector file: `burst run` takes it, and `burst verify` the folder.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use burst_hal::{ExtraParams, Model, Operand as HalOperand, OperandLifeTime, Subgraph};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::judge::Judge;
use crate::random::RandomModel;
use crate::vectors::{ChannelQuant, Document, Graph, Op, Operand, Test};

/// The folder of tests that need the newest version, below that of all vectors.
const VERSION: &str = "V1_3_cts_only";

/// Writes a model with its inputs, and as its outputs what the judge computes, if it does. Returns the file to
/// run.
///
/// # Errors
/// Files that cannot be written.
pub(super) fn record(
    folder: &Path,
    name: &str,
    one: &RandomModel,
    judge: Judge<'_>,
) -> io::Result<PathBuf> {
    let mut blob = Vec::new();
    let mut main = graph(&one.model, &one.model.main, &mut blob)?;
    for (operand, bytes) in main.inputs.clone().iter().zip(&one.inputs) {
        let operand = &mut main.operands[*operand as usize];
        operand.data = Some(store(&mut blob, bytes));
    }
    // Requests of vectors say no shapes: the model has to.
    for operand in &one.model.main.input_indexes {
        if let Some(shape) = one.shape(*operand) {
            main.operands[*operand as usize].dims.clone_from(&shape.dims);
        }
    }
    let golden = judge.golden(one).ok();
    for operand in &main.outputs {
        let value = golden.as_ref().and_then(|golden| golden.values.get(operand));
        let place = &mut main.operands[*operand as usize];
        let ty = one.model.main.operands[*operand as usize].ty;
        // Room, where nobody knows what should be in it.
        let known = one.shape(*operand).map_or(&[][..], |shape| &shape.dims);
        let room = vec![0; usize::try_from(ty.byte_length(known).unwrap_or(0)).unwrap_or(0)];
        place.data = Some(store(&mut blob, value.map_or(&room, |value| &value.bytes)));
        place.ignored = value.is_none();
    }
    let referenced = one.model.referenced.iter();
    let referenced = referenced.map(|inner| graph(&one.model, inner, &mut blob));
    let test = Test {
        name: name.to_owned(),
        relaxed: one.model.relax_computation_float32_to_float16,
        expect_failure: false,
        min_version: None,
        multinomial_tolerance: 0.0,
        referenced: referenced.collect::<io::Result<_>>()?,
        main,
        vts: Vec::new(),
    };
    let folder = folder.join(VERSION);
    std::fs::create_dir_all(&folder)?;
    let json = serde_json::to_vec(&Document { tests: vec![test] })?;
    pack(&folder.join(format!("{name}.bin.gz")), &blob)?;
    let path = folder.join(format!("{name}.json.gz"));
    pack(&path, &json)?;
    Ok(path)
}

fn graph(model: &Model, graph: &Subgraph, blob: &mut Vec<u8>) -> io::Result<Graph> {
    let operands = graph.operands.iter().map(|one| operand(model, one, blob));
    let operation = |one: &burst_hal::Operation| Op {
        r#type: one.ty.name().to_owned(),
        inputs: one.inputs.clone(),
        outputs: one.outputs.clone(),
    };
    Ok(Graph {
        operands: operands.collect::<io::Result<_>>()?,
        operations: graph.operations.iter().map(operation).collect(),
        inputs: graph.input_indexes.clone(),
        outputs: graph.output_indexes.clone(),
    })
}

fn operand(model: &Model, one: &HalOperand, blob: &mut Vec<u8>) -> io::Result<Operand> {
    let (offset, length) = (one.location.offset as usize, one.location.length as usize);
    let mut bytes = vec![0; length];
    let data = match one.lifetime {
        OperandLifeTime::ConstantCopy => {
            bytes.copy_from_slice(&model.operand_values[offset..offset + length]);
            Some(store(blob, &bytes))
        }
        OperandLifeTime::ConstantReference => {
            let pool = &model.pools[one.location.pool_index as usize];
            pool.read(one.location.offset.into(), &mut bytes).map_err(io::Error::other)?;
            Some(store(blob, &bytes))
        }
        _ => None,
    };
    let channel_quant = match &one.extra_params {
        ExtraParams::ChannelQuant { scales, channel_dim } => Some(ChannelQuant {
            dim: *channel_dim,
            scales: scales.iter().map(|scale| f64::from(*scale)).collect(),
        }),
        _ => None,
    };
    let is_graph = one.lifetime == OperandLifeTime::Subgraph;
    Ok(Operand {
        r#type: one.ty.name().to_owned(),
        dims: one.dimensions.to_vec(),
        lifetime: crate::model::lifetime_name(one.lifetime).to_owned(),
        consumers: one.number_of_consumers,
        scale: one.scale.into(),
        zero_point: one.zero_point,
        channel_quant,
        ignored: false,
        data,
        subgraph: is_graph.then_some(one.location.offset),
    })
}

/// Bytes at the end of the blob; where they lie.
fn store(blob: &mut Vec<u8>, bytes: &[u8]) -> (usize, usize) {
    crate::model::pad(blob);
    blob.extend_from_slice(bytes);
    (blob.len() - bytes.len(), bytes.len())
}

fn pack(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = GzEncoder::new(File::create(path)?, Compression::default());
    file.write_all(bytes)?;
    file.finish()?.sync_all()
}
