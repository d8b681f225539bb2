//! Whether an operation has a form, and where it comes closest to one if it has none.

use super::mismatch::{FormMismatch, number};
use super::notation::{Form, List};
use super::{Operands, control_flow, forms_of, inputs_for, operands, rules, since};
use crate::OperationType::{
    BidirectionalSequenceLstm, BidirectionalSequenceRnn, If, LshProjection, Lstm, QuantizedLstm,
    Squeeze, Svdf, Transpose, UnidirectionalSequenceLstm, While,
};
use crate::{HalVersion, Model, OperandLifeTime, OperandType, Operation, OperationType, Subgraph};

/// Checks that a version has an operation of `graph`, a graph of `model`, with these operands: their
/// number, their types, that none is left out which the operation needs, and that IF and WHILE hand over what
/// their graphs declare.
///
/// [`validate_model_of`](crate::validate::validate_model_of) asks this of every operation of a model.
///
/// # Errors
/// Where the operands differ from the form that they come closest to.
pub fn check(
    model: &Model,
    graph: &Subgraph,
    operation: &Operation,
    version: HalVersion,
) -> Result<(), FormMismatch> {
    let (found, kept) = (operation.inputs.len(), inputs_for(model, graph, operation, version));
    match kept {
        Some(kept) if kept == found => check_omitted(graph, operation)
            .and_then(|()| control_flow::check(model, graph, operation)),
        // It lacks trailing inputs, which here only repeat their defaults.
        Some(kept) => Err(input_count(found, kept)),
        None => Err(since(model, graph, operation)
            .map_or_else(|| nearest(graph, operation), |since| FormMismatch::Newer { since })),
    }
}

/// Whether an operation can do without its input at `position`, which then is an operand with the
/// lifetime NO_VALUE. IF and WHILE hand on what is left out, and a model without a condition is legal, though none
/// of its executions succeeds; an operation of an extension says for itself.
#[must_use]
pub fn may_omit(ty: OperationType, position: usize) -> bool {
    let lstm =
        |from| matches!(position, 1 | 5 | 9..=12 | 16 | 17) || (from..from + 4).contains(&position);
    match ty {
        Transpose | Squeeze => position == 1,
        LshProjection => position == 2,
        Svdf => position == 3,
        Lstm => lstm(23),
        UnidirectionalSequenceLstm => lstm(24),
        QuantizedLstm => lstm(20),
        BidirectionalSequenceLstm => matches!(
            position,
            1 | 5 | 9..=12 | 16..=18 | 22 | 26..=29 | 33 | 34 | 39..=47 | 53..=60
        ),
        BidirectionalSequenceRnn => (9..=11).contains(&position),
        If | While | OperationType::Extension(_) | OperationType::OemOperation => true,
        _ => false,
    }
}

fn check_omitted(graph: &Subgraph, operation: &Operation) -> Result<(), FormMismatch> {
    let inputs = operands(graph, &operation.inputs).ok_or(FormMismatch::Unknown)?;
    let is_missing = |position: usize| {
        inputs[position].lifetime == OperandLifeTime::NoValue && !may_omit(operation.ty, position)
    };
    match (0..inputs.len()).find(|position| is_missing(*position)) {
        Some(position) => Err(FormMismatch::Omitted { position: number(position) }),
        None => Ok(()),
    }
}

/// What separates an operation without a form from the form that agrees with most of its operands.
fn nearest(graph: &Subgraph, operation: &Operation) -> FormMismatch {
    let all = (operands(graph, &operation.inputs), operands(graph, &operation.outputs));
    let (Some(inputs), Some(outputs)) = all else { return FormMismatch::Unknown };
    let forms =
        forms_of(operation.ty).flat_map(|form| form.main.iter().map(move |row| (form, row.0)));
    let mismatches = forms.filter_map(|(form, main)| first_mismatch(form, main, &inputs, &outputs));
    let nearest = mismatches.max_by_key(|(agreeing, _)| *agreeing);
    nearest.map_or(FormMismatch::Unknown, |(_, mismatch)| mismatch)
}

