//! What ARGMAX and ARGMIN share: the index of the best value along one axis.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperandType};
use half::f16;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::{Isa, argmax};
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, Kernel, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
};
use crate::ops::attributes::Axis;
use crate::stop::{Checkpoints, STEPS_PER_CHECK};
use crate::tensor::Args;
use crate::threads::{Tiling, speed};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32], &[TI32]),
    Form::new(V1_2, &[TF16, I32], &[TI32]),
    Form::new(V1_2, &[TI32, I32], &[TI32]),
    Form::new(V1_2, &[TQ8, I32], &[TI32]),
    Form::new(V1_3, &[TQ8S, I32], &[TI32]),
];

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

pub(super) fn parse(operands: &dyn Operands) -> Result<Axis, OpError> {
    Axis::required(operands, 1)
}

/// The input's shape without the axis; `[1]` for a vector.
pub(super) fn infer(args: &Args<'_>, axis: Parsed<'_, Axis>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    let axis = axis?.position(dims.len())?;
    if dims.contains(&0) {
        return Err(OpError::shape("an input that must not be empty", dims, &[]));
    }
    if i32::try_from(dims[axis]).is_err() {
        return Err(OpError::Range { what: "an index along the axis" });
    }
    let mut left: Dimensions = dims.into();
    left.remove(axis);
    if left.is_empty() {
        left.push(1);
    }
    Ok(Inferred::one(left))
}

/// Which of two values wins; of equal ones the first stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Best {
    Largest,
    Smallest,
}

pub(super) fn execute(run: &mut Run<'_, '_>, axis: Axis, best: Best) -> Result<(), OpError> {
    let input = run.input(0)?;
    let axis = axis.position(input.dims.len())?;
    let size = |dims: &[u32]| dims.iter().map(|dim| *dim as usize).product::<usize>();
    let (length, inner) = (input.dims[axis] as usize, size(&input.dims[axis + 1..]));
    let checkpoints = &mut run.stop.checkpoints();
    let out = run.output(0)?.i32_mut()?;
    match input.info.ty {
        OperandType::TensorFloat32 => find(input.f32()?, out, length, inner, best, checkpoints),
        OperandType::TensorFloat16 => {
            find::<f16>(input.f16()?, out, length, inner, best, checkpoints)
        }
        OperandType::TensorInt32 => find(input.i32()?, out, length, inner, best, checkpoints),
        OperandType::TensorQuant8AsymmSigned => {
            find(input.i8()?, out, length, inner, best, checkpoints)
        }
        _ => find(input.u8()?, out, length, inner, best, checkpoints),
    }
}

/// A kernel that works in vectors, for bytes.
pub(super) fn prepare(
    args: &Args<'_>,
    axis: Axis,
    context: &PrepareContext<'_>,
    best: Best,
) -> Result<Option<Prepared>, OpError> {
    let flip = match (args.input(0)?.info.ty, best) {
        (OperandType::TensorQuant8Asymm, Best::Largest) => 0,
        (OperandType::TensorQuant8Asymm, Best::Smallest) => 0xFF,
        (OperandType::TensorQuant8AsymmSigned, Best::Largest) => 0x80,
        (OperandType::TensorQuant8AsymmSigned, Best::Smallest) => 0x7F,
        _ => return Ok(None),
    };
    let kernel = Box::new(Bytes { axis, best, flip, isa: context.isa });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

/// See [`argmax`].
#[derive(Debug)]
struct Bytes {
    axis: Axis,
    best: Best,
    /// What brings bytes into an order in which the best one is the largest.
    flip: u8,
    isa: Isa,
}

/// Nanoseconds that a row takes for each block of values.
const ROW_NANOS: usize = 5;

impl Kernel for Bytes {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let axis = self.axis.position(input.dims.len())?;
        let length = input.dims[axis] as usize;
        let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
        let is_last = input.dims[axis + 1..].iter().all(|size| *size == 1);
        if !is_last || length > argmax::MAX_LEN || length == 0 {
            return execute(run, self.axis, self.best);
        }
        let Run { outputs, scratch, stop, parallelism, .. } = run;
        let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?.i32_mut()?;
        if bytes.len() != out.len() * length {
            return Err(OpError::Internal { what: "size of a list of positions" });
        }
        let nanos = speed::nanos(&[out.len(), length.div_ceil(32), ROW_NANOS], 1);
        let tiling = Tiling { nanos, ..Tiling::values(bytes.len()) };
        parallelism.tiles(&tiling, out, scratch, *stop, |first, out, _| {
            argmax::positions(self.isa, &bytes[first * length..], length, self.flip, out);
            Ok(())
        })
    }

    fn name(&self) -> &'static str {
        "bytes with their positions"
    }
}

