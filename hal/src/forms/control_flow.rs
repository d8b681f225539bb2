//! What IF and WHILE hand to their graphs must be what these declare, and back.

use super::mismatch::FormMismatch;
use crate::{Model, Operand, OperandType, Operation, OperationType, Subgraph};

/// Checks an IF or WHILE of `graph` against the graphs that it runs; anything else is fine.
pub(super) fn check(
    model: &Model,
    graph: &Subgraph,
    operation: &Operation,
) -> Result<(), FormMismatch> {
    let caller = Caller { model, graph, operation };
    match operation.ty {
        OperationType::If => caller.check_if(),
        OperationType::While => caller.check_while(),
        _ => Ok(()),
    }
}

struct Caller<'m> {
    model: &'m Model,
    graph: &'m Subgraph,
    operation: &'m Operation,
}

impl<'m> Caller<'m> {
    fn check_if(&self) -> Result<(), FormMismatch> {
        let (values, results) = (self.values(3)?, self.results()?);
        if !List::new(self.graph, &self.operation.inputs).first().is_some_and(is_condition) {
            return Err(FormMismatch::Condition);
        }
        for branch in [self.named(1)?, self.named(2)?] {
            values.expect_all(List::inputs(branch), "input")?;
            results.expect_all(List::outputs(branch), "output")?;
        }
        Ok(())
    }

    fn check_while(&self) -> Result<(), FormMismatch> {
        let (values, results) = (self.values(2)?, self.results()?);
        let (condition, body) = (self.named(0)?, self.named(1)?);
        values.expect_all(List::inputs(condition), "input of the condition")?;
        let holds = List::outputs(condition);
        if holds.len() != 1 || !holds.first().is_some_and(is_condition) {
            return Err(FormMismatch::Condition);
        }
        values.expect_all(List::inputs(body), "input of the body")?;
        let next = List::outputs(body);
        if next.len() < results.len() || next.len() > values.len() {
            return Err(FormMismatch::boundary_count(next.len(), results.len()));
        }
        results.expect_first(next, "output of the body")?;
        next.expect_first(List::inputs(body), "next input of the body")
    }

    /// The graph that an input names.
    fn named(&self, position: usize) -> Result<&'m Subgraph, FormMismatch> {
        let operand = List::new(self.graph, &self.operation.inputs).get(position);
        let graph = operand.and_then(|operand| {
            self.model.referenced.get(usize::try_from(operand.location.offset).ok()?)
        });
        graph.ok_or(FormMismatch::NoGraph)
    }

    /// The inputs behind the graphs.
    fn values(&self, first: usize) -> Result<List<'m>, FormMismatch> {
        let indexes = self.operation.inputs.get(first..).unwrap_or_default();
        List::new(self.graph, indexes).of_values()
    }

    fn results(&self) -> Result<List<'m>, FormMismatch> {
        List::new(self.graph, &self.operation.outputs).of_values()
    }
}

/// Whether the operand is one truth value, and says so.
fn is_condition(operand: &Operand) -> bool {
    operand.ty == OperandType::TensorBool8 && operand.dimensions.as_slice() == [1]
}

/// Operands of one graph that stand in a list.
#[derive(Clone, Copy)]
struct List<'m> {
    operands: &'m [Operand],
    indexes: &'m [u32],
}

impl<'m> List<'m> {
    fn new(graph: &'m Subgraph, indexes: &'m [u32]) -> Self {
        List { operands: &graph.operands, indexes }
    }

    fn inputs(graph: &'m Subgraph) -> Self {
        List::new(graph, &graph.input_indexes)
    }

    fn outputs(graph: &'m Subgraph) -> Self {
        List::new(graph, &graph.output_indexes)
    }

    fn len(&self) -> usize {
        self.indexes.len()
    }

