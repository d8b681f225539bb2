//! Operands of recurrent operations: which of the many optional ones are there, whether their shapes
//! fit, and their values as `f32`.

use burst_hal::OperandType;
use half::slice::HalfFloatSliceExt;
use smallvec::SmallVec;

use crate::OpError;
use crate::op::Operands;
use crate::scratch::Scratch;
use crate::tensor::{Args, TensorMut, TensorRef, Value};

/// What is known of an operand that may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known<'a> {
    /// It was left out.
    Omitted,
    /// An execution may still leave it out.
    Unknown,
    /// It is there, with this shape.
    Given(&'a [u32]),
}

/// The shapes of an operation's inputs, as far as they are known.
///
/// The rules of an operation are checked against this twice: while shapes are inferred, and, since
/// an execution may leave out inputs of the graph, once more when it runs.
pub(super) trait Shapes {
    /// The shape of an input that must be there.
    fn required(&self, index: usize) -> Result<&[u32], OpError>;

    /// The shape of an input that may be left out.
    fn optional(&self, index: usize) -> Known<'_>;
}

impl Shapes for Args<'_> {
    fn required(&self, index: usize) -> Result<&[u32], OpError> {
        self.dims(index)
    }

    fn optional(&self, index: usize) -> Known<'_> {
        match self.inputs.get(index) {
            None => Known::Omitted,
            Some(arg) => match (arg.value, arg.dims) {
                (Value::Omitted, _) => Known::Omitted,
                (Value::Bytes(_), Some(dims)) => Known::Given(dims),
                _ => Known::Unknown,
            },
        }
    }
}

impl Shapes for [TensorRef<'_>] {
    fn required(&self, index: usize) -> Result<&[u32], OpError> {
        match self.optional(index) {
            Known::Given(dims) => Ok(dims),
            _ => Err(OpError::Omitted { index }),
        }
    }

    fn optional(&self, index: usize) -> Known<'_> {
        match self.get(index) {
            Some(tensor) if tensor.is_present() => Known::Given(tensor.dims),
            _ => Known::Omitted,
        }
    }
}

/// The input must be there with this shape, in which nothing is 0.
pub(super) fn expect(
    shapes: &(impl Shapes + ?Sized),
    index: usize,
    want: &[u32],
) -> Result<(), OpError> {
    expect_dims(shapes.required(index)?, want)
}

/// The input, if it is there, must have this shape.
pub(super) fn expect_if_given(
    shapes: &(impl Shapes + ?Sized),
    index: usize,
    want: &[u32],
) -> Result<(), OpError> {
    match shapes.optional(index) {
        Known::Given(dims) => expect_dims(dims, want),
        Known::Omitted | Known::Unknown => Ok(()),
    }
}

fn expect_dims(dims: &[u32], want: &[u32]) -> Result<(), OpError> {
    if dims == want && !want.contains(&0) {
        return Ok(());
    }
    Err(OpError::shape("an operand of a recurrent layer, and the shape it must have", dims, want))
}

/// The sizes of a required input of rank `N`.
pub(super) fn sizes<const N: usize>(
    shapes: &(impl Shapes + ?Sized),
    index: usize,
) -> Result<[u32; N], OpError> {
    let dims = shapes.required(index)?;
    match <[u32; N]>::try_from(dims) {
        Ok(sizes) if !sizes.contains(&0) => Ok(sizes),
        _ => Err(OpError::shape("sizes of an operand of a recurrent layer", dims, &[])),
    }
}

/// Whether these inputs are there: all of them or none. `None` while that is not known.
pub(super) fn together(
    shapes: &(impl Shapes + ?Sized),
    inputs: &[usize],
) -> Result<Option<bool>, OpError> {
    let mut all = None;
    for index in inputs {
        let given = match shapes.optional(*index) {
            Known::Unknown => continue,
            known => known != Known::Omitted,
        };
        if all.is_some_and(|all| all != given) {
            return Err(OpError::Omitted { index: *index });
        }
        all = Some(given);
    }
    Ok(all)
}

