//! What a control flow operation hands to a graph must be what the graph declares, and back.

use burst_hal::{HalVersion, Model, Operand, OperandType, Operation, OperationType, Subgraph};

use crate::SignatureError;
use crate::op::Signature;
use crate::plan::{Control, Loop};

/// Control flow is new in HAL 1.3.
pub(super) fn expect_version(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let (since, version) = (HalVersion::V1_3, signature.version);
    if version >= since { Ok(()) } else { Err(SignatureError::Version { since, version }) }
}

/// Whether the operand is one truth value, and says so.
pub(super) fn is_condition(operand: &Operand) -> bool {
    operand.ty == OperandType::TensorBool8 && operand.dimensions.as_slice() == [1]
}

/// The graphs that an operation runs, checked against its operands; `None` for an operation that
/// runs none. `operands` are those of its own graph.
///
/// # Errors
/// Lists of different lengths, or operands that are not alike.
pub(crate) fn control(
    model: &Model,
    operands: &[Operand],
    operation: &Operation,
) -> Result<Option<Control>, SignatureError> {
    let caller = Caller { model, operands, operation };
    match operation.ty {
        OperationType::If => caller.branches().map(Some),
        OperationType::While => caller.repeated().map(Some),
        _ => Ok(None),
    }
}

struct Caller<'m> {
    model: &'m Model,
    operands: &'m [Operand],
    operation: &'m Operation,
}

impl<'m> Caller<'m> {
    /// The graph that input `position` names.
    fn graph(&self, position: usize) -> Result<(usize, &'m Subgraph), SignatureError> {
        let operand = self.operation.inputs.get(position).map(|index| *index as usize);
        let operand = operand.and_then(|index| self.operands.get(index));
        operand
            .map(|operand| operand.location.offset as usize)
            .and_then(|index| Some((index, self.model.referenced.get(index)?)))
            .ok_or(SignatureError::Rule { what: "an operand that names no graph" })
    }

    /// The operation's inputs after the graphs.
    fn values(&self, first: usize) -> List<'m> {
        let indexes = self.operation.inputs.get(first..).unwrap_or_default();
        List { operands: self.operands, indexes }
    }

    fn results(&self) -> List<'m> {
        List { operands: self.operands, indexes: &self.operation.outputs }
    }

    fn branches(&self) -> Result<Control, SignatureError> {
        let branch = |position| {
            let (index, graph) = self.graph(position)?;
            self.values(3).expect_all(inputs(graph), "input")?;
            self.results().expect_all(outputs(graph), "output")?;
            Ok(index)
        };
        Ok(Control::If { then: branch(1)?, otherwise: branch(2)? })
    }

    fn repeated(&self) -> Result<Control, SignatureError> {
        let (values, results) = (self.values(2), self.results());
        let (condition, graph) = self.graph(0)?;
        values.expect_all(inputs(graph), "condition input")?;
        let holds = outputs(graph);
        if holds.len() != 1 || !holds.iter().all(is_condition) {
            let what = "the condition graph does not give one TENSOR_BOOL8 of shape [1]";
            return Err(SignatureError::Rule { what });
        }
        let (body, graph) = self.graph(1)?;
        values.expect_all(inputs(graph), "body input")?;
        let next = outputs(graph);
        if next.len() < results.len() || next.len() > values.len() {
            let what = "the body gives fewer values than the loop, or more than it takes";
            return Err(SignatureError::Rule { what });
        }
        results.expect_first(next, "body output")?;
        next.expect_first(inputs(graph), "next body input")?;
        Ok(Control::While(Loop { condition, body, states: next.len(), shares_graphs: false }))
    }
}

fn inputs(graph: &Subgraph) -> List<'_> {
    List { operands: &graph.operands, indexes: &graph.input_indexes }
}

fn outputs(graph: &Subgraph) -> List<'_> {
    List { operands: &graph.operands, indexes: &graph.output_indexes }
}

/// Operands of one graph that stand in a list.
#[derive(Clone, Copy)]
struct List<'m> {
    operands: &'m [Operand],
    indexes: &'m [u32],
}

impl<'m> List<'m> {
    fn len(&self) -> usize {
        self.indexes.len()
    }

    fn iter(self) -> impl Iterator<Item = &'m Operand> {
        self.indexes.iter().filter_map(move |index| self.operands.get(*index as usize))
    }

    fn expect_all(self, other: List<'_>, what: &'static str) -> Result<(), SignatureError> {
        if self.len() != other.len() {
            let what = "a graph takes or gives another number of values than its operation";
            return Err(SignatureError::Rule { what });
        }
        self.expect_first(other, what)
    }

    /// Operands at the same position are alike, as far as both lists go.
    fn expect_first(self, other: List<'_>, what: &'static str) -> Result<(), SignatureError> {
        let unlike = self.iter().zip(other.iter()).position(|(one, other)| !are_alike(one, other));
        unlike.map_or(Ok(()), |position| Err(SignatureError::Boundary { what, position }))
    }
}

/// Whether a value of one operand can be a value of the other. Shapes are compared as far as both
/// are known.
fn are_alike(one: &Operand, other: &Operand) -> bool {
    let (a, b) = (&one.dimensions, &other.dimensions);
    let shapes = a.is_empty()
        || b.is_empty()
        || a.len() == b.len() && a.iter().zip(b).all(|(a, b)| *a == 0 || *b == 0 || a == b);
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
    use burst_hal::{Dimensions, OperandLifeTime};

    use super::*;

    fn operand(ty: OperandType, dims: &[u32]) -> Operand {
        let mut operand = Operand::new(ty, OperandLifeTime::TemporaryVariable);
        operand.dimensions = Dimensions::from_slice(dims);
        operand
    }

    #[test]
    fn operands_are_alike_where_both_say_something() {
        use OperandType::{TensorFloat32 as F32, TensorInt32 as I32};
        let is = |a: &[u32], b: &[u32]| are_alike(&operand(F32, a), &operand(F32, b));
        assert!(is(&[2, 3], &[2, 3]));
        assert!(is(&[], &[2, 3]));
        assert!(is(&[2, 0], &[0, 3]));
        assert!(!is(&[2, 3], &[2, 4]));
        assert!(!is(&[2, 3], &[2, 3, 1]));
        assert!(!are_alike(&operand(F32, &[2]), &operand(I32, &[2])));
        let mut scaled = operand(I32, &[2]);
        scaled.scale = 0.5;
        assert!(!are_alike(&scaled, &operand(I32, &[2])));
        let mut moved = operand(I32, &[2]);
        moved.zero_point = 1;
        assert!(!are_alike(&moved, &operand(I32, &[2])));
    }
}
