//! One model over and over, in the calls that a program in C makes for each inference and no others.

use std::os::fd::AsFd;

use burst_client::ShmMemory;
use burst_hal::{Memory as _, Model};

use super::device::NdkDevice;
use super::model::BuiltModel;
use super::objects::{Burst, Compilation, Execution, Memory};
use crate::{Error, Result};

/// Where the arguments of an [`Inference`] lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In buffers of this process, which every execution names.
    Buffers,
    /// In two memories, one with all inputs and one with all outputs.
    Memories,
}

/// How an [`Inference`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `ANeuralNetworksExecution_compute`.
    Compute,
    /// `ANeuralNetworksExecution_burstCompute`, in one burst for all.
    Burst,
}

/// A compiled model with its arguments. Each run is what a program does for an inference: an execution is made,
/// gets its arguments, computes, and is freed. Fields are dropped in this order.
pub struct Inference {
    burst: Burst,
    compilation: Compilation,
    inputs: Arguments,
    outputs: Arguments,
    _built: BuiltModel,
}

/// All inputs, or all outputs.
struct Arguments {
    buffers: Vec<Vec<u8>>,
    memory: Memory,
    shared: ShmMemory,
    /// Where each lies in the memory, and how long it is.
    ranges: Vec<(usize, usize)>,
}

/// Arguments in a memory begin at a multiple of this.
const ALIGNMENT: usize = 64;

impl Inference {
    /// Compiles a model for a device, with these inputs and room for outputs of these lengths.
    ///
    /// # Errors
    /// What the library answers.
    pub fn new(
        device: &NdkDevice,
        model: &Model,
        inputs: &[Vec<u8>],
        output_lengths: &[usize],
    ) -> Result<Self> {
        let (compilation, built) = device.compiled(model)?;
        let outputs: Vec<Vec<u8>> = output_lengths.iter().map(|length| vec![0; *length]).collect();
        Ok(Inference {
            burst: compilation.burst()?,
            compilation,
            inputs: Arguments::new(device, inputs)?,
            outputs: Arguments::new(device, &outputs)?,
            _built: built,
        })
    }

    /// One inference.
    ///
    /// # Errors
    /// What the library answers.
    pub fn run(&mut self, place: Place, call: Call) -> Result<()> {
        let mut execution = self.compilation.execution()?;
        match place {
            Place::Buffers => self.set_buffers(&mut execution)?,
            Place::Memories => self.set_memories(&mut execution)?,
        }
        match call {
            Call::Compute => execution.compute(),
            Call::Burst => execution.compute_in(&self.burst),
        }
    }

    fn set_buffers(&mut self, execution: &mut Execution) -> Result<()> {
        for (position, bytes) in self.inputs.buffers.iter().enumerate() {
            execution.set_input(position, Some(bytes))?;
        }
        for (position, bytes) in self.outputs.buffers.iter_mut().enumerate() {
            execution.set_output(position, bytes)?;
        }
        Ok(())
    }

    fn set_memories(&self, execution: &mut Execution) -> Result<()> {
        for (position, range) in self.inputs.ranges.iter().enumerate() {
            execution.set_input_from_memory(position, &self.inputs.memory, *range)?;
        }
        for (position, range) in self.outputs.ranges.iter().enumerate() {
            execution.set_output_from_memory(position, &self.outputs.memory, *range)?;
        }
        Ok(())
    }

    /// The outputs of the last run with its arguments in this place.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn outputs(&self, place: Place) -> Result<Vec<Vec<u8>>> {
        if place == Place::Buffers {
            return Ok(self.outputs.buffers.clone());
        }
        let output = |(offset, length): &(usize, usize)| {
            let mut bytes = vec![0; *length];
            self.outputs.shared.read(*offset as u64, &mut bytes)?;
            Ok(bytes)
        };
        self.outputs.ranges.iter().map(output).collect()
    }
}

impl Arguments {
    fn new(device: &NdkDevice, values: &[Vec<u8>]) -> Result<Self> {
        let mut ranges = Vec::with_capacity(values.len());
        let mut size: usize = 0;
        for value in values {
            ranges.push((size, value.len()));
            size = (size + value.len()).next_multiple_of(ALIGNMENT);
        }
        let shared = ShmMemory::create(size.max(1))?;
        for (value, (offset, _)) in values.iter().zip(&ranges) {
            shared.write(*offset as u64, value)?;
        }
        let fd = shared.fd().ok_or_else(|| Error::op_failed("memory without a descriptor"))?;
        let memory = device.memory(fd.as_fd(), size.max(1))?;
        Ok(Arguments { buffers: values.to_vec(), memory, shared, ranges })
    }
}
