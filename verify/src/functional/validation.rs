//! Models and requests that are wrong: `ValidationTest`.

use std::collections::BTreeMap;

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, Route,
};

use super::generated::{expect_failed, measuring, way};
use super::samples::{Sample, all_supported};
use super::{Check, Checked, Verdict};
use crate::validation::{Breaker, Mutation, lifetimes, operands, operations};

use Route::{Asynchronous, Burst, Fenced, Synchronous};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "ValidationTest/executionOrder", run: |d| wrong(d, operations::execution_order) },
    Check { name: "ValidationTest/operandType", run: |d| wrong(d, operands::unknown_types) },
    Check { name: "ValidationTest/operandRank", run: |d| wrong(d, operands::ranks) },
    Check { name: "ValidationTest/operandScale", run: |d| wrong(d, operands::scales) },
    Check { name: "ValidationTest/operandZeroPoint", run: |d| wrong(d, operands::zero_points) },
    Check { name: "ValidationTest/operandLifeTime", run: |d| wrong(d, lifetimes::lifetimes) },
    Check { name: "ValidationTest/operandInputOutput", run: |d| wrong(d, lifetimes::interfaces) },
    Check {
        name: "ValidationTest/operandNumberOfConsumers",
        run: |d| wrong(d, operands::consumers),
    },
    Check {
        name: "ValidationTest/operandAddWriter",
        run: |d| wrong(d, operations::second_writers),
    },
    Check { name: "ValidationTest/operationOperandType", run: |d| wrong(d, operands::other_types) },
    Check { name: "ValidationTest/operationType", run: |d| wrong(d, operations::unknown_types) },
    Check {
        name: "ValidationTest/operationInputOperandIndex",
        run: |d| wrong(d, operations::unknown_inputs),
    },
    Check {
        name: "ValidationTest/operationOutputOperandIndex",
        run: |d| wrong(d, operations::unknown_outputs),
    },
    Check {
        name: "ValidationTest/operationRemoveWrite",
        run: |d| wrong(d, operations::missing_writers),
    },
    Check { name: "ValidationTest/removeOperand", run: |d| wrong(d, operands::removed) },
    Check { name: "ValidationTest/removeOperation", run: |d| wrong(d, operations::removed) },
    Check {
        name: "ValidationTest/removeOperationInput",
        run: |d| wrong(d, operations::removed_inputs),
    },
    Check {
        name: "ValidationTest/removeOperationOutput",
        run: |d| wrong(d, operations::removed_outputs),
    },
    Check { name: "ValidationTest/addOperationInput", run: |d| wrong(d, operations::added_inputs) },
    Check {
        name: "ValidationTest/addOperationOutput",
        run: |d| wrong(d, operations::added_outputs),
    },
    Check {
        name: "ValidationTest/removeInputSync",
        run: |d| request(d, Synchronous, Part::Inputs),
    },
    Check {
        name: "ValidationTest/removeInputAsync",
        run: |d| request(d, Asynchronous, Part::Inputs),
    },
    Check { name: "ValidationTest/removeInputFenced", run: |d| request(d, Fenced, Part::Inputs) },
    Check { name: "ValidationTest/removeInputBurst", run: |d| request(d, Burst, Part::Inputs) },
    Check {
        name: "ValidationTest/removeOutputSync",
        run: |d| request(d, Synchronous, Part::Outputs),
    },
    Check {
        name: "ValidationTest/removeOutputAsync",
        run: |d| request(d, Asynchronous, Part::Outputs),
    },
    Check { name: "ValidationTest/removeOutputFenced", run: |d| request(d, Fenced, Part::Outputs) },
    Check { name: "ValidationTest/removeOutputBurst", run: |d| request(d, Burst, Part::Outputs) },
];

