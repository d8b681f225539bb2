//! IF and WHILE.

use std::sync::Arc;

use super::graphs::{Graph, Held, Row};
use super::interpreter::{Interpreter, Shared};
use crate::OpError;
use crate::control_flow::is_true;
use crate::error::DriverError;
use crate::op::Stop;
use crate::plan::{Control, Loop, check_declared};

/// An operation with the graph that it stands in.
type At<'g> = (&'g Graph, &'g Row);

impl Interpreter<'_> {
    /// Executes an operation that runs other graphs.
    pub(super) fn control(
        &mut self,
        (graph, row): At<'_>,
        control: Control,
        values: &mut [Shared],
        stop: Stop<'_>,
    ) -> Result<(), DriverError> {
        let failed = |cause| graph.error(row, cause);
        let handed_over = |first: usize| -> Result<Vec<Shared>, DriverError> {
            let operands = row.inputs.get(first..).unwrap_or_default().iter().enumerate();
            let value = |(index, operand): (usize, &usize)| {
                let omitted = failed(OpError::Omitted { index: first + index });
                values[*operand].clone().ok_or(omitted).map(Some)
            };
            operands.map(value).collect()
        };
        let results = match control {
            Control::If { then, otherwise } => {
                let condition = row.inputs.first().and_then(|operand| values[*operand].as_ref());
                let condition = condition.ok_or_else(|| failed(OpError::Omitted { index: 0 }))?;
                let holds = is_true(condition.bytes.as_slice());
                let chosen = if holds { then } else { otherwise };
                self.referenced((graph, row), chosen, &handed_over(3)?, stop)?
            }
            Control::While(whole) => self.repeat((graph, row), whole, handed_over(2)?, stop)?,
        };
        for (output, value) in row.outputs.iter().zip(results) {
            let declared = &graph.operands[*output].declared;
            check_declared(declared, &value.dims).map_err(failed)?;
            values[*output] = Some(value);
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        at: At<'_>,
        whole: Loop,
        mut state: Vec<Shared>,
        stop: Stop<'_>,
    ) -> Result<Vec<Arc<Held>>, DriverError> {
        let failed = |cause| at.0.error(at.1, cause);
        let inside = stop.within_loop(self.loop_timeout);
        // A loop that runs no round cannot exceed its time-out.
        let mut may_run = stop;
        loop {
            let holds = self.referenced(at, whole.condition, &state, may_run)?;
            if !holds.first().is_some_and(|value| is_true(value.bytes.as_slice())) {
                let lost = failed(OpError::Internal { what: "a state that is not there" });
                return state.into_iter().map(|value| value.ok_or(lost.clone())).collect();
            }
            inside.check().map_err(failed)?;
            may_run = inside;
            let next = self.referenced(at, whole.body, &state, inside)?;
            for (state, next) in state.iter_mut().zip(next) {
                *state = Some(next);
            }
        }
    }

    /// Runs a referenced graph.
    fn referenced(
        &mut self,
        (graph, row): At<'_>,
        index: usize,
        inputs: &[Shared],
        stop: Stop<'_>,
    ) -> Result<Vec<Arc<Held>>, DriverError> {
        let inner = &self.graphs.referenced[index];
        for (operand, value) in inner.inputs.iter().zip(inputs) {
            if let Some(value) = value {
                check_declared(&inner.operands[*operand].declared, &value.dims)
                    .map_err(|cause| graph.error(row, cause))?;
            }
        }
        self.graph(inner, inputs, stop)
    }
}
