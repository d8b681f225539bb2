//! A `.tflite` file, verified and with every index checked.

use flatbuffers::{ForwardsUOffset, Verifiable, Verifier, VerifierOptions};

use crate::ElementType;
use crate::builtin;
use crate::error::{Damage, Entry, ImportError, printable};
use crate::schema::{
    BufferTable, ModelTable, OperatorCode, OperatorTable, QuantizationTable, Scalars,
    SubgraphTable, Table, TensorTable, View,
};

/// The mark in bytes 4 to 8.
pub(crate) const IDENTIFIER: &[u8] = b"TFL3";
/// Root offset and identifier.
const SHORTEST_BYTES: usize = 8;
/// The version of the schema whose field numbers we know.
pub(crate) const SCHEMA_VERSION: u32 = 3;
/// A model's tables are nested five deep; one more level would be another format.
const MAX_DEPTH: usize = 8;
/// A tensor and its quantization are two tables, an operator and its options too. Models with
/// tens of thousands of operators exist, with hundreds of thousands not.
const MAX_TABLES: usize = 1_000_000;
/// How many times its own size a file may have when everything that it shares is counted each
/// time. Honest files share little more than vtables and stay under 2; a file made of references to
/// one long list would make us allocate without bound.
const MAX_SHARING: usize = 8;
/// Is granted to every file, so that small ones, which are mostly vtables, are not refused.
const APPARENT_FLOOR_BYTES: usize = 1 << 16;
/// No NNAPI operation takes more than four axes, TFLite's own kernels at most eight.
pub(crate) const MAX_RANK: usize = 8;
/// The widest operator is CONCATENATION; NNAPI sets no limit, real models stay under a hundred.
const MAX_OPERATOR_ENDS: usize = 4096;

/// One value of the graph.
#[derive(Clone, Copy)]
pub(crate) struct Tensor<'a> {
    pub(crate) index: usize,
    pub(crate) ty: ElementType,
    /// Bytes of a constant; `None` for a value computed at run time.
    pub(crate) data: Option<&'a [u8]>,
    /// Which buffer the bytes come from.
    pub(crate) buffer: usize,
    table: TensorTable<'a>,
}

impl<'a> Tensor<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.table.name().unwrap_or_default()
    }

    /// Sizes along the axes, as the file has them; empty for a scalar and where unknown.
    pub(crate) fn shape(&self) -> impl Iterator<Item = i32> + 'a {
        self.table.shape().iter()
    }

    /// Sizes with -1 where they depend on the input; empty where the file does not say.
    pub(crate) fn shape_signature(&self) -> impl Iterator<Item = i32> + 'a {
        self.table.shape_signature().iter()
    }

    pub(crate) fn quantization(&self) -> Option<QuantizationTable<'a>> {
        self.table.quantization()
    }

    /// Whether it keeps its value from one execution to the next.
    pub(crate) fn is_state(&self) -> bool {
        self.table.is_variable() && self.data.is_none()
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.table.has_sparsity()
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry::new("tensor", self.index, self.name())
    }

    /// Elements of a constant.
    fn element_count(&self) -> u64 {
        self.shape()
            .fold(1, |count: u64, size| count.saturating_mul(u64::from(size.unsigned_abs())))
    }
}

/// One operator of the graph.
pub(crate) struct Operator<'a> {
    pub(crate) index: usize,
    pub(crate) code: i32,
    pub(crate) custom: Option<&'a str>,
    /// Tensor indexes; `None` for an input that is left out.
    pub(crate) inputs: Vec<Option<usize>>,
    pub(crate) outputs: Vec<usize>,
    /// Tensors that only describe values inside the operator.
    pub(crate) intermediates: Vec<usize>,
    pub(crate) table: OperatorTable<'a>,
}

impl Operator<'_> {
    /// What people call it, fit to be shown.
    pub(crate) fn name(&self) -> String {
        match (self.custom, builtin::name(self.code)) {
            (Some(custom), _) => printable(custom),
            (None, Some(name)) => name.to_owned(),
            (None, None) => format!("operator code {}", self.code),
        }
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry::new("operator", self.index, &self.name())
    }
}

/// The one graph of a file.
pub(crate) struct File<'a> {
    pub(crate) tensors: Vec<Tensor<'a>>,
    pub(crate) operators: Vec<Operator<'a>>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
}

