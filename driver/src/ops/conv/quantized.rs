//! What quantized convolutions and fully connected layers share: scales, multipliers, and the rules
//! that their operands must keep.

use burst_hal::{ExtraParams, FusedActivation, HalVersion, OperandType};

use crate::kernels::quant::{Multiplier, Rounding, activation_range};
use crate::kernels::requantize::{Channels, shifts_of};
use crate::op::Signature;
use crate::ops::quantization::rules::is_same_scale;
use crate::tensor::{Args, TensorInfo};
use crate::{OpError, SignatureError};

/// Which operation of the family it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A convolution, whatever its groups.
    Convolution,
    /// A transposed convolution.
    TransposedConvolution,
    /// A fully connected layer.
    FullyConnected,
}

/// What the numbers of the operands mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales<'a> {
    pub(super) input: &'a TensorInfo,
    pub(super) filter: &'a TensorInfo,
    pub(super) bias: &'a TensorInfo,
    pub(super) output: &'a TensorInfo,
    /// Whether the reference multiplies the scales of input and filter in double precision. It
    /// does so where it keeps one multiplier per channel, that is, in convolutions with a
    /// per-channel or a signed filter; everywhere else the product is rounded to single precision
    /// first. The last bit of a multiplier can depend on it.
    pub(super) precise_product: bool,
    /// How the reference rounds sums of products: those of a fully connected layer once, those of a convolution twice.
    pub(super) rounding: Rounding,
}

impl<'a> Scales<'a> {
    /// For this operation; `inputs` are images, filter and bias.
    pub(super) fn of(
        task: Task,
        [input, filter, bias]: [&'a TensorInfo; 3],
        output: &'a TensorInfo,
    ) -> Self {
        let precise_product =
            task != Task::FullyConnected && filter.ty != OperandType::TensorQuant8Asymm;
        let rounding = if task == Task::FullyConnected { Rounding::Once } else { Rounding::Twice };
        Scales { input, filter, bias, output, precise_product, rounding }
    }

    /// The same while preparing, where they are not running yet.
    pub(super) fn of_args(task: Task, args: &Args<'a>) -> Result<Self, OpError> {
        let inputs = [args.input(0)?.info, args.input(1)?.info, args.input(2)?.info];
        let (output, _) = args.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
        Ok(Scales::of(task, inputs, output))
    }

    /// Whether there is anything quantized here.
    pub(super) fn are_quantized(&self) -> bool {
        is_quantized(self.input.ty)
    }

    fn filter_scale(&self, channel: usize) -> Result<f32, OpError> {
        match &self.filter.channel_scales {
            None => Ok(self.filter.scale),
            Some((scales, _)) => scales
                .get(channel)
                .copied()
                .ok_or(OpError::Range { what: "number of channel scales" }),
        }
    }

    /// The factor from a sum of products to a stored value of the output.
    fn factor(&self, channel: usize) -> Result<f64, OpError> {
        let (input, filter) = (self.input.scale, self.filter_scale(channel)?);
        let product = if self.precise_product {
            f64::from(input) * f64::from(filter)
        } else {
            f64::from(input * filter)
        };
        Ok(product / f64::from(self.output.scale))
    }

    /// That factor in fixed point.
    pub(super) fn multiplier(&self, channel: usize) -> Result<Multiplier, OpError> {
        Multiplier::new(self.factor(channel)?)
    }

    /// Checks that the scales go together and can be computed with.
    pub(super) fn check(&self, channels: usize) -> Result<(), OpError> {
        if !self.are_quantized() {
            return Ok(());
        }
        if let Some((scales, _)) = &self.filter.channel_scales {
            if scales.len() != channels {
                return Err(OpError::Range { what: "number of channel scales" });
            }
            for channel in 0..channels {
                Multiplier::check(self.factor(channel)?)?;
            }
            // Each channel's is its own product of scales, and the one field has no room for them.
            if self.bias.scale == 0.0 {
                return Ok(());
            }
            return Err(OpError::Range {
                what: "scale of the bias, not 0 though channels have scales of their own,",
            });
        }
        Multiplier::check(self.factor(0)?)?;
        if is_same_scale(self.input.scale * self.filter.scale, self.bias.scale) {
            return Ok(());
        }
        Err(OpError::Range { what: "scale of the bias, not that of input times filter," })
    }

    /// The smallest and the largest stored value that the activation leaves.
    pub(super) fn range(&self, activation: FusedActivation) -> (i32, i32) {
        activation_range(activation, self.output.ty, self.output.scale, self.output.zero_point)
    }

    /// The rules of requantization, with the multipliers written into `space`, which must hold
    /// [`SPACE_PER_CHANNEL`] numbers for each channel.
    pub(super) fn channels<'s>(
        &self,
        activation: FusedActivation,
        bias: &'s [i32],
        space: &'s mut [i32],
    ) -> Result<Channels<'s>, OpError> {
        let (multipliers, shifts) = space.split_at_mut(bias.len());
        let (left_shifts, right_shifts) = shifts.split_at_mut(bias.len());
        for channel in 0..bias.len() {
            let factor = self.multiplier(channel)?;
            multipliers[channel] = factor.multiplier;
            (left_shifts[channel], right_shifts[channel]) = shifts_of(factor);
        }
        let (low, high) = self.range(activation);
        let zero_point = self.output.zero_point;
        Ok(Channels {
            bias,
            multipliers,
            left_shifts,
            right_shifts,
            low: low - zero_point,
            high: high - zero_point,
            zero_point,
            rounding: self.rounding,
        })
    }
}

