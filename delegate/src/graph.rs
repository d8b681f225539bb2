//! What the runtime shows of its graph, as values.

/// A graph while the runtime shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph<'a> {
    pub(crate) tensors: Vec<Tensor<'a>>,
    /// In the order in which they run.
    pub(crate) nodes: Vec<Node>,
}

/// A tensor of the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tensor<'a> {
    pub(crate) name: String,
    /// The runtime's code of its element type.
    pub(crate) type_code: i32,
    /// Sizes along the axes; `None` where the runtime has none.
    pub(crate) shape: Option<Vec<i32>>,
    pub(crate) bytes: usize,
    pub(crate) allocation: Allocation,
    pub(crate) is_variable: bool,
    pub(crate) is_sparse: bool,
    pub(crate) quantization: Quantization,
    /// The bytes of a constant of the model.
    pub(crate) data: Option<&'a [u8]>,
}

/// Where the bytes of a tensor come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// They are the model's.
    Constant,
    /// The runtime has a place for them before it runs, of a size that stays.
    Planned,
    /// As planned, and they stay what they were when the graph was prepared.
    Fixed,
    /// Only the execution shows how many there are.
    Dynamic,
    /// There are none, or they lie where only others can reach them.
    #[default]
    Elsewhere,
}

/// How integers of a tensor stand for real numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Quantization {
    #[default]
    None,
    /// By scales and zero points.
    Affine { scales: Vec<f32>, zero_points: Vec<i64>, axis: i32 },
    /// In a way that is not known here.
    Unknown,
}

/// A node of the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The runtime's number.
    pub(crate) number: i32,
    /// The code of its operator.
    pub(crate) code: i32,
    /// The name of a custom operator.
    pub(crate) custom_name: Option<String>,
    /// Which version of the operator.
    pub(crate) version: i32,
    /// Tensors that it reads; -1 for an input that is left out.
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    pub(crate) intermediates: Vec<i32>,
    /// The bytes of its parameters, as far as `builtin` reads them; `None` where it has none.
    pub(crate) parameters: Option<Vec<u8>>,
    /// Options of a custom operator, in its own form.
    pub(crate) custom_options: Vec<u8>,
}

impl Node {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        match (&self.custom_name, burst_tflite::operator_name(self.code)) {
            (Some(name), _) => name.escape_debug().to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => format!("operator {}", self.code),
        }
    }
}

/// Nodes that the runtime would give to one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Their numbers, in the order in which they run.
    pub(crate) nodes: Vec<i32>,
    /// Tensors of theirs that others use.
    pub(crate) outputs: Vec<i32>,
}
