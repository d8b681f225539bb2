//! From a file to a model: boundary, operators in order, verdicts.

use burst_hal::session::StateBinding;
use burst_hal::validate::validate_model;
use burst_hal::{Dimensions, HalVersion, Model, Operand, OperandLifeTime, OperandType};

use crate::ElementType;
use crate::error::{Entry, ImportError, Refusal};
use crate::file::{File, Operator};
use crate::graph::OperandIndex;
use crate::mapper::Mapper;
use crate::ops;
use crate::verdict::{Outcome, Verdict};

/// A model from a file, and what a caller must know to run it.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The model.
    pub model: Model,
    /// Its inputs, in the model's order: those of the file, then the states.
    pub inputs: Vec<TensorInfo>,
    /// Its outputs, in the model's order: those of the file, then the states.
    pub outputs: Vec<TensorInfo>,
    /// Which input and output are the same state, before and after an execution. Before the first
    /// execution every element of a state stands for real 0: it is the zero point of its type.
    pub states: Vec<StatePair>,
    /// What became of each operator of the file.
    pub verdicts: Vec<Verdict>,
}

impl Imported {
    /// The states, as those who run the model take them.
    #[must_use]
    pub fn state_bindings(&self) -> Vec<StateBinding> {
        let binding =
            |pair: &StatePair| StateBinding { input: pair.input_index, output: pair.output_index };
        self.states.iter().map(binding).collect()
    }
}

/// What [`inspect`](crate::inspect) found out about a file without insisting on a model.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// What became of each operator of the file.
    pub verdicts: Vec<Verdict>,
    /// Why the graph's inputs or outputs would stop an import even if no operator did.
    pub boundary: Option<ImportError>,
}

/// An input or output of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// Its name in the file.
    pub name: String,
    /// Its type in the model.
    pub ty: OperandType,
    /// Its element type in the file, where that differs: int64 results are int32 in the model.
    pub file_type: ElementType,
    /// Its shape; 0 for a size, and nothing for the rank, that only the execution shows.
    pub dims: Dimensions,
    /// Real value of one step of a quantized type, else 0.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
}

/// A state that goes from the end of one execution into the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatePair {
    /// Position among the model's inputs.
    pub input_index: usize,
    /// Position among the model's outputs.
    pub output_index: usize,
}

/// Which part of a file's graph to import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part<'n> {
    /// Names of the tensors where it begins; none: the inputs of the file.
    pub from: &'n [&'n str],
    /// Names of the tensors where it ends; none: the outputs of the file.
    pub to: &'n [&'n str],
}

/// Where to cut a graph so that NNAPI operations can run what lies behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// How many operators, from the first on, lie before the cut.
    pub operators_before: usize,
    /// Names of the tensors where the part behind begins.
    pub from: Vec<String>,
    /// Names of the file's outputs that lie behind.
    pub to: Vec<String>,
}

/// The part, as tensor indexes, with the operators in it.
struct Plan {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Per operator of the file.
    included: Vec<bool>,
}

/// Imports the part, or fails on the first operator that cannot be mapped.
pub(crate) fn import(bytes: &[u8], part: Part<'_>) -> Result<Imported, ImportError> {
    Ok(import_with_states(bytes, part)?.0)
}

/// The same, with the tensor of each state.
pub(crate) fn import_with_states(
    bytes: &[u8],
    part: Part<'_>,
) -> Result<(Imported, Vec<usize>), ImportError> {
    let file = File::open(bytes)?;
    let plan = plan(&file, part)?;
    check_order(&file, &plan)?;
    let mut mapper = Mapper::new(&file, &plan.outputs);
    let inputs = bind_inputs(&file, &mut mapper, &plan)?;
    let verdicts = map_all(&file, &mut mapper, &plan);
    refuse(&verdicts)?;
    let outputs = bind_outputs(&file, &mut mapper, &plan)?;
    let state_tensors = mapper.states.iter().map(|state| state.tensor).collect();
    let imported = finish(&file, mapper, &plan, (inputs, outputs), verdicts);
    validate_model(&imported.model, HalVersion::V1_3)?;
    Ok((imported, state_tensors))
}

/// Judges every operator of the file.
pub(crate) fn inspect(bytes: &[u8]) -> Result<Inspection, ImportError> {
    let file = File::open(bytes)?;
    let plan = plan(&file, Part::default())?;
    check_order(&file, &plan)?;
    let mut mapper = Mapper::new(&file, &plan.outputs);
    let inputs = bind_inputs(&file, &mut mapper, &plan);
    let verdicts = map_all(&file, &mut mapper, &plan);
    let outputs = inputs.and_then(|_| bind_outputs(&file, &mut mapper, &plan));
    Ok(Inspection { verdicts, boundary: outputs.err() })
}

