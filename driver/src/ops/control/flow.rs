//! What a step of control flow runs.

/// How a step runs other graphs of the model, named by their index among the referenced ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// One of two graphs, by a condition.
    If {
        /// Runs where the condition holds.
        then: usize,
        /// Runs where it does not.
        otherwise: usize,
    },
    /// One graph again and again, as long as another one says so.
    While(Loop),
}

impl Control {
    /// The graphs it may run.
    pub(crate) fn graphs(self) -> [usize; 2] {
        match self {
            Control::If { then, otherwise } => [then, otherwise],
            Control::While(Loop { condition, body, .. }) => [condition, body],
        }
    }
}

/// A WHILE operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The graph that says whether to go on.
    pub(crate) condition: usize,
    /// The graph that computes the next state.
    pub(crate) body: usize,
    /// How many of the values are state: the outputs of the body. The others stay as they are.
    pub(crate) states: usize,
    /// Whether running one of the two graphs can overwrite what the other one was given, because
    /// it is that graph or runs it too.
    pub(crate) shares_graphs: bool,
}
