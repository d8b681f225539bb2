//! Nodes of the runtime as a graph for the importer.

use std::collections::HashMap;

use burst_tflite::{GivenGraph, GivenOperator, GivenTensor, ImportError};

use crate::builtin;
use crate::graph::{Allocation, Graph, Node, Quantization, Tensor};

/// Why a node stays with the runtime.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stay {
    /// A tensor of a kind that no partition can have.
    #[error("tensor {tensor} ({name}) {problem}")]
    Tensor { tensor: i32, name: String, problem: &'static str },
    /// The runtime has no parameters for an operator that needs them.
    #[error("the runtime shows no parameters of it")]
    NoParameters,
    /// No operations of NNAPI compute it.
    #[error("{}", importer(.0))]
    Import(#[from] ImportError),
    /// None of the devices runs it.
    #[error("no device runs {operations}")]
    Device { operations: String },
    /// The runtime computes it once, a device would each time.
    #[error("its value is a constant of nodes that stay with the runtime")]
    Constant,
    /// The framework cannot prepare the partition.
    #[error("its partition cannot be prepared: {0}")]
    Prepare(neuralnetworks::Error),
    /// The partition's values cannot be laid out.
    #[error("its partition has {what} of another size than the runtime")]
    Size { what: &'static str },
    /// It would be in a partition with another node, for which there is a reason.
    #[error("its partition, with node {first}, cannot be prepared")]
    Partition { first: i32 },
    /// Devices answer otherwise each time.
    #[error("its partition was divided again and again")]
    Divided,
}

/// What the importer says, without the position of the operator in its own small graph.
fn importer(error: &ImportError) -> String {
    match error {
        ImportError::Refused { reason, .. } => reason.to_string(),
        other => other.to_string(),
    }
}

/// Nodes as a graph, and what its tensors are in the runtime.
#[derive(Debug)]
pub(crate) struct Piece<'g> {
    pub(crate) given: GivenGraph<'g>,
    /// The runtime's tensor of each of the graph's.
    pub(crate) tensors: Vec<usize>,
}

/// These nodes, by their positions in the graph, which run in this order. `outputs` are the tensors that others
/// use; without them all that the nodes write.
///
/// # Errors
/// The first reason why it cannot be told to the importer.
pub(crate) fn piece<'g>(
    graph: &'g Graph<'_>,
    nodes: &[usize],
    outputs: Option<&[i32]>,
) -> Result<Piece<'g>, Stay> {
    let mut builder = Builder {
        graph,
        piece: Piece { given: GivenGraph::default(), tensors: Vec::new() },
        known: HashMap::new(),
        written: Vec::new(),
    };
    for node in nodes.iter().filter_map(|at| graph.nodes.get(*at)) {
        builder.add(node)?;
    }
    let Builder { mut piece, known, written, .. } = builder;
    piece.given.outputs = match outputs {
        None => written,
        Some(outputs) => {
            let ours = outputs.iter().filter_map(|tensor| known.get(tensor).copied());
            ours.filter(|tensor| written.contains(tensor)).collect()
        }
    };
    Ok(piece)
}

/// How a node refers to a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Read,
    Written,
    /// It only describes values inside of the node.
    Inside,
}

struct Builder<'g, 'a> {
    graph: &'g Graph<'a>,
    piece: Piece<'g>,
    /// Tensors of the runtime that the piece has already.
    known: HashMap<i32, usize>,
    written: Vec<usize>,
}

