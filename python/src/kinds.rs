//! Tensors as numpy has them.

use burst_hal::OperandType;
use burst_tasks::TaskModel;
use burst_tflite::TensorInfo;
use pyo3::prelude::*;

use crate::errors::{self, Class};

/// An input or output: name, type of numpy, shape, scale, zero point, and where it lies in its mapping.
pub(crate) type Described = (String, &'static str, Vec<u32>, f32, i32, u32, u32);

/// What numpy calls elements of this type.
fn dtype(ty: OperandType) -> Option<&'static str> {
    Some(match ty {
        OperandType::TensorFloat32 => "<f4",
        OperandType::TensorFloat16 => "<f2",
        OperandType::TensorInt32 => "<i4",
        OperandType::TensorQuant8Asymm => "|u1",
        OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel => "|i1",
        OperandType::TensorQuant16Symm => "<i2",
        OperandType::TensorQuant16Asymm => "<u2",
        OperandType::TensorBool8 => "|b1",
        _ => return None,
    })
}

/// The tensors of a list, each of which lies at an offset, in bytes, of a length.
pub(crate) fn described(
    model: &TaskModel,
    tensors: &[TensorInfo],
    places: &[(u32, u32)],
) -> PyResult<Vec<Described>> {
    let of = |(info, (offset, length)): (&TensorInfo, &(u32, u32))| {
        let dtype = dtype(info.ty).ok_or_else(|| {
            let text = format!(
                "{}: `{}` is {}, which numpy does not have",
                model.name, info.name, info.ty
            );
            errors::raise(Class::BadModel, &text)
        })?;
        let shape = info.dims.to_vec();
        Ok((info.name.clone(), dtype, shape, info.scale, info.zero_point, *offset, *length))
    };
    tensors.iter().zip(places).map(of).collect()
}
