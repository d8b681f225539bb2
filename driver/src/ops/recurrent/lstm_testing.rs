//! A small layer for the unit tests of the LSTM operations.

use burst_hal::OperandType;

use crate::ops::testing::Tensor;

/// Makes a float tensor of either type.
pub(super) type Make = fn(&[u32], &[f32]) -> Tensor;

/// The operands of a layer of one input, one unit, one output.
pub(super) struct Layer {
    make: Make,
}

impl Layer {
    /// A layer that halves its cell and adds the input, and gives out half of the cell: gates half
    /// open (sums of 0) but the input gate, which is open (a sum of 100).
    pub(super) fn halving(make: Make) -> Self {
        Layer { make }
    }

    /// Weights, biases, and no projection: 17 operands.
    pub(super) fn weights(&self) -> Vec<Tensor> {
        let matrix = |value| (self.make)(&[1, 1], &[value]);
        let vector = |value| (self.make)(&[1], &[value]);
        let mut list = vec![matrix(0.0), matrix(0.0), matrix(1.0), matrix(0.0)];
        list.extend([matrix(0.0), matrix(0.0), matrix(0.0), matrix(0.0)]);
        list.extend(self.absent(3));
        list.extend([vector(100.0), vector(0.0), vector(0.0), vector(0.0)]);
        list.extend(self.absent(2));
        list
    }

    /// Activation and clips.
    pub(super) fn tuning(
        &self,
        activation: i32,
        cell_clip: f32,
        projection_clip: f32,
    ) -> Vec<Tensor> {
        let clip = match self.ty() {
            OperandType::TensorFloat32 => Tensor::scalar_f32,
            _ => Tensor::scalar_f16,
        };
        vec![Tensor::scalar_i32(activation), clip(cell_clip), clip(projection_clip)]
    }

    /// Operands that are left out.
    pub(super) fn absent(&self, count: usize) -> Vec<Tensor> {
        vec![Tensor::omitted(self.ty()); count]
    }

    fn ty(&self) -> OperandType {
        (self.make)(&[1], &[0.0]).info.ty
    }
}
