//! Small models with their inputs and the outputs that every driver gives to the bit, for rows that need
//! no vectors.

use std::sync::Arc;

use burst_hal::{
    DataLocation, Device, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool,
};

use super::shared_memory::SharedMemory;
use super::{Checked, Verdict, refused};

/// A model, what goes in and what has to come out.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) model: Model,
    /// Bytes of each input.
    inputs: Vec<Vec<u8>>,
    /// Shape and bytes of each output.
    outputs: Vec<(Vec<u32>, Vec<u8>)>,
}

/// A request for a sample, each argument in a pool of its own.
pub(super) struct Laid {
    pub(super) request: Request,
    outputs: Vec<Pool>,
}

/// Goes on with a sample, or ends the check where the device does not run it.
macro_rules! supported {
    ($device:expr, $sample:expr) => {{
        let sample = $sample?;
        if !sample.is_supported($device)? {
            return $crate::functional::samples::not_supported(&[sample.name]);
        }
        sample
    }};
}
/// Goes on with the samples that the device runs, or ends the check where there is none.
macro_rules! all_supported {
    ($device:expr) => {{
        let samples = $crate::functional::samples::Sample::all($device)?;
        if samples.is_empty() {
            return $crate::functional::samples::not_supported(&["any of the samples"]);
        }
        samples
    }};
}
pub(super) use {all_supported, supported};

/// What is said where the device does not run what a check needs.
pub(super) fn not_supported(samples: &[&str]) -> Checked {
    Ok(Verdict::DoesNotApply(format!("the device does not run {}", samples.join(", "))))
}

const F32: OperandType = OperandType::TensorFloat32;
const QUANT8: OperandType = OperandType::TensorQuant8Asymm;
const QUANT8_SIGNED: OperandType = OperandType::TensorQuant8AsymmSigned;
const SHAPE: [u32; 2] = [2, 4];

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn built(builder: ModelBuilder) -> Result<Model, String> {
    builder.build().map_err(|error| error.to_string())
}