impl<'a> File<'a> {
    /// Verifies the bytes and looks up every index in them.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, ImportError> {
        let model = verify(bytes)?;
        let subgraph = only_subgraph(model)?;
        let tensors = read_tensors(bytes, model, subgraph)?;
        let operators = read_operators(model, subgraph, tensors.len())?;
        let graph = Entry::new("graph", 0, "");
        let ends = |what, list: Scalars<'a, i32>| -> Result<Vec<usize>, ImportError> {
            limit(what, list.len(), MAX_OPERATOR_ENDS)?;
            let check = |index: i32| check_index(what, &graph, index.into(), tensors.len());
            list.iter().map(check).collect()
        };
        let inputs = ends("input tensor", subgraph.inputs())?;
        let outputs = ends("output tensor", subgraph.outputs())?;
        Ok(File { tensors, operators, inputs, outputs })
    }

    /// The tensor with this name.
    pub(crate) fn tensor_named(&self, name: &str) -> Result<usize, ImportError> {
        self.tensors
            .iter()
            .position(|tensor| tensor.name() == name)
            .ok_or_else(|| ImportError::NoSuchTensor { name: name.to_owned() })
    }
}

/// Runs the flatbuffers verifier over everything that is read later.
fn verify(bytes: &[u8]) -> Result<ModelTable<'_>, ImportError> {
    if bytes.len() < SHORTEST_BYTES {
        return Err(ImportError::TooShort { bytes: bytes.len() });
    }
    let mark = bytes.get(4..8).unwrap_or_default();
    if mark != IDENTIFIER {
        return Err(ImportError::NotAModel { found: mark.escape_ascii().to_string() });
    }
    let options = verifier_options(bytes);
    let mut verifier = Verifier::new(&options, bytes);
    ForwardsUOffset::<ModelTable<'_>>::run_verifier(&mut verifier, 0)
        .map_err(|invalid| ImportError::Damaged(Damage(invalid)))?;
    let model = Table::root(bytes).map(ModelTable::of);
    let model = model.ok_or(ImportError::TooShort { bytes: bytes.len() })?;
    match model.version() {
        SCHEMA_VERSION => Ok(model),
        found => Err(ImportError::SchemaVersion { found }),
    }
}

/// What the verifier refuses.
pub(crate) fn verifier_options(bytes: &[u8]) -> VerifierOptions {
    VerifierOptions {
        max_depth: MAX_DEPTH,
        max_tables: MAX_TABLES,
        max_apparent_size: bytes.len().saturating_mul(MAX_SHARING).max(APPARENT_FLOOR_BYTES),
        ignore_missing_null_terminator: false,
    }
}

fn only_subgraph<'a>(model: ModelTable<'a>) -> Result<SubgraphTable<'a>, ImportError> {
    match (model.subgraphs().len(), model.subgraphs().get(0)) {
        (1, Some(subgraph)) => Ok(subgraph),
        (found, _) => Err(ImportError::Subgraphs { found }),
    }
}

fn read_tensors<'a>(
    bytes: &'a [u8],
    model: ModelTable<'a>,
    subgraph: SubgraphTable<'a>,
) -> Result<Vec<Tensor<'a>>, ImportError> {
    let buffers = model.buffers();
    subgraph
        .tensors()
        .iter()
        .enumerate()
        .map(|(index, table)| {
            let entry = || Entry::new("tensor", index, table.name().unwrap_or_default());
            let buffer =
                check_index("buffer", &entry(), table.buffer().into(), buffers.len().max(1))?;
            let data = match buffers.get(buffer) {
                // Buffer 0 stands for "no bytes" and is empty in every file.
                Some(found) if buffer != 0 => buffer_bytes(bytes, buffer, found)?,
                _ => None,
            };
            let ty = ElementType::from_code(table.element_type());
            let mut tensor = Tensor { index, ty, data, buffer, table };
            // A constant without elements has no bytes, but a buffer of its own.
            if data.is_none() && buffer != 0 && tensor.element_count() == 0 {
                tensor.data = Some(&[]);
            }
            check_shape(&tensor)?;
            Ok(tensor)
        })
        .collect()
}

