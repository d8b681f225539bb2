//! How the tables of forms are written: a main type, and for each operand what goes with it.

use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperandType::{
    Bool, Float16, Float32, Int32, Subgraph, TensorBool8, TensorFloat16, TensorFloat32,
    TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8SymmPerChannel,
    TensorQuant16Asymm,
};
use crate::{HalVersion, OperandType, OperationType};

/// Types that the deciding operand may have, each with the first version that allows it.
pub(super) type MainTypes = &'static [(OperandType, HalVersion)];

/// Lengths that a list of operands may have, each with its first version.
pub(super) type Counts = &'static [(usize, HalVersion)];

/// What one operand may be, given the main type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    /// The main type itself.
    Main,
    /// This type.
    Is(OperandType),
    /// One of these types.
    Among(&'static [OperandType]),
    /// The float scalar that goes with the main type: FLOAT16 with half floats, else FLOAT32.
    Real,
    /// A bias: TENSOR_INT32 with a quantized main type, else the main type.
    Bias,
    /// A filter: the main type, or with a quantized one also scales per channel.
    Filter,
    /// Coordinates of boxes: TENSOR_QUANT16_ASYMM with a quantized main type, else the main type.
    Boxes,
    /// A BOOL that is false where it is left off.
    Flag,
    /// An INT32 that is 1 where it is left off.
    Dilation,
    /// An INT32 that is -1, the last axis, where it is left off.
    Axis,
    /// Any type at all.
    Any,
}

impl Slot {
    /// Whether an operand of type `ty` may stand here beside this main type.
    pub(super) fn takes(self, ty: OperandType, main: OperandType) -> bool {
        let is_float = matches!(main, TensorFloat32 | TensorFloat16);
        match self {
            Slot::Main => ty == main,
            Slot::Is(only) => ty == only,
            Slot::Among(types) => types.contains(&ty),
            Slot::Real => ty == if main == TensorFloat16 { Float16 } else { Float32 },
            Slot::Bias => ty == if is_float { main } else { TensorInt32 },
            Slot::Filter => ty == main || (!is_float && ty == TensorQuant8SymmPerChannel),
            Slot::Boxes => ty == if is_float { main } else { TensorQuant16Asymm },
            Slot::Flag => ty == Bool,
            Slot::Dilation | Slot::Axis => ty == Int32,
            Slot::Any => true,
        }
    }

    /// The stored bytes of what holds where this operand is left off; `None` where it has no default.
    pub(super) fn default_bytes(self) -> Option<&'static [u8]> {
        match self {
            Slot::Flag => Some(&[0]),
            Slot::Dilation => Some(&[1, 0, 0, 0]),
            Slot::Axis => Some(&[0xFF; 4]),
            _ => None,
        }
    }
}

/// A slot that may stand in its list several times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repeat {
    /// Position of the slot.
    pub(super) at: usize,
    /// How often it stands there at least.
    pub(super) least: usize,
}

/// The operands that an operation reads, or writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    /// What each may be, the list at its longest.
    pub(super) slots: &'static [Slot],
    /// Lengths that it may have; empty: only the full one.
    pub(super) counts: Counts,
    /// The slot that may be repeated.
    pub(super) repeat: Option<Repeat>,
}

impl List {
    const fn of(slots: &'static [Slot]) -> Self {
        List { slots, counts: &[], repeat: None }
    }

    /// The slot of operand `position` of `count`; `None` where the list cannot be so long or short.
    pub(super) fn slot(&self, position: usize, count: usize) -> Option<Slot> {
        let Some(Repeat { at, least }) = self.repeat else {
            return self.slots.get(position).copied();
        };
        let times = (count + 1).checked_sub(self.slots.len()).filter(|times| *times >= least)?;
        let position = if position < at + times { position.min(at) } else { position + 1 - times };
        self.slots.get(position).copied()
    }

    /// Whether operands of these types, in this order, can be the list, whatever the version.
    pub(super) fn takes(
        &self,
        types: impl ExactSizeIterator<Item = OperandType>,
        main: OperandType,
    ) -> bool {
        let count = types.len();
        let takes = |position, ty| self.slot(position, count).is_some_and(|s| s.takes(ty, main));
        self.since(count, V1_0).is_some()
            && types.enumerate().all(|(position, ty)| takes(position, ty))
    }

    /// The first version in which the list may have this length, `base` where that is always so.
    pub(super) fn since(&self, count: usize, base: HalVersion) -> Option<HalVersion> {
        if let Some(Repeat { least, .. }) = self.repeat {
            return (count + 1 >= self.slots.len() + least).then_some(base);
        }
        if self.counts.is_empty() {
            return (count == self.slots.len()).then_some(base);
        }
        self.counts.iter().find(|(allowed, _)| *allowed == count).map(|(_, since)| *since)
    }
}

