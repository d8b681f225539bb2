//! Whether it is known before an execution how much memory a value takes.

use burst_hal::{Operand, OperandKind};

use super::offer::PartitionOptions;

/// Whether every value of this operand takes the same number of bytes, and it is known how many.
pub(super) fn is_known(operand: &Operand, options: &PartitionOptions) -> bool {
    let is_closed = !operand.dimensions.contains(&0);
    match operand.ty.kind() {
        OperandKind::Scalar => true,
        OperandKind::Tensor => !operand.dimensions.is_empty() && is_closed,
        OperandKind::Subgraph => false,
        OperandKind::Opaque => {
            let types = &options.extension_types;
            let described = types.iter().find(|(ty, _)| *ty == operand.ty);
            described.is_some_and(|(_, ty)| match ty.is_tensor {
                true => !operand.dimensions.is_empty() && is_closed,
                false => true,
            })
        }
    }
}
