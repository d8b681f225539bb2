//! How many dimensions operations take.

use crate::OpError;
use crate::tensor::Args;

/// Most dimensions of a tensor in the operations that HAL 1.0 and 1.1 brought. What 1.2 brought
/// takes any number, with a few exceptions that say so.
const MOST: usize = 4;

/// The shape of input `index`, for operations that take at most four dimensions.
///
/// # Errors
/// As [`Args::dims`]; [`OpError::Shape`] for more dimensions.
pub(super) fn dims_up_to_four<'a>(args: &Args<'a>, index: usize) -> Result<&'a [u32], OpError> {
    let dims = args.dims(index)?;
    if dims.len() > MOST {
        return Err(OpError::shape("more dimensions than the operation takes", dims, &[]));
    }
    Ok(dims)
}

/// A shape may have at most `limit` dimensions, and at least one.
///
/// # Errors
/// [`OpError::Shape`].
pub(super) fn expect_rank(dims: &[u32], limit: usize) -> Result<(), OpError> {
    if dims.is_empty() || dims.len() > limit {
        return Err(OpError::shape("number of dimensions", dims, &[]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::{OperandType, OperationType};

    use crate::OpError;
    use crate::op::OpDef;
    use crate::ops;
    use crate::ops::testing::{Tensor, infer};

    fn find(code: OperationType) -> &'static OpDef {
        ops::all().find(|def| def.code == code).unwrap()
    }

    #[test]
    fn old_operations_take_four_dimensions_and_new_ones_any() {
        let shape = |code, rank: usize, rest: &[Tensor]| {
            let dims = vec![1; rank];
            let mut inputs = vec![Tensor::f32(&dims, &[1.0])];
            inputs.extend_from_slice(rest);
            infer(find(code), &inputs, &[Tensor::output(OperandType::TensorFloat32)])
        };
        let list = |length: usize, value: i32| {
            Tensor::i32(&[u32::try_from(length).unwrap()], &vec![value; length])
        };
        let scalar = Tensor::scalar_i32(0);
        let one = Tensor::f32(&[1], &[1.0]);
        for (code, rest) in [
            (OperationType::Add, vec![one.clone(), scalar.clone()]),
            (OperationType::Floor, vec![]),
            (OperationType::Reshape, vec![list(1, 1)]),
            (OperationType::Squeeze, vec![list(1, 0)]),
            (OperationType::Concatenation, vec![scalar.clone()]),
            (OperationType::Transpose, vec![Tensor::omitted(OperandType::TensorInt32)]),
            (OperationType::ChannelShuffle, vec![Tensor::scalar_i32(1), scalar]),
        ] {
            assert!(shape(code, 4, &rest).is_ok(), "{code:?}");
            assert!(matches!(shape(code, 5, &rest), Err(OpError::Shape { .. })), "{code:?}");
        }
        for rank in [4, 5, 8] {
            assert!(shape(OperationType::Exp, rank, &[]).is_ok());
            assert!(shape(OperationType::Maximum, rank, std::slice::from_ref(&one)).is_ok());
            assert!(shape(OperationType::Tile, rank, &[list(rank, 1)]).is_ok());
        }
    }
}
