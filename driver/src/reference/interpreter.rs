//! Walks graphs, operation by operation.
//!
//! Values are shared and never change once they are there, so an operation hands them to graphs, and takes them
//! back, without a copy; a value is gone with its last reader.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{Dimensions, MemoryCharge};
use smallvec::SmallVec;

use super::graphs::{Graph, Graphs, Held, Row};
use super::survey::described;
use crate::OpError;
use crate::error::DriverError;
use crate::guarded::GuardedBytes;
use crate::op::{Inferred, Rules, Run, Stop};
use crate::plan::check_declared;
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, Storage, TensorInfo, TensorMut, TensorRef, Value};
use crate::threads::Parallelism;

/// A value that others may read, too; `None`: left out, or not there yet.
pub(super) type Shared = Option<Arc<Held>>;

/// An execution in progress.
pub(super) struct Interpreter<'g> {
    pub(super) graphs: &'g Graphs,
    /// How long each loop may take.
    pub(super) loop_timeout: Duration,
    scratch: Scratch,
    /// The account that pays for values.
    charge: MemoryCharge,
}

impl<'g> Interpreter<'g> {
    pub(super) fn new(graphs: &'g Graphs, loop_timeout: Duration) -> Self {
        let charge = graphs.charge.same_account();
        let scratch = Scratch::paid_by(charge.same_account());
        Interpreter { graphs, loop_timeout, scratch, charge }
    }

    /// A value of this shape, all bytes zero.
    pub(super) fn room(&self, info: &TensorInfo, dims: Dimensions) -> Result<Held, OpError> {
        Held::zeroed(info, dims, self.charge.same_account())
    }

    /// Runs a graph on these inputs; gives its outputs.
    pub(super) fn graph(
        &mut self,
        graph: &Graph,
        inputs: &[Shared],
        stop: Stop<'_>,
    ) -> Result<Vec<Arc<Held>>, DriverError> {
        let mut values: Vec<Shared> =
            graph.operands.iter().map(|known| known.constant.clone()).collect();
        for (operand, value) in graph.inputs.iter().zip(inputs) {
            values[*operand].clone_from(value);
        }
        let mut readers = graph.readers.clone();
        for row in &graph.rows {
            stop.check().map_err(|cause| graph.error(row, cause))?;
            match row.control {
                None => {
                    let made = self.row(graph, row, &values, stop);
                    let made = made.map_err(|cause| graph.error(row, cause))?;
                    for (output, value) in row.outputs.iter().zip(made) {
                        values[*output] = Some(Arc::new(value));
                    }
                }
                Some(control) => self.control((graph, row), control, &mut values, stop)?,
            }
            // What nobody reads any more is gone.
            for operand in &row.inputs {
                readers[*operand] = readers[*operand].saturating_sub(1);
            }
            for operand in row.inputs.iter().chain(&row.outputs) {
                if readers[*operand] == 0 {
                    values[*operand] = None;
                }
            }
        }
        let lost = DriverError::Internal { what: "an output that no operation wrote" };
        let output = |operand: &usize| values[*operand].clone().ok_or(lost.clone());
        graph.outputs.iter().map(output).collect()
    }

