//! Models made of any bytes: operations in one of their forms, on values of one another; or of the generator.

use burst_hal::forms::{Signature, TypeChoice, signatures};
use burst_hal::{
    Dimensions, ExecutionPreference, Model, ModelBuilder, OperandType, OperationType, OutputSpec,
    PrepareOptions, Priority,
};

use super::broken::break_model;
use super::bytes::Bytes;
use super::values::{shape, spec, value};
use super::{Made, Suited, control, grown};

/// Most operations of a model: enough for values to go from one to the next.
const OPERATIONS_MAX: usize = 5;
/// Of so many models one is broken somewhere.
const BROKEN_ONE_IN: usize = 6;

/// From this first byte on, a model is one of the generator.
const GROWN_FROM: u8 = 192;

/// The model that these bytes stand for, and how it is to be prepared.
pub(super) fn made(bytes: &mut Bytes<'_>) -> Made {
    let first = bytes.byte();
    let is_broken = usize::from(first) % BROKEN_ONE_IN + 1 == BROKEN_ONE_IN;
    let (mut model, options, suited) = match first {
        GROWN_FROM.. => {
            let options = options(bytes);
            let (model, suited) = grown::model(bytes);
            (model, options, suited)
        }
        _ => {
            let count = 1 + bytes.below(OPERATIONS_MAX);
            let options = options(bytes);
            (chosen(bytes, count), options, Suited::default())
        }
    };
    if is_broken {
        break_model(&mut model, bytes);
    }
    Made { model, options, suited }
}

fn options(bytes: &mut Bytes<'_>) -> PrepareOptions {
    PrepareOptions {
        preference: ExecutionPreference::from_code(i32::from(bytes.byte() % 3))
            .unwrap_or(ExecutionPreference::FastSingleAnswer),
        priority: Priority::from_code(i32::from(bytes.byte() % 3)).unwrap_or(Priority::Medium),
        deadline: None,
    }
}

/// So many operations whose every part is a choice.
fn chosen(bytes: &mut Bytes<'_>, count: usize) -> Model {
    let mut maker = Maker { bytes, builder: ModelBuilder::new(), values: Vec::new() };
    for _ in 0..count {
        maker.operation();
    }
    maker.finish()
}

/// A value of the model under construction.
struct Known {
    index: u32,
    spec: OutputSpec,
    /// Whether an operation makes it, and none reads it.
    is_result: bool,
}

struct Maker<'m, 'b> {
    bytes: &'m mut Bytes<'b>,
    builder: ModelBuilder,
    values: Vec<Known>,
}

impl Maker<'_, '_> {
    /// Adds an operation in one of its forms.
    fn operation(&mut self) {
        let ty = OperationType::ALL[self.bytes.below(OperationType::ALL.len())];
        if matches!(ty, OperationType::If | OperationType::While) {
            let (index, spec) = control::operation(&mut self.builder, self.bytes, ty);
            return self.values.push(Known { index, spec, is_result: true });
        }
        let forms = signatures(ty);
        let Some(form) = forms.get(self.bytes.below(forms.len())) else { return };
        let inputs = self.inputs(form);
        let outputs: Vec<OutputSpec> =
            form.outputs.iter().map(|choice| self.output(ty, choice, &inputs)).collect();
        let indexes: Vec<u32> = inputs.iter().map(|(index, _)| *index).collect();
        let results = self.builder.operation(ty, &indexes, &outputs);
        for known in &mut self.values {
            known.is_result &= !indexes.contains(&known.index);
        }
        let results = results.into_iter().zip(outputs);
        let known = results.map(|(index, spec)| Known { index, spec, is_result: true });
        self.values.extend(known);
    }

    fn inputs(&mut self, form: &Signature) -> Vec<(u32, OutputSpec)> {
        let mut inputs: Vec<(u32, OutputSpec)> = Vec::new();
        for choice in &form.inputs {
            let ty = self.choose(choice);
            let input = self.input(ty, &inputs);
            inputs.push(input);
        }
        inputs
    }

    fn choose(&mut self, choice: &TypeChoice) -> OperandType {
        let index = self.bytes.below(choice.len());
        choice.get(index).copied().unwrap_or(OperandType::TensorFloat32)
    }

