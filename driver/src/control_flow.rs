//! Executes IF and WHILE: hands values to the graphs of a model, runs them, takes the results back.
//!
//! The state of a loop lies in the inputs of its condition graph, whose memory outlasts the graph's
//! run: from there it goes to the body, and the body's outputs replace it. Values that the loop does
//! not change are handed over once, unless one of its graphs can run the other (see
//! [`Loop::shares_graphs`]).

use crate::OpError;
use crate::context::Runner;
use crate::error::DriverError;
use crate::graph_memory::{GraphMemory, fill};
use crate::plan::{Control, GraphPlan, Loop, Step};
use crate::stop::Stop;

/// The graph that a control flow operation stands in.
#[derive(Clone, Copy)]
struct Caller<'a> {
    graph: &'a GraphPlan,
    step: &'a Step,
}

impl Caller<'_> {
    fn error(&self, cause: OpError) -> DriverError {
        self.graph.error(self.step, cause)
    }

    /// Hands the values from position `first` on to a graph.
    fn hand_over(
        &self,
        own: &GraphMemory,
        first: usize,
        graph: &GraphPlan,
        memory: &mut GraphMemory,
    ) -> Result<(), OpError> {
        for (position, operand) in self.step.handed_over().iter().enumerate().skip(first) {
            let (dims, bytes) = own.value(self.graph, *operand)?;
            fill(memory.input(graph, position, dims)?, bytes)?;
        }
        Ok(())
    }

    /// Takes a value as output `position` of the operation.
    fn take_back(
        &self,
        own: &mut GraphMemory,
        position: usize,
        (dims, bytes): (&[u32], &[u8]),
    ) -> Result<(), OpError> {
        fill(own.room(self.graph, self.step.outputs[position], dims)?, bytes)
    }
}

/// A graph with values to read.
type Reading<'a> = (&'a GraphPlan, &'a GraphMemory);
/// A graph with values to write.
type Writing<'a> = (&'a GraphPlan, &'a mut GraphMemory);

