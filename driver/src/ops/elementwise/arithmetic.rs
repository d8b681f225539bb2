//! What ADD, SUB, MUL and DIV share: two inputs that broadcast, one output, an activation.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "stored values are clamped to their type before they are narrowed"
)]

use burst_hal::{FusedActivation, OperandType};
use half::f16;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::add_float::held;
use crate::kernels::add_quantized::{self, Sum};
use crate::kernels::quant::{Multiplier, activation_range, activation_range_f32};
use crate::op::{Inferred, Kernel, Operands, Parsed, PrepareContext, Prepared, Run};
use crate::ops::attributes::activation;
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::ops::quantization::rules::quant8;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::{Args, TensorInfo};
use crate::threads::Tiling;

/// How two stored values of a quantized type make one.
pub(super) trait Quantized {
    /// The stored value of the result, before clamping.
    fn combine(&self, a: i32, b: i32) -> i32;
}

/// Input 2 is the activation.
pub(super) fn parse(operands: &dyn Operands) -> Result<FusedActivation, OpError> {
    activation(operands, 2)
}

/// The shape of the output: what the inputs' shapes broadcast to. It is known also where the
/// activation is not yet.
pub(super) fn infer(
    args: &Args<'_>,
    activation: Parsed<'_, FusedActivation>,
) -> Result<Inferred, OpError> {
    match activation {
        Ok(activation) => check_activation(*activation, args.input(0)?.info.ty)?,
        Err(OpError::NotYet) => {}
        Err(error) => return Err(error),
    }
    let (a, b) = (dims_up_to_four(args, 0)?, dims_up_to_four(args, 1)?);
    Ok(Inferred::one(broadcast_shape(a, b)?))
}

/// The same for sums and differences. Scales that cannot be computed with are found here, and so by
/// whoever asks what is supported.
pub(super) fn infer_sum(
    args: &Args<'_>,
    activation: Parsed<'_, FusedActivation>,
) -> Result<Inferred, OpError> {
    let (a, b) = (args.input(0)?.info, args.input(1)?.info);
    let (out, _) = args.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
    if quant8(out).is_some() {
        QuantizedSum::new(a, b, out)?;
    }
    infer(args, activation)
}

/// The specification gives INT32 tensors no activation.
fn check_activation(activation: FusedActivation, ty: OperandType) -> Result<(), OpError> {
    if ty == OperandType::TensorInt32 && activation != FusedActivation::None {
        return Err(OpError::value("activation of INT32 tensors", activation.code()));
    }
    Ok(())
}

/// Runs the operation on floats or INT32.
pub(super) fn execute_plain(
    run: &mut Run<'_, '_>,
    activation: FusedActivation,
    float: impl Fn(f32, f32) -> f32 + Sync + Copy,
    int: impl Fn(i32, i32) -> i32 + Sync + Copy,
) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let range = activation_range_f32(activation);
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let a = Side { values: a.f32()?, dims: a.dims };
            let b = Side { values: b.f32()?, dims: b.dims };
            zip(&mut runner, out.f32_mut()?, a, b, move |x, y| held(float(x, y), range))
        }
        OperandType::TensorFloat16 => {
            let a = Side { values: a.f16()?, dims: a.dims };
            let b = Side { values: b.f16()?, dims: b.dims };
            zip(&mut runner, out.f16_mut()?, a, b, move |x, y| {
                f16::from_f32(held(float(x.to_f32(), y.to_f32()), range))
            })
        }
        OperandType::TensorInt32 => {
            check_activation(activation, out.info.ty)?;
            let a = Side { values: a.i32()?, dims: a.dims };
            let b = Side { values: b.i32()?, dims: b.dims };
            zip(&mut runner, out.i32_mut()?, a, b, int)
        }
        got => Err(OpError::Type { want: "a type of arithmetic", got }),
    }
}

/// Runs the operation on whatever type its operands have. `quantized` makes the rule for quantized
/// types from what the inputs and the output mean.
pub(super) fn execute<Q: Quantized + Sync>(
    run: &mut Run<'_, '_>,
    activation: FusedActivation,
    float: impl Fn(f32, f32) -> f32 + Sync + Copy,
    int: impl Fn(i32, i32) -> i32 + Sync + Copy,
    quantized: impl Fn(&TensorInfo, &TensorInfo, &TensorInfo) -> Result<Q, OpError>,
) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let (out, mut runner) = run.output_and_runner()?;
    let info = out.info;
    match info.ty {
        OperandType::TensorQuant8Asymm => {
            let (low, high) = activation_range(activation, info.ty, info.scale, info.zero_point);
            let rule = quantized(a.info, b.info, info)?;
            let a = Side { values: a.u8()?, dims: a.dims };
            let b = Side { values: b.u8()?, dims: b.dims };
            zip(&mut runner, out.u8_mut()?, a, b, |x, y| {
                rule.combine(x.into(), y.into()).max(low).min(high) as u8
            })
        }
        OperandType::TensorQuant8AsymmSigned => {
            let (low, high) = activation_range(activation, info.ty, info.scale, info.zero_point);
            let rule = quantized(a.info, b.info, info)?;
            let a = Side { values: a.i8()?, dims: a.dims };
            let b = Side { values: b.i8()?, dims: b.dims };
            zip(&mut runner, out.i8_mut()?, a, b, |x, y| {
                rule.combine(x.into(), y.into()).max(low).min(high) as i8
            })
        }
        _ => execute_plain(run, activation, float, int),
    }
}

/// The rule of quantized sums and differences.
pub(super) struct QuantizedSum {
    a: (i32, Multiplier),
    b: (i32, Multiplier),
    out: (i32, Multiplier),
}

