//! The files: gzipped JSON that describes the tests of a spec, and a gzipped blob with their bytes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use crate::VectorError;
use crate::suite::Suite;

/// Most bytes a file may unpack to: the largest known has some 30 MB.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// The folders of a vector directory, in order of HAL version.
const VERSIONS: [&str; 5] = ["V1_0", "V1_1", "V1_2", "V1_3", "V1_3_cts_only"];

/// One generated test.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Test {
    /// Its name, unique over all files.
    pub name: String,
    /// Whether float32 may be computed as float16.
    pub relaxed: bool,
    /// Whether the execution has to fail.
    pub expect_failure: bool,
    /// The folder of the first version that can say the model, where its author knows.
    pub min_version: Option<String>,
    /// Above 0 for random draws: how far frequencies may be off.
    pub multinomial_tolerance: f64,
    /// The graph that is executed.
    pub main: Graph,
    /// Graphs that control flow refers to.
    pub referenced: Vec<Graph>,
    /// The suites it belongs to.
    pub vts: Vec<String>,
}

impl Test {
    /// The suites this test runs in.
    pub fn suites(&self) -> impl Iterator<Item = Suite> + '_ {
        let has = |suite: Suite| self.vts.iter().any(|name| name == suite.name());
        Suite::ALL.into_iter().filter(move |suite| match suite {
            Suite::Deadline => has(Suite::General),
            Suite::CtsOnly => self.vts.is_empty(),
            suite => has(*suite),
        })
    }

    /// The operations that this test is about, by name.
    ///
    /// Tests whose inputs or outputs were made internal have an additional ADD of zero in front or
    /// behind, which is only the means. They count for ADD when they have no other operation.
    #[must_use]
    pub fn ops(&self) -> BTreeSet<&str> {
        let graphs = std::iter::once(&self.main).chain(&self.referenced);
        let operations = graphs.flat_map(|graph| &graph.operations);
        let mut ops: BTreeSet<&str> = operations.map(|op| op.r#type.as_str()).collect();
        if ops.len() > 1 && self.name.contains("_as_internal") {
            ops.remove("ADD");
        }
        ops
    }
}

/// A graph of a test.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Graph {
    /// All values.
    pub operands: Vec<Operand>,
    /// All computations, in order.
    pub operations: Vec<Op>,
    /// Graph inputs.
    pub inputs: Vec<u32>,
    /// Graph outputs.
    pub outputs: Vec<u32>,
}

/// An operation of a test.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Op {
    /// Name in the specification.
    pub r#type: String,
    /// Operands it reads.
    pub inputs: Vec<u32>,
    /// Operands it writes.
    pub outputs: Vec<u32>,
}

/// A value of a test.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Operand {
    /// Name in the specification.
    pub r#type: String,
    /// Sizes; 0: unknown, or really none in an expected output.
    #[serde(default)]
    pub dims: Vec<u32>,
    /// Name of its lifetime.
    pub lifetime: String,
    /// How many times operations read it.
    #[serde(default = "one")]
    pub consumers: u32,
    /// Real value of one step.
    #[serde(default)]
    pub scale: f64,
    /// Stored value of real 0.
    #[serde(default)]
    pub zero_point: i32,
    /// Per-channel scales.
    pub channel_quant: Option<ChannelQuant>,
    /// An output whose values are not compared.
    #[serde(default)]
    pub ignored: bool,
    /// Offset and length of its bytes in the blob.
    pub data: Option<(usize, usize)>,
    /// Index into the referenced graphs.
    pub subgraph: Option<u32>,
}

/// Per-channel scales.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ChannelQuant {
    /// Which dimension.
    pub dim: u32,
    /// One scale per index.
    pub scales: Vec<f64>,
}

fn one() -> u32 {
    1
}

/// What a file says.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Document {
    pub(crate) tests: Vec<Test>,
}

/// A spec: one pair of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// `<version>/<name>`.
    pub name: String,
    json: PathBuf,
    blob: PathBuf,
}

/// The tests of a spec with their bytes.
#[derive(Debug)]
pub struct Vectors {
    /// The tests, in the generator's order.
    pub tests: Vec<Test>,
    /// The bytes that operands refer to.
    pub blob: Vec<u8>,
}