impl Runner<'_> {
    /// Executes a step that runs other graphs.
    pub(crate) fn control(
        &mut self,
        graph: &GraphPlan,
        step: &Step,
        control: Control,
        memory: &mut GraphMemory,
        stop: Stop,
    ) -> Result<(), DriverError> {
        let caller = Caller { graph, step };
        match control {
            Control::If { then, otherwise } => {
                let (_, condition) = step
                    .inputs
                    .first()
                    .ok_or(OpError::Arity { want: 3, got: 0 })
                    .and_then(|operand| memory.value(graph, *operand))
                    .map_err(|cause| caller.error(cause))?;
                let chosen = if is_true(condition) { then } else { otherwise };
                self.branch(caller, chosen, memory, stop)
            }
            Control::While(whole) => self.repeat(caller, whole, memory, stop),
        }
    }

    fn branch(
        &mut self,
        caller: Caller<'_>,
        chosen: usize,
        own: &mut GraphMemory,
        stop: Stop,
    ) -> Result<(), DriverError> {
        self.with_graph(caller, chosen, |runner, graph, memory| {
            let failed = |cause| caller.error(cause);
            caller.hand_over(own, 0, graph, memory).map_err(failed)?;
            runner.graph(graph, memory, stop)?;
            for position in 0..caller.step.outputs.len() {
                let value = memory.output(graph, position);
                caller.take_back(own, position, value).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn repeat(
        &mut self,
        caller: Caller<'_>,
        whole: Loop,
        own: &mut GraphMemory,
        stop: Stop,
    ) -> Result<(), DriverError> {
        let failed = |cause| caller.error(cause);
        let Loop { condition, body, states, shares_graphs } = whole;
        let inside = stop.within_loop(self.loop_timeout);
        // A loop that runs no round cannot exceed its time-out.
        let mut may_run = stop;
        self.hand_over(caller, own, 0, condition).map_err(failed)?;
        self.hand_over(caller, own, states, body).map_err(failed)?;
        while self.holds(caller, condition, may_run)? {
            inside.check().map_err(failed)?;
            may_run = inside;
            if shares_graphs {
                self.hand_over(caller, own, states, body).map_err(failed)?;
            }
            self.copy_state(condition, body, states).map_err(failed)?;
            self.with_graph(caller, body, |runner, graph, memory| {
                runner.graph(graph, memory, inside)
            })?;
            self.advance(condition, body, states).map_err(failed)?;
            if shares_graphs {
                self.hand_over(caller, own, states, condition).map_err(failed)?;
            }
        }
        let (graph, memory) = self.at(condition).map_err(failed)?;
        for position in 0..caller.step.outputs.len() {
            memory
                .value(graph, graph.inputs[position])
                .and_then(|value| caller.take_back(own, position, value))
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Runs the condition graph of a loop on the state in its inputs.
    fn holds(
        &mut self,
        caller: Caller<'_>,
        condition: usize,
        stop: Stop,
    ) -> Result<bool, DriverError> {
        self.with_graph(caller, condition, |runner, graph, memory| {
            runner.graph(graph, memory, stop)?;
            Ok(is_true(memory.output(graph, 0).1))
        })
    }

    /// Gives the body the state that the condition graph saw.
    fn copy_state(&mut self, condition: usize, body: usize, states: usize) -> Result<(), OpError> {
        if condition == body {
            return Ok(());
        }
        let (from, to) = self.pair(condition, body)?;
        for position in 0..states {
            let (dims, bytes) = from.1.value(from.0, from.0.inputs[position])?;
            fill(to.1.input(to.0, position, dims)?, bytes)?;
        }
        Ok(())
    }

    /// Gives the condition graph the state that the body made.
    fn advance(&mut self, condition: usize, body: usize, states: usize) -> Result<(), OpError> {
        if condition == body {
            let (graph, memory) = self.at(body)?;
            return (0..states).try_for_each(|position| {
                memory.copy_to_input(graph, graph.outputs[position], position)
            });
        }
        let (from, to) = self.pair(body, condition)?;
        for position in 0..states {
            let (dims, bytes) = from.1.output(from.0, position);
            fill(to.1.input(to.0, position, dims)?, bytes)?;
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        caller: Caller<'_>,
        own: &GraphMemory,
        first: usize,
        index: usize,
    ) -> Result<(), OpError> {
        let (graph, memory) = self.at(index)?;
        caller.hand_over(own, first, graph, memory)
    }

    /// A referenced graph with its memory, which stays in its slot.
    fn at(&mut self, index: usize) -> Result<(&GraphPlan, &mut GraphMemory), OpError> {
        let graph = planned(self.plan.referenced.get(index))?;
        Ok((graph, self.memories.get_mut(index).ok_or(NOT_PLANNED)?))
    }

    /// Two different graphs, one to read from and one to write to.
    fn pair(&mut self, from: usize, to: usize) -> Result<(Reading<'_>, Writing<'_>), OpError> {
        let graphs =
            (planned(self.plan.referenced.get(from))?, planned(self.plan.referenced.get(to))?);
        let [from, to] = self.memories.get_disjoint_mut([from, to]).map_err(|_| NOT_PLANNED)?;
        Ok(((graphs.0, from), (graphs.1, to)))
    }

    /// Takes the memory of a referenced graph out of its slot to run the graph.
    fn with_graph<T>(
        &mut self,
        caller: Caller<'_>,
        index: usize,
        run: impl FnOnce(&mut Self, &GraphPlan, &mut GraphMemory) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let plan = self.plan;
        let missing = |cause| caller.error(cause);
        let graph = planned(plan.referenced.get(index)).map_err(missing)?;
        let slot = self.memories.get_mut(index).ok_or(NOT_PLANNED).map_err(missing)?;
        let mut memory = std::mem::take(slot);
        let result = run(self, graph, &mut memory);
        self.memories[index] = memory;
        result
    }
}

const NOT_PLANNED: OpError = OpError::Internal { what: "a graph that was not planned" };

fn planned(graph: Option<&Option<GraphPlan>>) -> Result<&GraphPlan, OpError> {
    graph.and_then(Option::as_ref).ok_or(NOT_PLANNED)
}

/// The value of a condition; every byte but 0 is true.
pub(crate) fn is_true(condition: &[u8]) -> bool {
    condition.first().is_some_and(|byte| *byte != 0)
}