impl<'g> Builder<'g, '_> {
    fn add(&mut self, node: &'g Node) -> Result<(), Stay> {
        let read = |tensor: &i32| match *tensor {
            -1 => Ok(None),
            tensor => self.tensor(tensor, Role::Read).map(Some),
        };
        let inputs = node.inputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let inside = |tensor: &i32| self.tensor(*tensor, Role::Inside);
        let intermediates = node.intermediates.iter().map(inside).collect::<Result<_, _>>()?;
        let write = |tensor: &i32| self.tensor(*tensor, Role::Written);
        let outputs = node.outputs.iter().map(write).collect::<Result<Vec<_>, _>>()?;
        self.written.extend(&outputs);
        self.piece.given.operators.push(GivenOperator {
            code: node.code,
            custom_name: node.custom_name.as_deref(),
            inputs,
            outputs,
            intermediates,
            options: options(node)?,
            custom_options: &node.custom_options,
        });
        Ok(())
    }

    /// The piece's tensor for one of the runtime's.
    fn tensor(&mut self, number: i32, role: Role) -> Result<usize, Stay> {
        if let Some(known) = self.known.get(&number) {
            return Ok(*known);
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let wrong = |name: &str, problem| {
            let name = name.escape_debug().to_string();
            Err(Stay::Tensor { tensor: number, name, problem })
        };
        let Some(tensor) = self.graph.tensors.get(index) else {
            return wrong("", "does not exist");
        };
        if let Some(problem) = problem(tensor, role) {
            return wrong(&tensor.name, problem);
        }
        let Some(type_code) = schema_type(tensor.type_code) else {
            return wrong(&tensor.name, "has a type that no file has");
        };
        let at = self.piece.given.tensors.len();
        self.piece.given.tensors.push(describe(tensor, type_code));
        self.piece.tensors.push(index);
        self.known.insert(number, at);
        let comes_in = role == Role::Read && tensor.data.is_none() && !tensor.is_variable;
        if comes_in {
            self.piece.given.inputs.push(at);
        }
        Ok(at)
    }
}