impl Vectors {
    /// The bytes of an operand; none where it has no data.
    ///
    /// # Errors
    /// [`VectorError::Test`] for a range outside of the blob.
    pub fn bytes(&self, test: &Test, operand: &Operand) -> Result<&[u8], VectorError> {
        let Some((offset, length)) = operand.data else { return Ok(&[]) };
        offset.checked_add(length).and_then(|end| self.blob.get(offset..end)).ok_or_else(|| {
            VectorError::Test {
                test: test.name.clone(),
                what: format!("data {offset}+{length} in a blob of {} bytes", self.blob.len()),
            }
        })
    }
}

/// The specs below `folder`, by version and name.
///
/// # Errors
/// A folder that cannot be read or has no vectors.
pub fn specs(folder: &Path) -> Result<Vec<Spec>, VectorError> {
    let io = |cause| VectorError::Io { path: folder.to_path_buf(), cause };
    std::fs::metadata(folder).map_err(io)?;
    let mut specs = Vec::new();
    for version in VERSIONS {
        let Ok(entries) = std::fs::read_dir(folder.join(version)) else { continue };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| {
                Some(entry.file_name().to_str()?.strip_suffix(".json.gz")?.to_owned())
            })
            .collect();
        names.sort();
        specs.extend(names.into_iter().map(|name| Spec {
            json: folder.join(version).join(format!("{name}.json.gz")),
            blob: folder.join(version).join(format!("{name}.bin.gz")),
            name: format!("{version}/{name}"),
        }));
    }
    if specs.is_empty() {
        return Err(VectorError::Empty { path: folder.to_path_buf() });
    }
    Ok(specs)
}

impl Spec {
    /// The spec of one file, `<spec>.json.gz`, beside which its bytes lie.
    ///
    /// # Errors
    /// A file of another name.
    pub fn of_file(json: &Path) -> Result<Spec, VectorError> {
        let name = json.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = name.strip_suffix(Spec::SUFFIX) else {
            return Err(VectorError::Empty { path: json.to_path_buf() });
        };
        let blob = json.with_file_name(format!("{name}.bin.gz"));
        Ok(Spec { name: name.to_owned(), json: json.to_path_buf(), blob })
    }

    /// What the names of such files end in.
    pub const SUFFIX: &str = ".json.gz";
}

/// Reads a spec.
///
/// # Errors
/// A file that is missing, damaged or too large.
pub fn open(spec: &Spec) -> Result<Vectors, VectorError> {
    let json = unpack(&spec.json)?;
    let document: Document = serde_json::from_slice(&json)
        .map_err(|cause| VectorError::Json { path: spec.json.clone(), cause })?;
    let vectors = Vectors { tests: document.tests, blob: unpack(&spec.blob)? };
    vectors.tests.iter().try_for_each(|test| check(&vectors, test))?;
    Ok(vectors)
}

/// Everything that a test refers to has to be there, so that nothing later needs to ask.
fn check(vectors: &Vectors, test: &Test) -> Result<(), VectorError> {
    let wrong = |what: String| VectorError::Test { test: test.name.clone(), what };
    if let Some(name) = test.vts.iter().find(|name| Suite::in_files(name).is_none()) {
        return Err(wrong(format!("there is no suite {name}")));
    }
    for graph in std::iter::once(&test.main).chain(&test.referenced) {
        let operations = graph.operations.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
        let mut indexes = graph.inputs.iter().chain(&graph.outputs).chain(operations);
        if let Some(index) = indexes.find(|index| **index as usize >= graph.operands.len()) {
            return Err(wrong(format!("operand {index} of {}", graph.operands.len())));
        }
        graph.operands.iter().try_for_each(|operand| vectors.bytes(test, operand).map(drop))?;
    }
    if test.multinomial_tolerance > 0.0
        && (test.main.inputs.is_empty() || test.main.outputs.len() != 1)
    {
        return Err(wrong("random draws need an input, and one output".to_owned()));
    }
    Ok(())
}

fn unpack(path: &Path) -> Result<Vec<u8>, VectorError> {
    let io = |cause| VectorError::Io { path: path.to_path_buf(), cause };
    let file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    GzDecoder::new(file).take(MAX_UNPACKED_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(VectorError::TooLarge { path: path.to_path_buf(), limit: MAX_UNPACKED_BYTES });
    }
    Ok(bytes)
}
