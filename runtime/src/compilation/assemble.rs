//! From a plan to steps that can be executed: each prepared by its device, each value with its place.

use std::sync::Arc;

use burst_hal::{Model, OperandLifeTime, ResultCode, Subgraph};

use super::cache_files::{CacheFiles, step_token};
use super::job::Job;
use crate::compiled::{DeviceCode, GraphCode, IfCode, Layout, Port, StepCode, WhileCode};
use crate::devices::{LiveDevice, RuntimeDevice};
use crate::error::{Error, Result};
use crate::partition::{Branch, DeviceStep, GraphPlan, Step, WhileStep, constant_bytes};
use crate::prepared::Prepared;

pub(super) struct Assembler<'a> {
    job: &'a Job<'a>,
    /// `None` for a device that no step may be given to.
    live: Vec<Option<LiveDevice>>,
    layout: Layout<'a>,
    steps: usize,
}

/// What of the model a step runs.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// The referenced graph; `None` for the main one.
    graph: Option<u32>,
    operations: &'a [u32],
}

impl<'a> Assembler<'a> {
    pub(super) fn new(job: &'a Job<'a>, live: Vec<Option<LiveDevice>>, layout: Layout<'a>) -> Self {
        Assembler { job, live, layout, steps: 0 }
    }

    pub(super) fn into_layout(self) -> Layout<'a> {
        self.layout
    }

    /// The whole model as one step.
    pub(super) fn whole(&mut self, device: usize) -> Result<DeviceCode> {
        let model = Arc::clone(self.job.model);
        let (main, count) = (&model.main, model.main.operations.len());
        let operations: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
        let (inputs, outputs) = (main.input_indexes.clone(), main.output_indexes.clone());
        let part = Part { graph: None, operations: &operations };
        self.device_step(device, part, Arc::clone(&model), (&inputs, &outputs))
    }

    /// The main graph and its steps.
    pub(super) fn main(&mut self, plan: &GraphPlan) -> Result<GraphCode> {
        self.graph(&self.job.model.main, None, plan)
    }

    /// A graph and its steps.
    fn graph(
        &mut self,
        graph: &Subgraph,
        number: Option<u32>,
        plan: &GraphPlan,
    ) -> Result<GraphCode> {
        let mut code = GraphCode {
            inputs: graph.input_indexes.clone(),
            outputs: graph.output_indexes.clone(),
            ..GraphCode::default()
        };
        for step in &plan.steps {
            self.values(graph, step, &mut code)?;
            code.steps.push(match step {
                Step::Device(step) => {
                    let DeviceStep { device, operations, model, inputs, outputs } = step;
                    let model = Arc::new(model.clone());
                    let arguments = (inputs.as_slice(), outputs.as_slice());
                    let part = Part { graph: number, operations };
                    StepCode::Device(self.device_step(*device, part, model, arguments)?)
                }
                Step::If(step) => StepCode::If(IfCode {
                    condition: step.condition,
                    then: self.branch(&step.then)?,
                    otherwise: self.branch(&step.otherwise)?,
                    inputs: step.inputs.clone(),
                    outputs: step.outputs.clone(),
                }),
                Step::While(step) => StepCode::While(self.while_step(graph, step)?),
            });
        }
        Ok(code)
    }

    fn branch(&mut self, branch: &Branch) -> Result<GraphCode> {
        let graph = usize::try_from(branch.subgraph).ok();
        let graph = graph.and_then(|index| self.job.model.referenced.get(index));
        let graph =
            graph.ok_or_else(|| Error::op_failed("a plan for a graph that there is not"))?;
        self.graph(graph, Some(branch.subgraph), &branch.plan)
    }

    fn while_step(&mut self, graph: &Subgraph, step: &WhileStep) -> Result<WhileCode> {
        let condition = self.branch(&step.condition)?;
        let body = self.branch(&step.body)?;
        let mut states = Vec::new();
        for operand in step.inputs.iter().take(body.outputs.len()) {
            let operand = &graph.operands[*operand as usize];
            let first = self.layout.take_operand(operand)?;
            states.push([first, self.layout.take_operand(operand)?]);
        }
        if states.len() < body.outputs.len() || step.outputs.len() > states.len() {
            return Err(Error::bad_data("a loop whose body has other results than the loop"));
        }
        Ok(WhileCode {
            condition,
            body,
            inputs: step.inputs.clone(),
            outputs: step.outputs.clone(),
            answer: self.layout.take(1)?,
            states,
        })
    }

    /// Finds places for what a step writes for later ones, and for constants that it reads itself.
    fn values(&mut self, graph: &Subgraph, step: &Step, code: &mut GraphCode) -> Result<()> {
        for index in step.outputs() {
            let operand = &graph.operands[*index as usize];
            if operand.lifetime == OperandLifeTime::TemporaryVariable {
                let slot = self.layout.take_operand(operand)?;
                code.slots.push((*index, slot, operand.dimensions.clone()));
            }
        }
        for index in step.inputs() {
            let operand = &graph.operands[index as usize];
            let is_constant = matches!(
                operand.lifetime,
                OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference
            );
            if is_constant && !code.slots.iter().any(|(known, ..)| *known == index) {
                let bytes = constant_bytes(self.job.model, operand)?;
                let slot = self.layout.take_constant(bytes)?;
                code.slots.push((index, slot, operand.dimensions.clone()));
            }
        }
        Ok(())
    }

    /// Has a device prepare a step, from files where it was kept before.
    fn device_step(
        &mut self,
        device: usize,
        part: Part<'_>,
        model: Arc<Model>,
        (inputs, outputs): (&[u32], &[u32]),
    ) -> Result<DeviceCode> {
        let prepared = self.prepare(device, part, &model)?;
        let main = &model.main;
        let ports = |indexes: &[u32], operands: &[u32]| {
            let port = |(index, operand): (&u32, &u32)| {
                let own = &main.operands[*index as usize];
                Port::new(*operand, own, self.layout.element_bytes(own.ty))
            };
            indexes.iter().zip(operands).map(port).collect()
        };
        let arguments = (ports(&main.input_indexes, inputs), ports(&main.output_indexes, outputs));
        let number = self.steps;
        self.steps += 1;
        let device = &self.job.devices[device];
        Ok(DeviceCode::new(number, device, (Arc::clone(&model), prepared), arguments))
    }

    fn prepare(&self, device: usize, part: Part<'_>, model: &Model) -> Result<Prepared> {
        let gone = || Error::new(ResultCode::UnavailableDevice, "the device is not there");
        let live = self.live[device].as_ref().ok_or_else(gone)?;
        self.job.check_deadline()?;
        let prepared = self.prepared_or_kept(&self.job.devices[device], live, part, model)?;
        self.job.check_deadline()?;
        Ok(prepared)
    }

    fn prepared_or_kept(
        &self,
        device: &RuntimeDevice,
        live: &LiveDevice,
        part: Part<'_>,
        model: &Model,
    ) -> Result<Prepared> {
        let Job { options, cache, .. } = self.job;
        let kept = cache.and_then(|place| Some((place, device.keeper(live)?)));
        let Some((place, (keeper, counts))) = kept else {
            return Prepared::prepare(live, model, options, None);
        };
        let token = step_token(place, device, options, part.graph, part.operations);
        let files = CacheFiles::new(&place.directory, token, counts);
        match files.to_read() {
            Ok(kept) => match Prepared::from_cache(&keeper, &kept, options.deadline) {
                Ok(prepared) => return Ok(prepared),
                Err(error) => tracing::info!(%error, "the compilation that was kept is not used"),
            },
            Err(error) => tracing::debug!(%error, "no compilation was kept"),
        }
        let to_write = files.to_write();
        let to_write =
            to_write.inspect_err(|error| tracing::info!(%error, "the compilation is not kept"));
        Prepared::prepare(&keeper, model, options, to_write.ok().as_ref())
    }
}
