//! `burst explain --devices`: how a model would be divided among devices of this machine's engine.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use burst_hal::{Capabilities, Device, ExecutionPreference, Failure, Model};
use burst_harness::report::{Column, Table};
use neuralnetworks::partition::{
    Branch, Choice, GraphPlan, Offer, PartitionOptions, Plan, Step, SupportedBy, choices, partition,
};
use serde::Serialize;

use crate::{device_names, out};

/// How a model is divided.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    model: String,
    /// Whether the devices can run it together.
    pub(super) runs: bool,
    devices: Vec<String>,
    /// Operations of the main graph.
    operations: Vec<Operation>,
    /// In the order in which they run.
    steps: Vec<StepReport>,
    /// Why the devices cannot run it together.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Operation {
    index: usize,
    operation: String,
    /// Who runs it; `None` where the framework interprets it.
    device: Option<String>,
    /// In which step of the main graph.
    step: Option<usize>,
    /// What each device would take for it, by the figures that it reports; `None`: it does not run it.
    weights: Vec<Option<f32>>,
}

#[derive(Debug, Serialize)]
struct StepReport {
    /// Its place: `2`, or `2.then.0` for the first step of a graph that step 2 runs.
    step: String,
    /// Who runs it; `None` where the framework interprets it.
    device: Option<String>,
    /// The operation that is interpreted.
    #[serde(skip_serializing_if = "Option::is_none")]
    interprets: Option<&'static str>,
    /// Positions of its operations in their graph.
    operations: Vec<u32>,
    inputs: usize,
    outputs: usize,
}

/// Divides a model among the devices with these names.
///
/// # Errors
/// A name that no device has; a device that does not answer.
pub(super) fn divide(
    name: String,
    model: &Model,
    names: &[String],
    preference: ExecutionPreference,
) -> Result<Report> {
    let devices = device_names::local(names, &Arc::default())?;
    let mut capabilities: Vec<Capabilities> = Vec::with_capacity(devices.len());
    for device in &devices {
        let figures = device.capabilities();
        capabilities.push(figures.with_context(|| format!("{}: no figures", device.name()))?);
    }
    let offers = devices
        .iter()
        .zip(&capabilities)
        .map(|(device, capabilities)| offer(device, capabilities, model))
        .collect::<Result<Vec<_>, Failure>>()?;
    let options = PartitionOptions { preference, ..PartitionOptions::default() };
    let devices: Vec<String> = offers.iter().map(|offer| offer.name.to_owned()).collect();
    let divided = choices(model, &offers, &options)
        .and_then(|choices| Ok((choices, partition(model, &offers, &options)?)));
    let mut report = Report {
        model: name,
        runs: divided.is_ok(),
        devices,
        operations: Vec::new(),
        steps: Vec::new(),
        refused: None,
    };
    match divided {
        Ok((choices, plan)) => report.tell(model, choices, &plan),
        Err(error) => report.refused = Some(error.to_string()),
    }
    Ok(report)
}

fn offer<'a>(
    device: &'a Arc<dyn Device>,
    capabilities: &'a Capabilities,
    model: &Model,
) -> Result<Offer<'a>, Failure> {
    let mut failure = None;
    let supported = SupportedBy::ask(model, |graph| {
        device.supported_operations(graph).unwrap_or_else(|error| {
            failure.get_or_insert(error);
            Vec::new()
        })
    });
    match failure {
        Some(failure) => Err(failure),
        None => {
            let name = device.name();
            let is_reference = name == burst_driver::ReferenceDevice::NAME;
            Ok(Offer { name, capabilities, supported, is_reference })
        }
    }
}

