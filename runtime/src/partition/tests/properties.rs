//! Random models divided among random devices.

use burst_hal::{Capabilities, ExtraParams, Model, OperandLifeTime, PerformanceInfo};
use burst_verify::random::{self, Rng};
use proptest::prelude::*;

use super::soundness::check_plan;
use super::{default, figures};
use crate::partition::{Offer, PartitionError, Plan, SupportedBy, partition};

/// So many devices, each with figures of its own and a random part of the operations; where the last is the
/// reference, it runs everything.
struct Devices {
    capabilities: Vec<Capabilities>,
    supported: Vec<SupportedBy>,
    has_reference: bool,
}

impl Devices {
    fn random(rng: &mut Rng, model: &Model) -> Self {
        let count = 1 + rng.below(4);
        let has_reference = rng.chance(0.7);
        let steps = [0.25, 0.5, 1.0, 2.0];
        let mut capabilities = Vec::new();
        let mut supported = Vec::new();
        for device in 0..count {
            let mut own = figures(steps[rng.below(4)], steps[rng.below(4)]);
            let control = steps[rng.below(4)];
            own.if_performance = PerformanceInfo { exec_time: control, power_usage: control };
            capabilities.push(own);
            let takes =
                if has_reference && device + 1 == count { 1.0 } else { 0.2 + 0.7 * rng.unit() };
            supported.push(SupportedBy::ask(model, |graph| {
                graph.main.operations.iter().map(|_| rng.chance(takes)).collect()
            }));
        }
        Devices { capabilities, supported, has_reference }
    }

    fn offers(&self) -> Vec<Offer<'_>> {
        let last = self.capabilities.len() - 1;
        let offers = self.capabilities.iter().zip(&self.supported).enumerate();
        offers
            .map(|(index, (capabilities, supported))| Offer {
                name: "any",
                capabilities,
                supported: supported.clone(),
                is_reference: self.has_reference && index == last,
            })
            .collect()
    }
}

/// Makes the shapes of some values unknown.
fn forget_shapes(rng: &mut Rng, model: &mut Model) {
    for operand in &mut model.main.operands {
        let may = matches!(
            operand.lifetime,
            OperandLifeTime::TemporaryVariable
                | OperandLifeTime::SubgraphOutput
                | OperandLifeTime::SubgraphInput
        );
        let has_channels = operand.extra_params != ExtraParams::None;
        if may && operand.ty.is_tensor() && !has_channels && rng.chance(0.1) {
            operand.dimensions.iter_mut().for_each(|size| *size = 0);
        }
    }
}

fn is_known_by_everybody(devices: &Devices, model: &Model) -> bool {
    (0..model.main.operations.len())
        .all(|index| devices.supported.iter().any(|supported| supported.main[index]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every operation runs exactly once, after what it reads was written, on a device that runs it; every
    /// step is a legal model with what it uses and no more; nothing of unknown size goes from step to step.
    #[test]
    fn plans_are_sound(seed: u64, forgets: bool) {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(30);
        let mut model = random::graph(seed, count).model;
        if forgets {
            forget_shapes(&mut rng, &mut model);
        }
        let devices = Devices::random(&mut rng, &model);
        let offers = devices.offers();
        match partition(&model, &offers, &default()) {
            Ok(plan) => check_plan(&model, &offers, &default(), &plan),
            Err(PartitionError::UnknownSize { .. }) => prop_assert!(forgets),
            Err(PartitionError::NoDevice { .. }) => {
                prop_assert!(!is_known_by_everybody(&devices, &model));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

/// The generator and the masks give what the property is about: plans of several steps, and control flow that
/// is taken apart.
#[test]
fn the_random_models_reach_every_kind_of_step() {
    let (mut several, mut control, mut simple) = (0, 0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let model = random::graph(seed, 20).model;
        let devices = Devices::random(&mut rng, &model);
        match partition(&model, &devices.offers(), &default()) {
            Ok(Plan::Simple { .. }) => simple += 1,
            Ok(Plan::Compound(plan)) => {
                several += usize::from(plan.steps.len() > 2);
                control += usize::from(plan.device_steps().len() > plan.steps.len());
            }
            Err(_) => {}
        }
    }
    assert!(several > 60 && control > 20 && simple > 20, "{several}, {control}, {simple}");
}
