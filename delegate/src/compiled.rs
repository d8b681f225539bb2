//! A partition that is ready to run: prepared on its device, with memory for its inputs and outputs.

use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::{Pool, ResultCode};
use burst_tflite::{ElementType, TensorInfo};
use neuralnetworks::{Argument, Burst, Execution, Memory, Model};

use crate::error::DelegateError;
use crate::piece::Stay;
use crate::target::Target;

/// Values start at multiples of this: a cache line, as the framework prefers it.
const ALIGNMENT: usize = 64;
/// Bytes of an int64 element in the runtime, and of the int32 that NNAPI has in its place.
const LONG_BYTES: usize = 8;
const INT_BYTES: usize = 4;

/// An input or output: which tensor of the runtime, and where in the partition's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port {
    /// The runtime's tensor.
    pub(crate) tensor: usize,
    /// Bytes that it has in the runtime.
    pub(crate) bytes: usize,
    offset: usize,
    /// Bytes that it has here.
    length: usize,
}

/// Inputs and outputs of a partition, in their pools. A state is both, of one tensor of the runtime.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    input_bytes: usize,
    output_bytes: usize,
}

impl Ports {
    /// Lays out inputs and outputs: for each what the importer says of it, its tensor and how many bytes that has.
    ///
    /// # Errors
    /// The runtime has another number of bytes.
    pub(crate) fn lay_out<'i>(
        inputs: impl Iterator<Item = (&'i TensorInfo, usize, usize)>,
        outputs: impl Iterator<Item = (&'i TensorInfo, usize, usize)>,
    ) -> Result<Self, Stay> {
        let (inputs, input_bytes) = lay_out(inputs, "an input")?;
        let (outputs, output_bytes) = lay_out(outputs, "an output")?;
        Ok(Ports { inputs, outputs, input_bytes, output_bytes })
    }
}

fn lay_out<'i>(
    infos: impl Iterator<Item = (&'i TensorInfo, usize, usize)>,
    what: &'static str,
) -> Result<(Vec<Port>, usize), Stay> {
    let mut ports = Vec::new();
    let mut end: usize = 0;
    for (info, tensor, bytes) in infos {
        let wrong = Stay::Size { what };
        let length = info.ty.byte_length(&info.dims).filter(|bytes| *bytes > 0);
        let Some(length) = length.and_then(|bytes| usize::try_from(bytes).ok()) else {
            return Err(wrong);
        };
        // 64-bit results are 32-bit ones in NNAPI.
        let is_narrow = info.file_type == ElementType::Int64;
        let wanted = if is_narrow { length / INT_BYTES * LONG_BYTES } else { length };
        if bytes != wanted {
            return Err(wrong);
        }
        let offset = end.next_multiple_of(ALIGNMENT);
        end = offset.saturating_add(length);
        ports.push(Port { tensor, bytes, offset, length });
    }
    Ok((ports, end))
}

/// A partition on its device.
#[derive(Debug)]
pub(crate) struct Compiled {
    target: Arc<Target>,
    model: Arc<Model>,
    /// What stands for the model among the compilations that are kept.
    token: Option<[u8; 32]>,
    ports: Arc<Ports>,
    input_pool: Pool,
    output_pool: Pool,
    live: Live,
}

/// What ends with the device's process.
#[derive(Debug)]
struct Live {
    execution: Arc<Execution>,
    burst: Arc<Burst>,
}

impl Compiled {
    /// Prepares a model and makes its memory.
    ///
    /// # Errors
    /// The framework's.
    pub(crate) fn prepare(
        target: &Arc<Target>,
        model: Arc<Model>,
        token: Option<[u8; 32]>,
        ports: Ports,
    ) -> neuralnetworks::Result<Self> {
        let input_pool = pool(ports.input_bytes)?;
        let output_pool = pool(ports.output_bytes)?;
        let live = Live::prepare(target, &model, token, (&ports, &input_pool, &output_pool))?;
        let (target, ports) = (Arc::clone(target), Arc::new(ports));
        Ok(Compiled { target, model, token, ports, input_pool, output_pool, live })
    }

    /// Inputs and outputs.
    pub(crate) fn ports(&self) -> &Arc<Ports> {
        &self.ports
    }

    /// Copies an input in.
    ///
    /// # Errors
    /// The memory cannot be written.
    pub(crate) fn write(&self, port: &Port, bytes: &[u8]) -> Result<(), DelegateError> {
        Ok(self.input_pool.write(port.offset as u64, bytes)?)
    }