/// How many operands agree with a form, counted from the first; then what differs. Another number of
/// operands counts as less than any difference of types.
fn first_mismatch(
    form: &Form,
    main: OperandType,
    inputs: &Operands<'_>,
    outputs: &Operands<'_>,
) -> Option<(usize, FormMismatch)> {
    let by_distance = |lengths: &[usize], found: usize| {
        lengths.iter().copied().min_by_key(|length| length.abs_diff(found)).unwrap_or_default()
    };
    let has_length = |list: &List, found| list.since(found, HalVersion::V1_0).is_some();
    if !has_length(&form.inputs, inputs.len()) {
        let expected = by_distance(&form.inputs.lengths(), inputs.len());
        return Some((0, input_count(inputs.len(), expected)));
    }
    if !has_length(&form.outputs, outputs.len()) {
        let expected = number(by_distance(&form.outputs.lengths(), outputs.len()));
        return Some((0, FormMismatch::OutputCount { found: number(outputs.len()), expected }));
    }
    let wrong = |list: &List, found: &Operands<'_>| {
        let slot = |position| list.slot(position, found.len());
        let at = (0..found.len())
            .find(|at| !slot(*at).is_some_and(|slot| slot.takes(found[*at].ty, main)))?;
        let expected = slot(at).and_then(|slot| slot.choices(main).first().copied());
        Some((at, found[at].ty, expected.unwrap_or(main)))
    };
    if let Some((at, found, expected)) = wrong(&form.inputs, inputs) {
        let position = number(at);
        return Some((1 + at, FormMismatch::InputType { position, found, expected }));
    }
    let Some((at, found, expected)) = wrong(&form.outputs, outputs) else {
        // Every type is as it should be.
        return Some((usize::MAX, rules::broken(form.ty, inputs, outputs)?));
    };
    let position = number(at);
    Some((1 + inputs.len() + at, FormMismatch::OutputType { position, found, expected }))
}

fn input_count(found: usize, expected: usize) -> FormMismatch {
    FormMismatch::InputCount { found: number(found), expected: number(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperandType::{Int32, TensorFloat32, TensorInt32, TensorQuant8AsymmSigned};
    use crate::{ModelBuilder, Operand, OutputSpec};

    /// What is said of an operation of operands of these types.
    fn said(
        ty: OperationType,
        inputs: &[OperandType],
        outputs: &[OperandType],
        version: HalVersion,
    ) -> String {
        let mut graph = Subgraph::default();
        let mut add = |types: &[OperandType], lifetime| -> Vec<u32> {
            let add = |ty: &OperandType| {
                graph.operands.push(Operand::new(*ty, lifetime));
                number(graph.operands.len() - 1)
            };
            types.iter().map(add).collect()
        };
        let inputs = add(inputs, OperandLifeTime::SubgraphInput);
        let outputs = add(outputs, OperandLifeTime::SubgraphOutput);
        let operation = Operation { ty, inputs, outputs };
        let checked = check(&Model::default(), &graph, &operation, version);
        checked.map_or_else(|mismatch| mismatch.to_string(), |()| "fine".into())
    }

    #[test]
    fn the_first_operand_that_differs_from_the_nearest_form_is_named() {
        let (f, i) = (TensorFloat32, Int32);
        let newest = HalVersion::LATEST;
        for (inputs, outputs, version, want) in [
            (&[f, f, i][..], &[f][..], HalVersion::V1_0, "fine"),
            (&[f, f], &[f], newest, "2 inputs, where 3 belong"),
            (&[f, f, i, i], &[f], newest, "4 inputs, where 3 belong"),
            (&[f, f, i], &[f, f], newest, "2 outputs, where 1 belong"),
            (
                &[f, TensorInt32, i],
                &[f],
                newest,
                "input 1 is TENSOR_INT32, where TENSOR_FLOAT32 belongs",
            ),
            (&[f, f, f], &[f], newest, "input 2 is TENSOR_FLOAT32, where INT32 belongs"),
            (
                &[f, f, i],
                &[TensorInt32],
                newest,
                "output 0 is TENSOR_INT32, where TENSOR_FLOAT32 belongs",
            ),
            (
                &[TensorQuant8AsymmSigned, TensorQuant8AsymmSigned, i],
                &[TensorQuant8AsymmSigned],
                HalVersion::V1_2,
                "HAL 1.3 was the first that has it",
            ),
        ] {
            assert_eq!(said(OperationType::Add, inputs, outputs, version), want);
        }
        assert_eq!(said(OperationType::Unknown(4711), &[f], &[f], newest), "there is no such form");
    }

    #[test]
    fn an_input_that_the_operation_needs_must_have_a_value() {
        let mut builder = ModelBuilder::new();
        let x = builder.input(TensorFloat32, &[2]);
        let (nothing, none) = (builder.omitted(TensorFloat32), builder.scalar_i32(0));
        let y = builder.result_of(OperationType::Add, &[x, nothing, none], OutputSpec::f32(&[2]));
        builder.output(y);
        let model = builder.build().unwrap();
        let add = &model.main.operations[0];
        let checked = check(&model, &model.main, add, HalVersion::LATEST);
        assert_eq!(checked, Err(FormMismatch::Omitted { position: 1 }));
        let transpose = Operation { ty: Transpose, inputs: vec![x, 9], outputs: vec![y] };
        let mut graph = model.main.clone();
        graph.operands.resize(10, Operand::new(TensorInt32, OperandLifeTime::NoValue));
        assert_eq!(check(&model, &graph, &transpose, HalVersion::LATEST), Ok(()));
    }
}
