//! A device judged by another one, step by step and at the end.

use std::collections::BTreeSet;

use burst_hal::session::HeapAllocator;
use burst_hal::{Device, Operation, OperationType, PrepareOptions, Route};

use super::accuracy::{Accuracy, is_float, is_scratch, jumps};
use super::compare::Compared;
use super::compare_values;
use super::form::{Forms, Variants, count_variants};
use super::surgery::{Values, laid_open, part};
use super::tensors::{Tensor, execute};
use crate::random::RandomModel;

/// Who knows what is right.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    device: &'a dyn Device,
}

/// What a model computes, as the judge says.
pub(super) struct Golden {
    /// The model with everything it computes as outputs.
    pub(super) open: RandomModel,
    /// Everything it computes.
    pub(super) values: Values,
}

/// How one model on one device was judged.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Elements that were compared, by form of the operation that computed them.
    pub(super) forms: Forms,
    /// What occurred of what forms leave open.
    pub(super) variants: Variants,
    /// Steps whose inputs were others than the judge's.
    pub(super) retaken: u64,
    /// The operation whose output was another one when everything was an output.
    pub(super) rewoven: Option<OperationType>,
}

/// What is wrong, and where it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The operation whose result is wrong, by its position, where one is known.
    pub(super) operation: Option<usize>,
    /// What, in words.
    pub(super) what: String,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Wrong { operation: None, what }
    }
}

/// Executes a model on the device that is judged.
pub(super) type Run<'r> = &'r mut dyn FnMut(&RandomModel) -> Result<Vec<Tensor>, String>;

impl<'a> Judge<'a> {
    /// A judge that computes on this device: plain kernels, one thread, no plan.
    #[must_use]
    pub fn new(device: &'a dyn Device) -> Self {
        Judge { device }
    }

    fn run(&self, one: &RandomModel) -> Result<Vec<Tensor>, String> {
        let prepared = self.device.prepare_model(&one.model, &PrepareOptions::default());
        let prepared = prepared.map_err(|failure| format!("not prepared: {failure}"))?;
        execute(one, &prepared, Route::Synchronous, &HeapAllocator)
    }

    /// Everything that a model computes.
    ///
    /// # Errors
    /// The judge does not run the model, or has another shape for a value than the generator's table.
    pub(super) fn golden(&self, one: &RandomModel) -> Result<Golden, String> {
        let open = laid_open(one);
        let outputs = self.run(&open).map_err(|what| format!("the judge: {what}"))?;
        let values: Values = open.model.main.output_indexes.iter().copied().zip(outputs).collect();
        for (operand, value) in &values {
            let Some(shape) = one.shape(*operand) else { continue };
            if !shape.covers(&value.dims) {
                return Err(format!(
                    "operand {operand} has the shape {:?}, the table of operations says {shape:?}",
                    value.dims
                ));
            }
        }
        Ok(Golden { open, values })
    }

    /// Judges what a device makes of a model: `closed` is what it gave for it, `run` executes others.
    ///
    /// # Errors
    /// The first result that is wrong.
    pub(super) fn judge(
        &self,
        one: &RandomModel,
        golden: &Golden,
        closed: &[Tensor],
        run: Run<'_>,
    ) -> Result<Tally, Wrong> {
        let outputs = run(&golden.open).map_err(|what| format!("with open values: {what}"))?;
        let names = golden.open.model.main.output_indexes.iter().copied();
        let seen: Values = names.zip(outputs).collect();
        let mut tally = Tally::default();
        let loose = self.steps(one, golden, &seen, &mut tally)?;
        end(one, golden, (closed, &seen, &loose), &mut tally)?;
        Ok(tally)
    }