    /// An operand of this type behind these: one that there is, or a new one.
    fn input(&mut self, ty: OperandType, before: &[(u32, OutputSpec)]) -> (u32, OutputSpec) {
        let how = self.bytes.below(16);
        let mut known = self.values.iter().rev().filter(|known| known.spec.ty == ty);
        if ty.is_tensor()
            && matches!(how, 0..6)
            && let Some(known) = known.nth(usize::from(how > 3))
        {
            return (known.index, known.spec.clone());
        }
        if how == 15 {
            return (self.builder.omitted(ty), OutputSpec::new(ty, &[]));
        }
        let spec = self.new_spec(ty, before);
        let is_constant = match ty {
            OperandType::TensorInt32 => how < 12,
            ty if ty.is_tensor() => !before.is_empty() && how < 10,
            _ => how < 14,
        };
        let index = match is_constant {
            true => {
                let value = value(self.bytes, ty, &spec.dimensions);
                self.builder.constant_bytes(spec.clone(), &value)
            }
            false => {
                let mut open = spec.clone();
                if self.bytes.rarely(8) {
                    open.dimensions.iter_mut().for_each(|size| *size = 0);
                }
                self.builder.input_of(open)
            }
        };
        self.values.push(Known { index, spec: spec.clone(), is_result: false });
        (index, spec)
    }

    /// Shape and scales of a new operand that suit those before it, more often than not.
    fn new_spec(&mut self, ty: OperandType, before: &[(u32, OutputSpec)]) -> OutputSpec {
        if !ty.is_tensor() {
            return OutputSpec::new(ty, &[]);
        }
        let first = before.first().map(|(_, spec)| spec);
        let rank = first.map_or(1, |spec| u32::try_from(spec.dimensions.len()).unwrap_or(0).max(1));
        let like = first.map(|spec| spec.dimensions.clone()).filter(|dims| !dims.is_empty());
        let dimensions: Dimensions = match (ty, self.bytes.below(8), like) {
            // Which axis, how far along each, from where to where.
            (OperandType::TensorInt32, 0..3, Some(_)) => [rank].into_iter().collect(),
            (OperandType::TensorInt32, 3 | 4, Some(_)) => [rank, 2].into_iter().collect(),
            (OperandType::TensorInt32, 5, Some(_)) => [1].into_iter().collect(),
            // One per channel.
            (_, 4 | 5, Some(like)) => like.last().copied().into_iter().collect(),
            (_, 0..4, Some(like)) => like,
            _ => shape(self.bytes),
        };
        // What is not known of an operand before is known of this one.
        let dimensions: Dimensions = dimensions.iter().map(|size| (*size).max(1)).collect();
        if let (OperandType::TensorInt32, [(_, input), (_, filter)]) = (ty, before)
            && input.scale > 0.0
        {
            // A bias has the scale of its products.
            let scale = input.scale * filter.scale;
            let spec = OutputSpec::new(ty, &dimensions);
            return spec.quantized(if scale.is_finite() { scale } else { 0.0 }, 0);
        }
        if let Some(first) = first.filter(|first| first.ty == ty && self.bytes.below(4) < 3) {
            return OutputSpec { dimensions, ..first.clone() };
        }
        spec(self.bytes, ty, &dimensions)
    }

    /// A result: its shape is more often left to the device than not.
    fn output(
        &mut self,
        ty: OperationType,
        choice: &TypeChoice,
        inputs: &[(u32, OutputSpec)],
    ) -> OutputSpec {
        let kind = self.choose(choice);
        let first = inputs.first().map(|(_, spec)| spec);
        let like = first.map_or_else(Dimensions::new, |spec| spec.dimensions.clone());
        let dimensions = match self.bytes.below(8) {
            0..4 => Dimensions::new(),
            4 | 5 => like,
            6 => like.iter().map(|_| 0).collect(),
            _ => shape(self.bytes),
        };
        let spec = spec(self.bytes, kind, &dimensions);
        let low = kind.zero_point_range().0;
        if let (Some(scale), true) = (scale_of(ty), kind.is_quantized()) {
            let middle = if scale < 1.0 / 200.0 { low } else { low + 128 };
            return spec.quantized(scale, middle);
        }
        match first.filter(|first| first.ty == kind && kind.is_quantized()) {
            Some(first) if self.bytes.below(4) < 3 => spec.quantized(first.scale, first.zero_point),
            _ => spec,
        }
    }

    /// What nobody reads is what the model gives.
    fn finish(mut self) -> Model {
        for known in self.values.iter().filter(|known| known.is_result) {
            self.builder.output(known.index);
        }
        // The constants of so few operations fit.
        self.builder.build_unvalidated().unwrap_or_default()
    }
}

/// The scale that the results of some operations must have.
fn scale_of(ty: OperationType) -> Option<f32> {
    match ty {
        OperationType::Softmax | OperationType::Logistic => Some(1.0 / 256.0),
        OperationType::Tanh | OperationType::L2Normalization => Some(1.0 / 128.0),
        _ => None,
    }
}