    /// Computes one operation that runs no graph.
    fn row(
        &mut self,
        graph: &Graph,
        row: &Row,
        values: &[Shared],
        stop: Stop<'_>,
    ) -> Result<Vec<Held>, OpError> {
        let Ok(rules) = &row.rules else {
            return Err(OpError::Internal { what: "an operation that is not supported" });
        };
        let inputs: SmallVec<[TensorRef<'_>; 32]> = row
            .inputs
            .iter()
            .map(|operand| {
                let (info, declared) = described(&graph.operands[*operand]);
                match &values[*operand] {
                    Some(held) => {
                        TensorRef { info, dims: &held.dims, bytes: Some(held.bytes.as_slice()) }
                    }
                    None => TensorRef { info, dims: declared, bytes: None },
                }
            })
            .collect();
        check_inputs(rules, &inputs)?;
        let (mut made, are_known) = self.outputs(graph, row, rules, &inputs)?;
        if are_known && made.iter().all(|held| held.dims.contains(&0)) {
            return Ok(made);
        }
        let infos = row.outputs.iter().map(|output| &graph.operands[*output].info);
        let mut outputs: SmallVec<[TensorMut<'_>; 4]> = infos
            .zip(&mut made)
            .map(|(info, Held { dims, bytes })| TensorMut {
                info,
                dims,
                storage: Storage::Guarded(bytes),
            })
            .collect();
        let scratch = &mut self.scratch;
        let parallelism = Parallelism::ALONE;
        let mut run = Run { inputs: &inputs, outputs: &mut outputs, scratch, stop, parallelism };
        let computed = rules.body.execute(&mut run);
        drop(outputs);
        // Looked at whatever came of it: what wrote where it may not did not fail for a good reason.
        let read = row
            .inputs
            .iter()
            .filter_map(|operand| values[*operand].as_ref().map(|held| (*operand, &held.bytes)));
        let written = row.outputs.iter().zip(&made).map(|(operand, held)| (*operand, &held.bytes));
        check_guards(read.chain(written))?;
        computed?;
        if !are_known {
            // Shapes that only the values decided.
            for (output, held) in row.outputs.iter().zip(&made) {
                check_declared(&graph.operands[*output].declared, &held.dims)?;
            }
        }
        Ok(made)
    }

    /// Memory for what an operation computes, and whether its shapes are known already.
    fn outputs(
        &self,
        graph: &Graph,
        row: &Row,
        rules: &Rules,
        inputs: &[TensorRef<'_>],
    ) -> Result<(Vec<Held>, bool), OpError> {
        let inputs: SmallVec<[Arg<'_>; 32]> = inputs
            .iter()
            .map(|input| Arg {
                info: input.info,
                dims: Some(input.dims),
                value: input.bytes.map_or(Value::Omitted, Value::Bytes),
            })
            .collect();
        let outputs: SmallVec<[(&TensorInfo, &[u32]); 2]> =
            row.outputs.iter().map(|output| described(&graph.operands[*output])).collect();
        let count = outputs.len();
        let charge = || self.charge.same_account();
        let shapes = match rules.body.infer(&Args { inputs: &inputs, outputs: &outputs })? {
            Inferred::Shapes(shapes) => shapes,
            Inferred::DataDependent => {
                let empty = || {
                    let bytes = GuardedBytes::zeroed(0, charge())?;
                    Ok(Held { dims: Dimensions::new(), bytes })
                };
                let empty: Result<_, OpError> = (0..count).map(|_| empty()).collect();
                return Ok((empty?, false));
            }
        };
        if shapes.len() != count {
            return Err(OpError::Arity { want: shapes.len(), got: count });
        }
        let mut made = Vec::with_capacity(count);
        for ((info, declared), shape) in outputs.iter().zip(shapes) {
            check_declared(declared, &shape)?;
            made.push(Held::zeroed(info, shape, charge())?);
        }
        Ok((made, true))
    }
}

/// Refuses inputs that are left out, or have no elements, where the operation does not take such.
fn check_inputs(rules: &Rules, inputs: &[TensorRef<'_>]) -> Result<(), OpError> {
    for (index, input) in inputs.iter().enumerate() {
        if !input.is_present() {
            if !rules.traits.allows_omitting(index) {
                return Err(OpError::Omitted { index });
            }
        } else if !rules.traits.zero_sized_inputs && input.dims.contains(&0) {
            return Err(OpError::ZeroSized { index });
        }
    }
    Ok(())
}

/// Fails with the first of these operands whose guards were written to.
pub(super) fn check_guards<'b>(
    mut operands: impl Iterator<Item = (usize, &'b GuardedBytes)>,
) -> Result<(), OpError> {
    match operands.find(|(_, bytes)| !bytes.is_intact()) {
        Some((operand, _)) => Err(OpError::Overrun { operand }),
        None => Ok(()),
    }
}
