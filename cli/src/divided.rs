//! Several devices as one: the framework divides each model among them.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use burst_driver::ReferenceDevice;
use burst_hal::{
    Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Memory,
    MemoryError, MemoryKind, Model, OutputShape, Pool, PrepareOptions, PrepareResult,
    PreparedModel, Request, RequestArgument, RequestPool,
};
use neuralnetworks::{Argument, Compilation, Error, Execution, RuntimeDevice, priority_code};

use crate::device_names;
use crate::threads::Threads;

/// Devices of this process, among which models are divided.
pub(crate) struct Divided {
    devices: Vec<Arc<RuntimeDevice>>,
}

impl Divided {
    /// The devices with these names, on an engine with so many threads.
    ///
    /// # Errors
    /// There is none with a name; one that does not say what it is.
    pub(crate) fn among(names: &[String], threads: Threads) -> Result<Self> {
        let devices = device_names::local(names, &Arc::new(threads.engine()))?;
        let device = |device: Arc<dyn Device>| match device.name() {
            ReferenceDevice::NAME => RuntimeDevice::reference(device),
            _ => RuntimeDevice::local(device),
        };
        let devices = devices.into_iter().map(device).collect::<Result<_, Error>>();
        Ok(Divided { devices: devices.map_err(|error| anyhow!("{error}"))? })
    }
}

/// A status of the HAL for what the framework says.
fn failure(error: Error) -> Failure {
    Failure::new(error.code.into(), error)
}

impl Device for Divided {
    fn name(&self) -> &str {
        "framework"
    }

    fn version_string(&self) -> &str {
        concat!("burst ", env!("CARGO_PKG_VERSION"))
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let model = neuralnetworks::Model::from_hal(model.clone()).map_err(failure)?;
        model.supported_operations(&self.devices).map_err(failure)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let prepare = || {
            let model = neuralnetworks::Model::from_hal(model.clone())?;
            let compilation = Compilation::for_devices(&model, &self.devices)?;
            compilation.set_preference(options.preference.code())?;
            compilation.set_priority(priority_code(options.priority))?;
            compilation.finish()?;
            Ok(compilation)
        };
        Ok(Arc::new(DividedModel(prepare().map_err(failure)?)))
    }
}

struct DividedModel(Arc<Compilation>);

impl PreparedModel for DividedModel {
    /// The framework has no deadlines for several devices: the one of these options is looked at by whoever
    /// asked.
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.execute(request, options).unwrap_or_else(|(error, shapes)| {
            tracing::debug!(%error, "execution failed");
            let status = ErrorStatus::from(error.code);
            ExecutionResult { output_shapes: shapes, ..ExecutionResult::of(status) }
        })
    }
}

impl DividedModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<ExecutionResult, (Error, Vec<OutputShape>)> {
        let failed = |error| (error, Vec::new());
        let execution = Execution::new(&self.0).map_err(failed)?;
        if let Some(timeout) = options.loop_timeout {
            let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            execution.set_loop_timeout(nanos).map_err(failed)?;
        }
        for (index, argument) in (0..).zip(&request.inputs) {
            execution.set_input(index, None, place(request, argument)).map_err(failed)?;
        }
        for (index, argument) in (0..).zip(&request.outputs) {
            execution.set_output(index, None, place(request, argument)).map_err(failed)?;
        }
        let ended = execution.compute();
        let shapes = (0..).zip(&request.outputs).map(|(index, _)| {
            let (code, dimensions) = execution.output_operand_dimensions(index);
            OutputShape {
                dimensions: dimensions.unwrap_or_default().into(),
                is_sufficient: ErrorStatus::from(code) == ErrorStatus::None,
            }
        });
        let output_shapes = shapes.collect();
        match ended {
            Ok(()) => {
                Ok(ExecutionResult { output_shapes, ..ExecutionResult::of(ErrorStatus::None) })
            }
            Err(error) => Err((error, output_shapes)),
        }
    }
}

/// Where an argument of a request lies, as the framework takes it.
fn place(request: &Request, argument: &RequestArgument) -> Argument {
    let pool = request.pools.get(argument.location.pool_index as usize);
    let Some(RequestPool::Memory(pool)) = pool.filter(|_| !argument.has_no_value) else {
        return Argument::Omitted;
    };
    let (offset, length) = (argument.location.offset.into(), argument.location.length.into());
    Argument::Host(Arc::new(Part { pool: Pool::clone(pool), offset, length }))
}

/// A part of a pool as a pool.
#[derive(Debug)]
struct Part {
    pool: Pool,
    offset: u64,
    length: u64,
}

impl Part {
    /// Where bytes of this part lie in the pool.
    fn at(&self, offset: u64, length: usize) -> Result<u64, MemoryError> {
        let (len, size) = (length as u64, self.length);
        let end = offset.checked_add(len).filter(|end| *end <= size);
        end.ok_or(MemoryError::OutOfRange { offset, len, size })?;
        Ok(self.offset + offset)
    }
}

impl Memory for Part {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.pool.read(self.at(offset, out.len())?, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.pool.write(self.at(offset, bytes.len())?, bytes)
    }

    fn fill(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, MemoryError> {
        self.pool.fill(self.at(offset, len)?, len, fill)
    }

    fn is_mapped(&self) -> bool {
        self.pool.is_mapped()
    }

    fn kind(&self) -> MemoryKind {
        self.pool.kind()
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::HeapMemory;

    use super::*;

    #[test]
    fn a_part_of_a_pool_ends_where_it_ends() {
        let pool: Pool = Arc::new(HeapMemory::new(vec![1, 2, 3, 4]));
        let part = Part { pool: Pool::clone(&pool), offset: 1, length: 2 };
        let mut two = [0; 2];
        part.read(0, &mut two).unwrap();
        assert_eq!(two, [2, 3]);
        part.write(1, &[9]).unwrap();
        assert!(part.read(1, &mut two).is_err() && part.write(u64::MAX, &[0]).is_err());
        pool.read(2, &mut two).unwrap();
        assert_eq!(two, [9, 4]);
    }
}