/// Every operation and operand of this model has something that can be made wrong: scalars beside tensors,
/// a shape as data, a concatenation, an average, numbers with scales for each channel.
fn varied() -> Result<Model, String> {
    let mut builder = ModelBuilder::new();
    let image = |scale| {
        OutputSpec::new(OperandType::TensorQuant8Asymm, &[1, 4, 4, 2]).quantized(scale, 128)
    };
    let x = builder.input_of(image(0.5));
    let filter = OutputSpec::new(OperandType::TensorQuant8SymmPerChannel, &[2, 1, 1, 2]);
    let filter = builder.constant_i8(filter.per_channel(&[0.25, 0.125], 0), &[1, 2, 3, 4]);
    let bias = OutputSpec::new(OperandType::TensorInt32, &[2]);
    let bias = builder.constant_i32_of(bias, &[5, 6]);
    let (zero, one) = (builder.scalar_i32(0), builder.scalar_i32(1));
    let explicit = [x, filter, bias, zero, zero, zero, zero, one, one, zero];
    let convolved = builder.result_of(OperationType::Conv2d, &explicit, image(0.75));
    let window = [convolved, zero, zero, zero, zero, one, one, one, one, zero];
    let average = builder.result_of(OperationType::AveragePool2d, &window, image(0.75));
    let axis = builder.scalar_i32(3);
    let wide = OutputSpec::new(OperandType::TensorQuant8Asymm, &[1, 4, 4, 4]).quantized(0.75, 128);
    let joined = [convolved, average, axis];
    let joined = builder.result_of(OperationType::Concatenation, &joined, wide);
    let shape = builder.constant_i32(&[2], &[1, 64]);
    let flat = OutputSpec::new(OperandType::TensorQuant8Asymm, &[1, 64]).quantized(0.75, 128);
    let flat = builder.result_of(OperationType::Reshape, &[joined, shape], flat);
    let real = builder.result_of(OperationType::Dequantize, &[flat], OutputSpec::f32(&[1, 64]));
    let beta = builder.scalar_f32(1.0);
    let shares =
        builder.result_of(OperationType::Softmax, &[real, beta], OutputSpec::f32(&[1, 64]));
    builder.output(shares);
    builder.build().map_err(|error| error.to_string())
}

/// Breaks models in one way, wherever they can be; each of the broken ones has to be refused.
fn wrong(device: &dyn Device, mutation: Mutation) -> Checked {
    let mut models = BTreeMap::new();
    models.insert("varied", varied()?);
    for sample in [Sample::chain()?, Sample::quantized()?, Sample::endless()?] {
        models.insert(sample.name, sample.model);
    }
    let mut tried = 0;
    for (name, model) in &models {
        let mut breaker = Breaker::new(device, model);
        mutation(&mut breaker);
        tried += breaker.verdict().map_err(|what| format!("{name}: {what}"))?;
    }
    match tried {
        0 => Err("no model could be broken so".to_owned()),
        _ => Ok(Verdict::Passed),
    }
}

/// The arguments of which a request has one too few.
#[derive(Debug, Clone, Copy)]
enum Part {
    Inputs,
    Outputs,
}

/// A request that lacks one argument is refused, at once where there is a launch, and the next legal one
/// executes.
fn request(device: &dyn Device, route: Route, part: Part) -> Checked {
    for sample in all_supported!(device) {
        let model = sample.prepare(device)?;
        let mut way = way!(&model, route, sample);
        let whole = sample.laid(0).request;
        let count = match part {
            Part::Inputs => whole.inputs.len(),
            Part::Outputs => whole.outputs.len(),
        };
        for (index, measured) in (0..count).flat_map(|index| [(index, false), (index, true)]) {
            let mut laid = sample.laid(0);
            match part {
                Part::Inputs => drop(laid.request.inputs.remove(index)),
                Part::Outputs => drop(laid.request.outputs.remove(index)),
            }
            let ran = way.execute(&laid.request, &measuring(measured))?;
            let invalid = ErrorStatus::InvalidArgument;
            expect_failed(&sample, &laid, &ran, |status| status == invalid)?;
            let is_launched = matches!(route, Asynchronous | Fenced);
            if is_launched && ran.refused != Some(invalid) {
                return Err(format!("without {part:?} {index}: the launch takes it"));
            }
            let legal = sample.laid(0);
            let ran = way.execute(&legal.request, &ExecutionOptions::default())?;
            super::generated::expect_right(&sample, &legal, &ran, false)?;
        }
    }
    Ok(Verdict::Passed)
}
