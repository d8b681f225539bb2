//! Running a random model on a device.

use std::sync::Arc;

use burst_hal::{
    DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, Failure, HeapMemory,
    PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool,
};

use super::RandomModel;

impl RandomModel {
    /// The bytes of each output, as this device computes them.
    ///
    /// # Errors
    /// What the device says when it prepares or executes the model.
    pub fn run(&self, device: &dyn Device) -> Result<Vec<Vec<u8>>, Failure> {
        let prepared = device.prepare_model(&self.model, &PrepareOptions::default())?;
        self.execute(&*prepared)
    }

    /// The bytes of each output, from one execution.
    ///
    /// # Errors
    /// The status of the execution, where it is not NONE.
    pub fn execute(&self, prepared: &dyn PreparedModel) -> Result<Vec<Vec<u8>>, Failure> {
        let (request, outputs) = self.request();
        let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
        match result.status {
            ErrorStatus::None => Ok(outputs.iter().map(|output| output.to_vec()).collect()),
            status => Err(status.into()),
        }
    }

    /// A request with the inputs, and the memory of each output.
    #[must_use]
    pub fn request(&self) -> (Request, Vec<Arc<HeapMemory>>) {
        let mut request = Request::default();
        let add = |request: &mut Request, memory: &Arc<HeapMemory>, length: usize| {
            let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let location = DataLocation {
                pool_index: number(request.pools.len()),
                offset: 0,
                length: number(length),
            };
            request.pools.push(RequestPool::Memory(Arc::clone(memory) as _));
            RequestArgument { has_no_value: false, location, dimensions: Dimensions::new() }
        };
        for bytes in &self.inputs {
            let memory = Arc::new(HeapMemory::new(bytes.clone()));
            let argument = add(&mut request, &memory, bytes.len());
            request.inputs.push(argument);
        }
        let mut outputs = Vec::with_capacity(self.model.main.output_indexes.len());
        for length in self.output_lengths() {
            let memory = Arc::new(HeapMemory::new(vec![0; length]));
            let argument = add(&mut request, &memory, length);
            request.outputs.push(argument);
            outputs.push(memory);
        }
        (request, outputs)
    }

    /// How many bytes each output has, at most where values decide.
    pub fn output_lengths(&self) -> impl Iterator<Item = usize> {
        let graph = &self.model.main;
        graph.output_indexes.iter().map(|index| {
            let operand = &graph.operands[*index as usize];
            let known = self.shape(*index).map(|shape| shape.dims.as_slice());
            let dims = known.unwrap_or(&operand.dimensions);
            let bytes = operand.ty.byte_length(dims).unwrap_or(0);
            usize::try_from(bytes).unwrap_or(0)
        })
    }
}
