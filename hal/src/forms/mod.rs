//! The forms of the 102 operations: which operands each takes, and since which version of the HAL.
//!
//! A form is a list of inputs and one of outputs. An operation has several: other types, another kind
//! of padding, trailing inputs that came later. [`since`] says which version is the first that has
//! the form of an operation of a model; a trailing input that only repeats its default, such as a
//! layout flag that is false, can be left off for a version that lacks it ([`inputs_for`]).
//!
//! [`check`] is the same as a verdict, for drivers: it names the operand that does not fit.
//!
//! Looked at are types, counts, what 1.0 and 1.1 asked of ranks and scales, and the few rules on scales and shapes that
//! hold in every version: those of MUL and FULLY_CONNECTED. Whether other shapes, and values, fit is for the device to
//! say.
//!
//! ```
//! use burst_hal::*;
//!
//! let mut builder = ModelBuilder::new();
//! let x = builder.input(OperandType::TensorInt32, &[2]);
//! let none = builder.scalar_i32(0);
//! let sum = OutputSpec::new(OperandType::TensorInt32, &[2]);
//! let y = builder.result_of(OperationType::Add, &[x, x, none], sum);
//! builder.output(y);
//! let model = builder.build()?;
//! // ADD is as old as the HAL, but adds integers only since 1.3.
//! let add = &model.main.operations[0];
//! assert_eq!(forms::since(&model, &model.main, add), Some(HalVersion::V1_3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod control_flow;
mod convolution;
mod detection;
mod elementwise;
mod mismatch;
mod notation;
mod recurrent;
mod rules;
mod shape;
mod signature;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use smallvec::SmallVec;

pub use self::check::{check, may_omit};
pub use self::mismatch::FormMismatch;
use self::notation::Form;
pub use self::signature::{Signature, TypeChoice, signatures};
use crate::{
    DataLocation, HalVersion, Model, Operand, OperandLifeTime, Operation, OperationType, Subgraph,
};

/// The tables of the families.
const FAMILIES: [&[Form]; 5] =
    [elementwise::FORMS, convolution::FORMS, shape::FORMS, recurrent::FORMS, detection::FORMS];

/// The operands of one list of an operation.
type Operands<'a> = SmallVec<[&'a Operand; 16]>;

/// One way to carry an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    /// The first version that can.
    since: HalVersion,
    /// How many of the inputs it then has.
    inputs: usize,
}

/// The first version that can carry an operation of `graph`, a graph of `model`; `None` where no
/// version has it with these operands.
///
/// An operation of an extension has any operands, since 1.2; the OEM operation since 1.0.
#[must_use]
pub fn since(model: &Model, graph: &Subgraph, operation: &Operation) -> Option<HalVersion> {
    fits(model, graph, operation).into_iter().map(|fit| fit.since).min()
}

/// How many of the operation's inputs a version gets: all of them, or fewer where it lacks trailing ones
/// that only repeat their defaults. `None` where it cannot carry the operation.
#[must_use]
pub fn inputs_for(
    model: &Model,
    graph: &Subgraph,
    operation: &Operation,
    version: HalVersion,
) -> Option<usize> {
    let fits = fits(model, graph, operation);
    fits.into_iter().filter(|fit| fit.since <= version).map(|fit| fit.inputs).max()
}

/// Every way to carry an operation.
fn fits(model: &Model, graph: &Subgraph, operation: &Operation) -> SmallVec<[Fit; 4]> {
    let mut found = SmallVec::new();
    let all = (operands(graph, &operation.inputs), operands(graph, &operation.outputs));
    let (Some(inputs), Some(outputs)) = all else { return found };
    if matches!(operation.ty, OperationType::Extension(_) | OperationType::OemOperation) {
        let since = operation.ty.since().and_then(|since| types_since(&inputs, &outputs, since));
        found.extend(since.map(|since| Fit { since, inputs: inputs.len() }));
        return found;
    }
    for form in forms_of(operation.ty) {
        for (main, since) in form.main {
            let takes = form.inputs.takes(inputs.iter().map(|operand| operand.ty), *main)
                && form.outputs.takes(outputs.iter().map(|operand| operand.ty), *main);
            if takes {
                let fit = |count| fit(form, *since, &inputs[..count], &outputs);
                let counts = counts_without_defaults(model, form, &inputs);
                found.extend(counts.filter_map(fit));
            }
        }
    }
    found
}