/// Finds the cut behind the last operator that is refused; `None` when none is.
pub(crate) fn cut(bytes: &[u8]) -> Result<Option<Cut>, ImportError> {
    let verdicts = inspect(bytes)?.verdicts;
    let Some(last) = verdicts.iter().rposition(|verdict| verdict.outcome.is_refused()) else {
        return Ok(None);
    };
    let file = File::open(bytes)?;
    let behind = file.operators.get(last + 1..).unwrap_or_default();
    // Values that need not come in: constants, states, what operators behind the cut made.
    let mut there: Vec<bool> =
        file.tensors.iter().map(|tensor| tensor.data.is_some() || tensor.is_state()).collect();
    let mut from = Vec::new();
    for operator in behind {
        for &tensor in operator.inputs.iter().flatten() {
            if !has(&there, tensor) {
                from.push(tensor);
                set(&mut there, tensor);
            }
        }
        operator.outputs.iter().for_each(|&tensor| set(&mut there, tensor));
    }
    let made = flags(&file, &behind.iter().flat_map(|o| o.outputs.clone()).collect::<Vec<_>>());
    let name = |&tensor: &usize| {
        file.tensors.get(tensor).map_or_else(String::new, |found| found.name().to_owned())
    };
    let to = file.outputs.iter().filter(|&&tensor| has(&made, tensor));
    Ok(Some(Cut {
        operators_before: last + 1,
        from: from.iter().map(name).collect(),
        to: to.map(name).collect(),
    }))
}

/// Which operators the part needs: those that its ends depend on, back to its beginning.
fn plan(file: &File<'_>, part: Part<'_>) -> Result<Plan, ImportError> {
    let named = |names: &[&str], whole: &[usize]| match names {
        [] => Ok(whole.to_vec()),
        names => names.iter().map(|name| file.tensor_named(name)).collect(),
    };
    let inputs: Vec<usize> = named(part.from, &file.inputs)?;
    let outputs: Vec<usize> = named(part.to, &file.outputs)?;
    let whole = part.from.is_empty() && part.to.is_empty();
    let included = if whole {
        vec![true; file.operators.len()]
    } else {
        needed_operators(file, &inputs, &outputs)
    };
    Ok(Plan { inputs, outputs, included })
}

fn needed_operators(file: &File<'_>, inputs: &[usize], outputs: &[usize]) -> Vec<bool> {
    let is_input = flags(file, inputs);
    let mut wanted = flags(file, outputs);
    let mut included = vec![false; file.operators.len()];
    // Files keep operators in execution order, so that one pass from the end finds everything.
    for (operator, flag) in file.operators.iter().zip(&mut included).rev() {
        let is_wanted = |&tensor: &usize| has(&wanted, tensor) && !has(&is_input, tensor);
        if operator.outputs.iter().any(is_wanted) {
            *flag = true;
            operator.inputs.iter().flatten().for_each(|&tensor| set(&mut wanted, tensor));
        }
    }
    included
}

/// A flag per tensor of the file, set for these.
fn flags(file: &File<'_>, tensors: &[usize]) -> Vec<bool> {
    let mut flags = vec![false; file.tensors.len()];
    tensors.iter().for_each(|&tensor| set(&mut flags, tensor));
    flags
}

fn set(flags: &mut [bool], tensor: usize) {
    if let Some(flag) = flags.get_mut(tensor) {
        *flag = true;
    }
}

fn has(flags: &[bool], tensor: usize) -> bool {
    flags.get(tensor).copied().unwrap_or(false)
}

/// Every value is written once, and before it is read.
fn check_order(file: &File<'_>, plan: &Plan) -> Result<(), ImportError> {
    let mut has_value: Vec<bool> =
        file.tensors.iter().map(|tensor| tensor.data.is_some() || tensor.is_state()).collect();
    let entry = |index: usize| {
        file.tensors.get(index).map_or(Entry::new("tensor", index, ""), |tensor| tensor.entry())
    };
    let wrong =
        |index, role, reason| Err(ImportError::Boundary { tensor: entry(index), role, reason });
    for &input in &plan.inputs {
        match has_value.get_mut(input) {
            Some(flag) if !*flag => *flag = true,
            _ => return wrong(input, "an input", "it is listed twice, or has a value already"),
        }
    }
    for operator in included(file, plan) {
        for &tensor in operator.inputs.iter().flatten() {
            if has_value.get(tensor) != Some(&true) {
                let operator = operator.entry();
                return Err(ImportError::NotInOrder { operator, tensor: entry(tensor) });
            }
        }
        for &tensor in &operator.outputs {
            match has_value.get_mut(tensor) {
                Some(flag) if !*flag => *flag = true,
                _ => {
                    let operator = operator.entry();
                    return Err(ImportError::WrittenTwice { operator, tensor: entry(tensor) });
                }
            }
        }
    }
    check_outputs(file, plan, &has_value)
        .or_else(|(tensor, reason)| wrong(tensor, "an output", reason))
}

fn included<'p, 'f, 'a>(
    file: &'f File<'a>,
    plan: &'p Plan,
) -> impl Iterator<Item = &'f Operator<'a>> + use<'p, 'f, 'a> {
    file.operators.iter().zip(&plan.included).filter(|(_, flag)| **flag).map(|(found, _)| found)
}

