//! The forms of an operation, listed: for who makes models, or wants to know what to support.

use smallvec::{SmallVec, smallvec};

use super::notation::{Form, List, Slot};
use crate::OperandType::{
    Bool, Float16, Float32, Int32, TensorFloat16, TensorFloat32, TensorInt32,
    TensorQuant8SymmPerChannel, TensorQuant16Asymm,
};
use crate::{HalVersion, OperandType, OperationType};

/// The types that one operand may have; none for any type.
pub type TypeChoice = SmallVec<[OperandType; 4]>;

/// One way to write an operation: which operands it reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The first version that has it. A type that was chosen may be newer.
    pub since: HalVersion,
    /// The types that each input may have.
    pub inputs: Vec<TypeChoice>,
    /// The types that each output may have.
    pub outputs: Vec<TypeChoice>,
}

/// Every way to write an operation of the base range; none for others, which take anything. Of lists that
/// may be of any length the shortest is given, and one with an operand more.
///
/// ```
/// use burst_hal::{HalVersion, OperandType, OperationType, forms};
///
/// let add = forms::signatures(OperationType::Add);
/// let floats = &add[0];
/// assert_eq!(floats.since, HalVersion::V1_0);
/// let types: Vec<&[OperandType]> = floats.inputs.iter().map(|choice| &choice[..]).collect();
/// let tensor = OperandType::TensorFloat32;
/// assert_eq!(types, [&[tensor][..], &[tensor], &[OperandType::Int32]]);
/// // Integers came last.
/// let last = add.last().expect("it has several");
/// assert_eq!((last.since, last.outputs[0][0]), (HalVersion::V1_3, OperandType::TensorInt32));
/// ```
#[must_use]
pub fn signatures(ty: OperationType) -> Vec<Signature> {
    super::forms_of(ty).flat_map(signatures_of).collect()
}

fn signatures_of(form: &'static Form) -> impl Iterator<Item = Signature> {
    form.main.iter().flat_map(move |(main, since)| {
        form.inputs.lengths().into_iter().flat_map(move |inputs| {
            let lengths = form.outputs.lengths().into_iter();
            lengths.filter_map(move |outputs| signature(form, (*main, *since), inputs, outputs))
        })
    })
}

/// The form with lists of these lengths.
fn signature(
    form: &Form,
    (main, since): (OperandType, HalVersion),
    inputs: usize,
    outputs: usize,
) -> Option<Signature> {
    let base = form.ty.since()?.max(since);
    let since = form.inputs.since(inputs, base)?.max(form.outputs.since(outputs, base)?).max(base);
    let choices = |list: &List, count| -> Option<Vec<TypeChoice>> {
        (0..count).map(|position| Some(list.slot(position, count)?.choices(main))).collect()
    };
    let (inputs, outputs) = (choices(&form.inputs, inputs)?, choices(&form.outputs, outputs)?);
    Some(Signature { since, inputs, outputs })
}

impl List {
    /// Lengths that the list may have.
    pub(super) fn lengths(&self) -> SmallVec<[usize; 4]> {
        match self.repeat {
            Some(repeat) => {
                let shortest = (self.slots.len() + repeat.least).saturating_sub(1);
                smallvec![shortest, shortest + 1]
            }
            None if self.counts.is_empty() => smallvec![self.slots.len()],
            None => self.counts.iter().map(|(count, _)| *count).collect(),
        }
    }
}

impl Slot {
    /// The types that may stand here beside this main type; none for any.
    pub(super) fn choices(self, main: OperandType) -> TypeChoice {
        let is_float = matches!(main, TensorFloat32 | TensorFloat16);
        match self {
            Slot::Main => smallvec![main],
            Slot::Is(only) => smallvec![only],
            Slot::Among(types) => types.into(),
            Slot::Real => smallvec![if main == TensorFloat16 { Float16 } else { Float32 }],
            Slot::Bias => smallvec![if is_float { main } else { TensorInt32 }],
            Slot::Filter if is_float => smallvec![main],
            Slot::Filter => smallvec![main, TensorQuant8SymmPerChannel],
            Slot::Boxes => smallvec![if is_float { main } else { TensorQuant16Asymm }],
            Slot::Flag => smallvec![Bool],
            Slot::Dilation | Slot::Axis => smallvec![Int32],
            Slot::Any => TypeChoice::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a signature names is what the form takes, and no other type of the base range is.
    #[test]
    fn signatures_name_exactly_the_types_that_forms_take() {
        for form in OperationType::ALL.iter().flat_map(|ty| super::super::forms_of(*ty)) {
            for (main, _) in form.main {
                for slot in form.inputs.slots.iter().chain(form.outputs.slots) {
                    let choices = slot.choices(*main);
                    for ty in OperandType::ALL {
                        let named = choices.is_empty() || choices.contains(ty);
                        assert_eq!(slot.takes(*ty, *main), named, "{} {main}: {ty}", form.ty);
                    }
                }
            }
        }
    }

    #[test]
    fn every_operation_has_a_signature_since_its_version() {
        for ty in OperationType::ALL {
            let all = signatures(*ty);
            let first = all.iter().map(|signature| signature.since).min();
            assert_eq!(first, ty.since(), "{ty}");
            assert!(all.iter().all(|one| !one.outputs.is_empty()), "{ty}");
        }
        assert!(signatures(OperationType::OemOperation).is_empty());
        assert!(signatures(OperationType::from_code(0x1_0000)).is_empty());
    }

    #[test]
    fn lists_of_any_length_are_given_short_and_longer() {
        let lengths = |ty: OperationType| -> Vec<(usize, usize)> {
            let all = signatures(ty);
            all.iter().map(|one| (one.inputs.len(), one.outputs.len())).take(4).collect()
        };
        assert_eq!(lengths(OperationType::If), [(3, 1), (3, 2), (4, 1), (4, 2)]);
        assert_eq!(lengths(OperationType::Concatenation)[..2], [(2, 1), (3, 1)]);
        assert_eq!(lengths(OperationType::Split)[..2], [(3, 1), (3, 2)]);
        let conv = signatures(OperationType::Conv2d);
        let floats: Vec<usize> = conv
            .iter()
            .filter(|one| one.inputs[0][0] == TensorFloat32)
            .map(|one| one.inputs.len())
            .collect();
        assert!(floats.contains(&7) && floats.contains(&10) && floats.contains(&13), "{floats:?}");
    }
}