/// Numbers of working memory that [`Scales::channels`] needs for each channel.
pub(super) const SPACE_PER_CHANNEL: usize = 3;

/// Whether tensors of this type hold quantized values of 8 bits.
pub(super) fn is_quantized(ty: OperandType) -> bool {
    matches!(ty, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned)
}

/// Checks what can be said of a filter from its declaration: the dimension that channel scales run
/// along, and, before HAL 1.2, its scale.
///
/// Before 1.2 the scale of the output had to be larger than that of input times filter. The
/// original compares with the input's scale instead of the output's, so that models it accepted
/// need no more than a filter scale below 1; we accept the same ones.
pub(super) fn check_filter(
    signature: &Signature<'_>,
    channel_dim: u32,
) -> Result<(), SignatureError> {
    let Some(filter) = signature.input(1) else { return Ok(()) };
    if let ExtraParams::ChannelQuant { channel_dim: actual, .. } = &filter.extra_params {
        signature.rule(
            *actual == channel_dim,
            "channel scales of the filter run along the wrong dimension",
        )?;
    }
    let needs_small_scale =
        signature.version < HalVersion::V1_2 && filter.ty == OperandType::TensorQuant8Asymm;
    signature.rule(
        !needs_small_scale || filter.scale < 1.0,
        "before HAL 1.2 the scale of the filter must be below 1",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn info(ty: OperandType, scale: f32) -> TensorInfo {
        TensorInfo { ty, scale, zero_point: 0, channel_scales: None, extension: None }
    }

    #[test]
    fn the_product_of_scales_is_rounded_where_the_reference_rounds_it() {
        // 16777217 = 2^24 + 1 has no single-precision form; (2^12 + 1)^2 = 2^24 + 2^13 + 1 neither.
        let odd = 4097.0;
        let input = info(OperandType::TensorQuant8Asymm, odd);
        let filter = info(OperandType::TensorQuant8Asymm, odd);
        let bias = info(OperandType::TensorInt32, odd * odd);
        let output = info(OperandType::TensorQuant8Asymm, 16_777_216.0);
        let scales = Scales::of(Task::Convolution, [&input, &filter, &bias], &output);
        // Rounded: (2^24 + 2^13) / 2^24; exact: one 2^24th more, 2^6 in units of 2^-30.
        assert_eq!(scales.multiplier(0).unwrap().multiplier, (1 << 30) + (1 << 19));
        let filter = TensorInfo {
            channel_scales: Some((Arc::from([odd]), 0)),
            ..info(OperandType::TensorQuant8SymmPerChannel, 0.0)
        };
        let scales = Scales::of(Task::Convolution, [&input, &filter, &bias], &output);
        assert_eq!(scales.multiplier(0).unwrap().multiplier, (1 << 30) + (1 << 19) + (1 << 6));
        assert!(scales.multiplier(1).is_err());
    }

    #[test]
    fn beside_scales_of_channels_the_bias_has_none() {
        let input = info(OperandType::TensorQuant8Asymm, 0.5);
        let filter = TensorInfo {
            channel_scales: Some((Arc::from([0.25, 0.5]), 0)),
            ..info(OperandType::TensorQuant8SymmPerChannel, 0.0)
        };
        let output = info(OperandType::TensorQuant8Asymm, 1.0);
        for (bias, fits) in [(0.0, true), (0.125, false), (0.25, false), (1e-30, false)] {
            let bias = info(OperandType::TensorInt32, bias);
            let scales = Scales::of(Task::Convolution, [&input, &filter, &bias], &output);
            assert_eq!(scales.check(2).is_ok(), fits, "{}", bias.scale);
        }
    }

    #[test]
    fn the_bias_must_have_the_scale_of_the_products() {
        let input = info(OperandType::TensorQuant8Asymm, 0.5);
        let filter = info(OperandType::TensorQuant8Asymm, 0.25);
        let output = info(OperandType::TensorQuant8Asymm, 1.0);
        for (bias, fits) in [(0.125, true), (0.125_000_01, true), (0.1251, false), (0.0, false)] {
            let bias = info(OperandType::TensorInt32, bias);
            let scales = Scales::of(Task::Convolution, [&input, &filter, &bias], &output);
            assert_eq!(scales.check(1).is_ok(), fits, "{}", bias.scale);
        }
    }
}
