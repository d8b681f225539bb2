//! How much a random model computes.

use burst_hal::OperationType;

use super::RandomModel;

impl RandomModel {
    /// Multiplications of the windows and matrices of its main graph in one execution, as the table of operations
    /// knows their shapes: most of what there is to compute.
    #[must_use]
    pub fn multiplications(&self) -> u64 {
        use OperationType::{
            Conv2d, DepthwiseConv2d, FullyConnected, GroupedConv2d, TransposeConv2d,
        };
        let windows = [Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d, FullyConnected];
        let sizes = |operand: u32| self.shape(operand).map_or(&[][..], |shape| &shape.dims);
        let count = |sizes: &[u32]| sizes.iter().copied().map(u64::from).product::<u64>();
        let operations = self.model.main.operations.iter();
        let operations = operations.filter(|operation| windows.contains(&operation.ty));
        let products = operations.map(|operation| {
            let (from, filter) = (sizes(operation.inputs[0]), sizes(operation.inputs[1]));
            let to = sizes(operation.outputs[0]);
            let [outputs, .., inputs] = *filter else { return 0 };
            match operation.ty {
                // One input channel for each output channel.
                DepthwiseConv2d => count(to) * count(filter) / u64::from(inputs.max(1)),
                // Each input reaches every tap.
                TransposeConv2d => count(from) * count(filter) / u64::from(inputs.max(1)),
                _ => count(to) * count(filter) / u64::from(outputs.max(1)),
            }
        });
        products.sum()
    }
}
