//! What ADD, SUB, MUL and DIV share: two inputs that broadcast, one output, an activation.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "stored values are clamped to their type before they are narrowed"
)]

use burst_hal::{FusedActivation, OperandType};
use half::f16;

use crate::OpError;
use crate::kernels::quant::{Multiplier, activation, activation_range, activation_range_f32};
use crate::op::Run;
use crate::ops::broadcast::for_each_pair;
use crate::tensor::TensorInfo;

/// How two stored values of a quantized type make one.
pub(super) trait Quantized {
    /// The stored value of the result, before clamping.
    fn combine(&self, a: i32, b: i32) -> i32;
}

/// Runs the operation on whatever type its operands have.
///
/// Input 2 is the activation. `quantized` makes the rule for quantized types from what the inputs
/// and the output mean.
pub(super) fn execute<Q: Quantized>(
    run: &mut Run<'_, '_>,
    float: impl Fn(f32, f32) -> f32,
    int: impl Fn(i32, i32) -> i32,
    quantized: impl Fn(&TensorInfo, &TensorInfo, &TensorInfo) -> Result<Q, OpError>,
) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let activation = activation(run.i32(2)?)?;
    let out = run.output(0)?;
    let dims = out.dims.clone();
    let info = out.info;
    match info.ty {
        OperandType::TensorFloat32 => {
            let (low, high) = activation_range_f32(activation);
            let (x, y, out) = (a.f32()?, b.f32()?, out.f32_mut()?);
            for_each_pair(&dims, a.dims, b.dims, |o, i, j| {
                out[o] = clamp(float(x[i], y[j]), low, high);
            });
        }
        OperandType::TensorFloat16 => {
            let (low, high) = activation_range_f32(activation);
            let (x, y, out) = (a.f16()?, b.f16()?, out.f16_mut()?);
            for_each_pair(&dims, a.dims, b.dims, |o, i, j| {
                out[o] = f16::from_f32(clamp(float(x[i].to_f32(), y[j].to_f32()), low, high));
            });
        }
        OperandType::TensorInt32 => {
            if activation != FusedActivation::None {
                return Err(OpError::value("activation of INT32 tensors", activation.code()));
            }
            let (x, y, out) = (a.i32()?, b.i32()?, out.i32_mut()?);
            for_each_pair(&dims, a.dims, b.dims, |o, i, j| out[o] = int(x[i], y[j]));
        }
        OperandType::TensorQuant8Asymm => {
            let (low, high) = activation_range(activation, info.ty, info.scale, info.zero_point);
            let rule = quantized(a.info, b.info, info)?;
            let (x, y, out) = (a.u8()?, b.u8()?, out.u8_mut()?);
            for_each_pair(&dims, a.dims, b.dims, |o, i, j| {
                out[o] = rule.combine(x[i].into(), y[j].into()).max(low).min(high) as u8;
            });
        }
        OperandType::TensorQuant8AsymmSigned => {
            let (low, high) = activation_range(activation, info.ty, info.scale, info.zero_point);
            let rule = quantized(a.info, b.info, info)?;
            let (x, y, out) = (a.i8()?, b.i8()?, out.i8_mut()?);
            for_each_pair(&dims, a.dims, b.dims, |o, i, j| {
                out[o] = rule.combine(x[i].into(), y[j].into()).max(low).min(high) as i8;
            });
        }
        got => return Err(OpError::Type { want: "a type of arithmetic", got }),
    }
    Ok(())
}

/// `x` held between two bounds; NaN stays NaN.
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

/// Bits that inputs of a sum are shifted up by before they are rescaled, to keep precision.
const SUM_SHIFT: u32 = 20;

/// The rule of quantized sums and differences.
pub(super) struct QuantizedSum {
    a: (i32, Multiplier),
    b: (i32, Multiplier),
    out: (i32, Multiplier),
    sign: i32,
}

impl QuantizedSum {
    /// The rule of `a + sign * b`.
    pub(super) fn new(
        a: &TensorInfo,
        b: &TensorInfo,
        out: &TensorInfo,
        sign: i32,
    ) -> Result<Self, OpError> {
        let (a_scale, b_scale) = (f64::from(a.scale), f64::from(b.scale));
        let twice_max = 2.0 * a_scale.max(b_scale);
        let out_real = twice_max / (f64::from(1u32 << SUM_SHIFT) * f64::from(out.scale));
        Ok(QuantizedSum {
            a: (a.zero_point, Multiplier::new(a_scale / twice_max)?),
            b: (b.zero_point, Multiplier::new(b_scale / twice_max)?),
            out: (out.zero_point, Multiplier::new(out_real)?),
            sign,
        })
    }
}

impl Quantized for QuantizedSum {
    #[inline]
    fn combine(&self, a: i32, b: i32) -> i32 {
        let scaled = |(zero_point, multiplier): (i32, Multiplier), stored: i32| {
            multiplier.apply((stored - zero_point) << SUM_SHIFT)
        };
        let sum = scaled(self.a, a) + self.sign * scaled(self.b, b);
        self.out.1.apply(sum).saturating_add(self.out.0)
    }
}
