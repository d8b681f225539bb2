//! How the models of vectors are divided among the devices that the library finds.
//!
//! No C function tells of plans. So this process finds the same devices, by the same variables, asks them what they
//! run, and has the models divided by the same function of the framework, without preparing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use burst_hal::Model;
use burst_verify::{OutputShapes, Plan as VerifyPlan, RunError, Spec, build};
use neuralnetworks::partition::{Offer, PartitionOptions, Plan, Step, SupportedBy, partition};
use neuralnetworks::{Registry, RuntimeDevice};
use serde::Serialize;

/// How the models of tests are divided.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Plans {
    /// Models with more than one operation in the main graph.
    pub(crate) of_several_operations: u64,
    /// Those of them whose plan has more than one step.
    pub(crate) divided: u64,
    /// Models that the framework does not divide: they are not legal, or no device runs a part.
    pub(crate) refused: u64,
    /// Plans in which each device has a part, by its name; `interpreted` for control flow that the framework runs.
    pub(crate) by_device: BTreeMap<String, u64>,
    /// Plans by their number of steps.
    pub(crate) by_steps: BTreeMap<usize, u64>,
}

impl Plans {
    /// Divides the model of every test that a plan of a run selects.
    ///
    /// # Errors
    /// Vectors that cannot be read.
    pub(crate) fn of(specs: &[Spec], selection: &VerifyPlan) -> Result<Self> {
        let devices = Registry::system().devices();
        let mut plans = Plans::default();
        selection.visit(specs, |vectors, test| -> Result<(), RunError> {
            let model = build(vectors, test, OutputShapes::Declared)?.model;
            plans.add(devices, &model);
            Ok(())
        })?;
        Ok(plans)
    }

    fn add(&mut self, devices: &[Arc<RuntimeDevice>], model: &Model) {
        let plan = match divide(devices, model) {
            Ok(plan) => plan,
            Err(error) => {
                tracing::debug!(%error, "not divided");
                self.refused += 1;
                return;
            }
        };
        let (steps, names) = match &plan {
            Plan::Simple { device } => (1, vec![name(devices, *device)]),
            Plan::Compound(graph) => {
                let runner = |step: &Step| match step {
                    Step::Device(step) => name(devices, step.device),
                    Step::If(_) | Step::While(_) => "interpreted".to_owned(),
                };
                (graph.steps.len(), graph.steps.iter().map(runner).collect())
            }
        };
        let distinct: std::collections::BTreeSet<String> = names.into_iter().collect();
        for name in distinct {
            *self.by_device.entry(name).or_default() += 1;
        }
        *self.by_steps.entry(steps).or_default() += 1;
        if model.main.operations.len() > 1 {
            self.of_several_operations += 1;
            self.divided += u64::from(steps > 1);
        }
    }

    /// In a sentence.
    pub(crate) fn text(&self) -> String {
        let Plans { of_several_operations: all, divided, refused, by_device, by_steps } = self;
        let percent = if *all == 0 { 0 } else { divided * 100 / all };
        let list = |(what, count): (String, &u64)| format!("{what} {count}");
        let devices: Vec<String> =
            by_device.iter().map(|(name, count)| list((name.clone(), count))).collect();
        let steps: Vec<String> =
            by_steps.iter().map(|(steps, count)| list((steps.to_string(), count))).collect();
        format!(
            "plans: {divided} of {all} models with several operations have several steps ({percent} %); \
             by device: {}; by number of steps: {}; {refused} models refused",
            devices.join(", "),
            steps.join(", ")
        )
    }
}

fn name(devices: &[Arc<RuntimeDevice>], index: usize) -> String {
    devices.get(index).map_or_else(String::new, |device| device.name().to_owned())
}

/// The plan of a model for these devices.
fn divide(devices: &[Arc<RuntimeDevice>], model: &Model) -> Result<Plan> {
    let wrong = |error: neuralnetworks::Error| anyhow!("{error}");
    neuralnetworks::Model::from_hal(model.clone()).map_err(wrong)?;
    let offers: Vec<Offer<'_>> = devices
        .iter()
        .map(|device| Offer {
            name: device.name(),
            capabilities: device.capabilities(),
            supported: SupportedBy::ask(model, |graph| supported(device, graph)),
            is_reference: device.is_reference(),
        })
        .collect();
    Ok(partition(model, &offers, &PartitionOptions::default())?)
}

/// What a device says of a graph; nothing where it does not answer.
fn supported(device: &Arc<RuntimeDevice>, graph: &Model) -> Vec<bool> {
    let asked = neuralnetworks::Model::from_hal(graph.clone())
        .and_then(|graph| graph.supported_operations(std::slice::from_ref(device)));
    asked.unwrap_or_default()
}
