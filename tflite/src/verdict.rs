//! What became of each operator.

use burst_hal::OperationType;

use crate::error::Refusal;

/// What became of one operator of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Its position in the file.
    pub index: usize,
    /// Its name in the file, with control characters escaped.
    pub operator: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Remarks for people.
    pub notes: Vec<Note>,
}

/// What became of an operator.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// These operations, in this order, compute what it computes.
    Mapped(Vec<OperationType>),
    /// Its result was computed by the importer and is a constant of the model.
    Folded,
    /// It lies outside the part that was asked for.
    Outside,
    /// No NNAPI operations compute it, or not in this form.
    Refused(Refusal),
}

impl Outcome {
    /// Whether it was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Outcome::Refused(_))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Mapped(operations) => {
                for (at, alike) in operations.chunk_by(|a, b| a == b).enumerate() {
                    let lead = if at == 0 { "" } else { " + " };
                    match alike {
                        [one] => write!(f, "{lead}{one}")?,
                        [first, ..] => write!(f, "{lead}{} x {first}", alike.len())?,
                        [] => {}
                    }
                }
                Ok(())
            }
            Outcome::Folded => f.write_str("folded into a constant"),
            Outcome::Outside => f.write_str("outside the part"),
            Outcome::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

/// A remark on how an operator was mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Only the zero point or the signedness changes: exact by way of real numbers.
    ZeroPointMoved,
    /// The scale changes by way of real numbers: some values may differ by one step.
    Requantized,
    /// The scale changes, which NNAPI's own operation cannot: a convolution with equal weights
    /// gives exactly the file's values.
    RescaledExactly,
    /// The file has 64-bit integers where NNAPI gives 32-bit ones.
    Int64AsInt32,
    /// The file has numbers as float32 where NNAPI gives int32; they are converted back.
    Int32AsFloat32,
    /// A bias that the file leaves out is all zeros.
    ZeroBias,
    /// Each step became an operation; what NNAPI's leaves out is made of weights: exact.
    StepsUnrolled,
    /// Its state became an input and an output of the graph.
    StateExposed,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Note::ZeroPointMoved => "only the zero point moves: exact",
            Note::Requantized => "rescaled by way of real numbers: may differ by one step",
            Note::RescaledExactly => "rescaled by a convolution with equal weights: exact",
            Note::Int64AsInt32 => "int64 in the file, int32 here",
            Note::Int32AsFloat32 => "int32 in NNAPI, converted to the file's float32",
            Note::ZeroBias => "no bias in the file: zeros",
            Note::StepsUnrolled => "one operation per step, biases as weights: exact",
            Note::StateExposed => "state is an input and an output of the graph",
        })
    }
}