    /// Judges each operation by itself, with the inputs that it had on the device. Says which values
    /// need not be the judge's any more, as something jumped before.
    fn steps(
        &self,
        one: &RandomModel,
        golden: &Golden,
        seen: &Values,
        tally: &mut Tally,
    ) -> Result<BTreeSet<u32>, Wrong> {
        let graph = &one.model.main;
        let of_graph = Accuracy::of_graph(&graph.operations);
        let mut loose = BTreeSet::new();
        for (index, operation) in graph.operations.iter().enumerate() {
            let wrong = |what| Wrong { operation: Some(index), what };
            let is_same = |operand: &u32| seen.get(operand) == golden.values.get(operand);
            let retaken = if operation.inputs.iter().all(is_same) {
                None
            } else {
                tally.retaken += 1;
                self.step(one, index, seen).map_err(wrong)?
            };
            let form = tally.forms.of(graph, operation);
            for (position, operand) in operation.outputs.iter().enumerate() {
                let known = |values: &Values| values.get(operand).cloned().unwrap_or_default();
                let (got, want) = (known(seen), known(&golden.values));
                let is_rounded = is_float(graph.operands[*operand as usize].ty)
                    && (!jumps(operation.ty)
                        || judged(one, (of_graph, operation, *operand), &got, &want).is_ok());
                let jumped = got != want && !is_rounded;
                if jumped || operation.inputs.iter().any(|input| loose.contains(input)) {
                    loose.insert(*operand);
                }
                let want = retaken.as_ref().map_or(&want, |outputs| &outputs[position]);
                if is_scratch(operation.ty, position) {
                    continue;
                }
                let allowed = (Accuracy::of(operation.ty), operation, *operand);
                let compared = judged(one, allowed, &got, want).map_err(wrong)?;
                form.add(compared);
            }
            form.occurrences += 1;
            count_variants(one, operation, &mut tally.variants);
        }
        Ok(loose)
    }

    /// What the judge makes of one operation with these inputs; `None` where it cannot be given them.
    fn step(
        &self,
        one: &RandomModel,
        index: usize,
        values: &Values,
    ) -> Result<Option<Vec<Tensor>>, String> {
        let Some(step) = part(one, |other| other == index, values) else { return Ok(None) };
        let outputs = self.run(&step);
        outputs.map(Some).map_err(|what| format!("the judge, with the device's inputs: {what}"))
    }
}

/// Compares one result with what it should be.
fn judged(
    one: &RandomModel,
    (accuracy, operation, operand): (Accuracy, &Operation, u32),
    got: &Tensor,
    want: &Tensor,
) -> Result<Compared, String> {
    let name = operation.ty;
    if got.dims != want.dims {
        return Err(format!("{name}: the shape {:?}, the judge has {:?}", got.dims, want.dims));
    }
    if name == OperationType::RandomMultinomial {
        return drawn(one, operation, got);
    }
    let ty = one.model.main.operands[operand as usize].ty;
    let is_relaxed = one.model.relax_computation_float32_to_float16;
    let compared = compare_values(ty, accuracy, is_relaxed, &got.bytes, &want.bytes);
    compared.map_err(|what| format!("{name}: {what}"))
}

/// Draws are up to the device: only classes that there are.
fn drawn(one: &RandomModel, operation: &Operation, got: &Tensor) -> Result<Compared, String> {
    let logits = operation.inputs.first().and_then(|operand| one.shape(*operand));
    let classes = logits.and_then(|shape| shape.dims.last().copied()).unwrap_or(0);
    let draws = got.bytes.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes));
    let mut count = 0;
    for draw in draws {
        if u32::try_from(draw).is_ok_and(|draw| draw < classes) {
            count += 1;
        } else {
            return Err(format!("RANDOM_MULTINOMIAL: drew class {draw} of {classes}"));
        }
    }
    Ok(Compared { elements: count, skipped: 0 })
}

/// Judges the outputs of the model as it is.
fn end(
    one: &RandomModel,
    golden: &Golden,
    (closed, seen, loose): (&[Tensor], &Values, &BTreeSet<u32>),
    tally: &mut Tally,
) -> Result<(), Wrong> {
    let graph = &one.model.main;
    let accuracy = Accuracy::of_graph(&graph.operations);
    for (operand, got) in graph.output_indexes.iter().zip(closed) {
        let writers = graph.operations.iter().enumerate();
        let writer = |(_, operation): &(usize, &Operation)| operation.outputs.contains(operand);
        let Some((index, operation)) = { writers }.find(writer) else { continue };
        let position = operation.outputs.iter().position(|output| output == operand);
        if is_scratch(operation.ty, position.unwrap_or(0)) {
            continue;
        }
        if seen.get(operand) != Some(got) {
            tally.rewoven.get_or_insert(operation.ty);
        }
        let form = tally.forms.of(graph, operation);
        if loose.contains(operand) {
            let ty = graph.operands[*operand as usize].ty;
            let elements = crate::judge::elements(ty, &got.bytes).len() as u64;
            form.add(Compared { elements, skipped: elements });
            continue;
        }
        let want = golden.values.get(operand).cloned().unwrap_or_default();
        let compared = judged(one, (accuracy, operation, *operand), got, &want);
        let wrong = |what| Wrong { operation: Some(index), what: format!("at the end: {what}") };
        form.add(compared.map_err(wrong)?);
    }
    Ok(())
}