/// The bytes of a buffer, inside the flatbuffer or behind it; `None` when it has none.
pub(crate) fn buffer_bytes<'a>(
    file: &'a [u8],
    index: usize,
    buffer: BufferTable<'a>,
) -> Result<Option<&'a [u8]>, ImportError> {
    let (offset, size) = (buffer.offset(), buffer.size());
    // Offsets 0 and 1 are placeholders of the converter: the bytes are in the table.
    if offset <= 1 {
        let data = buffer.data().bytes();
        return Ok((!data.is_empty()).then_some(data));
    }
    let range = || {
        let start = usize::try_from(offset).ok()?;
        file.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    range().map(Some).ok_or_else(|| ImportError::BufferOutOfFile {
        buffer: Entry::new("buffer", index, ""),
        offset,
        size,
        file: file.len(),
    })
}

/// A shape has few axes, none of negative size, and a constant the bytes that it says.
fn check_shape(tensor: &Tensor<'_>) -> Result<(), ImportError> {
    limit("axes in one tensor", tensor.table.shape().len(), MAX_RANK)?;
    limit("axes in one shape signature", tensor.table.shape_signature().len(), MAX_RANK)?;
    for (axis, size) in tensor.shape().enumerate() {
        if size < 0 {
            return Err(ImportError::NegativeSize { tensor: tensor.entry(), axis, size });
        }
    }
    let (Some(data), Some(element)) = (tensor.data, tensor.ty.bytes()) else { return Ok(()) };
    // Sparse bytes are fewer than the shape says; they are refused where they are used.
    if tensor.is_sparse() {
        return Ok(());
    }
    let needed = tensor.element_count().saturating_mul(u64::try_from(element).unwrap_or(u64::MAX));
    if u64::try_from(data.len()) == Ok(needed) {
        Ok(())
    } else {
        Err(ImportError::ConstantSize { tensor: tensor.entry(), found: data.len(), needed })
    }
}

fn read_operators<'a>(
    model: ModelTable<'a>,
    subgraph: SubgraphTable<'a>,
    tensors: usize,
) -> Result<Vec<Operator<'a>>, ImportError> {
    let codes = model.operator_codes();
    subgraph
        .operators()
        .iter()
        .enumerate()
        .map(|(index, table)| {
            let entry = Entry::new("operator", index, "");
            let at = check_index("code", &entry, table.opcode_index().into(), codes.len())?;
            let (code, custom) = codes.get(at).map_or((builtin::CUSTOM, None), operator_code);
            limit("inputs in one operator", table.inputs().len(), MAX_OPERATOR_ENDS)?;
            limit("outputs in one operator", table.outputs().len(), MAX_OPERATOR_ENDS)?;
            let input = |tensor: i32| match tensor {
                -1 => Ok(None),
                given => check_index("input tensor", &entry, given.into(), tensors).map(Some),
            };
            limit("intermediates in one operator", table.intermediates().len(), MAX_OPERATOR_ENDS)?;
            let output = |given: i32| check_index("output tensor", &entry, given.into(), tensors);
            let inside = |given: i32| check_index("intermediate", &entry, given.into(), tensors);
            let intermediates = table.intermediates().iter().map(inside);
            Ok(Operator {
                index,
                code,
                custom,
                inputs: table.inputs().iter().map(input).collect::<Result<_, ImportError>>()?,
                outputs: table.outputs().iter().map(output).collect::<Result<_, ImportError>>()?,
                intermediates: intermediates.collect::<Result<_, ImportError>>()?,
                table,
            })
        })
        .collect()
}

/// Older files have only the one-byte field, newer ones both; the larger value is the right one.
fn operator_code(table: OperatorCode<'_>) -> (i32, Option<&str>) {
    let code = table.builtin_code().max(table.deprecated_builtin_code().into());
    let custom = (code == builtin::CUSTOM).then(|| table.custom_code().unwrap_or("CUSTOM"));
    (code, custom)
}

fn check_index(
    what: &'static str,
    holder: &Entry,
    index: i64,
    count: usize,
) -> Result<usize, ImportError> {
    match usize::try_from(index) {
        Ok(found) if found < count => Ok(found),
        _ => Err(ImportError::IndexOutOfRange { what, holder: holder.clone(), index, count }),
    }
}

fn limit(what: &'static str, found: usize, limit: usize) -> Result<(), ImportError> {
    if found > limit { Err(ImportError::TooMany { what, found, limit }) } else { Ok(()) }
}
