//! What workers run: models of which every device takes one at least, each with inputs and the outputs that the
//! driver in this process makes of them, and one that never ends by itself.

use std::sync::Arc;

use anyhow::{Context, Result};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::session::{HeapAllocator, ModelSession, SessionOptions};
use burst_hal::{ExecutionOptions, Model, ModelBuilder, OperandType, OperationType, OutputSpec};

use crate::model_file;
use crate::random::Random;

/// Different inputs of each model.
const CASES: usize = 8;
/// How many values the sums add.
const WIDTHS: [u32; 4] = [16, 300, 4096, 20_000];
/// Constants and inputs are whole numbers below this: no sum of them is rounded.
const NUMBERS: usize = 256;

/// A model with one input and one output.
pub(super) struct Subject {
    pub(super) model: Model,
    /// Inputs, each with the output that is right for it.
    cases: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Subject {
    /// An input, and the output that is right for it.
    pub(super) fn case(&self, random: &mut Random) -> (Vec<u8>, Vec<u8>) {
        self.cases[random.below(self.cases.len())].clone()
    }
}

/// All of them: the built-in model, of bytes, and sums of floats, whose constants the seed determines.
pub(super) fn all(random: &mut Random) -> Result<Vec<Subject>> {
    let built_in = model_file::load(None)?.imported.model;
    let mut models = vec![built_in];
    for width in WIDTHS {
        models.push(sum(random, width)?);
    }
    let device = CpuDevice::new(DeviceOptions { threads: 1, ..DeviceOptions::default() });
    let subject = |model| {
        let cases = cases(&device, &model, random)?;
        Ok(Subject { model, cases })
    };
    models.into_iter().map(subject).collect()
}

fn cases(
    device: &CpuDevice,
    model: &Model,
    random: &mut Random,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let options = SessionOptions::default();
    let mut session = ModelSession::open(device, model, &options, Arc::new(HeapAllocator))
        .context("the driver in this process does not take the model")?;
    let length = session.tensors().layout().input_slot(0, 0).length as usize;
    let is_float = session.tensors().layout().inputs()[0].ty == OperandType::TensorFloat32;
    let mut cases = Vec::new();
    for _ in 0..CASES {
        let input: Vec<u8> = if is_float {
            numbers(random, length / size_of::<f32>())
                .iter()
                .flat_map(|x| x.to_ne_bytes())
                .collect()
        } else {
            (0..length).map(|_| u8::try_from(random.below(256)).unwrap_or(0)).collect()
        };
        session.write_input(0, &input)?;
        session.run(&ExecutionOptions::default()).context("the driver in this process")?;
        let mut output = Vec::new();
        session.read_output(0, &mut output)?;
        cases.push((input, output));
    }
    Ok(cases)
}

/// Whole numbers, as floats.
fn numbers(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| f32::from(u16::try_from(random.below(NUMBERS)).unwrap_or(0))).collect()
}

/// An input to which two constants are added, of so many floats.
pub(super) fn sum(random: &mut Random, width: u32) -> Result<Model> {
    let shape = [1, width];
    let mut b = ModelBuilder::new();
    let mut sum = b.input(OperandType::TensorFloat32, &shape);
    for _ in 0..2 {
        let numbers = numbers(random, width as usize);
        let (constant, no_activation) = (b.constant_f32(&shape, &numbers), b.scalar_i32(0));
        let terms = [sum, constant, no_activation];
        sum = b.result_of(OperationType::Add, &terms, OutputSpec::f32(&shape));
    }
    b.output(sum);
    b.build().context("a sum")
}

/// What [`endless`] takes: two numbers, the first of which never reaches the second.
pub(super) const ENDLESS_INPUTS: [[u8; 4]; 2] = [0_i32.to_ne_bytes(), 1_i32.to_ne_bytes()];

/// A loop that goes on until somebody ends it: while a number is below another one nothing is added to it.
pub(super) fn endless() -> Result<Model> {
    let number = |b: &mut ModelBuilder| b.input(OperandType::TensorInt32, &[1]);
    let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, end) = (number(b), number(b));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, end], truth);
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (number(b), number(b));
        let (zero, no_activation) = (b.constant_i32(&[1], &[0]), b.scalar_i32(0));
        let next = b.result_of(OperationType::Add, &[x, zero, no_activation], int());
        b.output(next);
    });
    let (x, end) = (number(&mut b), number(&mut b));
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, end], int());
    b.output(out);
    b.build().context("a loop")
}

#[cfg(test)]
mod tests {
    use burst_driver::{Engine, Variant};
    use burst_hal::Device;

    use super::*;

    #[test]
    fn every_device_takes_a_model_whole_and_the_same_seed_makes_the_same() {
        let engine = Arc::new(Engine::default());
        let subjects = all(&mut Random::new(7, 0)).unwrap();
        for variant in Variant::ALL {
            let device = CpuDevice::of(&engine, variant);
            let takes = |subject: &Subject| {
                device.supported_operations(&subject.model).unwrap().iter().all(|runs| *runs)
            };
            assert!(subjects.iter().any(takes), "{}", variant.name);
        }
        let again = all(&mut Random::new(7, 0)).unwrap();
        let cases = |subjects: &[Subject]| -> Vec<_> {
            subjects.iter().flat_map(|subject| subject.cases.clone()).collect()
        };
        assert_eq!(cases(&subjects), cases(&again));
        let whole = CpuDevice::of(&engine, &Variant::CPU);
        let endless = whole.supported_operations(&endless().unwrap()).unwrap();
        assert_eq!(endless, [true]);
    }
}
