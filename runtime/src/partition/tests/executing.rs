//! Plans executed step by step compute what one device computes, bit for bit.

use std::collections::BTreeMap;

use burst_driver::ReferenceDevice;
use burst_hal::validate::GraphId;
use burst_hal::{Capabilities, Device, Model, Subgraph};
use burst_verify::random::{self, RandomModel, Rng};

use super::{default, figures, offer};
use crate::partition::choice::graph;
use crate::partition::{
    Branch, GraphPlan, Offer, Plan, Step, SupportedBy, constant_bytes, partition,
};

/// Random graphs that the test runs.
const GRAPHS: u64 = 150;

/// Values by operand.
type Values = BTreeMap<u32, Vec<u8>>;

/// Executes plans in the simplest way: every step on a device of its own, every value by itself.
struct Executor<'a> {
    model: &'a Model,
    device: &'a dyn Device,
}

impl Executor<'_> {
    /// Runs a graph on these inputs; gives its outputs.
    fn graph(&self, id: GraphId, plan: &GraphPlan, inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let graph = graph(self.model, id);
        let mut values: Values = graph.input_indexes.iter().copied().zip(inputs).collect();
        for step in &plan.steps {
            let results = match step {
                Step::Device(step) => {
                    let inputs = self.read(graph, &values, &step.inputs);
                    let alone = RandomModel::of(step.model.clone(), inputs);
                    alone.run(self.device).expect("a step runs")
                }
                Step::If(step) => {
                    let condition = self.read(graph, &values, &[step.condition]);
                    let chosen = if condition[0][0] != 0 { &step.then } else { &step.otherwise };
                    self.branch(chosen, self.read(graph, &values, &step.inputs))
                }
                Step::While(step) => {
                    let mut state = self.read(graph, &values, &step.inputs);
                    while self.branch(&step.condition, state.clone())[0][0] != 0 {
                        let next = self.branch(&step.body, state.clone());
                        state.iter_mut().zip(next).for_each(|(state, next)| *state = next);
                    }
                    state
                }
            };
            values.extend(step.outputs().iter().copied().zip(results));
        }
        graph.output_indexes.iter().map(|output| values[output].clone()).collect()
    }

    fn branch(&self, branch: &Branch, inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.graph(GraphId::Referenced(branch.subgraph), &branch.plan, inputs)
    }

    fn read(&self, graph: &Subgraph, values: &Values, operands: &[u32]) -> Vec<Vec<u8>> {
        let value = |operand: &u32| {
            let constant = || constant_bytes(self.model, &graph.operands[*operand as usize]);
            values.get(operand).cloned().unwrap_or_else(|| constant().expect("a constant"))
        };
        operands.iter().map(value).collect()
    }
}

/// Three devices that each take a random part, of which the last takes all.
fn masks<'a>(rng: &mut Rng, model: &Model, figures: &'a [Capabilities; 3]) -> [Offer<'a>; 3] {
    let mut masked = |name, capabilities, share| {
        let supported = SupportedBy::ask(model, |graph| {
            graph.main.operations.iter().map(|_| rng.chance(share)).collect()
        });
        offer(name, capabilities, supported)
    };
    [
        masked("a", &figures[0], 0.4),
        masked("b", &figures[1], 0.4),
        masked("reference", &figures[2], 1.0),
    ]
}

#[test]
fn plans_compute_what_one_device_computes() {
    let device = ReferenceDevice::default();
    let figures = [figures(0.5, 0.5), figures(0.6, 0.6), figures(1.0, 1.0)];
    let mut interpreted = 0;
    for seed in 0..GRAPHS {
        let mut rng = Rng::new(seed);
        let count = 5 + rng.below(25);
        let one = random::graph(seed, count);
        let whole = one.run(&device).expect("a random model runs");
        let offers = masks(&mut rng, &one.model, &figures);
        let plan = partition(&one.model, &offers, &default()).expect("all sizes are known");
        let Plan::Compound(plan) = plan else { continue };
        interpreted += plan.steps.iter().filter(|step| !matches!(step, Step::Device(_))).count();
        let executor = Executor { model: &one.model, device: &device };
        let divided = executor.graph(GraphId::Main, &plan, one.inputs.clone());
        assert!(divided == whole, "seed {seed}");
    }
    assert!(interpreted > 20, "{interpreted} operations of control flow were taken apart");
}
