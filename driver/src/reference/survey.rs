//! Which operations can be computed, as far as that is known before an execution.

use burst_hal::{Dimensions, OperandLifeTime};
use smallvec::SmallVec;

use super::graphs::{Graph, Graphs, Known, Lack, Row};
use crate::OpError;
use crate::error::DriverError;
use crate::op::{Inferred, Rules, Stop};
use crate::plan::{Control, check_declared};
use crate::tensor::{Arg, Args, TensorInfo, Value};

/// What becomes of each operation of a graph.
type Verdicts = Vec<Result<(), DriverError>>;

/// Says of each operation of the main graph whether it can be computed; one that runs other graphs can
/// where everything in them can.
///
/// # Errors
/// A caller who wants it no longer.
pub(super) fn survey(graphs: &Graphs, stop: Stop<'_>) -> Result<Verdicts, DriverError> {
    let mut survey = Survey { graphs, stop, referenced: vec![None; graphs.referenced.len()] };
    survey.graph(&graphs.main)
}

struct Survey<'g> {
    graphs: &'g Graphs,
    stop: Stop<'g>,
    /// What is wrong with each graph that was looked at.
    referenced: Vec<Option<Result<(), DriverError>>>,
}

impl Survey<'_> {
    fn graph(&mut self, graph: &Graph) -> Result<Verdicts, DriverError> {
        let mut dims: Vec<Option<Dimensions>> = graph.operands.iter().map(known_dims).collect();
        let mut verdicts = Vec::with_capacity(graph.rows.len());
        for row in &graph.rows {
            self.stop.check().map_err(|cause| graph.error(row, cause))?;
            let verdict = self.row(graph, row, &mut dims);
            match &verdict {
                Err(error) if error.is_given_up() => return verdict.map(|()| Vec::new()),
                // As the model declares them.
                Err(_) => row.outputs.iter().for_each(|output| {
                    let known = &graph.operands[*output];
                    dims[*output] = fully_known(&known.info, &known.declared);
                }),
                Ok(()) => {}
            }
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    fn row(
        &mut self,
        graph: &Graph,
        row: &Row,
        dims: &mut [Option<Dimensions>],
    ) -> Result<(), DriverError> {
        let Row { index, op, .. } = *row;
        let rules = row.rules.as_ref().map_err(|lack| match lack {
            Lack::Unsupported => DriverError::Unsupported { graph: graph.id, index, op },
            Lack::Extension(fault) => {
                DriverError::Extension { graph: graph.id, index, fault: fault.clone() }
            }
        })?;
        let failed = |cause| {
            DriverError::given_up(&cause).unwrap_or(DriverError::Unplannable {
                graph: graph.id,
                index,
                op,
                cause,
            })
        };
        let Some(control) = row.control else {
            return infer(graph, row, rules, dims).map_err(failed);
        };
        self.control(control)?;
        // Legal in a model, but no graph can run without its inputs.
        let is_omitted =
            |operand: &usize| graph.operands[*operand].lifetime == OperandLifeTime::NoValue;
        if let Some(index) = row.inputs.iter().position(is_omitted) {
            return Err(failed(OpError::Omitted { index }));
        }
        for output in &row.outputs {
            let known = &graph.operands[*output];
            dims[*output] = fully_known(&known.info, &known.declared);
        }
        Ok(())
    }

    /// Whether both graphs can be run. Those of a legal model nest at most
    /// [`burst_hal::validate::MAX_NESTING`] deep, and each is looked at once.
    fn control(&mut self, control: Control) -> Result<(), DriverError> {
        for index in control.graphs() {
            if self.referenced[index].is_none() {
                let graphs = self.graphs;
                let verdicts = self.graph(&graphs.referenced[index])?;
                self.referenced[index] = Some(verdicts.into_iter().collect());
            }
            if let Some(Err(error)) = &self.referenced[index] {
                return Err(error.clone());
            }
        }
        Ok(())
    }
}

/// Works out the shapes of an operation's results where that can be done already.
fn infer(
    graph: &Graph,
    row: &Row,
    rules: &Rules,
    dims: &mut [Option<Dimensions>],
) -> Result<(), OpError> {
    // Dimensions that are known are those of every execution.
    let is_empty = |operand: &usize| dims[*operand].as_ref().is_some_and(|dims| dims.contains(&0));
    match row.inputs.iter().position(is_empty) {
        Some(index) if !rules.traits.zero_sized_inputs => return Err(OpError::ZeroSized { index }),
        _ => {}
    }
    let inferred = {
        let inputs: SmallVec<[Arg<'_>; 16]> = row
            .inputs
            .iter()
            .map(|operand| {
                let known = &graph.operands[*operand];
                let value = match &known.constant {
                    Some(held) => Value::Bytes(held.bytes.as_slice()),
                    None if known.lifetime == OperandLifeTime::NoValue => Value::Omitted,
                    None => Value::Unknown,
                };
                Arg { info: &known.info, dims: dims[*operand].as_deref(), value }
            })
            .collect();
        let outputs: SmallVec<[(&TensorInfo, &[u32]); 2]> =
            row.outputs.iter().map(|output| described(&graph.operands[*output])).collect();
        let args = Args { inputs: &inputs, outputs: &outputs };
        match rules.body.bind(&args) {
            Err(OpError::NotYet) | Ok(_) => {}
            Err(error) => return Err(error),
        }
        match rules.body.infer(&args) {
            Err(OpError::NotYet) => Inferred::DataDependent,
            inferred => inferred?,
        }
    };
    let Inferred::Shapes(shapes) = inferred else {
        row.outputs.iter().for_each(|output| dims[*output] = None);
        return Ok(());
    };
    if shapes.len() != row.outputs.len() {
        return Err(OpError::Arity { want: shapes.len(), got: row.outputs.len() });
    }
    for (output, shape) in row.outputs.iter().zip(shapes) {
        let known = &graph.operands[*output];
        check_declared(&known.declared, &shape)?;
        known.info.byte_count(&shape)?;
        dims[*output] = Some(shape);
    }
    Ok(())
}

/// What an output's numbers mean, and its declared shape.
pub(super) fn described(known: &Known) -> (&TensorInfo, &[u32]) {
    (&known.info, known.declared.as_slice())
}

/// The shape of an operand that no operation writes, where it is known.
fn known_dims(known: &Known) -> Option<Dimensions> {
    match known.lifetime {
        OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput => None,
        OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
            Some(known.declared.clone())
        }
        _ => fully_known(&known.info, &known.declared),
    }
}

/// The declared shape, if rank and every size are known.
fn fully_known(info: &TensorInfo, declared: &Dimensions) -> Option<Dimensions> {
    let is_open = info.is_tensor() && declared.is_empty() || declared.contains(&0);
    (!is_open).then(|| declared.clone())
}
