//! What holds for every plan, whatever the model and the devices.

use std::cell::RefCell;
use std::collections::BTreeSet;

use burst_hal::validate::{GraphId, validate_model};
use burst_hal::{HalVersion, Model, Operand, OperandLifeTime, Subgraph};

use crate::partition::choice::graph;
use crate::partition::{
    Branch, DeviceStep, GraphPlan, Offer, PartitionOptions, Plan, Step, constant_bytes, sizes,
};

/// Fails where a plan does not compute what the model does, or on devices that do not run it.
pub(super) fn check_plan(
    model: &Model,
    offers: &[Offer<'_>],
    options: &PartitionOptions,
    plan: &Plan,
) {
    match plan {
        Plan::Simple { device } => {
            assert!(offers[*device].supported.main.iter().all(|supported| *supported));
        }
        Plan::Compound(plan) => {
            let compared = RefCell::default();
            Checker { model, offers, options, compared }.graph(GraphId::Main, plan);
        }
    }
}

struct Checker<'a> {
    model: &'a Model,
    offers: &'a [Offer<'a>],
    options: &'a PartitionOptions,
    /// Graphs of the step that is being looked at, with those of the model that they are.
    compared: RefCell<BTreeSet<(u32, u32)>>,
}

impl Checker<'_> {
    fn graph(&self, id: GraphId, plan: &GraphPlan) {
        let graph = graph(self.model, id);
        let mut there: BTreeSet<u32> = graph.input_indexes.iter().copied().collect();
        let mut done = BTreeSet::new();
        for step in &plan.steps {
            for input in step.inputs() {
                let operand = &graph.operands[input as usize];
                let is_constant = matches!(
                    operand.lifetime,
                    OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference
                );
                let is_interpreted = !matches!(step, Step::Device(_));
                let may_be_constant = is_interpreted && is_constant;
                assert!(
                    there.contains(&input) || may_be_constant,
                    "{id}: {input} is read too early"
                );
                if operand.lifetime != OperandLifeTime::SubgraphInput {
                    assert!(sizes::is_known(operand, self.options), "{id}: size of {input}");
                }
            }
            let operations = match step {
                Step::Device(step) => {
                    self.device_step(id, graph, step);
                    step.operations.clone()
                }
                Step::If(step) => {
                    self.branches([&step.then, &step.otherwise]);
                    vec![step.operation]
                }
                Step::While(step) => {
                    self.branches([&step.condition, &step.body]);
                    vec![step.operation]
                }
            };
            for operation in operations {
                assert!(done.insert(operation), "{id}: operation {operation} runs twice");
            }
            for output in step.outputs() {
                assert!(there.insert(*output), "{id}: {output} is written twice");
            }
        }
        assert_eq!(done.len(), graph.operations.len(), "{id}: every operation runs");
        let missing: Vec<_> =
            graph.output_indexes.iter().filter(|output| !there.contains(output)).collect();
        assert!(missing.is_empty(), "{id}: outputs {missing:?} are not written");
    }

    fn branches(&self, branches: [&Branch; 2]) {
        for branch in branches {
            self.graph(GraphId::Referenced(branch.subgraph), &branch.plan);
        }
    }

    fn device_step(&self, id: GraphId, graph: &Subgraph, step: &DeviceStep) {
        self.compared.borrow_mut().clear();
        let supported = &self.offers[step.device].supported;
        for operation in &step.operations {
            let count = graph.operations.len();
            assert!(
                supported.says(id, *operation as usize, count),
                "{id}: operation {operation} on a device that does not run it"
            );
        }
        validate_model(&step.model, HalVersion::LATEST).expect("a step is a legal model");
        assert!(!step.model.main.output_indexes.is_empty(), "{id}: a step has outputs");
        assert_eq!(step.model.main.operations.len(), step.operations.len());
        for (new, old) in step.model.main.operations.iter().zip(&step.operations) {
            let old = &graph.operations[*old as usize];
            assert_eq!(new.ty, old.ty);
            for (new, old) in [(&new.inputs, &old.inputs), (&new.outputs, &old.outputs)] {
                assert_eq!(new.len(), old.len());
                for (new, old) in new.iter().zip(old) {
                    self.same(&step.model, &step.model.main, *new, graph, *old);
                }
            }
        }
        let lists = [
            (&step.model.main.input_indexes, &step.inputs),
            (&step.model.main.output_indexes, &step.outputs),
        ];
        for (new, old) in lists {
            assert_eq!(new.len(), old.len());
            for (new, old) in new.iter().zip(old) {
                self.same(&step.model, &step.model.main, *new, graph, *old);
            }
        }
        self.carries_only_what_it_uses(&step.model);
    }

    /// An operand of a step means what the operand of the graph means that it stands for.
    fn same(&self, model: &Model, own: &Subgraph, new: u32, graph: &Subgraph, old: u32) {
        let (new, old) = (&own.operands[new as usize], &graph.operands[old as usize]);
        let meaning = |operand: &Operand| {
            let Operand { ty, dimensions, scale, zero_point, extra_params, .. } = operand.clone();
            (ty, dimensions, scale, zero_point, extra_params)
        };
        assert_eq!(meaning(new), meaning(old));
        match old.lifetime {
            OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
                assert_eq!(new.lifetime, old.lifetime);
                assert_eq!(constant_bytes(model, new), constant_bytes(self.model, old));
            }
            OperandLifeTime::Subgraph => {
                let (new, old) = (new.location.offset, old.location.offset);
                if !self.compared.borrow_mut().insert((new, old)) {
                    return;
                }
                let inner = &model.referenced[new as usize];
                let whole = &self.model.referenced[old as usize];
                assert_eq!(inner.operations, whole.operations);
                for (operand, _) in (0..).zip(&inner.operands) {
                    self.same(model, inner, operand, whole, operand);
                }
            }
            OperandLifeTime::NoValue | OperandLifeTime::SubgraphInput => {
                assert_eq!(new.lifetime, old.lifetime);
            }
            OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput => {}
        }
    }

    fn carries_only_what_it_uses(&self, model: &Model) {
        let graphs = || std::iter::once(&model.main).chain(&model.referenced);
        let of = |lifetime| {
            let operands = graphs().flat_map(|graph| &graph.operands);
            operands.filter(move |operand| operand.lifetime == lifetime)
        };
        let pools: BTreeSet<u32> =
            of(OperandLifeTime::ConstantReference).map(|one| one.location.pool_index).collect();
        assert_eq!(pools.len(), model.pools.len(), "pools that nothing names");
        let named: BTreeSet<u32> =
            of(OperandLifeTime::Subgraph).map(|one| one.location.offset).collect();
        assert_eq!(named.len(), model.referenced.len(), "graphs that nothing runs");
        let is_named = |operand: u32| {
            let operations = model.main.operations.iter();
            operations.flat_map(|one| one.inputs.iter().chain(&one.outputs)).any(|n| *n == operand)
        };
        let count = u32::try_from(model.main.operands.len()).expect("a small model");
        assert!((0..count).all(is_named), "operands that nothing names");
        assert_eq!(
            model.relax_computation_float32_to_float16,
            self.model.relax_computation_float32_to_float16
        );
    }
}
