//! One workload on two devices, in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_driver::CpuDevice;
use burst_hal::{
    Burst, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory, Model,
    OperandType, Pool, PrepareOptions, Request, RequestArgument, RequestPool,
};
use burst_harness::engine::{Spread, median};
use half::f16;

use super::energy::Counters;
use super::workloads::{Workload, input};
use crate::signals::Asked;

/// How long each device computes in a round, at the least: energy counters move once in a millisecond.
const TRIAL: Duration = Duration::from_millis(20);

/// Executions of a trial at the most.
const MOST: u32 = 10_000;

/// What was found of a workload.
pub(super) struct Found {
    /// Time over that of the reference.
    pub(super) time: Spread,
    /// Energy over that of the reference, where the machine tells.
    pub(super) energy: Option<Spread>,
    pub(super) reference_us: f64,
}

/// A workload prepared on both devices.
pub(super) struct Pair {
    ours: Subject,
    reference: Subject,
}

/// What a trial took, for each execution.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    microjoules: Option<f64>,
}

impl Pair {
    /// Prepares the workload and executes it once on each.
    ///
    /// # Errors
    /// A device that does not execute it, or whose results are not those of the other.
    pub(super) fn open(
        workload: &Workload,
        ours: &CpuDevice,
        reference: &CpuDevice,
    ) -> Result<Self> {
        let mut pair = Pair {
            ours: Subject::new(&workload.model, ours)?,
            reference: Subject::new(&workload.model, reference)?,
        };
        pair.ours.execute()?;
        pair.reference.execute()?;
        same_work(&pair.ours, &pair.reference)?;
        Ok(pair)
    }

    /// Measures so many rounds. In each both have a trial, in an order that changes from round to round;
    /// ratios are taken within a round. `None` where a signal asked for the end before all of them were measured.
    pub(super) fn measure(
        mut self,
        rounds: u32,
        counters: Option<&Counters>,
        asked: &Asked,
    ) -> Result<Option<Found>> {
        let [ours, reference] = [&mut self.ours, &mut self.reference];
        ours.choose_length()?;
        reference.choose_length()?;
        let mut costs: Vec<[Cost; 2]> = Vec::new();
        for round in 0..rounds {
            if !asked.go_on() {
                return Ok(None);
            }
            costs.push(if round % 2 == 0 {
                let first = ours.trial(counters)?;
                [first, reference.trial(counters)?]
            } else {
                let first = reference.trial(counters)?;
                [ours.trial(counters)?, first]
            });
        }
        let times = costs.iter().map(|[ours, reference]| (ours.seconds, reference.seconds));
        let energies: Option<Vec<(f64, f64)>> =
            costs.iter().map(|[ours, other]| ours.microjoules.zip(other.microjoules)).collect();
        // A counter that did not move says nothing.
        let moved =
            energies.filter(|pairs| pairs.iter().all(|(ours, other)| *ours > 0.0 && *other > 0.0));
        let reference_us = median(costs.iter().map(|[_, reference]| reference.seconds * 1e6));
        Ok(Some(Found {
            time: Spread::of_ratios(times).context("no round was measured")?,
            energy: moved.and_then(Spread::of_ratios),
            reference_us: reference_us.unwrap_or_default(),
        }))
    }
}

/// A workload on one device.
struct Subject {
    burst: Box<dyn Burst>,
    request: Request,
    result: ExecutionResult,
    outputs: Vec<(OperandType, Arc<HeapMemory>)>,
    /// Executions of a trial.
    length: u32,
}

impl Subject {
    fn new(model: &Model, device: &CpuDevice) -> Result<Self> {
        let prepared = device.prepare_model(model, &PrepareOptions::default())?;
        let mut request = Request::default();
        let mut add = |memory: Pool| -> Result<RequestArgument> {
            let pool_index = u32::try_from(request.pools.len())?;
            let length = u32::try_from(memory.len())?;
            request.pools.push(RequestPool::Memory(memory));
            let location = DataLocation { pool_index, offset: 0, length };
            Ok(RequestArgument { location, ..RequestArgument::default() })
        };
        let operand = |index: &u32| &model.main.operands[*index as usize];
        let mut inputs = Vec::new();
        for operand in model.main.input_indexes.iter().map(operand) {
            let elements = operand.dimensions.iter().product::<u32>() as usize;
            let bytes = input(operand.ty, elements)
                .with_context(|| format!("no input is made of {}", operand.ty))?;
            inputs.push(add(Arc::new(HeapMemory::new(bytes)))?);
        }
        let (mut outputs, mut results) = (Vec::new(), Vec::new());
        for operand in model.main.output_indexes.iter().map(operand) {
            let bytes = operand.ty.byte_length(&operand.dimensions).unwrap_or_default();
            let memory = Arc::new(HeapMemory::new(vec![0; usize::try_from(bytes)?]));
            outputs.push(add(Arc::clone(&memory) as Pool)?);
            results.push((operand.ty, memory));
        }
        Ok(Subject {
            burst: prepared.open_burst()?,
            request: Request { inputs, outputs, ..request },
            result: ExecutionResult::of(ErrorStatus::GeneralFailure),
            outputs: results,
            length: 1,
        })
    }

