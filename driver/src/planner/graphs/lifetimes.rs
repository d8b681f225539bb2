//! When each value of a graph is alive, and where it lies.

use std::ops::Range;

use burst_hal::validate::GraphId;
use burst_hal::{Dimensions, OperandLifeTime};

use super::builder::{Builder, operand_list};
use super::constants::KeptFiles;
use crate::OpError;
use crate::arena::{self, Need};
use crate::budget::settle;
use crate::error::DriverError;
use crate::kept::{KeptValue, Place, What};
use crate::plan::{Allocation, Control, GraphPlan, MAX_ARENA_BYTES, Planned};

impl Builder<'_, '_> {
    /// Decides where every value lies while the graph runs.
    pub(super) fn finish(mut self) -> Result<GraphPlan, DriverError> {
        let inputs = operand_list(&self.subgraph.input_indexes).into_vec();
        let outputs = operand_list(&self.subgraph.output_indexes).into_vec();
        let (operands, needs) = self.lifetimes(&inputs, &outputs);
        let (ranges, arena_bytes) =
            self.ranges(&needs).map_err(|cause| super::outside_of_operations(&cause))?;
        if arena_bytes > MAX_ARENA_BYTES {
            let (bytes, limit) = (arena_bytes as u64, MAX_ARENA_BYTES as u64);
            return Err(DriverError::TooLarge { bytes, limit });
        }
        for (operand, range) in operands.into_iter().zip(ranges) {
            self.operands[operand].allocation = Allocation::Arena(range);
        }
        self.keep_constants().map_err(|cause| super::outside_of_operations(&cause))?;
        for step in &mut self.steps {
            step.arena_order = arena_order(&self.operands, &step.outputs);
        }
        self.steps.shrink_to_fit();
        let mut plan = GraphPlan {
            reaches: self.reaches(),
            graph: self.graph,
            operands: self.operands,
            steps: self.steps,
            inputs,
            outputs,
            arena_bytes,
            charge: self.charge,
        };
        let held = plan.list_bytes();
        settle(&mut plan.charge, held).map_err(|cause| super::outside_of_operations(&cause))?;
        Ok(plan)
    }

    /// Where values that need memory lie, and how much all take: as an earlier preparation has found, or else
    /// found now.
    fn ranges(&self, needs: &[Need]) -> Result<(Vec<Range<usize>>, usize), OpError> {
        let budget = self.graphs.budget;
        let kept = budget.kept();
        kept.begin(Place::behind(self.graph));
        if let Some(values) = kept.take(What::Ranges) {
            let offsets = values.first().map_or(&[][..], KeptValue::bytes);
            return arena::kept_ranges(needs, offsets);
        }
        let (ranges, bytes) = arena::assign_ranges(needs, budget.stop())?;
        let copy = || Ok((Dimensions::new(), budget.copy_of(&arena::offsets(&ranges))?));
        kept.record(What::Ranges, &[], std::iter::once_with(copy))?;
        Ok((ranges, bytes))
    }

    /// Gives the plan the constants that its steps read as they are. A survey needs none.
    fn keep_constants(&mut self) -> Result<(), OpError> {
        let (budget, is_survey) = (self.graphs.budget, self.graphs.context.is_none());
        let constants = std::mem::take(&mut self.constants);
        if is_survey {
            return Ok(());
        }
        let needed = constants.iter().zip(&self.needed).filter(|(_, needed)| **needed);
        let files = KeptFiles::used_by(needed.map(|(constant, _)| constant), budget);
        for (operand, constant) in constants.into_iter().enumerate() {
            if self.needed[operand]
                && let Some(bytes) = constant.into_plan(&files, budget)?
            {
                self.operands[operand].allocation = Allocation::Constant(Box::new(bytes));
            }
        }
        Ok(())
    }

    /// The referenced graphs that run while this one does.
    fn reaches(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.graphs.model.referenced.len()];
        for graph in self.steps.iter().filter_map(|step| step.control).flat_map(Control::graphs) {
            reaches[graph] = true;
            let inner = self.graphs.planned(graph).map_or(&[][..], |graph| &graph.reaches);
            for (reached, inner) in reaches.iter_mut().zip(inner) {
                *reached |= inner;
            }
        }
        reaches
    }

    /// The operands that need a range of the arena, and for which steps. Operands whose shape is
    /// not known get memory of their own.
    fn lifetimes(&mut self, inputs: &[usize], outputs: &[usize]) -> (Vec<usize>, Vec<Need>) {
        // Step 0 is the copying in of inputs, step n + 1 the copying out of outputs.
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; self.operands.len()];
        let mut touch = |operand: usize, step: usize| match &mut spans[operand] {
            Some((_, last)) => *last = step,
            span @ None => *span = Some((step, step)),
        };
        for operand in inputs {
            touch(*operand, 0);
        }
        for (step, planned) in self.steps.iter().enumerate() {
            for operand in planned.inputs.iter().chain(&*planned.outputs) {
                touch(*operand, step + 1);
            }
        }
        for operand in outputs {
            touch(*operand, self.steps.len() + 1);
        }
        if self.graph != GraphId::Main {
            // A loop runs the graph again with the inputs it left there.
            for operand in inputs {
                touch(*operand, self.steps.len() + 1);
            }
        }
        let mut operands = Vec::new();
        let mut needs = Vec::new();
        for (operand, span) in spans.into_iter().enumerate() {
            let planned = &mut self.operands[operand];
            let (Some((first, last)), Allocation::None) = (span, &planned.allocation) else {
                continue;
            };
            let is_left_out = self.subgraph.operands[operand].lifetime == OperandLifeTime::NoValue;
            if is_left_out || self.constants[operand].is_known() {
                continue;
            }
            let size = match &planned.dims {
                Some(dims) => planned.info.byte_count(dims).ok(),
                None => None,
            };
            match size {
                Some(size) => {
                    operands.push(operand);
                    needs.push(Need { size, first, last });
                }
                None => planned.allocation = Allocation::Dynamic,
            }
        }
        (operands, needs)
    }
}

fn arena_order(operands: &[Planned], outputs: &[usize]) -> Box<[usize]> {
    let start = |position: &usize| match &operands[outputs[*position]].allocation {
        Allocation::Arena(range) => Some((range.start, range.end)),
        _ => None,
    };
    let mut order: Vec<usize> = (0..outputs.len()).filter(|p| start(p).is_some()).collect();
    order.sort_by_key(start);
    order.into()
}