/// NNAPI's outputs are written by operations, and listed once.
fn check_outputs(
    file: &File<'_>,
    plan: &Plan,
    has_value: &[bool],
) -> Result<(), (usize, &'static str)> {
    let is_input = flags(file, &plan.inputs);
    let mut listed = vec![false; file.tensors.len()];
    for &output in &plan.outputs {
        let constant = file.tensors.get(output).is_none_or(|tensor| tensor.data.is_some());
        if constant || has(&is_input, output) {
            return Err((output, "no operator computes it"));
        }
        if has_value.get(output) != Some(&true) {
            return Err((output, "no operator writes it"));
        }
        match listed.get_mut(output) {
            Some(flag) if !*flag => *flag = true,
            _ => return Err((output, "it is listed twice")),
        }
    }
    Ok(())
}

fn bind_inputs(
    file: &File<'_>,
    mapper: &mut Mapper<'_, '_>,
    plan: &Plan,
) -> Result<Vec<OperandIndex>, ImportError> {
    let bind = |&input: &usize| {
        let refused = |reason| boundary_type(file, input, "an input", reason);
        mapper.graph_input(input).map_err(refused)
    };
    plan.inputs.iter().map(bind).collect()
}

fn bind_outputs(
    file: &File<'_>,
    mapper: &mut Mapper<'_, '_>,
    plan: &Plan,
) -> Result<Vec<OperandIndex>, ImportError> {
    let bind = |&output: &usize| {
        let refused = |reason| boundary_type(file, output, "an output", reason);
        let operand = mapper.written(output, None).map_err(refused)?;
        let ty = mapper.graph.operand(operand).lifetime;
        match ty {
            OperandLifeTime::SubgraphOutput => Ok(operand),
            _ => Err(refused(Refusal::NotConstant { what: "nothing that is an output" })),
        }
    };
    plan.outputs.iter().map(bind).collect()
}

fn boundary_type(
    file: &File<'_>,
    index: usize,
    role: &'static str,
    reason: Refusal,
) -> ImportError {
    let entry =
        file.tensors.get(index).map_or(Entry::new("tensor", index, ""), |tensor| tensor.entry());
    ImportError::BoundaryType { tensor: entry, role, reason }
}

/// Maps all operators in order; a refused one does not stop the others from being judged.
fn map_all(file: &File<'_>, mapper: &mut Mapper<'_, '_>, plan: &Plan) -> Vec<Verdict> {
    let operators = file.operators.iter().zip(&plan.included);
    operators
        .map(|(operator, &is_included)| {
            let outcome = if is_included { map_one(mapper, operator) } else { Outcome::Outside };
            Verdict {
                index: operator.index,
                operator: operator.name(),
                outcome,
                notes: std::mem::take(&mut mapper.notes),
            }
        })
        .collect()
}

fn map_one(mapper: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Outcome {
    let before = mapper.graph.operation_count();
    match ops::map(mapper, operator) {
        Ok(()) if mapper.graph.operation_count() == before => Outcome::Folded,
        Ok(()) => Outcome::Mapped(mapper.graph.operations_since(before).collect()),
        Err(reason) => Outcome::Refused(reason),
    }
}

fn refuse(verdicts: &[Verdict]) -> Result<(), ImportError> {
    let mut refused = verdicts.iter().filter_map(|verdict| match &verdict.outcome {
        Outcome::Refused(reason) => Some((verdict, reason)),
        _ => None,
    });
    match refused.next() {
        None => Ok(()),
        Some((first, reason)) => Err(ImportError::Refused {
            index: first.index,
            operator: first.operator.clone(),
            reason: reason.clone(),
            others: refused.count(),
        }),
    }
}

fn finish(
    file: &File<'_>,
    mapper: Mapper<'_, '_>,
    plan: &Plan,
    (mut inputs, mut outputs): (Vec<OperandIndex>, Vec<OperandIndex>),
    verdicts: Vec<Verdict>,
) -> Imported {
    let mut input_tensors = plan.inputs.clone();
    let mut output_tensors = plan.outputs.clone();
    let mut states = Vec::with_capacity(mapper.states.len());
    for state in &mapper.states {
        states.push(StatePair { input_index: inputs.len(), output_index: outputs.len() });
        inputs.push(state.before);
        outputs.push(state.after);
        input_tensors.push(state.tensor);
        output_tensors.push(state.tensor);
    }
    let describe = |tensors: &[usize], operands: &[OperandIndex]| {
        let both = tensors.iter().zip(operands);
        both.map(|(&tensor, &operand)| info(file, tensor, mapper.graph.operand(operand))).collect()
    };
    let input_infos = describe(&input_tensors, &inputs);
    let output_infos = describe(&output_tensors, &outputs);
    Imported {
        model: mapper.graph.finish(inputs, outputs),
        inputs: input_infos,
        outputs: output_infos,
        states,
        verdicts,
    }
}

fn info(file: &File<'_>, index: usize, operand: &Operand) -> TensorInfo {
    let tensor = file.tensors.get(index);
    TensorInfo {
        name: tensor.map_or_else(String::new, |tensor| tensor.name().to_owned()),
        ty: operand.ty,
        file_type: tensor.map_or(ElementType::Float32, |tensor| tensor.ty),
        dims: operand.dimensions.clone(),
        scale: operand.scale,
        zero_point: operand.zero_point,
    }
}
