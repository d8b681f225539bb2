//! What dividing a model gives.

use burst_hal::Model;

/// Who runs what.
#[derive(Debug, Clone)]
pub enum Plan {
    /// One device runs the whole model as it is.
    Simple {
        /// Which of the offers.
        device: usize,
    },
    /// Several steps.
    Compound(GraphPlan),
}

/// A graph as steps.
#[derive(Debug, Clone, Default)]
pub struct GraphPlan {
    /// In the order in which they run.
    pub steps: Vec<Step>,
}

/// A part of a graph that runs at once.
#[derive(Debug, Clone)]
pub enum Step {
    /// Operations that one device runs.
    Device(DeviceStep),
    /// An IF that is interpreted.
    If(IfStep),
    /// A WHILE that is interpreted.
    While(WhileStep),
}

/// Operations that one device runs as a model of their own.
#[derive(Debug, Clone)]
pub struct DeviceStep {
    /// Which of the offers.
    pub device: usize,
    /// Positions of the operations in the graph, in the order that they have in the step's model.
    pub operations: Vec<u32>,
    /// The step as a model that is legal by itself. It has the constants, the pools, the referenced graphs and
    /// the extensions that these operations use, and no others.
    pub model: Model,
    /// For each input of `model` the operand of the graph that it is: an input of the graph, or what an earlier
    /// step wrote.
    pub inputs: Vec<u32>,
    /// For each output of `model` the operand of the graph that it is: an output of the graph, or what a later
    /// step reads.
    pub outputs: Vec<u32>,
}

/// An IF whose graphs have plans of their own.
///
/// Its inputs are operands of its graph of any lifetime but NO_VALUE: constants too, which
/// [`constant_bytes`](super::constant_bytes) reads. All inputs and outputs have known sizes.
#[derive(Debug, Clone)]
pub struct IfStep {
    /// Position of the operation in its graph.
    pub operation: u32,
    /// The operand that decides: TENSOR_BOOL8 of shape `[1]`.
    pub condition: u32,
    /// Runs where the condition holds.
    pub then: Branch,
    /// Runs where it does not.
    pub otherwise: Branch,
    /// Operands of the graph that are the inputs of either branch, in order.
    pub inputs: Vec<u32>,
    /// Operands of the graph that the outputs of either branch become, in order.
    pub outputs: Vec<u32>,
}

/// A WHILE whose graphs have plans of their own.
///
/// The inputs are as those of an [`IfStep`]. Both graphs take all of them; the body's outputs replace the
/// first of them, and the others stay. When the condition no longer holds, the first of them are the outputs.
#[derive(Debug, Clone)]
pub struct WhileStep {
    /// Position of the operation in its graph.
    pub operation: u32,
    /// Says whether to go on: its one output is TENSOR_BOOL8 of shape `[1]`.
    pub condition: Branch,
    /// Computes the next values.
    pub body: Branch,
    /// Operands of the graph that the loop begins with, in order.
    pub inputs: Vec<u32>,
    /// Operands of the graph that the first values become, in order.
    pub outputs: Vec<u32>,
}

/// A referenced graph that is run as part of an interpreted operation.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Which of the model's referenced graphs.
    pub subgraph: u32,
    /// Its steps; their operands are those of this graph.
    pub plan: Box<GraphPlan>,
}

impl GraphPlan {
    /// Every step of a device, those of interpreted graphs too, in the order in which they are written down.
    pub fn device_steps(&self) -> Vec<&DeviceStep> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'a>(&'a self, into: &mut Vec<&'a DeviceStep>) {
        for step in &self.steps {
            match step {
                Step::Device(step) => into.push(step),
                Step::If(IfStep { then, otherwise, .. }) => {
                    then.plan.collect(into);
                    otherwise.plan.collect(into);
                }
                Step::While(WhileStep { condition, body, .. }) => {
                    condition.plan.collect(into);
                    body.plan.collect(into);
                }
            }
        }
    }
}

impl Step {
    /// Operands of the graph that have to have their values before the step runs.
    pub fn inputs(&self) -> Vec<u32> {
        match self {
            Step::Device(step) => step.inputs.clone(),
            Step::If(step) => {
                let mut all = vec![step.condition];
                all.extend(&step.inputs);
                all
            }
            Step::While(step) => step.inputs.clone(),
        }
    }

    /// Operands of the graph that have their values once the step has run.
    pub fn outputs(&self) -> &[u32] {
        match self {
            Step::Device(step) => &step.outputs,
            Step::If(step) => &step.outputs,
            Step::While(step) => &step.outputs,
        }
    }
}
