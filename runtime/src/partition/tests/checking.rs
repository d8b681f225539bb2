//! The check of plans finds what may be wrong with one: otherwise the property would hold of anything.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burst_hal::{Capabilities, Model, OperandLifeTime};
use burst_verify::random::{self, Rng};

use super::soundness::check_plan;
use super::{default, figures, offer};
use crate::partition::{DeviceStep, GraphPlan, Offer, Plan, Step, SupportedBy, partition};

/// What a plan is made of that may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoilt {
    /// A step is missing.
    Dropped,
    /// A step stands there twice.
    Doubled,
    /// A step runs before one that writes what it reads.
    Swapped,
    /// A step on a device that does not run it.
    Moved,
    /// A step gives something else than a later one takes.
    OtherOutput,
    /// A step takes something else than its model means.
    OtherInput,
    /// An operation of a step's model is another one.
    OtherOperation,
    /// A constant of a step has another value.
    OtherConstant,
    /// A step's model does not give what it is to give.
    NoOutput,
    /// What goes from one step to another is of unknown size.
    UnknownSize,
}

const ALL: [Spoilt; 10] = [
    Spoilt::Dropped,
    Spoilt::Doubled,
    Spoilt::Swapped,
    Spoilt::Moved,
    Spoilt::OtherOutput,
    Spoilt::OtherInput,
    Spoilt::OtherOperation,
    Spoilt::OtherConstant,
    Spoilt::NoOutput,
    Spoilt::UnknownSize,
];

fn device_step(plan: &mut GraphPlan, index: usize) -> Option<&mut DeviceStep> {
    match plan.steps.get_mut(index)? {
        Step::Device(step) => Some(step),
        Step::If(_) | Step::While(_) => None,
    }
}

/// Spoils a plan at one of its steps; `false` where that step has nothing to spoil in this way.
fn spoil(
    how: Spoilt,
    plan: &mut GraphPlan,
    model: &mut Model,
    (index, offers): (usize, &[Offer<'_>]),
) -> bool {
    match how {
        Spoilt::Dropped => drop(plan.steps.remove(index)),
        Spoilt::Doubled => plan.steps.insert(index, plan.steps[index].clone()),
        Spoilt::Swapped => {
            let Some(next) = plan.steps.get(index + 1) else { return false };
            let written = plan.steps[index].outputs();
            if !next.inputs().iter().any(|input| written.contains(input)) {
                return false;
            }
            plan.steps.swap(index, index + 1);
        }
        Spoilt::Moved => {
            let Some(step) = device_step(plan, index) else { return false };
            let runs = |offer: &Offer<'_>| {
                step.operations.iter().all(|one| offer.supported.main[*one as usize])
            };
            let Some(other) = offers.iter().position(|offer| !runs(offer)) else { return false };
            step.device = other;
        }
        Spoilt::OtherOutput => {
            let Some(step) = device_step(plan, index) else { return false };
            let Some(output) = step.outputs.first_mut() else { return false };
            *output = model.main.input_indexes[0];
        }
        Spoilt::OtherInput => {
            let Some(step) = device_step(plan, index) else { return false };
            let [first, .., last] = step.inputs.as_mut_slice() else { return false };
            let meaning = |operand: u32| {
                let operand = &model.main.operands[operand as usize];
                (operand.ty, operand.dimensions.clone(), operand.scale, operand.zero_point)
            };
            if meaning(*first) == meaning(*last) {
                return false;
            }
            std::mem::swap(first, last);
        }
        Spoilt::OtherOperation => {
            let Some(step) = device_step(plan, index) else { return false };
            let operations = &mut step.model.main.operations;
            let Some(other) = operations.iter().position(|one| one.ty != operations[0].ty) else {
                return false;
            };
            operations.swap(0, other);
        }
        Spoilt::OtherConstant => {
            let Some(step) = device_step(plan, index) else { return false };
            let operands = step.model.main.operands.iter();
            let copies = |lifetime| lifetime == OperandLifeTime::ConstantCopy;
            let Some(one) = operands.clone().find(|one| copies(one.lifetime)) else { return false };
            let mut values = step.model.operand_values.to_vec();
            values[one.location.offset as usize] ^= 1;
            step.model.operand_values = values.into();
        }
        Spoilt::NoOutput => {
            let Some(step) = device_step(plan, index) else { return false };
            step.outputs.pop();
            step.model.main.output_indexes.pop();
        }
        Spoilt::UnknownSize => {
            let is_between = |operand: &u32| {
                let operand = &model.main.operands[*operand as usize];
                operand.lifetime == OperandLifeTime::TemporaryVariable
                    && !operand.dimensions.is_empty()
            };
            let inputs = plan.steps[index].inputs();
            let Some(between) = inputs.into_iter().find(is_between) else { return false };
            model.main.operands[between as usize].dimensions[0] = 0;
        }
    }
    true
}

fn offers<'a>(model: &Model, rng: &mut Rng, figures: &'a [Capabilities; 3]) -> [Offer<'a>; 3] {
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

/// Whether the check is content with a plan.
fn passes(model: &Model, offers: &[Offer<'_>], plan: &GraphPlan) -> bool {
    let plan = Plan::Compound(plan.clone());
    catch_unwind(AssertUnwindSafe(|| check_plan(model, offers, &default(), &plan))).is_ok()
}

#[test]
fn a_plan_that_is_spoilt_in_any_way_is_found_out() {
    let figures = [figures(0.5, 0.5), figures(0.6, 0.6), figures(1.0, 1.0)];
    let mut tried = [0; ALL.len()];
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let model = random::graph(seed, 16).model;
        let offers = offers(&model, &mut rng, &figures);
        let plan = partition(&model, &offers, &default()).expect("all sizes are known");
        let Plan::Compound(sound) = plan else { continue };
        assert!(passes(&model, &offers, &sound), "seed {seed}: the sound plan");
        for index in 0..sound.steps.len() {
            for (how, tried) in ALL.into_iter().zip(&mut tried) {
                let (mut plan, mut model) = (sound.clone(), model.clone());
                if spoil(how, &mut plan, &mut model, (index, &offers)) {
                    *tried += 1;
                    assert!(!passes(&model, &offers, &plan), "seed {seed}, step {index}: {how:?}");
                }
            }
        }
    }
    assert!(
        tried.iter().all(|tried| *tried > 5),
        "{:?}",
        ALL.iter().zip(tried).collect::<Vec<_>>()
    );
}
