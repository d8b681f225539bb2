//! What a model's file says of its inputs and outputs beside the graph: how they are normalised, which files behind
//! the model have their labels.

use flatbuffers::{ForwardsUOffset, Verifiable, Verifier};

use crate::error::{Damage, ImportError};
use crate::file::{buffer_bytes, verifier_options};
use crate::schema::{ModelMetadata, NamedBuffers, Table, TensorMetadataTable, View};

/// The name of the buffer that has the metadata.
const BUFFER_NAME: &str = "TFLITE_METADATA";
/// The mark in bytes 4 to 8 of the metadata.
const IDENTIFIER: &[u8] = b"M001";
/// Root offset and identifier.
const SHORTEST_BYTES: usize = 8;
/// The most of a list of numbers that is kept: a tensor has no more channels that are normalised each by itself.
const MAX_CHANNELS: usize = 64;
/// The most files of one tensor that are kept.
const MAX_FILES: usize = 64;

/// What a model's file says of its inputs and outputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Of each input of the file, in its order; may be fewer than there are.
    pub inputs: Vec<TensorMetadata>,
    /// Of each output of the file, in its order; may be fewer than there are.
    pub outputs: Vec<TensorMetadata>,
}

/// What a model's file says of one input or output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TensorMetadata {
    /// What it is called, which may be another name than the tensor's.
    pub name: String,
    /// How values become those of the float tensor, where that is said.
    pub normalization: Option<Normalization>,
    /// The least score that counts, where that is said.
    pub score_threshold: Option<f32>,
    /// Samples per second of sound, where that is said.
    pub sample_rate: Option<u32>,
    /// Files behind the model that go with it.
    pub files: Vec<MetadataFile>,
}

/// `(value - mean) / std`: one number for all channels, or one for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalization {
    /// What is subtracted.
    pub mean: Vec<f32>,
    /// What is then divided by.
    pub std: Vec<f32>,
}

/// A file that is packed behind a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataFile {
    /// Its name in the archive.
    pub name: String,
    /// What it is for.
    pub kind: MetadataFileKind,
    /// Its language, such as `en`; empty where it is not said.
    pub locale: String,
}

/// What a file behind a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataFileKind {
    /// A label for each index of an axis, as of a classifier's scores.
    AxisLabels,
    /// A label for each value, as of a detector's classes.
    ValueLabels,
    /// Anything else.
    Other,
}

/// Reads the metadata of a model; `None` where it has none.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Metadata>, ImportError> {
    let Some(metadata) = buffer(bytes)? else { return Ok(None) };
    if metadata.len() < SHORTEST_BYTES || metadata.get(4..8) != Some(IDENTIFIER) {
        // Of another version, whose fields may mean something else.
        return Ok(None);
    }
    let root = verified::<ModelMetadata<'_>>(metadata)?;
    let Some(graph) = root.subgraphs().get(0) else { return Ok(Some(Metadata::default())) };
    let inputs = graph.inputs().iter().map(tensor).collect();
    Ok(Some(Metadata { inputs, outputs: graph.outputs().iter().map(tensor).collect() }))
}

/// The bytes of the buffer with the metadata.
fn buffer(bytes: &[u8]) -> Result<Option<&[u8]>, ImportError> {
    let model = verified::<NamedBuffers<'_>>(bytes)?;
    let named = model.metadata().iter().find(|buffer| buffer.name() == Some(BUFFER_NAME));
    let index = named.and_then(|named| usize::try_from(named.buffer()).ok());
    let Some((index, found)) =
        index.and_then(|index| model.buffers().get(index).map(|found| (index, found)))
    else {
        return Ok(None);
    };
    buffer_bytes(bytes, index, found)
}

/// The root of a flatbuffer after everything that is read below it was verified.
fn verified<'a, V: View<'a>>(bytes: &'a [u8]) -> Result<V, ImportError> {
    let short = || ImportError::TooShort { bytes: bytes.len() };
    if bytes.len() < SHORTEST_BYTES {
        return Err(short());
    }
    let options = verifier_options(bytes);
    ForwardsUOffset::<V>::run_verifier(&mut Verifier::new(&options, bytes), 0)
        .map_err(|invalid| ImportError::Damaged(Damage(invalid)))?;
    Table::root(bytes).map(V::of).ok_or_else(short)
}

fn tensor(table: TensorMetadataTable<'_>) -> TensorMetadata {
    let units = || table.process_units().iter();
    let normalization =
        units().find_map(|unit| unit.normalization()).map(|options| Normalization {
            mean: options.mean().iter().take(MAX_CHANNELS).collect(),
            std: options.std().iter().take(MAX_CHANNELS).collect(),
        });
    let files = table.files().iter().take(MAX_FILES).map(|file| MetadataFile {
        name: file.name().unwrap_or_default().to_owned(),
        kind: match file.kind() {
            2 => MetadataFileKind::AxisLabels,
            3 => MetadataFileKind::ValueLabels,
            _ => MetadataFileKind::Other,
        },
        locale: file.locale().unwrap_or_default().to_owned(),
    });
    let audio = table.content().and_then(|content| content.audio());
    TensorMetadata {
        name: table.name().unwrap_or_default().to_owned(),
        normalization,
        score_threshold: units().find_map(|unit| unit.threshold()).map(|unit| unit.threshold()),
        sample_rate: audio.map(|audio| audio.sample_rate()).filter(|rate| *rate > 0),
        files: files.collect(),
    }
}