fn find<T: PartialOrd + Copy>(
    input: &[T],
    out: &mut [i32],
    length: usize,
    inner: usize,
    best: Best,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let lanes = (length, inner);
    match best {
        Best::Largest => indexes(input, out, lanes, checkpoints, |new, old| new > old),
        Best::Smallest => indexes(input, out, lanes, checkpoints, |new, old| new < old),
    }
}

/// `input` is `[outer, length, inner]`, `out` is `[outer, inner]`.
fn indexes<T: Copy>(
    input: &[T],
    out: &mut [i32],
    (length, inner): (usize, usize),
    checkpoints: &mut Checkpoints<'_>,
    beats: impl Fn(T, T) -> bool,
) -> Result<(), OpError> {
    if length == 0 || inner == 0 {
        return Ok(());
    }
    for (block, out) in input.chunks_exact(length * inner).zip(out.chunks_exact_mut(inner)) {
        for (lane, out) in out.iter_mut().enumerate() {
            let mut holder = (0, block[lane]);
            let mut values = (0..).zip(block[lane..].iter().step_by(inner));
            for first in (0..length).step_by(STEPS_PER_CHECK) {
                let part = STEPS_PER_CHECK.min(length - first);
                checkpoints.after(part)?;
                for (index, value) in values.by_ref().take(part) {
                    // Without a branch: which value wins is hard to foresee.
                    let wins = beats(*value, holder.1);
                    holder.0 = if wins { index } else { holder.0 };
                    holder.1 = if wins { *value } else { holder.1 };
                }
            }
            *out = holder.0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::reduce::{argmax, argmin};
    use crate::ops::testing::{Tensor, run, run_fast_on};

    /// Rows shorter and longer than a block, with many equal values, along every axis.
    #[test]
    fn kernels_find_the_positions_that_the_reference_finds() {
        let mut seed = 1u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for case in 0..120 {
            let length = [1, 2, 21, 31, 32, 33, 64, 100, 255, 256, 257, 300][case % 12];
            let dims = [1 + next() % 3, 1 + next() % 4, length];
            let mask = [0xFF, 0x83, 0x01][next() as usize % 3];
            let bytes: Vec<u8> =
                (0..dims.iter().product()).map(|_| next().to_le_bytes()[0] & mask).collect();
            let signed: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
            let inputs = [Tensor::u8(&dims, &bytes, 0.5, 9), Tensor::i8(&dims, &signed, 0.5, 9)];
            for (input, def) in
                inputs.iter().flat_map(|input| [(input, &argmax::DEF), (input, &argmin::DEF)])
            {
                let axis = [2, 2, -1, 1, 0][next() as usize % 5];
                let list = [input.clone(), Tensor::scalar_i32(axis)];
                let outputs = [Tensor::output(OperandType::TensorInt32)];
                let want = run(def, &list, &outputs).unwrap();
                let without = Isa { avx512: false, vnni: false, ..Isa::detect() };
                for isa in [Isa::detect(), without, Isa::PORTABLE] {
                    let got = run_fast_on(isa, def, &list, &outputs).unwrap().expect("a kernel");
                    assert_eq!(got[0].values::<i32>(), want[0].values::<i32>(), "case {case}");
                }
            }
        }
    }

    #[test]
    fn other_types_have_no_kernel() {
        let list = [Tensor::f32(&[2], &[1.0, 2.0]), Tensor::scalar_i32(0)];
        let outputs = [Tensor::output(OperandType::TensorInt32)];
        assert!(run_fast_on(Isa::detect(), &argmax::DEF, &list, &outputs).unwrap().is_none());
    }
}