impl Sample {
    /// `max(0, x + c)`, and `x + x` beside it: two outputs, a temporary, a constant.
    pub(super) fn chain() -> Result<Self, String> {
        let mut builder = ModelBuilder::new();
        let x = builder.input(F32, &SHAPE);
        let c = builder.constant_f32(&SHAPE, &[-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
        let none = builder.scalar_i32(0);
        let spec = || OutputSpec::f32(&SHAPE);
        let sum = builder.result_of(OperationType::Add, &[x, c, none], spec());
        let first = builder.result_of(OperationType::Relu, &[sum], spec());
        let second = builder.result_of(OperationType::Add, &[x, x, none], spec());
        builder.output(first);
        builder.output(second);
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, -6.0, -7.0, 8.0];
        let first = [0.0, 0.0, 1.0, 3.0, 5.0, 0.0, 0.0, 11.0];
        Ok(Sample {
            name: "chain",
            model: built(builder)?,
            inputs: vec![floats(&x)],
            outputs: vec![
                (SHAPE.to_vec(), floats(&first)),
                (SHAPE.to_vec(), floats(&x.map(|x| x + x))),
            ],
        })
    }

    /// A sum of bytes, all with one scale: the sum of the stored values, less the zero point.
    pub(super) fn quantized() -> Result<Self, String> {
        Self::sum_of_bytes("quantized", QUANT8, 0)
    }

    /// The same with signed bytes: every stored value, and the zero point, is 128 less.
    pub(super) fn quantized_signed() -> Result<Self, String> {
        Self::sum_of_bytes("quantized signed", QUANT8_SIGNED, 128)
    }

    fn sum_of_bytes(name: &'static str, ty: OperandType, less: u8) -> Result<Self, String> {
        let mut builder = ModelBuilder::new();
        let spec = || OutputSpec::new(ty, &SHAPE).quantized(0.5, 10 - i32::from(less));
        let operands = [builder.input_of(spec()), builder.input_of(spec()), builder.scalar_i32(0)];
        let sum = builder.result_of(OperationType::Add, &operands, spec());
        builder.output(sum);
        let (one, other) = ([10, 11, 12, 13, 14, 15, 40, 100], [10, 20, 30, 40, 50, 60, 70, 80]);
        let sums = [10, 21, 32, 43, 54, 65, 100, 170];
        let stored = |values: [u8; 8]| values.map(|value| value.wrapping_sub(less)).to_vec();
        Ok(Sample {
            name,
            model: built(builder)?,
            inputs: vec![stored(one), stored(other)],
            outputs: vec![(SHAPE.to_vec(), stored(sums))],
        })
    }

    /// A RELU of the scores that are left at a threshold of 0.5, where none is: its output has no element.
    pub(super) fn empty() -> Result<Self, String> {
        let mut builder = ModelBuilder::new();
        let scores = builder.input(F32, &[1, 2]);
        let corners = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
        let boxes = builder.constant_f32(&[1, 8], &corners);
        let split = builder.constant_i32(&[1], &[0]);
        let half = builder.scalar_f32(0.5);
        let (no_limit, hard) = (builder.scalar_i32(-1), builder.scalar_i32(0));
        let left = builder.operation(
            OperationType::BoxWithNmsLimit,
            &[scores, boxes, split, half, no_limit, hard, half, half, half],
            &[
                OutputSpec::new(F32, &[0]),
                OutputSpec::new(F32, &[0, 4]),
                OutputSpec::new(OperandType::TensorInt32, &[0]),
                OutputSpec::new(OperandType::TensorInt32, &[0]),
            ],
        );
        let positive = builder.result_of(OperationType::Relu, &[left[0]], OutputSpec::f32(&[0]));
        builder.output(positive);
        Ok(Sample {
            name: "empty",
            model: built(builder)?,
            inputs: vec![floats(&[0.0, 0.25])],
            outputs: vec![(vec![0], Vec::new())],
        })
    }

    /// `x` as long as it is below 1: `x + 0`. It begins with 0, and so never ends.
    pub(super) fn endless() -> Result<Self, String> {
        let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
        let mut builder = ModelBuilder::new();
        let condition = builder.referenced(|graph| {
            let x = graph.input_of(int());
            let one = graph.constant_i32(&[1], &[1]);
            let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
            let less = graph.result_of(OperationType::Less, &[x, one], truth);
            graph.output(less);
        });
        let body = builder.referenced(|graph| {
            let x = graph.input_of(int());
            let (zero, none) = (graph.constant_i32(&[1], &[0]), graph.scalar_i32(0));
            let next = graph.result_of(OperationType::Add, &[x, zero, none], int());
            graph.output(next);
        });
        let x = builder.input_of(int());
        let graphs = [condition, body].map(|graph| builder.subgraph(graph));
        let end = builder.result_of(OperationType::While, &[graphs[0], graphs[1], x], int());
        builder.output(end);
        Ok(Sample {
            name: "endless",
            model: built(builder)?,
            inputs: vec![vec![0; 4]],
            outputs: vec![(vec![1], vec![0; 4])],
        })
    }

    /// Those that execute like any model, and that the device runs.
    pub(super) fn all(device: &dyn Device) -> Result<Vec<Self>, String> {
        let mut runs = vec![Self::chain()?, Self::quantized()?, Self::quantized_signed()?];
        let mut failed = None;
        runs.retain(|sample| match sample.is_supported(device) {
            Ok(supported) => supported,
            Err(what) => {
                failed = Some(what);
                false
            }
        });
        failed.map_or(Ok(runs), Err)
    }

    /// Whether the device runs every operation of it.
    pub(super) fn is_supported(&self, device: &dyn Device) -> Result<bool, String> {
        let supported = device.supported_operations(&self.model).map_err(refused(self.name))?;
        match supported.len() == self.model.main.operations.len() {
            true => Ok(!supported.contains(&false)),
            false => Err(format!("{}: {} answers", self.name, supported.len())),
        }
    }

    /// The same, of whose outputs the model knows the rank alone.
    pub(super) fn with_unknown_outputs(mut self) -> Self {
        let main = &mut self.model.main;
        for index in &main.output_indexes {
            main.operands[*index as usize].dimensions.fill(0);
        }
        self
    }

    /// Prepares it as it is.
    pub(super) fn prepare(&self, device: &dyn Device) -> Result<Arc<dyn PreparedModel>, String> {
        let prepared = device.prepare_model(&self.model, &PrepareOptions::default());
        prepared.map_err(refused(self.name))
    }

    /// A request with inputs and room for the outputs, of which the first has so many bytes too few. One
    /// without elements has a byte all the same.
    pub(super) fn laid(&self, short: usize) -> Laid {
        let (mut pools, mut outputs) = (Vec::new(), Vec::new());
        for input in &self.inputs {
            pools.push(Arc::new(SharedMemory::new(input)) as Pool);
        }
        for (index, (_, bytes)) in self.outputs.iter().enumerate() {
            let short = if index == 0 { short } else { 0 };
            let room = bytes.len().saturating_sub(short).max(1);
            outputs.push(Arc::new(SharedMemory::new(&vec![UNTOUCHED; room])) as Pool);
        }
        pools.extend(outputs.iter().cloned());
        let mut arguments = (0..).zip(&pools).map(|(pool_index, pool)| RequestArgument {
            location: DataLocation {
                pool_index,
                offset: 0,
                length: u32::try_from(pool.len()).unwrap_or(u32::MAX),
            },
            ..RequestArgument::default()
        });
        let inputs = arguments.by_ref().take(self.inputs.len()).collect();
        let request = Request {
            inputs,
            outputs: arguments.collect(),
            pools: pools.iter().cloned().map(RequestPool::Memory).collect(),
        };
        Laid { request, outputs }
    }

    /// Shapes of the outputs.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &[u32]> {
        self.outputs.iter().map(|(shape, _)| shape.as_slice())
    }

    /// Asserts that the outputs are these.
    pub(super) fn check_values(&self, laid: &Laid) -> Result<(), String> {
        for (index, ((_, want), pool)) in self.outputs.iter().zip(&laid.outputs).enumerate() {
            let mut got = vec![0; want.len()];
            pool.read(0, &mut got).map_err(|error| error.to_string())?;
            if got != *want {
                let name = self.name;
                return Err(format!("{name}: output {index} is {got:?}, and should be {want:?}"));
            }
        }
        Ok(())
    }

    /// Asserts that nothing was written to the outputs.
    pub(super) fn check_untouched(&self, laid: &Laid) -> Result<(), String> {
        for (index, pool) in laid.outputs.iter().enumerate() {
            let mut bytes = vec![0; usize::try_from(pool.len()).unwrap_or(0)];
            pool.read(0, &mut bytes).map_err(|error| error.to_string())?;
            if bytes.iter().any(|byte| *byte != UNTOUCHED) {
                return Err(format!("{}: output {index} was written", self.name));
            }
        }
        Ok(())
    }
}

/// What the memory of outputs holds before.
const UNTOUCHED: u8 = 0xA5;