    /// Copies an output out.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub(crate) fn read(&self, port: &Port, bytes: &mut [u8]) -> Result<(), DelegateError> {
        if port.length == port.bytes {
            return Ok(self.output_pool.read(port.offset as u64, bytes)?);
        }
        let mut narrow = vec![0; port.length];
        self.output_pool.read(port.offset as u64, &mut narrow)?;
        widen(&narrow, bytes);
        Ok(())
    }

    /// Runs once with the inputs as they are. Where the device's service is gone, prepares the model again as
    /// soon as it is back, and runs then: outputs and states are written only at the end.
    ///
    /// # Errors
    /// How the execution ended.
    pub(crate) fn run(&mut self) -> Result<(), DelegateError> {
        match self.live.run() {
            Err(error) if error.code == ResultCode::DeadObject => {
                let memory = (&*self.ports, &self.input_pool, &self.output_pool);
                self.live = Live::prepare(&self.target, &self.model, self.token, memory)?;
                Ok(self.live.run()?)
            }
            ended => Ok(ended?),
        }
    }
}

impl Live {
    fn prepare(
        target: &Target,
        model: &Arc<Model>,
        token: Option<[u8; 32]>,
        (ports, inputs, outputs): (&Ports, &Pool, &Pool),
    ) -> neuralnetworks::Result<Self> {
        let compilation = target.compile(model, token)?;
        let execution = Execution::new(&compilation)?;
        execution.set_reusable(true)?;
        let memory = Memory::from_pool(Pool::clone(inputs));
        for (index, port) in (0..).zip(&ports.inputs) {
            execution.set_input(index, None, port.argument(&memory))?;
        }
        let memory = Memory::from_pool(Pool::clone(outputs));
        for (index, port) in (0..).zip(&ports.outputs) {
            execution.set_output(index, None, port.argument(&memory))?;
        }
        Ok(Live { execution, burst: Burst::new(&compilation)? })
    }

    fn run(&self) -> neuralnetworks::Result<()> {
        self.execution.burst_compute(&self.burst)
    }
}

impl Port {
    fn argument(&self, memory: &Arc<Memory>) -> Argument {
        Argument::Memory { memory: Arc::clone(memory), offset: self.offset, length: self.length }
    }
}

/// Memory that a service can map, too.
fn pool(bytes: usize) -> neuralnetworks::Result<Pool> {
    Ok(Arc::new(ShmMemory::create(bytes.max(1))?))
}

/// Numbers of 32 bits as those of 64 that the runtime has.
fn widen(narrow: &[u8], wide: &mut [u8]) {
    let narrow = narrow.as_chunks::<INT_BYTES>().0;
    let wide = wide.as_chunks_mut::<LONG_BYTES>().0;
    for (narrow, wide) in narrow.iter().zip(wide) {
        *wide = i64::from(i32::from_ne_bytes(*narrow)).to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;

    fn info(ty: OperandType, file_type: ElementType, dims: &[u32]) -> TensorInfo {
        let name = String::new();
        TensorInfo { name, ty, file_type, dims: dims.into(), scale: 0.0, zero_point: 0 }
    }

    #[test]
    fn values_lie_apart_and_have_the_runtimes_sizes() {
        let float = info(OperandType::TensorFloat32, ElementType::Float32, &[3]);
        let index = info(OperandType::TensorInt32, ElementType::Int64, &[5]);
        let inputs = [(&float, 4, 12), (&float, 9, 12)];
        let ports = Ports::lay_out(inputs.into_iter(), [(&index, 2, 40)].into_iter()).unwrap();
        let second = ports.inputs[1];
        assert_eq!((second.tensor, second.offset, second.length, second.bytes), (9, 64, 12, 12));
        assert_eq!((ports.outputs[0].length, ports.outputs[0].bytes), (20, 40));
        assert_eq!((ports.input_bytes, ports.output_bytes), (76, 20));
        for (odd, bytes) in [(&float, 16), (&index, 20)] {
            let refused = Ports::lay_out([(odd, 0, bytes)].into_iter(), [].into_iter());
            assert!(matches!(refused, Err(Stay::Size { what: "an input" })));
        }
        let open = info(OperandType::TensorFloat32, ElementType::Float32, &[0, 3]);
        assert!(Ports::lay_out([].into_iter(), [(&open, 0, 0)].into_iter()).is_err());
    }

    #[test]
    fn narrow_numbers_keep_their_signs() {
        let narrow: Vec<u8> = [7_i32, -2].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let mut wide = [0xAA; 16];
        widen(&narrow, &mut wide);
        let want: Vec<u8> = [7_i64, -2].iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(wide.as_slice(), want);
    }
}
