//! Models to be kept: each with values that are computed when it is prepared, weights of a layer, and a chain
//! of operations with a constant each.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, FusedActivation, HeapMemory, Model, ModelBuilder,
    OperandType, OperationType, OutputSpec, Pool, PreparedModel, Request, RequestArgument,
    RequestPool,
};

use super::{Fault, fault};

/// Which numbers a model computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Floats of 32 bits.
    Float32,
    /// Quantized numbers of 8 bits.
    Quant8,
}

/// A model with what it computes.
#[derive(Debug)]
pub struct TestModel {
    /// The model.
    pub model: Model,
    sort: Sort,
    input: Vec<u8>,
    expected: Vec<u8>,
}

/// Values of each tensor.
const WIDTH: u32 = 32;
/// Operations in a row.
const CHAIN: u32 = 12;

impl TestModel {
    /// A chain of additions or of multiplications; what it computes is what `prepare` makes of it.
    ///
    /// # Errors
    /// A model that is not prepared, or not executed.
    pub fn new(
        sort: Sort,
        operation: OperationType,
        prepare: impl FnOnce(&Model) -> Result<Arc<dyn PreparedModel>, burst_hal::Failure>,
    ) -> Result<Self, Fault> {
        let model = model(sort, operation)?;
        let input: Vec<u8> = match sort {
            Sort::Float32 => real(WIDTH, 0.25).iter().flat_map(|x| x.to_le_bytes()).collect(),
            Sort::Quant8 => bytes(WIDTH, 3),
        };
        let expected = vec![0; input.len()];
        let mut test = TestModel { model, sort, input, expected };
        let prepared = prepare(&test.model);
        let prepared = prepared.map_err(|failure| fault(format!("not prepared: {failure}")))?;
        test.expected = test.execute(&*prepared)?;
        Ok(test)
    }

    /// Asserts that a prepared model computes the same bits.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, prepared: &dyn PreparedModel) -> Result<(), Fault> {
        let found = self.execute(prepared)?;
        if found != self.expected {
            let (sort, expected) = (self.sort, &self.expected);
            return Err(fault(format!("wrong results ({sort:?}): {found:?} for {expected:?}")));
        }
        Ok(())
    }

    fn execute(&self, prepared: &dyn PreparedModel) -> Result<Vec<u8>, Fault> {
        let length = u32::try_from(self.input.len()).unwrap_or(u32::MAX);
        let argument = |pool_index| RequestArgument {
            location: DataLocation { pool_index, offset: 0, length },
            ..RequestArgument::default()
        };
        let input: Pool = Arc::new(HeapMemory::new(self.input.clone()));
        let output = Arc::new(HeapMemory::new(vec![0; self.input.len()]));
        let request = Request {
            inputs: vec![argument(0)],
            outputs: vec![argument(1)],
            pools: [input, Arc::clone(&output) as Pool].map(RequestPool::Memory).to_vec(),
        };
        let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
        match result.status {
            ErrorStatus::None => Ok(output.to_vec()),
            status => Err(fault(format!("not executed: {}", status.name()))),
        }
    }
}

/// Values around 1, so that a chain of products stays in range.
fn real(count: u32, step: f32) -> Vec<f32> {
    let from = |index: u32| u8::try_from(index % 5).map_or(0.0, f32::from);
    (0..count).map(|index| 0.9 + step * 0.1 * from(index)).collect()
}

fn bytes(count: u32, step: u32) -> Vec<u8> {
    (0..count).map(|index| u8::try_from((index * step + 40) % 100).unwrap_or(0)).collect()
}

fn model(sort: Sort, operation: OperationType) -> Result<Model, Fault> {
    let mut builder = ModelBuilder::new();
    let (ty, scale) = match sort {
        Sort::Float32 => (OperandType::TensorFloat32, 0.0),
        Sort::Quant8 => (OperandType::TensorQuant8Asymm, 0.05),
    };
    let spec = |dims: &[u32]| match sort {
        Sort::Float32 => OutputSpec::f32(dims),
        Sort::Quant8 => OutputSpec::new(ty, dims).quantized(scale, 10),
    };
    let constant = |builder: &mut ModelBuilder, dims: &[u32], step: u32| {
        let count = dims.iter().product();
        let values: Vec<u8> = match sort {
            Sort::Float32 => {
                let step = u8::try_from(step).map_or(1.0, f32::from) * 0.02;
                real(count, step).iter().flat_map(|x| x.to_le_bytes()).collect()
            }
            Sort::Quant8 => bytes(count, step),
        };
        builder.constant_bytes(spec(dims), &values)
    };
    let none = builder.scalar_i32(FusedActivation::None.code());
    let mut value = builder.input_of(spec(&[1, WIDTH]));
    // Computed once, when the model is prepared.
    let (a, b) = (constant(&mut builder, &[1, WIDTH], 1), constant(&mut builder, &[1, WIDTH], 2));
    let sum = builder.result_of(OperationType::Add, &[a, b, none], spec(&[1, WIDTH]));
    let weights = constant(&mut builder, &[WIDTH, WIDTH], 7);
    let bias = match sort {
        Sort::Float32 => builder.constant_f32(&[WIDTH], &real(WIDTH, 1.0)),
        Sort::Quant8 => {
            let bias = OutputSpec::new(OperandType::TensorInt32, &[WIDTH]);
            builder.constant_i32_of(bias.quantized(scale * scale, 0), &[5; WIDTH as usize])
        }
    };
    let layer = [value, weights, bias, none];
    let output = match sort {
        Sort::Float32 => spec(&[1, WIDTH]),
        Sort::Quant8 => OutputSpec::new(ty, &[1, WIDTH]).quantized(0.5, 3),
    };
    let layer = builder.result_of(OperationType::FullyConnected, &layer, output);
    value = builder.result_of(operation, &[layer, sum, none], spec(&[1, WIDTH]));
    for step in 0..CHAIN {
        let other = constant(&mut builder, &[1, WIDTH], step + 1);
        value = builder.result_of(operation, &[value, other, none], spec(&[1, WIDTH]));
    }
    builder.output(value);
    builder.build().map_err(|error| fault(format!("the test's model: {error}")))
}