    fn execute(&mut self) -> Result<()> {
        self.burst.execute(&self.request, &ExecutionOptions::default(), &mut self.result);
        match self.result.status {
            ErrorStatus::None => Ok(()),
            status => bail!("the execution failed: {status}"),
        }
    }

    /// Decides how many executions a trial takes, and warms up.
    fn choose_length(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut executions = 0;
        while begun.elapsed() < TRIAL && executions < MOST {
            self.execute()?;
            executions += 1;
        }
        self.length = executions.max(1);
        Ok(())
    }

    fn trial(&mut self, counters: Option<&Counters>) -> Result<Cost> {
        let before = counters.and_then(Counters::read);
        let begun = Instant::now();
        for _ in 0..self.length {
            self.execute()?;
        }
        let each = |whole: f64| whole / f64::from(self.length);
        let seconds = each(begun.elapsed().as_secs_f64());
        let after = counters.and_then(Counters::read);
        let energy = counters.zip(before.zip(after));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 in a trial")]
        let microjoules = energy
            .map(|(counters, (before, after))| each(counters.between(&before, &after) as f64));
        Ok(Cost { seconds, microjoules })
    }
}

/// Both must have done the same: bytes are equal, floats close.
fn same_work(ours: &Subject, reference: &Subject) -> Result<()> {
    for (index, (ours, reference)) in ours.outputs.iter().zip(&reference.outputs).enumerate() {
        let (ty, ours, reference) = (ours.0, &*ours.1.to_vec(), &*reference.1.to_vec());
        let is_same = match ty {
            OperandType::TensorFloat32 => {
                let reals = |bytes: &[u8]| bytes.as_chunks().0.iter().map(single).collect();
                are_close(reals(ours), reals(reference), 1e-3)
            }
            OperandType::TensorFloat16 => {
                let reals = |bytes: &[u8]| bytes.as_chunks().0.iter().map(half).collect();
                are_close(reals(ours), reals(reference), 2e-2)
            }
            _ => ours == reference,
        };
        if !is_same {
            bail!("output {index} is not that of the reference kernels");
        }
    }
    Ok(())
}

fn single(bytes: &[u8; 4]) -> f32 {
    f32::from_ne_bytes(*bytes)
}

fn half(bytes: &[u8; 2]) -> f32 {
    f16::from_ne_bytes(*bytes).to_f32()
}

/// Written so that a NaN is close to nothing.
fn are_close(ours: Vec<f32>, reference: Vec<f32>, tolerance: f32) -> bool {
    let is_close = |(a, b): (f32, f32)| (a - b).abs() <= tolerance * b.abs().max(1.0);
    ours.len() == reference.len() && ours.into_iter().zip(reference).all(is_close)
}

#[cfg(test)]
mod tests {
    use burst_driver::DeviceOptions;

    use super::*;
    use crate::calibrate::workloads::all;

    #[test]
    fn each_workload_does_the_same_on_both_devices_and_is_measured() {
        let ours = CpuDevice::default();
        let reference = CpuDevice::new(DeviceOptions::reference());
        for workload in all().unwrap() {
            let pair = Pair::open(&workload, &ours, &reference);
            let pair = pair.unwrap_or_else(|error| panic!("{}: {error:#}", workload.name));
            let found = pair.measure(1, None, &Asked::default()).unwrap().unwrap();
            println!("{}: {}", workload.name, found.time.text(3));
            assert!(found.time.median > 0.0 && found.reference_us > 0.0, "{}", workload.name);
            assert!(found.energy.is_none());
        }
    }

    #[test]
    fn work_that_differs_is_noticed() {
        assert!(are_close(vec![1.0, 100.0], vec![1.0, 100.05], 1e-3));
        assert!(!are_close(vec![1.0, 100.0], vec![1.01, 100.0], 1e-3));
        assert!(!are_close(vec![f32::NAN], vec![f32::NAN], 1e-3));
        assert!(!are_close(vec![], vec![0.0], 1e-3));
    }
}