/// The version for these operands, which the form takes.
fn fit(form: &Form, main: HalVersion, inputs: &[&Operand], outputs: &[&Operand]) -> Option<Fit> {
    if rules::broken(form.ty, inputs, outputs).is_some() {
        return None;
    }
    let base = form.ty.since()?.max(main);
    let since = base
        .max(form.inputs.since(inputs.len(), base)?)
        .max(form.outputs.since(outputs.len(), base)?);
    let is_old = since < HalVersion::V1_2;
    let needs_1_2 = is_old && rules::need_1_2(form.ty, inputs, outputs);
    let since = if needs_1_2 { HalVersion::V1_2 } else { since };
    Some(Fit { since: types_since(inputs, outputs, since)?, inputs: inputs.len() })
}

/// The length of the list, then the lengths without trailing inputs that repeat their defaults.
fn counts_without_defaults<'a>(
    model: &'a Model,
    form: &'a Form,
    inputs: &'a [&Operand],
) -> impl Iterator<Item = usize> + 'a {
    let is_default = |position: &usize| {
        let slot = form.inputs.slots.get(*position);
        slot.and_then(|slot| slot.default_bytes()).is_some_and(|bytes| {
            constant(model, inputs[*position]).is_some_and(|value| value.as_slice() == bytes)
        })
    };
    let count = inputs.len();
    std::iter::once(count).chain((0..count).rev().take_while(is_default))
}

/// The bytes of a short constant, wherever it lies.
fn constant(model: &Model, operand: &Operand) -> Option<SmallVec<[u8; 4]>> {
    let DataLocation { pool_index, offset, length } = operand.location;
    let mut bytes = SmallVec::<[u8; 4]>::new();
    if length > 4 {
        return None;
    }
    let (start, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            bytes.extend_from_slice(model.operand_values.get(start..)?.get(..length)?);
        }
        OperandLifeTime::ConstantReference => {
            bytes.resize(length, 0);
            let pool = model.pools.get(usize::try_from(pool_index).ok()?)?;
            pool.read(u64::from(offset), &mut bytes).ok()?;
        }
        _ => return None,
    }
    Some(bytes)
}

/// The latest of `base` and the versions that brought the operands' types.
fn types_since(inputs: &[&Operand], outputs: &[&Operand], base: HalVersion) -> Option<HalVersion> {
    let mut types = inputs.iter().chain(outputs).map(|operand| operand.ty.since());
    types.try_fold(base, |latest, since| Some(latest.max(since?)))
}

/// The operands at these indexes; `None` where the graph lacks one.
fn operands<'a>(graph: &'a Subgraph, indexes: &[u32]) -> Option<Operands<'a>> {
    let operand = |index: &u32| graph.operands.get(usize::try_from(*index).ok()?);
    indexes.iter().map(operand).collect()
}

/// The forms of an operation.
fn forms_of(ty: OperationType) -> impl Iterator<Item = &'static Form> {
    static BY_CODE: OnceLock<Vec<SmallVec<[&'static Form; 2]>>> = OnceLock::new();
    let table = BY_CODE.get_or_init(|| {
        let mut table = vec![SmallVec::new(); OperationType::ALL.len()];
        for form in FAMILIES.iter().copied().flatten() {
            let row = usize::try_from(form.ty.code()).ok().and_then(|code| table.get_mut(code));
            if let Some(row) = row {
                row.push(form);
            }
        }
        table
    });
    let row = usize::try_from(ty.code()).ok().and_then(|code| table.get(code));
    row.into_iter().flatten().copied()
}