/// What keeps a tensor out of every partition.
fn problem(tensor: &Tensor<'_>, role: Role) -> Option<&'static str> {
    if tensor.is_sparse {
        return Some("is stored sparsely");
    }
    if tensor.quantization == Quantization::Unknown {
        return Some("is quantized in a way of its own");
    }
    if role == Role::Inside {
        return None;
    }
    let Some(shape) = &tensor.shape else { return Some("has no shape") };
    if tensor.data.is_some() {
        return None;
    }
    match tensor.allocation {
        Allocation::Planned => {}
        // What the runtime computed while it prepared the node is not computed again.
        Allocation::Fixed if role == Role::Read => {}
        Allocation::Fixed => return Some("has its value already"),
        Allocation::Dynamic => return Some("has a size that only the execution shows"),
        Allocation::Constant | Allocation::Elsewhere => return Some("has no memory to be read"),
    }
    // The importer takes 0 for a size that is not known.
    shape.iter().any(|size| *size <= 0).then_some("has no elements")
}

fn describe<'g>(tensor: &'g Tensor<'_>, type_code: i8) -> GivenTensor<'g> {
    let mut shape = tensor.shape.clone().unwrap_or_default();
    // A computed scalar: values of NNAPI have axes.
    if tensor.data.is_none() && shape.is_empty() {
        shape.push(1);
    }
    let (scales, zero_points, quantized_axis) = match &tensor.quantization {
        Quantization::Affine { scales, zero_points, axis } => {
            (scales.clone(), zero_points.clone(), *axis)
        }
        Quantization::None | Quantization::Unknown => (Vec::new(), Vec::new(), 0),
    };
    GivenTensor {
        name: &tensor.name,
        type_code,
        shape,
        data: tensor.data,
        scales,
        zero_points,
        quantized_axis,
        is_variable: tensor.is_variable && tensor.data.is_none(),
    }
}

/// The schema's code of an element type, of which the runtime has codes of its own.
fn schema_type(code: i32) -> Option<i8> {
    match code {
        1 => Some(0),
        10 => Some(1),
        2..=9 => i8::try_from(code).ok(),
        11..=64 => i8::try_from(code - 1).ok(),
        _ => None,
    }
}

/// The parameters of a node as the schema's options.
fn options(node: &Node) -> Result<Option<(u8, Vec<burst_tflite::GivenField>)>, Stay> {
    if node.custom_name.is_some() {
        return Ok(None);
    }
    let Some(parameters) = builtin::parameters(node.code) else { return Ok(None) };
    let bytes = node.parameters.as_deref().ok_or(Stay::NoParameters)?;
    parameters.options(node.version, bytes).map(Some).ok_or(Stay::NoParameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOAT: i32 = 1;

    fn tensor(shape: &[i32]) -> Tensor<'static> {
        Tensor {
            type_code: FLOAT,
            shape: Some(shape.to_vec()),
            allocation: Allocation::Planned,
            ..Tensor::default()
        }
    }

    /// A RELU from tensor 0 to tensor 1.
    fn relu(from: Tensor<'static>, to: Tensor<'static>) -> Graph<'static> {
        let node = Node { code: 19, inputs: vec![0], outputs: vec![1], ..Node::default() };
        Graph { tensors: vec![from, to], nodes: vec![node] }
    }

    fn said(graph: &Graph<'_>) -> String {
        piece(graph, &[0], None).unwrap_err().to_string()
    }

    #[test]
    fn types_have_other_codes_in_the_runtime_than_in_files() {
        let pairs = [(1, 0), (2, 2), (3, 3), (4, 4), (6, 6), (7, 7), (9, 9), (10, 1), (18, 17)];
        for (runtime, schema) in pairs {
            assert_eq!(schema_type(runtime), Some(schema));
        }
        assert_eq!((schema_type(0), schema_type(65), schema_type(-1)), (None, None, None));
    }

    #[test]
    fn tensors_that_no_partition_can_have_are_named() {
        let good = || tensor(&[2]);
        let with = |change: fn(&mut Tensor<'static>)| {
            let mut changed = good();
            changed.name = "odd".to_owned();
            change(&mut changed);
            changed
        };
        assert!(piece(&relu(good(), good()), &[0], None).is_ok());
        for (from, want) in [
            (
                with(|t| t.allocation = Allocation::Dynamic),
                "has a size that only the execution shows",
            ),
            (with(|t| t.allocation = Allocation::Elsewhere), "has no memory to be read"),
            (with(|t| t.is_sparse = true), "is stored sparsely"),
            (with(|t| t.shape = None), "has no shape"),
            (with(|t| t.shape = Some(vec![2, 0])), "has no elements"),
            (with(|t| t.shape = Some(vec![-3])), "has no elements"),
            (with(|t| t.quantization = Quantization::Unknown), "is quantized in a way of its own"),
            (with(|t| t.type_code = 0), "has a type that no file has"),
        ] {
            assert_eq!(said(&relu(from, good())), format!("tensor 0 (odd) {want}"));
        }
        let fixed = || with(|t| t.allocation = Allocation::Fixed);
        assert!(piece(&relu(fixed(), good()), &[0], None).is_ok());
        assert_eq!(said(&relu(good(), fixed())), "tensor 1 (odd) has its value already");
        let mut outside = relu(good(), good());
        outside.nodes[0].inputs = vec![7];
        assert_eq!(said(&outside), "tensor 7 () does not exist");
    }

    #[test]
    fn parameters_that_the_runtime_does_not_show_are_missed() {
        let mut graph = relu(tensor(&[2]), tensor(&[2]));
        graph.nodes[0].code = 25;
        assert!(matches!(piece(&graph, &[0], None), Err(Stay::NoParameters)));
        graph.nodes[0].parameters = Some(vec![0; 3]);
        assert!(matches!(piece(&graph, &[0], None), Err(Stay::NoParameters)));
        graph.nodes[0].parameters = Some(1.0_f32.to_ne_bytes().to_vec());
        assert!(piece(&graph, &[0], None).is_ok());
    }

    #[test]
    fn a_piece_has_what_comes_in_and_what_others_use() {
        let mut graph = relu(tensor(&[]), tensor(&[]));
        graph.tensors.push(tensor(&[]));
        graph.nodes.push(Node { code: 20, inputs: vec![1], outputs: vec![2], ..Node::default() });
        let whole = piece(&graph, &[0, 1], Some(&[2])).unwrap();
        assert_eq!((whole.given.inputs, whole.given.outputs), (vec![0], vec![2]));
        assert_eq!(whole.given.tensors[0].shape, [1], "a computed scalar has an axis");
        let second = piece(&graph, &[1], Some(&[2, 1])).unwrap();
        assert_eq!(second.tensors, [1, 2]);
        assert_eq!((second.given.inputs, second.given.outputs), (vec![0], vec![1]));
    }
}
