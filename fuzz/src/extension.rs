//! Models with types and operations of an extension, and requests for them.
//!
//! Looked at: all that the contract promises of any model ([`burst_verify::fuzzing`]), of a device whose engine has
//! an extension that is a crate of its own.

use std::sync::OnceLock;

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    ExtensionCode, Model, ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions,
};
use burst_verify::fuzzing::judge_model;
use example_extension as extension;

use crate::judged::succeeded;
use crate::{Input, Script, Seed, seed};

/// What stands for the extension in a model.
const PREFIX: u16 = 3;
/// Most operations of a model.
const OPERATIONS_MAX: usize = 4;

fn device() -> &'static CpuDevice {
    static DEVICE: OnceLock<CpuDevice> = OnceLock::new();
    DEVICE.get_or_init(|| extension::device(DeviceOptions::default()).unwrap())
}

/// Choices of which a model is made, then those of which requests are.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let model = model(&mut input);
    succeeded(judge_model(device(), &model, &PrepareOptions::default(), input.rest()))
}

/// The types and operations of the model under construction: those of the extension, more often than not.
struct Names {
    prefix: u16,
    /// Added to a number, so that nothing has it.
    beyond: u16,
}

impl Names {
    fn ty(&self, number: u16) -> OperandType {
        ExtensionCode { prefix: self.prefix, number: number + self.beyond }.operand_type()
    }

    fn operation(&self, number: u16) -> OperationType {
        ExtensionCode { prefix: self.prefix, number: number + self.beyond }.operation_type()
    }
}

fn model(input: &mut Input<'_>) -> Model {
    let mut b = ModelBuilder::new();
    let (name, prefix, beyond) = match input.below(8) {
        0 => ("org.example.unknown", PREFIX, 0),
        1 => (extension::NAME, PREFIX + 1, 0),
        2 => (extension::NAME, PREFIX, 9),
        _ => (extension::NAME, PREFIX, 0),
    };
    b.extension(name, PREFIX);
    let names = Names { prefix, beyond };
    let shape = [1 + u32::from(input.u8() % 3), 1 + u32::from(input.u8() % 4)];
    let tensor = OutputSpec::new(names.ty(extension::TENSOR_COMPLEX_Q15), &shape);
    let mut value = b.input_of(tensor.clone());
    for _ in 0..=input.below(OPERATIONS_MAX) {
        let factor = factor(&mut b, &names, &tensor, input);
        let inputs: &[u32] = match input.below(8) {
            0 => &[value],
            1 => &[factor, value],
            _ => &[value, factor],
        };
        let output = match input.below(8) {
            0 => OutputSpec::new(tensor.ty, &[0, 0]),
            1 => OutputSpec::new(tensor.ty, &[]),
            2 => OutputSpec::f32(&shape),
            _ => tensor.clone(),
        };
        value = b.result_of(names.operation(extension::MULTIPLY), inputs, output);
    }
    if input.flag() {
        let spec = OutputSpec::f32(if input.flag() { &shape } else { &[0, 0] });
        let magnitude = b.result_of(names.operation(extension::MAGNITUDE), &[value], spec.clone());
        value = b.result_of(OperationType::Sqrt, &[magnitude], spec);
    }
    b.output(value);
    b.build_unvalidated().unwrap_or_default()
}

/// What a value is multiplied with: an input or a constant, a tensor or a scalar.
fn factor(b: &mut ModelBuilder, names: &Names, tensor: &OutputSpec, input: &mut Input<'_>) -> u32 {
    let scalar = OutputSpec::new(names.ty(extension::COMPLEX_Q15), &[]);
    let elements = tensor.dimensions.iter().product::<u32>() as usize;
    match input.below(6) {
        0 => b.input_of(tensor.clone()),
        1 => b.input_of(scalar),
        2 => {
            let bytes = input.bytes(4).to_vec();
            b.constant_bytes(scalar, &bytes)
        }
        3 => b.omitted(tensor.ty),
        _ => {
            let mut bytes = input.bytes(4 * elements).to_vec();
            bytes.resize(4 * elements, 0x40);
            b.constant_bytes(tensor.clone(), &bytes)
        }
    }
}

/// A model of each form, and of each name that nothing has.
pub fn seeds() -> Vec<Seed> {
    let script = |bytes: &[u8]| Script::new().bytes(bytes).bytes(&[9; 48]);
    vec![
        // Name, rows, columns, operations; then of each: factor, inputs, output; magnitude.
        seed("tensor_and_tensor", script(&[3, 1, 1, 0, 0, 2, 3, 0])),
        seed("tensor_and_scalar", script(&[3, 1, 1, 0, 1, 2, 3, 0])),
        seed("constant_scalar", script(&[3, 1, 1, 0, 2, 1, 2, 3, 4, 2, 3, 1, 1])),
        seed("constant_tensor", script(&[3, 0, 0, 0, 4, 1, 2, 3, 4, 2, 3, 1, 0])),
        seed("several", script(&[3, 1, 1, 2, 0, 2, 3, 1, 2, 3, 0, 2, 0, 1, 1])),
        seed("unknown_name", script(&[0, 1, 1, 0, 0, 2, 3, 0])),
        seed("unknown_prefix", script(&[1, 1, 1, 0, 0, 2, 3, 0])),
        seed("unknown_number", script(&[2, 1, 1, 0, 0, 2, 3, 0])),
        seed("too_few_inputs", script(&[3, 1, 1, 0, 0, 0, 3, 0])),
    ]
}
