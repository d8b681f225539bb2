//! Reads `.tflite` files into HAL models, with a verdict per operator.
//!
//! [`import`] gives a model or says which operator stands in the way; [`inspect`] judges every
//! operator without failing; [`import_part`] takes the piece between tensors that are named, for
//! models of which NNAPI operations can run only a part. [`GivenGraph`] is for callers that have a
//! graph as values and no file.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let imported = burst_tflite::import(&std::fs::read("mobilenet.tflite")?)?;
//! for (input, operand) in imported.inputs.iter().zip(&imported.model.main.input_indexes) {
//!     println!("operand {operand}: {} {} {:?}", input.name, input.ty, input.dims);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The bytes are not trusted: the flatbuffers verifier walks all that is read later, every index is
//! looked up before it is used, and every number that a file controls has a limit.
#![forbid(unsafe_code)]

mod batch_inputs;
mod builtin;
mod element;
mod error;
mod file;
mod given;
mod graph;
mod import;
mod main_types;
mod mapper;
mod metadata;
mod ops;
mod schema;
mod spectrum;
mod verdict;

pub use element::ElementType;
pub use error::{Damage, Entry, ImportError, Refusal};
pub use given::{
    GivenField, GivenFile, GivenGraph, GivenModel, GivenOperator, GivenTensor, GivenValue,
};
pub use import::{Cut, Imported, Inspection, Part, StatePair, TensorInfo};
pub use metadata::{Metadata, MetadataFile, MetadataFileKind, Normalization, TensorMetadata};
pub use spectrum::Spectrum;
pub use verdict::{Note, Outcome, Verdict};

/// Reads a whole model.
///
/// # Errors
/// [`ImportError`]: the file is damaged or no model, or [`ImportError::Refused`] with the first
/// operator that NNAPI operations cannot compute.
pub fn import(bytes: &[u8]) -> Result<Imported, ImportError> {
    import::import(bytes, Part::default())
}

/// Reads the part of a model between the named tensors.
///
/// # Errors
/// As [`import`], for the operators in the part; [`ImportError::NoSuchTensor`] for an unknown name.
pub fn import_part(bytes: &[u8], part: Part<'_>) -> Result<Imported, ImportError> {
    import::import(bytes, part)
}

/// Says of every operator whether and how it can be mapped.
///
/// # Errors
/// [`ImportError`] where the file is damaged or no model; never because of an operator.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, ImportError> {
    import::inspect(bytes)
}

/// Finds where to cut a model of which NNAPI operations can run only the end, for [`import_part`];
/// `None` when they can run all of it.
///
/// # Errors
/// As [`inspect`].
pub fn cut(bytes: &[u8]) -> Result<Option<Cut>, ImportError> {
    import::cut(bytes)
}

/// Finds the magnitude spectrum in an audio model, which has no NNAPI form and is to be computed
/// between the part before it and the part behind it; `None` where there is none of the usual form.
///
/// # Errors
/// [`ImportError`] where the file is damaged or no model.
pub fn spectrum(bytes: &[u8]) -> Result<Option<Spectrum>, ImportError> {
    spectrum::find(bytes)
}

/// What the file says of its inputs and outputs beside the graph (TensorFlow Lite's metadata): normalisation, labels;
/// `None` where it says nothing.
///
/// # Errors
/// [`ImportError`] where the file or its metadata are damaged.
pub fn metadata(bytes: &[u8]) -> Result<Option<Metadata>, ImportError> {
    metadata::read(bytes)
}

/// The name of a builtin operator, by its code in the schema.
#[must_use]
pub fn operator_name(code: i32) -> Option<&'static str> {
    builtin::name(code)
}
