//! What a plan keeps of an operation's attributes.

use burst_hal::{ModelBuilder, OperandType, OperationType, OutputSpec};

use super::plan;
use crate::kernels::Isa;
use crate::offer::Offer;
use crate::op::{Budget, PrepareContext};
use crate::registry::Registry;

const F32: OperandType = OperandType::TensorFloat32;

#[test]
fn constant_attributes_are_parsed_when_the_model_is_planned() {
    for fast_kernels in [false, true] {
        for batches in [2, 0] {
            let mut b = ModelBuilder::new();
            let x = b.input(F32, &[batches, 4, 4, 1]);
            let late = b.input(OperandType::Int32, &[]);
            let [none, one] = [0, 1].map(|value| b.scalar_i32(value));
            let beta = b.scalar_f32(1.0);
            let out = || OutputSpec::new(F32, &[]);
            // A padding scheme, strides, the window, the activation.
            let operands = [x, one, one, one, one, one, none];
            let pooled = b.result_of(OperationType::MaxPool2d, &operands, out());
            let shares = b.result_of(OperationType::Softmax, &[pooled, beta], out());
            let above = b.result_of(OperationType::Relu, &[shares], out());
            let sum = b.result_of(OperationType::Add, &[above, x, none], out());
            let last = b.result_of(OperationType::Add, &[sum, x, late], out());
            b.output(last);
            let context =
                PrepareContext { fast_kernels, isa: Isa::PORTABLE, budget: &Budget::default() };
            let registry = Registry::default();
            let offer = Offer { registry: &registry, takes: |_| true };
            let plan = plan(&b.build().unwrap(), offer, &context).unwrap();
            let steps = plan.main.steps.iter();
            let bound: Vec<_> = steps.map(|step| (step.op, step.bound.is_some())).collect();
            assert_eq!(
                bound,
                [
                    (OperationType::MaxPool2d, true),
                    (OperationType::Softmax, true),
                    (OperationType::Relu, false), // has none
                    (OperationType::Add, true),
                    (OperationType::Add, false), // only the execution knows it
                ]
            );
        }
    }
}
