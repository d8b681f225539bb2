//! Why a task cannot be set up, or gives no answer.

use std::fmt;
use std::path::PathBuf;

use burst_client::ClientError;
use burst_hal::session::SessionError;
use burst_hal::{MemoryError, OperandType, OperationType};
use burst_pictures::PictureError;
use burst_sound::SoundError;
use burst_tflite::ImportError;

/// Why a task cannot be set up, or gives no answer. Operands and operators are called by their names in the file.
///
/// Its `Debug` form is the message too, so that a `main` which returns it says what a person can read.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A file cannot be read.
    #[error("cannot read {what} {file}: {cause}")]
    File {
        /// What it was to be.
        what: &'static str,
        /// Which file.
        file: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file is longer than what is read.
    #[error("{file}: {what} of {bytes} bytes, at most {most} are read")]
    FileTooLong {
        /// What it was to be.
        what: &'static str,
        /// Which file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A label file says nothing.
    #[error("{file}: no labels in this file")]
    NoLabels {
        /// Which file.
        file: PathBuf,
    },
    /// The model cannot be used at all.
    #[error("cannot use the model {model}: {cause}")]
    Model {
        /// Its name.
        model: String,
        /// Why: the operator and the reason.
        cause: Box<ImportError>,
    },
    /// A stream feeds one input; others have to be states.
    #[error("{model} has {} inputs that are no states{}; a task feeds exactly one", names.len(), listed(names))]
    Inputs {
        /// The model.
        model: String,
        /// Names of the inputs.
        names: Vec<String>,
    },
    /// The input has a type that pictures or sound are not turned into.
    #[error("the model's input `{input}` is {ty}; {what} cannot be turned into that")]
    InputType {
        /// Its name.
        input: String,
        /// Its type.
        ty: OperandType,
        /// What was to go in.
        what: &'static str,
    },
    /// The input has a shape that pictures or sound do not have.
    #[error("the model's input `{input}` has the shape {dims:?}; {needed}")]
    InputShape {
        /// Its name.
        input: String,
        /// Its sizes.
        dims: Vec<u32>,
        /// What is needed.
        needed: &'static str,
    },
    /// A stated normalisation cannot be computed.
    #[error("a normalisation by mean {mean:?} and deviation {deviation:?}: {why}")]
    Normalisation {
        /// What is subtracted.
        mean: [f32; 3],
        /// What is divided by.
        deviation: [f32; 3],
        /// What is wrong.
        why: &'static str,
    },
    /// What is fed has another length than the input takes.
    #[error("the model's input `{input}` takes {wanted} {unit}, {found} were given")]
    InputLength {
        /// Its name.
        input: String,
        /// `bytes`, `values`, `samples`.
        unit: &'static str,
        /// How many it takes.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// The outputs are not those of the task.
    #[error("{model} is no {task}: its outputs are {outputs}")]
    NotThisTask {
        /// The model.
        model: String,
        /// What was asked for.
        task: &'static str,
        /// Names, types and shapes of the outputs.
        outputs: String,
    },
    /// The model has no such output, or one of another length than it says.
    #[error("output {index} has {}, {wanted} were expected", counted(*found, "byte", "bytes"))]
    OutputLength {
        /// Which.
        index: usize,
        /// How many it should have.
        wanted: usize,
        /// How many there are; 0 where there is no such output.
        found: usize,
    },
    /// As many labels as classes are needed.
    #[error(
        "{}, where the model has {}; one line is one label, from class 0 on",
        counted(*labels, "label", "labels"),
        counted(*classes, "class", "classes")
    )]
    LabelCount {
        /// How many labels were given.
        labels: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A list of what is allowed or denied names a class that the model does not have.
    #[error("no class of {model} has the label {label:?}")]
    NoSuchLabel {
        /// The model.
        model: String,
        /// The label.
        label: String,
    },
    /// Both lists at once would contradict each other.
    #[error("a list of allowed labels and one of denied labels: only one of them can hold")]
    BothLists,
    /// A score that no class can have, or not a number.
    #[error("a least score of {score}: expected a number")]
    Threshold {
        /// What was given.
        score: f32,
    },
    /// The device does not run an operation of the model.
    #[error("{device} does not run operation {index} ({operation}){}: {cause}", computes(result))]
    Operation {
        /// The device.
        device: String,
        /// Position of the operation in the model.
        index: usize,
        /// Its kind.
        operation: OperationType,
        /// Names of outputs of the file that it computes.
        result: Vec<String>,
        /// What the device says.
        cause: Box<SessionError>,
    },
    /// The model cannot be prepared, or an execution did not work, in this process or over a session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Memory of an output cannot be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The service refuses something, is gone, or an execution failed there.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What runs the model is somebody else's, and does not work.
    #[error(transparent)]
    Runner(Box<dyn std::error::Error + Send + Sync>),
    /// A picture is none, or cannot be scaled.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// Sound is none, or cannot be resampled.
    #[error(transparent)]
    Sound(#[from] SoundError),
    /// A part of an audio model does not fit the other.
    #[error("the part of the model before its spectrum: {0}")]
    Front(String),
    /// From one window to the next there has to be a frame at least.
    #[error("a hop of {seconds} s: less than one frame, or too long")]
    Hop {
        /// What was asked for.
        seconds: f64,
    },
    /// There is less sound than one frame.
    #[error("{seconds} s of sound are too short")]
    TooShort {
        /// How much there is.
        seconds: f64,
    },
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number with its noun, which for one is the first.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

fn computes(results: &[String]) -> String {
    if results.is_empty() {
        String::new()
    } else {
        format!(", which computes {}", results.join(", "))
    }
}