impl Report {
    fn tell(&mut self, model: &Model, choices: Vec<Choice>, plan: &Plan) {
        let count = model.main.operations.len();
        // By operation: who runs it, in which step.
        let mut places: Vec<(Option<usize>, Option<usize>)> = vec![(None, None); count];
        match plan {
            Plan::Simple { device } => {
                places.fill((Some(*device), Some(0)));
                let operations = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
                let (inputs, outputs) =
                    (model.main.input_indexes.len(), model.main.output_indexes.len());
                let device = self.devices.get(*device).cloned();
                let step = "0".to_owned();
                let interprets = None;
                self.steps.push(StepReport {
                    step,
                    device,
                    interprets,
                    operations,
                    inputs,
                    outputs,
                });
            }
            Plan::Compound(graph) => {
                for (index, step) in graph.steps.iter().enumerate() {
                    let (device, operations) = match step {
                        Step::Device(step) => (Some(step.device), step.operations.clone()),
                        Step::If(step) => (None, vec![step.operation]),
                        Step::While(step) => (None, vec![step.operation]),
                    };
                    for operation in operations {
                        places[operation as usize] = (device, Some(index));
                    }
                }
                self.tell_steps("", graph);
            }
        }
        let rows = model.main.operations.iter().zip(choices).zip(places).enumerate();
        for (index, ((operation, choice), (device, step))) in rows {
            self.operations.push(Operation {
                index,
                operation: operation.ty.to_string(),
                device: device.and_then(|device| self.devices.get(device).cloned()),
                step,
                weights: choice.weights,
            });
        }
    }

    fn tell_steps(&mut self, prefix: &str, graph: &GraphPlan) {
        for (index, step) in graph.steps.iter().enumerate() {
            let place = format!("{prefix}{index}");
            let mut row = StepReport {
                step: place.clone(),
                device: None,
                interprets: None,
                operations: Vec::new(),
                inputs: step.inputs().len(),
                outputs: step.outputs().len(),
            };
            let inner: [(&str, Option<&Branch>); 2] = match step {
                Step::Device(step) => {
                    row.device = self.devices.get(step.device).cloned();
                    row.operations.clone_from(&step.operations);
                    [("", None), ("", None)]
                }
                Step::If(step) => {
                    (row.interprets, row.operations) = (Some("IF"), vec![step.operation]);
                    [("then", Some(&step.then)), ("else", Some(&step.otherwise))]
                }
                Step::While(step) => {
                    (row.interprets, row.operations) = (Some("WHILE"), vec![step.operation]);
                    [("condition", Some(&step.condition)), ("body", Some(&step.body))]
                }
            };
            self.steps.push(row);
            for (name, branch) in inner {
                if let Some(branch) = branch {
                    self.tell_steps(&format!("{place}.{name}."), &branch.plan);
                }
            }
        }
    }

    /// What made a device the best for an operation.
    fn reason(&self, operation: &Operation) -> String {
        let told =
            self.devices.iter().zip(&operation.weights).map(|(device, weight)| match weight {
                None => format!("not {device}"),
                Some(weight) if *weight >= f32::MAX => format!("{device}: no figure"),
                Some(weight) => format!("{device}: {weight}"),
            });
        told.collect::<Vec<String>>().join(", ")
    }

    pub(super) fn write_text(&self, to: &mut impl Write) -> Result<()> {
        writeln!(to, "{}", self.model)?;
        if let Some(reason) = &self.refused {
            writeln!(to, "does not run on {}: {reason}", self.devices.join(", "))?;
            return Ok(());
        }
        let interpreted = || "the framework".to_owned();
        let [number, words] = [Column::number, Column::text];
        let mut table = Table::new(vec![
            number("#"),
            words("operation"),
            words("device"),
            number("step"),
            words("weights"),
        ]);
        for row in &self.operations {
            table.add([
                row.index.to_string(),
                row.operation.clone(),
                row.device.clone().unwrap_or_else(interpreted),
                row.step.map_or_else(String::new, |step| step.to_string()),
                self.reason(row),
            ]);
        }
        writeln!(to, "{}", table.fitted(out::columns()))?;
        let mut table = Table::new(vec![
            words("step"),
            words("device"),
            words("operations"),
            number("inputs"),
            number("outputs"),
        ]);
        for row in &self.steps {
            let operations = match row.interprets {
                Some(what) => format!("{what} (operation {})", list(&row.operations)),
                None => list(&row.operations),
            };
            table.add([
                row.step.clone(),
                row.device.clone().unwrap_or_else(interpreted),
                operations,
                row.inputs.to_string(),
                row.outputs.to_string(),
            ]);
        }
        writeln!(to, "{}", table.fitted(out::columns()))?;
        Ok(())
    }
}

/// Positions, those that follow each other as one range.
fn list(operations: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for operation in operations {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*operation) => *end = *operation,
            _ => ranges.push((*operation, *operation)),
        }
    }
    let text = ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    text.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_follow_each_other_are_one_range() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8, 3]), "0-2, 5, 7-8, 3");
        assert_eq!(list(&[]), "");
    }
}
