//! The CPU device in this process: what the same work costs without any transport.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use burst_driver::CpuDevice;
use burst_hal::{
    Burst, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    Memory, PrepareOptions, Request, RequestArgument, RequestPool, TimePoint,
};
use burst_tflite::{Imported, TensorInfo};

pub(super) struct InProcess {
    burst: Box<dyn Burst>,
    request: Request,
    result: ExecutionResult,
    input: Vec<u8>,
    input_pool: Arc<HeapMemory>,
    output: Vec<u8>,
    output_pool: Arc<HeapMemory>,
}

impl InProcess {
    pub(super) fn new(imported: &Imported) -> Result<Self> {
        let model = CpuDevice::default()
            .prepare_model(&imported.model, &PrepareOptions::default())
            .context("the model cannot be prepared")?;
        let burst = model.open_burst().context("no burst on the prepared model")?;
        let inputs = layout(&imported.inputs)?;
        let outputs = layout(&imported.outputs)?;
        let input_pool = Arc::new(HeapMemory::new(vec![0; inputs.bytes]));
        let output_pool = Arc::new(HeapMemory::new(vec![0; outputs.bytes]));
        let request = Request {
            inputs: inputs.arguments(0),
            outputs: outputs.arguments(1),
            pools: vec![
                RequestPool::Memory(input_pool.clone()),
                RequestPool::Memory(output_pool.clone()),
            ],
        };
        Ok(InProcess {
            burst,
            request,
            result: ExecutionResult::of(ErrorStatus::None),
            input: vec![0; inputs.lengths[0]],
            input_pool,
            output: vec![0; outputs.lengths[0]],
            output_pool,
        })
    }
}

impl super::Path for InProcess {
    fn input(&mut self) -> &mut [u8] {
        &mut self.input
    }

    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)> {
        self.input_pool.write(0, &self.input)?;
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: Some(TimePoint::after(deadline)),
            loop_timeout: None,
        };
        self.burst.execute(&self.request, &options, &mut self.result);
        if self.result.status == ErrorStatus::None {
            self.output_pool.read(0, &mut self.output)?;
        }
        let micros = self.result.timing.time_in_driver_us;
        let driver = (micros != u64::MAX).then(|| Duration::from_micros(micros));
        Ok((self.result.status, driver))
    }

    fn output(&mut self) -> Result<&[u8]> {
        Ok(&self.output)
    }

    fn driver_pid(&self) -> u32 {
        std::process::id()
    }
}

/// Tensors one behind the other in one pool.
struct Layout {
    offsets: Vec<usize>,
    lengths: Vec<usize>,
    bytes: usize,
}

/// Where tensors start: on cache lines.
const ALIGNMENT: usize = 64;

fn layout(tensors: &[TensorInfo]) -> Result<Layout> {
    let mut layout = Layout { offsets: Vec::new(), lengths: Vec::new(), bytes: 0 };
    for tensor in tensors {
        let length = tensor
            .ty
            .byte_length(&tensor.dims)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length > 0)
            .with_context(|| {
                format!("the tensor {} has the open shape {:?}", tensor.name, tensor.dims)
            })?;
        layout.offsets.push(layout.bytes);
        layout.lengths.push(length);
        layout.bytes = (layout.bytes + length).next_multiple_of(ALIGNMENT);
    }
    Ok(layout)
}

impl Layout {
    fn arguments(&self, pool_index: u32) -> Vec<RequestArgument> {
        let argument = |(offset, length): (&usize, &usize)| RequestArgument {
            has_no_value: false,
            location: DataLocation {
                pool_index,
                offset: u32::try_from(*offset).unwrap_or(u32::MAX),
                length: u32::try_from(*length).unwrap_or(u32::MAX),
            },
            dimensions: burst_hal::Dimensions::new(),
        };
        self.offsets.iter().zip(&self.lengths).map(argument).collect()
    }
}