impl QuantizedSum {
    /// The rule of `a + b`.
    pub(super) fn new(a: &TensorInfo, b: &TensorInfo, out: &TensorInfo) -> Result<Self, OpError> {
        let (a_scale, b_scale) = (f64::from(a.scale), f64::from(b.scale));
        let twice_max = 2.0 * a_scale.max(b_scale);
        let out_real = twice_max / (f64::from(1u32 << add_quantized::SHIFT) * f64::from(out.scale));
        Ok(QuantizedSum {
            a: (a.zero_point, Multiplier::new(a_scale / twice_max)?),
            b: (b.zero_point, Multiplier::new(b_scale / twice_max)?),
            out: (out.zero_point, Multiplier::new(out_real)?),
        })
    }

    /// The rule of `a - b`. It is the multiplier that is negated, not the product: a product half
    /// way between two integers is rounded towards plus infinity, so the two differ.
    pub(super) fn difference(
        a: &TensorInfo,
        b: &TensorInfo,
        out: &TensorInfo,
    ) -> Result<Self, OpError> {
        let mut rule = QuantizedSum::new(a, b, out)?;
        rule.b.1.multiplier = -rule.b.1.multiplier;
        Ok(rule)
    }
}

/// The fast kernel of sums and differences: both inputs quantized and of one shape, both known when
/// the model is prepared.
pub(super) fn prepare_sum(
    args: &Args<'_>,
    activation: FusedActivation,
    context: &PrepareContext<'_>,
    rule: fn(&TensorInfo, &TensorInfo, &TensorInfo) -> Result<QuantizedSum, OpError>,
) -> Result<Option<Prepared>, OpError> {
    let (a, b) = (args.input(0)?.info, args.input(1)?.info);
    let Some((out, _)) = args.outputs.first() else {
        return Err(OpError::Arity { want: 1, got: 0 });
    };
    let quantized =
        matches!(out.ty, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned);
    if !quantized || args.dims(0)? != args.dims(1)? {
        return Ok(None);
    }
    let range = activation_range(activation, out.ty, out.scale, out.zero_point);
    let QuantizedSum { a, b, out } = rule(a, b, out)?;
    let Some(sum) = Sum::new(a, b, out, range) else { return Ok(None) };
    let kernel = Box::new(SumKernel { sum, isa: context.isa });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

/// A sum takes as long as moving so many bytes.
const SUM_BYTES: usize = 6;

#[derive(Debug)]
struct SumKernel {
    sum: Sum,
    isa: Isa,
}

impl Kernel for SumKernel {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let (a, b) = (run.input(0)?, run.input(1)?);
        let (out, mut runner) = run.output_and_runner()?;
        if out.info.ty == OperandType::TensorQuant8Asymm {
            let (a, b, out) = (a.u8()?, b.u8()?, out.u8_mut()?);
            add_quantized::check_lengths(a.len(), b.len(), out.len())?;
            runner.tiles(&Tiling::values(SUM_BYTES * out.len()), out, |first, out, _| {
                let part = first..first + out.len();
                self.sum.unsigned(self.isa, &a[part.clone()], &b[part], out)
            })
        } else {
            let (a, b, out) = (a.i8()?, b.i8()?, out.i8_mut()?);
            add_quantized::check_lengths(a.len(), b.len(), out.len())?;
            runner.tiles(&Tiling::values(SUM_BYTES * out.len()), out, |first, out, _| {
                let part = first..first + out.len();
                self.sum.signed(self.isa, &a[part.clone()], &b[part], out)
            })
        }
    }

    fn name(&self) -> &'static str {
        "quantized sum"
    }
}

impl Quantized for QuantizedSum {
    #[inline]
    fn combine(&self, a: i32, b: i32) -> i32 {
        let scaled = |(zero_point, multiplier): (i32, Multiplier), stored: i32| {
            multiplier.apply((stored - zero_point) << add_quantized::SHIFT)
        };
        let sum = scaled(self.a, a) + scaled(self.b, b);
        self.out.1.apply(sum).saturating_add(self.out.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(ty: OperandType, scale: f32, zero_point: i32) -> TensorInfo {
        TensorInfo { ty, scale, zero_point, channel_scales: None, extension: None }
    }

    proptest::proptest! {
        /// The fast kernel against the rule that the reference applies value by value.
        #[test]
        fn fast_sums_are_the_references(
            scales in (1e-4f32..4.0, 1e-4f32..4.0, 1e-3f32..8.0),
            zeros in (0i32..256, 0i32..256, 0i32..256),
            values in proptest::collection::vec((0u8..=255, 0u8..=255), 0..100),
            activation in 0i32..4,
            negate in proptest::bool::ANY,
        ) {
            let ty = OperandType::TensorQuant8Asymm;
            let a = info(ty, scales.0, zeros.0);
            let b = info(ty, scales.1, zeros.1);
            let out = info(ty, scales.2, zeros.2);
            let rule = if negate { QuantizedSum::difference } else { QuantizedSum::new };
            let rule = rule(&a, &b, &out).unwrap();
            let activation = FusedActivation::from_code(activation).unwrap();
            let (low, high) = activation_range(activation, ty, out.scale, out.zero_point);
            let want: Vec<u8> = values
                .iter()
                .map(|(a, b)| rule.combine((*a).into(), (*b).into()).max(low).min(high) as u8)
                .collect();
            let fast = Sum::new(rule.a, rule.b, rule.out, (low, high)).unwrap();
            let (a, b): (Vec<u8>, Vec<u8>) = values.into_iter().unzip();
            for isa in Isa::each_here() {
                let mut got = vec![0; a.len()];
                fast.unsigned(isa, &a, &b, &mut got).unwrap();
                proptest::prop_assert_eq!(&got, &want, "{:?}", isa);
            }
        }
    }
}