    fn get(&self, position: usize) -> Option<&'m Operand> {
        self.operands.get(usize::try_from(*self.indexes.get(position)?).ok()?)
    }

    fn first(&self) -> Option<&'m Operand> {
        self.get(0)
    }

    fn iter(self) -> impl Iterator<Item = &'m Operand> {
        (0..self.len()).filter_map(move |position| self.get(position))
    }

    /// The list, if none of it is a graph.
    fn of_values(self) -> Result<Self, FormMismatch> {
        match self.iter().any(|operand| operand.ty == OperandType::Subgraph) {
            true => Err(FormMismatch::GraphAsValue),
            false => Ok(self),
        }
    }

    fn expect_all(self, other: List<'_>, what: &'static str) -> Result<(), FormMismatch> {
        match self.len() == other.len() {
            true => self.expect_first(other, what),
            false => Err(FormMismatch::boundary_count(other.len(), self.len())),
        }
    }

    /// Operands at the same position are alike, as far as both lists go.
    fn expect_first(self, other: List<'_>, what: &'static str) -> Result<(), FormMismatch> {
        let unlike = self.iter().zip(other.iter()).position(|(one, other)| !are_alike(one, other));
        unlike.map_or(Ok(()), |position| Err(FormMismatch::boundary(what, position)))
    }
}

/// Whether a value of one operand can be a value of the other. Shapes are compared as far as both are
/// known.
fn are_alike(one: &Operand, other: &Operand) -> bool {
    let (a, b) = (&one.dimensions, &other.dimensions);
    let mut sizes = a.iter().zip(b);
    let shapes = a.is_empty()
        || b.is_empty()
        || a.len() == b.len() && sizes.all(|(a, b)| *a == 0 || *b == 0 || a == b);
    #[allow(clippy::float_cmp, reason = "the contract compares scales exactly")]
    let scales = one.scale == other.scale;
    one.ty == other.ty
        && shapes
        && scales
        && one.zero_point == other.zero_point
        && one.extra_params == other.extra_params
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HalVersion, ModelBuilder, OutputSpec, forms};

    /// `if (input 0) y = x + x else y = x + x`, where one thing is changed.
    fn said(change: impl FnOnce(&mut Model)) -> String {
        let mut builder = ModelBuilder::new();
        let condition = builder.input(OperandType::TensorBool8, &[1]);
        let x = builder.input(OperandType::TensorFloat32, &[2]);
        let branch = builder.referenced(|builder| {
            let x = builder.input(OperandType::TensorFloat32, &[2]);
            let none = builder.scalar_i32(0);
            let y = builder.result_of(OperationType::Add, &[x, x, none], OutputSpec::f32(&[2]));
            builder.output(y);
        });
        let (then, otherwise) = (builder.subgraph(branch), builder.subgraph(branch));
        let inputs = [condition, then, otherwise, x];
        let y = builder.result_of(OperationType::If, &inputs, OutputSpec::f32(&[2]));
        builder.output(y);
        let mut model = builder.build().unwrap();
        change(&mut model);
        let operation = &model.main.operations[0];
        let checked = forms::check(&model, &model.main, operation, HalVersion::LATEST);
        checked.map_or_else(|mismatch| mismatch.to_string(), |()| "fine".into())
    }

    #[test]
    fn what_an_if_hands_over_is_what_its_graphs_declare() {
        assert_eq!(said(|_| {}), "fine");
        let x = 1;
        let unlike = "input 0 is unlike what the graph declares";
        assert_eq!(said(|model| model.main.operands[x].ty = OperandType::TensorInt32), unlike);
        assert_eq!(said(|model| model.main.operands[x].dimensions[0] = 3), unlike);
        assert_eq!(said(|model| model.main.operands[x].dimensions[0] = 0), "fine");
        assert_eq!(
            said(|model| model.main.operands[4].dimensions[0] = 3),
            "output 0 is unlike what the graph declares"
        );
        assert_eq!(
            said(|model| model.main.operands[0].dimensions[0] = 2),
            "its condition is not TENSOR_BOOL8 of shape [1]"
        );
        assert_eq!(
            said(|model| model.main.operations[0].inputs.truncate(3)),
            "a graph takes or gives 1 values, where 0 are handed over"
        );
        assert_eq!(said(|model| model.main.operands[2].location.offset = 7), "it names no graph");
        assert_eq!(
            said(|model| model.main.operations[0].inputs[3] = 2),
            "a graph is handed over as a value"
        );
    }
}
