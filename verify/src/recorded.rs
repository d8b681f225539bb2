//! One test of a vector file, executed once to look at what comes of it.

use std::sync::Arc;

use burst_hal::{ErrorStatus, ExecutionOptions, OperandType, PrepareOptions, PreparedModel, Route};

use crate::arguments::Arguments;
use crate::judging::Accuracy;
use crate::model::{Built, OutputShapes, build};
use crate::subject::Target;
use crate::vectors::{Spec, Test, open};
use crate::ways::Way;
use crate::{VectorError, judging};

/// The first test of a vector file.
pub struct Recorded {
    test: Test,
    built: Built,
}

/// What came of an execution.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    /// The outputs, in order.
    pub outputs: Vec<RecordedOutput>,
    /// The first output that is not what the file expects, and why. Floats may differ as a graph of this
    /// size allows; everything else is to be the same.
    pub unexpected: Option<String>,
}

/// An output.
#[derive(Debug, Clone)]
pub struct RecordedOutput {
    /// Its type.
    pub ty: OperandType,
    /// Its sizes, as the execution told them; the file's where it told none.
    pub shape: Vec<u32>,
    /// Its elements.
    pub bytes: Vec<u8>,
}

impl Recorded {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that is missing or damaged, or has no test.
    pub fn open(spec: &Spec) -> Result<Recorded, VectorError> {
        let vectors = open(spec)?;
        let Some(test) = vectors.tests.first().cloned() else {
            return Err(VectorError::Empty { path: spec.name.clone().into() });
        };
        let built = build(&vectors, &test, OutputShapes::Declared)?;
        Ok(Recorded { test, built })
    }

    /// The name of the test.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.test.name
    }

    /// Prepares and executes it.
    ///
    /// # Errors
    /// What the device says, in words.
    pub fn execute(&self, target: Target<'_>, route: Route) -> Result<RecordedRun, String> {
        let model = &self.built.model;
        let prepared = target.device.prepare_model(model, &PrepareOptions::default());
        let prepared: Arc<dyn PreparedModel> =
            prepared.map_err(|failure| format!("prepare_model: {failure}"))?;
        let arguments = Arguments::new(&self.built, &**target.memory)?;
        let request = arguments.request(0)?;
        let result = Way::open(&prepared, route)?.execute(&request, &ExecutionOptions::default());
        let result = result?.result;
        if result.status != ErrorStatus::None {
            return Err(format!("status {}", result.status));
        }
        let mut outputs = Vec::new();
        for (position, operand) in model.main.output_indexes.iter().enumerate() {
            let operand = &model.main.operands[*operand as usize];
            let told = result.output_shapes.get(position).map(|shape| &shape.dimensions);
            let shape = told.unwrap_or(&operand.dimensions).to_vec();
            let mut bytes = arguments.output(position)?;
            let length =
                operand.ty.byte_length(&shape).and_then(|bytes| usize::try_from(bytes).ok());
            bytes.truncate(length.unwrap_or(usize::MAX));
            outputs.push(RecordedOutput { ty: operand.ty, shape, bytes });
        }
        let unexpected = self.unexpected(&outputs);
        Ok(RecordedRun { outputs, unexpected })
    }

    fn unexpected(&self, outputs: &[RecordedOutput]) -> Option<String> {
        let graph = &self.built.model.main;
        let accuracy = Accuracy::of_graph(&graph.operations);
        let relaxed = self.test.relaxed;
        let all = outputs.iter().zip(&self.built.outputs).zip(&self.test.main.outputs);
        all.enumerate().find_map(|(position, ((got, want), operand))| {
            if self.test.main.operands[*operand as usize].ignored {
                return None;
            }
            let differs = judging::compare_values(got.ty, accuracy, relaxed, &got.bytes, want);
            differs.err().map(|what| format!("output {position}: {what}"))
        })
    }
}
