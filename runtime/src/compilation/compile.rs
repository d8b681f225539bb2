//! Asking the devices, dividing the model, preparing the parts; and what becomes of it where that fails.

use std::sync::Arc;

use burst_hal::validate::RequestRules;
use burst_hal::{Model, OperationType, PrepareOptions, ResultCode};

use super::assemble::Assembler;
use super::job::Job;
use crate::compiled::{Body, Compiled, Fallback, Layout, Port};
use crate::devices::{LiveDevice, RuntimeDevice};
use crate::error::{Error, Result};
use crate::frame::Frames;
use crate::partition::{Offer, PartitionOptions, Plan, SupportedBy, partition};
use crate::supported::ask;
use crate::switches::Partitioning;

/// Compiles; where a part fails that may fail, the whole model for the device of last resort.
///
/// # Errors
/// As [`Compilation::finish`](super::Compilation::finish).
pub(super) fn compile(job: &Job<'_>) -> Result<Compiled> {
    if job.devices.is_empty() {
        return Err(Error::new(ResultCode::UnavailableDevice, "there is no device"));
    }
    let reference = job.devices.iter().position(|device| device.is_reference());
    let fallback = match (job.is_explicit, job.switches.partitioning) {
        (false, Partitioning::WithFallback) => reference,
        _ => None,
    };
    if !job.is_explicit && job.switches.partitioning == Partitioning::No {
        let missing = || Error::new(ResultCode::UnavailableDevice, "there is no reference device");
        return whole(job, reference.ok_or_else(missing)?);
    }
    let error = match divided(job, fallback) {
        Ok(compiled) => return Ok(compiled),
        Err(error) => error,
    };
    let is_callers_fault = matches!(error.code, ResultCode::BadData | ResultCode::UnexpectedNull);
    match fallback.filter(|_| !is_callers_fault && !has_special_operations(job.model)) {
        Some(reference) => {
            tracing::info!(%error, "the reference device runs the whole model");
            whole(job, reference)
        }
        None => Err(error),
    }
}

/// Whether the model has operations that only the devices of a vendor know.
fn has_special_operations(model: &Model) -> bool {
    let graphs = std::iter::once(&model.main).chain(&model.referenced);
    graphs.flat_map(|graph| &graph.operations).any(|operation| {
        matches!(operation.ty, OperationType::OemOperation | OperationType::Extension(_))
    })
}

/// For all of the devices.
fn divided(job: &Job<'_>, fallback: Option<usize>) -> Result<Compiled> {
    let mut live: Vec<Option<LiveDevice>> = Vec::new();
    for device in job.devices {
        let there = device.live();
        let there = there.inspect_err(|error| tracing::warn!(?device, %error, "it is gone"));
        // The one device that was asked for is missed; among several there are others.
        live.push(match there {
            Err(error) if job.devices.len() == 1 => return Err(error),
            there => there.ok(),
        });
    }
    let mut offers = Vec::new();
    for (device, live) in job.devices.iter().zip(&live) {
        offers.push(Offer {
            name: device.name(),
            capabilities: device.capabilities(),
            supported: supported(job, device, live.as_ref())?,
            is_reference: device.is_reference(),
        });
    }
    if let ([_], [Some(live)]) = (job.devices, live.as_slice())
        && !live.is_alive()
    {
        // It has died over the question: that is what it is missed for, and not what it does not run.
        return Err(Error::new(ResultCode::DeadObject, "the device is gone"));
    }
    job.check_deadline()?;
    let options = PartitionOptions {
        preference: job.options.preference,
        extension_types: job.extension_types(),
    };
    let plan = partition(job.model, &offers, &options);
    let plan = plan.map_err(|error| Error::new(error.code(), error))?;
    prepared(job, plan, live, fallback)
}

/// For one device.
fn whole(job: &Job<'_>, device: usize) -> Result<Compiled> {
    let mut live: Vec<Option<LiveDevice>> = job.devices.iter().map(|_| None).collect();
    live[device] = Some(job.devices[device].live()?);
    prepared(job, Plan::Simple { device }, live, None)
}

fn supported(
    job: &Job<'_>,
    device: &RuntimeDevice,
    live: Option<&LiveDevice>,
) -> Result<SupportedBy> {
    let Some(live) = live else { return Ok(SupportedBy::default()) };
    let mut refused = None;
    let supported = SupportedBy::ask(job.model, |graph| {
        match ask(device, live, graph, (job.switches.strict_slicing, job.options.deadline)) {
            Ok(answers) => answers.unwrap_or_default(),
            Err(error) => {
                refused.get_or_insert(error);
                Vec::new()
            }
        }
    });
    refused.map_or(Ok(supported), Err)
}

/// Prepares the parts of a plan.
fn prepared(
    job: &Job<'_>,
    plan: Plan,
    live: Vec<Option<LiveDevice>>,
    fallback: Option<usize>,
) -> Result<Compiled> {
    let extension_types = job.extension_types();
    let mut assembler = Assembler::new(job, live, Layout::new(&extension_types));
    let body = match &plan {
        Plan::Simple { device } => Body::Simple(assembler.whole(*device)?),
        Plan::Compound(graph) => Body::Compound(assembler.main(graph)?),
    };
    let (temporaries, constants) = assembler.into_layout().into_parts();
    let main = &job.model.main;
    let options = PrepareOptions { deadline: None, ..job.options };
    Ok(Compiled {
        rules: RequestRules::new(job.model)?,
        inputs: Port::list(main, &main.input_indexes, &extension_types),
        outputs: Port::list(main, &main.output_indexes, &extension_types),
        model: Arc::clone(job.model),
        plan: Arc::new(plan),
        devices: job.devices.to_vec(),
        body,
        temporaries,
        constants,
        options,
        fallback: fallback.map(|index| Fallback::new(&job.devices[index], options)),
        frames: Frames::default(),
    })
}
