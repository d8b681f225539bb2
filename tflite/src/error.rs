//! Why a file cannot be read, and why an operator cannot be mapped.

use burst_hal::validate::ValidationError;
use burst_hal::{OperandType, OperationType};
use flatbuffers::{ErrorTraceDetail, InvalidFlatbuffer};

use crate::ElementType;

/// Why a file gives no model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Fewer bytes than any model has.
    #[error("no model: the file has only {bytes} bytes")]
    TooShort {
        /// How many it has.
        bytes: usize,
    },
    /// The mark of a TensorFlow Lite model is missing.
    #[error("no TensorFlow Lite model: bytes 4 to 8 are \"{found}\", not \"TFL3\"")]
    NotAModel {
        /// What stands where the mark should be.
        found: String,
    },
    /// The structure of the file does not hold together.
    #[error("cut short or damaged model: {0}")]
    Damaged(Damage),
    /// A schema version other than 3.
    #[error("schema version {found} of the model is not supported, only 3 is")]
    SchemaVersion {
        /// The version in the file.
        found: u32,
    },
    /// Not exactly one graph.
    #[error("the model has {found} subgraphs; only models with exactly one are supported")]
    Subgraphs {
        /// How many graphs.
        found: usize,
    },
    /// More of something than any sensible model has.
    #[error("the model has {found} {what}, more than the limit of {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much may be.
        limit: usize,
    },
    /// An index that leads nowhere.
    #[error("{what} {index} of {holder} does not exist, there are {count}")]
    IndexOutOfRange {
        /// What is indexed.
        what: &'static str,
        /// Who holds the index.
        holder: Entry,
        /// The index.
        index: i64,
        /// How many there are.
        count: usize,
    },
    /// A negative size.
    #[error("size {size} along axis {axis} of {tensor} is negative")]
    NegativeSize {
        /// Whose.
        tensor: Entry,
        /// Which axis.
        axis: usize,
        /// The size in the file.
        size: i32,
    },
    /// The bytes of a constant lie outside the file.
    #[error("{buffer} lies at {offset} with {size} bytes, outside the file's {file} bytes")]
    BufferOutOfFile {
        /// Which buffer.
        buffer: Entry,
        /// Where it should begin.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// How long the file is.
        file: usize,
    },
    /// A constant has not as many bytes as its shape and type need.
    #[error("constant {tensor} has {found} bytes, its shape and type need {needed}")]
    ConstantSize {
        /// Which tensor.
        tensor: Entry,
        /// Bytes in its buffer.
        found: usize,
        /// Bytes that it needs.
        needed: u64,
    },
    /// An operator reads what nothing before it has written.
    #[error("{operator} reads {tensor}, which no operator before it writes")]
    NotInOrder {
        /// Who reads.
        operator: Entry,
        /// What is read.
        tensor: Entry,
    },
    /// A tensor is written although it has its value already.
    #[error("{operator} writes {tensor}, which has a value already")]
    WrittenTwice {
        /// Who writes.
        operator: Entry,
        /// What is written.
        tensor: Entry,
    },
    /// An input or output of the graph is listed twice, or is both, or has no source.
    #[error("{tensor} cannot be {role} of the graph: {reason}")]
    Boundary {
        /// Which tensor.
        tensor: Entry,
        /// `an input` or `an output`.
        role: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// A tensor that was asked for by name does not exist.
    #[error("the model has no tensor named {name:?}")]
    NoSuchTensor {
        /// The name.
        name: String,
    },
    /// An operator has no form in NNAPI operations.
    #[error("operator {index} ({operator}) cannot be mapped: {reason}{}", more(*others))]
    Refused {
        /// Its position in the file.
        index: usize,
        /// Its name.
        operator: String,
        /// Why.
        reason: Refusal,
        /// How many further operators are refused too.
        others: usize,
    },
    /// What came out breaks a rule that holds for every model, such as a limit on its size.
    #[error("the model breaks a rule of NNAPI: {0}")]
    Invalid(#[from] ValidationError),
    /// An input or output of the graph has a type without NNAPI form.
    #[error("{tensor}, {role} of the graph, cannot be mapped: {reason}")]
    BoundaryType {
        /// Which tensor.
        tensor: Entry,
        /// `an input` or `an output`.
        role: &'static str,
        /// Why.
        reason: Refusal,
    },
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " (and 1 more operator)".to_owned(),
        n => format!(" (and {n} more operators)"),
    }
}