/// One way to write an operation, for each of several main types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Which operation.
    pub(super) ty: OperationType,
    /// What the deciding operand may be.
    pub(super) main: MainTypes,
    /// What it reads.
    pub(super) inputs: List,
    /// What it writes.
    pub(super) outputs: List,
}

/// A form whose lists have one length each.
pub(super) const fn form(
    ty: OperationType,
    main: MainTypes,
    inputs: &'static [Slot],
    outputs: &'static [Slot],
) -> Form {
    Form { ty, main, inputs: List::of(inputs), outputs: List::of(outputs) }
}

impl Form {
    /// With inputs that may be left off the end.
    pub(super) const fn inputs(mut self, counts: Counts) -> Self {
        self.inputs.counts = counts;
        self
    }

    /// With outputs that may be left off the end.
    pub(super) const fn outputs(mut self, counts: Counts) -> Self {
        self.outputs.counts = counts;
        self
    }

    /// With an input that may be there several times.
    pub(super) const fn repeat_input(mut self, at: usize, least: usize) -> Self {
        self.inputs.repeat = Some(Repeat { at, least });
        self
    }

    /// With an output that may be there several times.
    pub(super) const fn repeat_output(mut self, at: usize, least: usize) -> Self {
        self.outputs.repeat = Some(Repeat { at, least });
        self
    }
}

/// Short names for the tables.
pub(super) mod short {
    use super::{
        Bool, Float32, Int32, OperandType, Slot, Subgraph, TensorBool8, TensorFloat16,
        TensorFloat32, TensorInt32, TensorQuant8Asymm,
    };

    /// The main type.
    pub(in super::super) const M: Slot = Slot::Main;
    /// The float scalar of the main type.
    pub(in super::super) const REAL: Slot = Slot::Real;
    /// INT32.
    pub(in super::super) const I32: Slot = Slot::Is(Int32);
    /// FLOAT32.
    pub(in super::super) const F32: Slot = Slot::Is(Float32);
    /// BOOL, always given.
    pub(in super::super) const BOOL: Slot = Slot::Is(Bool);
    /// TENSOR_INT32.
    pub(in super::super) const TI32: Slot = Slot::Is(TensorInt32);
    /// TENSOR_BOOL8.
    pub(in super::super) const TB8: Slot = Slot::Is(TensorBool8);
    /// TENSOR_QUANT8_ASYMM.
    pub(in super::super) const TQ8: Slot = Slot::Is(TensorQuant8Asymm);
    /// SUBGRAPH.
    pub(in super::super) const GRAPH: Slot = Slot::Is(Subgraph);
    /// The types among which 1.2 casts.
    pub(in super::super) const CAST: &[OperandType] =
        &[TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm];
}

/// Floats since 1.0, half floats since 1.2.
pub(super) const FLOATS: MainTypes = &[(TensorFloat32, V1_0), (TensorFloat16, V1_2)];
/// The same, of an operation that came with 1.2.
pub(super) const FLOATS_1_2: MainTypes = &[(TensorFloat32, V1_2), (TensorFloat16, V1_2)];
/// What most operations of 1.0 and 1.1 take: floats and bytes, later half floats and signed bytes.
pub(super) const COMMON: MainTypes = &[
    (TensorFloat32, V1_0),
    (TensorQuant8Asymm, V1_0),
    (TensorFloat16, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
/// Floats since 1.0, everything else of [`COMMON`] later.
pub(super) const FLOAT_FIRST: MainTypes = &[
    (TensorFloat32, V1_0),
    (TensorQuant8Asymm, V1_2),
    (TensorFloat16, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
/// [`COMMON`] of an operation that came with 1.2.
pub(super) const COMMON_1_2: MainTypes = &[
    (TensorFloat32, V1_2),
    (TensorQuant8Asymm, V1_2),
    (TensorFloat16, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
/// The same, and integers.
pub(super) const COMMON_I32: MainTypes = &[
    (TensorFloat32, V1_2),
    (TensorFloat16, V1_2),
    (TensorInt32, V1_2),
    (TensorQuant8Asymm, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
/// Bytes since 1.2, signed ones since 1.3.
pub(super) const BYTES_1_2: MainTypes =
    &[(TensorQuant8Asymm, V1_2), (TensorQuant8AsymmSigned, V1_3)];
/// TENSOR_BOOL8.
pub(super) const BOOLS: MainTypes = &[(TensorBool8, V1_2)];