/// Two facts that must agree once both are known; `index` names the input to blame.
pub(super) fn agree(a: Option<bool>, b: Option<bool>, index: usize) -> Result<(), OpError> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Err(OpError::Omitted { index }),
        _ => Ok(()),
    }
}

/// The clipping threshold at an input: 0 for none, never below.
pub(super) fn clip(operands: &dyn Operands, index: usize) -> Result<f32, OpError> {
    let clip = operands.float(index)?;
    if clip >= 0.0 { Ok(clip) } else { Err(OpError::Range { what: "a clipping threshold" }) }
}

/// Furthest that the logarithm of a scale may be from a whole number for the scale to count as a
/// power of two: models store `3.05176e-5` for `2^-15`.
const LOG_TOLERANCE: f32 = 1e-3;

/// Integer bits of a 16-bit cell with this scale: a power of two of at least `2^-15`.
pub(super) fn cell_integer_bits(scale: f32) -> Result<u32, OpError> {
    let exponent = scale.log2();
    let nearest = exponent.round();
    if (exponent - nearest).abs() < LOG_TOLERANCE && (-15.0..0.0).contains(&nearest) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 14")]
        return Ok((nearest + 15.0) as u32);
    }
    Err(OpError::Range { what: "scale of a cell, a power of two" })
}

/// The float inputs of an operation as `f32`.
#[derive(Debug)]
pub(super) struct Floats<'a> {
    values: SmallVec<[Option<&'a [f32]>; 64]>,
}

impl<'a> Floats<'a> {
    /// The inputs, halves widened, and `work` floats of working memory.
    pub(super) fn new(
        inputs: &'a [TensorRef<'a>],
        scratch: &'a mut Scratch,
        work: usize,
    ) -> Result<(Self, &'a mut [f32]), OpError> {
        let half = |input: &&TensorRef<'_>| {
            input.is_present() && input.info.ty == OperandType::TensorFloat16
        };
        let widened: usize = inputs
            .iter()
            .filter(half)
            .map(|input| input.f16().map(<[_]>::len))
            .sum::<Result<_, _>>()?;
        let mut rest = scratch.f32(widened + work)?;
        let values = inputs
            .iter()
            .map(|input| match input.info.ty {
                _ if !input.is_present() => Ok(None),
                OperandType::TensorFloat32 => input.f32().map(Some),
                OperandType::TensorFloat16 => {
                    let halves = input.f16()?;
                    let (wide, after) = std::mem::take(&mut rest).split_at_mut(halves.len());
                    rest = after;
                    halves.convert_to_f32_slice(wide);
                    Ok(Some(&*wide))
                }
                _ => Ok(None),
            })
            .collect::<Result<_, OpError>>()?;
        Ok((Floats { values }, rest))
    }

    /// An input that must be there.
    pub(super) fn required(&self, index: usize) -> Result<&'a [f32], OpError> {
        self.optional(index).ok_or(OpError::Omitted { index })
    }

    /// An input that may be left out.
    pub(super) fn optional(&self, index: usize) -> Option<&'a [f32]> {
        self.values.get(index).copied().flatten()
    }
}

/// Writes values to a float output, from element `at` on; halves are rounded.
pub(super) fn store(out: &mut TensorMut<'_>, at: usize, values: &[f32]) -> Result<(), OpError> {
    let range = at..at + values.len();
    let outside = OpError::Internal { what: "a recurrent layer wrote outside of its output" };
    match out.info.ty {
        OperandType::TensorFloat32 => {
            out.f32_mut()?.get_mut(range).ok_or(outside)?.copy_from_slice(values);
        }
        OperandType::TensorFloat16 => {
            out.f16_mut()?.get_mut(range).ok_or(outside)?.convert_from_f32_slice(values);
        }
        got => return Err(OpError::Type { want: "a float tensor", got }),
    }
    Ok(())
}

/// The output at `index`.
pub(super) fn output<'o, 't>(
    outputs: &'o mut [TensorMut<'t>],
    index: usize,
) -> Result<&'o mut TensorMut<'t>, OpError> {
    let got = outputs.len();
    outputs.get_mut(index).ok_or(OpError::Arity { want: index + 1, got })
}