/// An entry of the file's tables: its kind, its position, and its name where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `tensor`, `operator`, `buffer`, `graph`.
    pub kind: &'static str,
    /// Its index in the file.
    pub index: usize,
    /// Its name; may be empty.
    pub name: String,
}

impl Entry {
    pub(crate) fn new(kind: &'static str, index: usize, name: &str) -> Self {
        Entry { kind, index, name: name.to_owned() }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.index)?;
        if self.name.is_empty() { Ok(()) } else { write!(f, " ({})", printable(&self.name)) }
    }
}

/// Most characters of a name that a message repeats; real names have up to about a hundred.
const PRINTED_MAX: usize = 200;

/// A name from the file as it may be shown: in one line, without anything that a terminal would
/// obey, and not endless.
pub(crate) fn printable(name: &str) -> String {
    let mut shown = String::new();
    for (count, character) in name.chars().enumerate() {
        if count == PRINTED_MAX {
            shown.push('…');
            break;
        }
        match character {
            '"' | '\'' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// What the flatbuffers verifier found, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage(pub(crate) InvalidFlatbuffer);

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use InvalidFlatbuffer as Bad;
        let trace = match &self.0 {
            Bad::MissingRequiredField { required, error_trace } => {
                write!(f, "field {required} is missing")?;
                error_trace
            }
            Bad::InconsistentUnion { field, error_trace, .. } => {
                write!(f, "{field} comes without its type, or the type without it")?;
                error_trace
            }
            Bad::Utf8Error { range, error_trace, .. } => {
                write!(f, "bytes {} to {} are no UTF-8 text", range.start, range.end)?;
                error_trace
            }
            Bad::MissingNullTerminator { range, error_trace } => {
                write!(f, "text in bytes {} to {} has no end", range.start, range.end)?;
                error_trace
            }
            Bad::Unaligned { position, unaligned_type, error_trace } => {
                write!(f, "{unaligned_type} at byte {position} is not aligned")?;
                error_trace
            }
            Bad::RangeOutOfBounds { range, error_trace } => {
                write!(f, "bytes {} to {} lie outside the file", range.start, range.end)?;
                error_trace
            }
            Bad::SignedOffsetOutOfBounds { soffset, position, error_trace } => {
                write!(f, "offset {soffset} at byte {position} leads outside the file")?;
                error_trace
            }
            Bad::TooManyTables => return f.write_str("more tables than any sensible model has"),
            Bad::ApparentSizeTooLarge => {
                return f
                    .write_str("parts are shared so often that the whole has no sensible size");
            }
            Bad::DepthLimitReached => return f.write_str("tables are nested too deeply"),
        };
        let mut lead = ", in ";
        for step in trace.as_ref().iter().rev() {
            match step {
                ErrorTraceDetail::TableField { field_name, .. } => write!(f, "{lead}{field_name}")?,
                ErrorTraceDetail::VectorElement { index, .. } => write!(f, "[{index}]")?,
                ErrorTraceDetail::UnionVariant { variant, .. } => write!(f, "{lead}{variant}")?,
            }
            lead = ".";
        }
        Ok(())
    }
}

/// Why an operator has no form in NNAPI operations.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// NNAPI has nothing for it.
    #[error("no NNAPI operation computes it")]
    NoNnapiForm,
    /// NNAPI has the operation, but not for this element type.
    #[error("NNAPI's {operation} has no form for {ty}")]
    MainType {
        /// The operation.
        operation: OperationType,
        /// The type that it lacks.
        ty: OperandType,
    },
    /// NNAPI has no such tensor.
    #[error("tensor {tensor} has type {ty}, which NNAPI has not")]
    ElementType {
        /// The tensor's index.
        tensor: usize,
        /// Its type.
        ty: ElementType,
    },
    /// Types of the operands do not go together.
    #[error("{what} has type {found} where NNAPI needs {needed}")]
    OperandType {
        /// Which operand.
        what: &'static str,
        /// Its type.
        found: OperandType,
        /// What it should be.
        needed: OperandType,
    },
    /// Integers without scale and zero point, or with impossible ones.
    #[error("tensor {tensor} of type {ty}: {problem}")]
    Quantization {
        /// The tensor's index.
        tensor: usize,
        /// Its type.
        ty: ElementType,
        /// What is wrong.
        problem: &'static str,
    },
    /// NNAPI fixes scale and zero point of the output, and the file has others.
    #[error("NNAPI's {operation} gives scale {scale} and zero point {zero_point} here, not others")]
    FixedScale {
        /// The operation.
        operation: OperationType,
        /// The scale that it gives.
        scale: f32,
        /// The zero point that it gives.
        zero_point: i32,
    },
    /// A fused activation that NNAPI cannot fuse here.
    #[error("fused activation {code} cannot be fused by NNAPI's operation")]
    Activation {
        /// Its code in the file.
        code: i8,
    },
    /// A value that must be known now is computed only when the model runs.
    #[error("{what} must be a constant")]
    NotConstant {
        /// Which value.
        what: &'static str,
    },
    /// A shape that must be known now is not in the file.
    #[error("the shape of {what} must be known")]
    UnknownShape {
        /// Of what.
        what: &'static str,
    },
    /// Shapes that do not fit the operation.
    #[error("the shape of {what} does not fit the operation")]
    Shape {
        /// Of what.
        what: &'static str,
    },
    /// Too few or too many inputs or outputs.
    #[error("it has {found} {what}, which fits no form of the operation")]
    Count {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many.
        found: usize,
    },
    /// An input that may not be left out is left out.
    #[error("{what} is missing")]
    Missing {
        /// Which input.
        what: &'static str,
    },
    /// The options belong to another operator.
    #[error("its options (kind {found}) belong to another operator")]
    OptionsKind {
        /// The code of the table.
        found: u8,
    },
    /// An option with a value that NNAPI's operation cannot have.
    #[error("option {option} is {value}, which NNAPI's operation cannot have")]
    OptionValue {
        /// Which option.
        option: &'static str,
        /// Its value.
        value: f64,
    },
    /// The options of a custom operator cannot be read.
    #[error("its custom options cannot be read: {problem}")]
    CustomOptions {
        /// What is wrong.
        problem: &'static str,
    },
    /// An LSTM on integers in another form than the plain one.
    #[error("NNAPI's QUANTIZED_LSTM computes only the plain integer form; this one has {what}")]
    IntegerLstm {
        /// What is not plain.
        what: &'static str,
    },
    /// The tensor's bytes are stored sparsely.
    #[error("tensor {tensor} is stored sparsely")]
    Sparse {
        /// The tensor's index.
        tensor: usize,
    },
    /// Constants of all operators together are too many bytes for one model.
    #[error("the constants need more than {limit} bytes")]
    TooManyBytes {
        /// How many a model can have.
        limit: u64,
    },
    /// A state that is no variable tensor, or that two operators share.
    #[error("tensor {tensor} is no variable tensor of this operator alone")]
    NotState {
        /// The tensor's index.
        tensor: usize,
    },
    /// A number does not fit where NNAPI keeps it.
    #[error("{what} is {value}, which does not fit")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: i64,
    },
}
