//! A graph, step by step; branches and loops are interpreted.

use std::collections::HashMap;
use std::time::Instant;

use burst_hal::{Dimensions, LOOP_TIMEOUT_DEFAULT, OutputShape, Pool, ResultCode};

use super::step::{Done, Steps, Stop};
use super::value::{Bytes, Value};
use crate::compiled::{DeviceCode, GraphCode, IfCode, Port, Slot, StepCode, WhileCode};
use crate::error::Error;

type Result<T> = std::result::Result<T, Stop>;

/// Runs graphs.
pub(super) struct Runner<'a> {
    pub(super) steps: Steps<'a>,
    /// Where values between steps lie.
    pub(super) temporaries: Pool,
}

/// The values of one graph, by operand.
pub(super) struct Values(HashMap<u32, Value>);

impl Values {
    /// With these values of its inputs, these places of its outputs, and places for what lies between.
    pub(super) fn of_graph(
        code: &GraphCode,
        inputs: &[Value],
        outputs: &[Value],
        temporaries: &Pool,
    ) -> Self {
        let mut values = HashMap::new();
        values.extend(code.inputs.iter().copied().zip(inputs.iter().cloned()));
        values.extend(code.outputs.iter().copied().zip(outputs.iter().cloned()));
        for (index, slot, dimensions) in &code.slots {
            values.insert(*index, place(temporaries, *slot, dimensions.clone()));
        }
        Values(values)
    }

    /// Those that a step of a device takes, and those that it gives.
    pub(super) fn arguments(&self, step: &DeviceCode) -> Result<(Vec<Value>, Vec<Value>)> {
        let all = |ports: &[Port]| ports.iter().map(|port| self.of(port.operand)).collect();
        let (inputs, outputs): (Result<_>, Result<_>) = (all(&step.inputs), all(&step.outputs));
        Ok((inputs?, outputs?))
    }

    fn of(&self, index: u32) -> Result<Value> {
        let missing = || Error::op_failed(format!("operand {index} has no place"));
        Ok(self.0.get(&index).cloned().ok_or_else(missing)?)
    }

    fn all(&self, indexes: &[u32]) -> Result<Vec<Value>> {
        indexes.iter().map(|index| self.of(*index)).collect()
    }

    /// Notes what is known of values now.
    fn learn(&mut self, indexes: &[u32], dimensions: Vec<Dimensions>) {
        for (index, dimensions) in indexes.iter().zip(dimensions) {
            if let Some(value) = self.0.remove(index) {
                self.0.insert(*index, value.with_dimensions(dimensions));
            }
        }
    }

    /// The shapes of a graph's outputs, some of which have too little room.
    fn shapes(&self, outputs: &[u32], of: &[u32], shapes: &[OutputShape]) -> Vec<OutputShape> {
        let shape = |index: &u32| {
            let told = of.iter().position(|one| one == index).and_then(|at| shapes.get(at));
            told.cloned().unwrap_or_else(|| OutputShape {
                dimensions: self.0.get(index).map(Value::dimensions).unwrap_or_default(),
                is_sufficient: true,
            })
        };
        outputs.iter().map(shape).collect()
    }
}

impl Runner<'_> {
    /// Runs a graph with these values of its inputs, to these places of its outputs: what is known of the
    /// outputs then.
    pub(super) fn graph(
        &mut self,
        code: &GraphCode,
        inputs: &[Value],
        outputs: &[Value],
    ) -> Result<Vec<Dimensions>> {
        let mut values = Values::of_graph(code, inputs, outputs, &self.temporaries);
        for step in &code.steps {
            let (written, done) = match step {
                StepCode::Device(step) => {
                    let written: Vec<u32> = step.outputs.iter().map(|port| port.operand).collect();
                    (written, self.device(step, &values))
                }
                StepCode::If(step) => (step.outputs.clone(), self.branch(step, &values)),
                StepCode::While(step) => (step.outputs.clone(), self.repeat(step, &values)),
            };
            match done {
                Ok(dimensions) => values.learn(&written, dimensions),
                Err(Stop::Insufficient(shapes)) => {
                    let shapes = values.shapes(&code.outputs, &written, &shapes);
                    return Err(Stop::Insufficient(shapes));
                }
                Err(stop) => return Err(stop),
            }
        }
        let outputs = values.all(&code.outputs)?;
        Ok(outputs.iter().map(Value::dimensions).collect())
    }

    fn device(&mut self, step: &DeviceCode, values: &Values) -> Result<Vec<Dimensions>> {
        let (inputs, outputs) = values.arguments(step)?;
        let Done { dimensions, .. } = self.steps.device(step, &inputs, &outputs)?;
        Ok(dimensions)
    }

    fn branch(&mut self, step: &IfCode, values: &Values) -> Result<Vec<Dimensions>> {
        self.steps.check_deadline()?;
        let branch = match values.of(step.condition)?.is_true()? {
            true => &step.then,
            false => &step.otherwise,
        };
        let (inputs, outputs) = (values.all(&step.inputs)?, values.all(&step.outputs)?);
        self.interpreting(|runner| runner.graph(branch, &inputs, &outputs))
    }

    /// The state lies in two places in turn: the body reads one and writes the other.
    fn repeat(&mut self, step: &WhileCode, values: &Values) -> Result<Vec<Dimensions>> {
        let timeout = self.steps.options.loop_timeout.unwrap_or(LOOP_TIMEOUT_DEFAULT);
        let start = Instant::now();
        let mut state = values.all(&step.inputs)?;
        let answer = self.place(step.answer, [1].into_iter().collect());
        let mut turn = 0;
        loop {
            self.steps.check_deadline()?;
            let asked = std::slice::from_ref(&answer);
            self.interpreting(|runner| runner.graph(&step.condition, &state, asked))?;
            if !answer.is_true()? {
                break;
            }
            if start.elapsed() > timeout {
                tracing::info!(?timeout, "a loop takes too long");
                return Err(Stop::Final(ResultCode::MissedDeadlineTransient));
            }
            let next: Vec<Value> = (step.states.iter().zip(&state))
                .map(|(places, before)| self.place(places[turn], before.dimensions()))
                .collect();
            let known = self.interpreting(|runner| runner.graph(&step.body, &state, &next))?;
            for ((state, next), dimensions) in state.iter_mut().zip(next).zip(known) {
                *state = next.with_dimensions(dimensions);
            }
            turn = 1 - turn;
        }
        let outputs = values.all(&step.outputs)?;
        for ((value, output), places) in state.iter().zip(&outputs).zip(&step.states) {
            value.copy_to(output, places[0].length.into())?;
        }
        Ok(state.iter().take(outputs.len()).map(Value::dimensions).collect())
    }

    /// Runs something of a branch or a loop.
    fn interpreting<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.steps.is_interpreting, true);
        let done = run(self);
        self.steps.is_interpreting = before;
        done
    }

    fn place(&self, slot: Slot, dimensions: Dimensions) -> Value {
        place(&self.temporaries, slot, dimensions)
    }
}

fn place(temporaries: &Pool, slot: Slot, dimensions: Dimensions) -> Value {
    let Slot { offset, length } = slot;
    Value::Bytes(Bytes { pool: Pool::clone(temporaries), offset, length, dimensions })
}
