//! ROI_ALIGN: regions of a feature map, each averaged into a map of one size by bilinear samples.
//!
//! Inputs: the feature map, regions (x1, y1, x2, y2 in pixels of the image), the batch of each,
//! output height and width, pixels of the image per pixel of the map (height, width), samples per
//! output pixel along each axis (0: as many as the region has pixels there), layout. Output: one
//! picture per region.
//!
//! A region divided by the ratios is at least one pixel large. Each output pixel is the mean of its
//! samples; past the centre of the last pixel a sample takes that pixel alone. Quantized: weights
//! are rounded to 255ths and the sum is rescaled once, by a factor below 1.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::ROI_ALIGN`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "coordinates are checked to lie in the map; stored values are clamped to their type"
)]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::kernels::quant::Multiplier;
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TI32, TQ8, TQ8S, TQ16A};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop, WithAttributes,
};
use crate::ops::detection::regions::{RegionAttributes, Regions, Source};
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorInfo};
use crate::{OpError, SignatureError};

/// The definition of ROI_ALIGN.
pub static DEF: OpDef = OpDef {
    code: OperationType::RoiAlign,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, TI32, I32, I32, F32, F32, I32, I32, BOOL], &[TF32]),
    Form::new(V1_2, &[TF16, TF16, TI32, I32, I32, F16, F16, I32, I32, BOOL], &[TF16]),
    Form::new(V1_2, &[TQ8, TQ16A, TI32, I32, I32, F32, F32, I32, I32, BOOL], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TQ16A, TI32, I32, I32, F32, F32, I32, I32, BOOL], &[TQ8S]),
];

const LAYOUT: usize = 9;

/// Most samples per output pixel and axis that a model may ask for. Without a limit one number in
/// a small model is years of work; useful counts are below ten.
const MAX_SAMPLES: i32 = 1024;

/// Channels that are summed up side by side.
const LANES: usize = 64;

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    regions: RegionAttributes,
    /// Samples along the vertical and the horizontal axis; 0: as many as there are pixels.
    samples: [usize; 2],
}

impl Attributes {
    /// Of one output pixel. Where the size of a region decides, one along that axis.
    fn fewest_samples(&self) -> usize {
        self.samples.iter().map(|samples| (*samples).max(1)).product()
    }
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let regions = RegionAttributes::parse(operands, LAYOUT)?;
    let samples = |index| -> Result<usize, OpError> {
        let count = operands.i32(index)?;
        if !(0..=MAX_SAMPLES).contains(&count) {
            return Err(OpError::value("number of samples", count));
        }
        Ok(count as usize)
    };
    Ok(Attributes { regions, samples: [samples(7)?, samples(8)?] })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    if let (Ok(attributes), Some((output, _))) = (&attributes, args.outputs.first())
        && quant8(output).is_some()
    {
        let quantized = Quantized { input: args.input(0)?.info, output };
        quantized.check(attributes.fewest_samples())?;
    }
    Regions::infer(args, attributes.map(|attributes| &attributes.regions))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let source = Source::of(run)?;
    let regions = source.regions(run, &attributes.regions)?;
    let align = Align { regions, samples: attributes.samples, stop: run.stop };
    let map = source.map;
    let out = run.output(0)?;
    let quantized = Quantized { input: map.info, output: out.info };
    match map.info.ty {
        OperandType::TensorFloat32 => align.run(&Float, &source, map.f32()?, out.f32_mut()?),
        OperandType::TensorFloat16 => align.run(&Float, &source, map.f16()?, out.f16_mut()?),
        OperandType::TensorQuant8Asymm => align.run(&quantized, &source, map.u8()?, out.u8_mut()?),
        OperandType::TensorQuant8AsymmSigned => {
            align.run(&quantized, &source, map.i8()?, out.i8_mut()?)
        }
        got => Err(OpError::Type { want: "a type of ROI_ALIGN", got }),
    }
}

/// How samples of stored values become one stored value.
trait Average<T> {
    type Weight: Copy;
    type Sum: Copy + Default;
    fn weight(real: f32) -> Self::Weight;
    fn add(&self, sum: &mut Self::Sum, item: T, weight: Self::Weight);
    fn finish(&self, sum: Self::Sum, samples: usize) -> Result<T, OpError>;
}

struct Float;

impl Average<f32> for Float {
    type Weight = f32;
    type Sum = f32;
    fn weight(real: f32) -> f32 {
        real
    }
    fn add(&self, sum: &mut f32, item: f32, weight: f32) {
        *sum += item * weight;
    }
    fn finish(&self, sum: f32, samples: usize) -> Result<f32, OpError> {
        Ok(sum / samples as f32)
    }
}

impl Average<f16> for Float {
    type Weight = f32;
    type Sum = f32;
    fn weight(real: f32) -> f32 {
        real
    }
    fn add(&self, sum: &mut f32, item: f16, weight: f32) {
        *sum += item.to_f32() * weight;
    }
    fn finish(&self, sum: f32, samples: usize) -> Result<f16, OpError> {
        Ok(f16::from_f32(sum / samples as f32))
    }
}

struct Quantized<'a> {
    input: &'a TensorInfo,
    output: &'a TensorInfo,
}

impl Quantized<'_> {
    /// From a weighted sum of stored values to steps of the output.
    fn factor(&self, samples: usize) -> f64 {
        f64::from(self.input.scale) / (255.0 * f64::from(self.output.scale) * samples as f64)
    }

    /// The specification wants the factor below 1. It is largest for the fewest samples.
    fn check(&self, fewest_samples: usize) -> Result<(), OpError> {
        if self.factor(fewest_samples) < 1.0 {
            return Ok(());
        }
        Err(OpError::Range { what: "scale of the output, too small for that of the feature map," })
    }

    fn rescale(&self, sum: i64, samples: usize) -> Result<i32, OpError> {
        let real = self.factor(samples);
        let scaled = match i32::try_from(sum) {
            Ok(sum) => Multiplier::new(real)?.apply(sum),
            // So many samples that the reference would overflow.
            Err(_) => (sum as f64 * real).round() as i32,
        };
        Ok(scaled.saturating_add(self.output.zero_point))
    }
}

macro_rules! quantized_average {
    ($ty:ty) => {
        impl Average<$ty> for Quantized<'_> {
            type Weight = i64;
            type Sum = i64;
            fn weight(real: f32) -> i64 {
                (real * 255.0).round() as i64
            }
            fn add(&self, sum: &mut i64, item: $ty, weight: i64) {
                *sum += (i64::from(item) - i64::from(self.input.zero_point)) * weight;
            }
            fn finish(&self, sum: i64, samples: usize) -> Result<$ty, OpError> {
                let value = self.rescale(sum, samples)?;
                Ok(value.clamp(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty)
            }
        }
    };
}
quantized_average!(u8);
quantized_average!(i8);

/// The samples of one region along one axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    start: f32,
    /// Map pixels per output pixel.
    step: f32,
    /// Samples per output pixel.
    samples: usize,
    /// Pixels of the map.
    size: usize,
}

impl Axis {
    fn new(start: f32, end: f32, outputs: usize, samples: usize, size: usize) -> Self {
        let step = (end - start).max(1.0) / outputs as f32;
        let samples = if samples > 0 { samples } else { step.ceil() as usize };
        Axis { start, step, samples, size }
    }

    /// The pixels before and after a sample, each with its weight.
    fn taps(&self, output: usize, sample: usize) -> [(usize, f32); 2] {
        let bin = self.step / self.samples as f32;
        let at = self.start + self.step * output as f32 + bin / 2.0 + bin * sample as f32;
        let before = at as usize;
        let last = self.size - 1;
        if before >= last {
            return [(last, 1.0), (last, 0.0)];
        }
        let after = at - before as f32;
        [(before, 1.0 - after), (before + 1, after)]
    }
}

struct Align<'a> {
    regions: Regions,
    samples: [usize; 2],
    stop: Stop<'a>,
}

impl Align<'_> {
    fn run<T: Copy, A: Average<T>>(
        &self,
        average: &A,
        source: &Source<'_>,
        map: &[T],
        out: &mut [T],
    ) -> Result<(), OpError> {
        let Regions { height, width, out_height, out_width, .. } = self.regions;
        let strides = self.regions.out_strides();
        for index in 0..self.regions.count {
            let (batch, [x1, y1, x2, y2]) =
                self.regions.region(&source.rois, source.split, index)?;
            let rows = Axis::new(y1, y2, out_height, self.samples[0], height);
            let columns = Axis::new(x1, x2, out_width, self.samples[1], width);
            for row in 0..out_height {
                self.stop.check()?;
                for column in 0..out_width {
                    let out = &mut out[strides.at(index, row, column)..];
                    self.pixel(average, map, out, batch, (rows, row), (columns, column))?;
                }
            }
        }
        Ok(())
    }

    /// All channels of one output pixel, which begin at the start of `out`.
    fn pixel<T: Copy, A: Average<T>>(
        &self,
        average: &A,
        map: &[T],
        out: &mut [T],
        batch: usize,
        (rows, row): (Axis, usize),
        (columns, column): (Axis, usize),
    ) -> Result<(), OpError> {
        let from = self.regions.map_strides();
        let out_channel = self.regions.out_strides().channel;
        for first in (0..self.regions.depth).step_by(LANES) {
            let lanes = LANES.min(self.regions.depth - first);
            let mut sums = [A::Sum::default(); LANES];
            for y in 0..rows.samples {
                for x in 0..columns.samples {
                    for (row, vertical) in rows.taps(row, y) {
                        for (column, horizontal) in columns.taps(column, x) {
                            let weight = A::weight(vertical * horizontal);
                            let map = &map[from.at(batch, row, column) + first * from.channel..];
                            for (sum, item) in
                                sums[..lanes].iter_mut().zip(map.iter().step_by(from.channel))
                            {
                                average.add(sum, *item, weight);
                            }
                        }
                    }
                }
            }
            let samples = rows.samples * columns.samples;
            for (lane, sum) in sums[..lanes].iter().enumerate() {
                out[(first + lane) * out_channel] = average.finish(*sum, samples)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{self, Tensor, run_one};

    fn inputs(map: Tensor, rois: Tensor, out: [i32; 2], samples: i32, nchw: bool) -> Vec<Tensor> {
        let count = rois.dims[0];
        let float = |value| match map.info.ty {
            OperandType::TensorFloat16 => Tensor::scalar_f16(value),
            _ => Tensor::scalar_f32(value),
        };
        let (height, width) = (float(2.0), float(2.0));
        let split = Tensor::i32(&[count], &vec![0; count as usize]);
        let [rows, columns] = out.map(Tensor::scalar_i32);
        let samples = Tensor::scalar_i32(samples);
        let layout = Tensor::scalar_bool(nchw);
        vec![map, rois, split, rows, columns, height, width, samples.clone(), samples, layout]
    }

    /// Rows 0 1 2 / 3 4 5 / 6 7 8: the value at (x, y) is `x + 3y` between the pixels too.
    fn slope() -> Tensor {
        Tensor::f32(&[1, 3, 3, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    }

    #[test]
    fn one_sample_sits_in_the_middle_of_its_pixel() {
        // In pixels of the map: from (0, 0) to (2, 2), so that samples lie at 0.5 and 1.5.
        let rois = Tensor::f32(&[1, 4], &[0.0, 0.0, 4.0, 4.0]);
        let inputs = inputs(slope(), rois, [2, 2], 1, false);
        let out = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(&*out.dims, [1, 2, 2, 1]);
        assert_eq!(out.values::<f32>(), [2.0, 3.0, 5.0, 6.0]);
    }

    #[test]
    fn samples_past_the_last_centre_take_the_last_pixel() {
        // From (2, 2) to (3, 3): the only sample is at 2.5.
        let rois = Tensor::f32(&[1, 4], &[4.0, 4.0, 6.0, 6.0]);
        let inputs = inputs(slope(), rois, [1, 1], 0, false);
        let out = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(out.values::<f32>(), [8.0]);
    }

    #[test]
    fn channels_first_gives_the_same_numbers() {
        let map = Tensor::f16(&[1, 2, 2, 2], &[0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
        let rois = Tensor::f16(&[1, 4], &[0.0, 0.0, 2.0, 2.0]);
        let inputs = inputs(map, rois, [1, 1], 2, true);
        let out = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        // One pixel around the centre (0.5, 0.5): the mean of all four pixels.
        assert_eq!(&*out.dims, [1, 2, 1, 1]);
        assert_eq!(out.halves(), [1.5, 11.5]);
    }

    #[test]
    fn quantized_weights_are_255ths_and_the_sum_is_rescaled() {
        let map = Tensor::u8(&[1, 2, 2, 1], &[10, 20, 30, 40], 0.5, 10);
        let rois = Tensor::new(OperandType::TensorQuant16Asymm, &[1, 4], &[0u16, 0, 16, 16])
            .quantized(0.125, 0);
        let inputs = inputs(map, rois, [1, 1], 1, false);
        let output = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 3);
        let out = run_one(&DEF, &inputs, output).unwrap();
        // Mean of 0, 10, 20, 30 steps of 0.5 with weights 64/255: 15.06, that is 30.1 of 0.25.
        assert_eq!(out.values::<u8>(), [33]);
    }

    #[test]
    fn a_factor_of_one_or_more_is_refused_while_planning() {
        for (scale, samples, fits) in [
            (1.0, 1, true),
            (1.01 / 255.0, 1, true),
            (1.0 / 256.0, 1, false),
            (1.0 / 256.0, 2, true), // four samples of an output pixel share the factor
            (1.0 / 1021.0, 2, false),
            (1.0 / 256.0, 0, false), // a small region has one
            (1.01 / 255.0, 0, true),
        ] {
            let map = Tensor::u8(&[1, 2, 2, 1], &[10, 20, 30, 40], 1.0, 10);
            let rois = Tensor::new(OperandType::TensorQuant16Asymm, &[1, 4], &[0u16, 0, 16, 16])
                .quantized(0.125, 0);
            let inputs = inputs(map, rois, [1, 1], samples, false);
            let out = [Tensor::output(OperandType::TensorQuant8Asymm).quantized(scale, 3)];
            assert_eq!(
                testing::infer(&DEF, &inputs, &out).is_ok(),
                fits,
                "{scale}, {samples} samples"
            );
        }
    }

    #[test]
    fn regions_outside_of_the_map_fail() {
        for roi in [
            [-1.0, 0.0, 2.0, 2.0],
            [0.0, 0.0, 6.5, 2.0],
            [2.0, 0.0, 1.0, 2.0],
            [f32::NAN, 0.0, 1.0, 2.0],
        ] {
            let inputs = inputs(slope(), Tensor::f32(&[1, 4], &roi), [1, 1], 1, false);
            let out = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32));
            assert!(matches!(out, Err(OpError::Range { .. })), "{roi:?}");
        }
        let mut inputs = inputs(slope(), Tensor::f32(&[1, 4], &[0.0; 4]), [1, 1], 1, false);
        inputs[2] = Tensor::i32(&[1], &[1]);
        assert!(run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).is_err());
    }

    #[test]
    fn no_regions_give_no_pictures_and_absurd_parameters_are_refused() {
        let none = || Tensor::f32(&[0, 4], &[]);
        let output = || Tensor::output(OperandType::TensorFloat32);
        let out = run_one(&DEF, &inputs(slope(), none(), [2, 5], 1, false), output()).unwrap();
        assert_eq!(&*out.dims, [0, 2, 5, 1]);
        assert!(run_one(&DEF, &inputs(slope(), none(), [0, 5], 1, false), output()).is_err());
        assert!(run_one(&DEF, &inputs(slope(), none(), [2, 5], -1, false), output()).is_err());
        assert!(
            run_one(&DEF, &inputs(slope(), none(), [2, 5], i32::MAX, false), output()).is_err()
        );
        let empty = Tensor::f32(&[1, 0, 3, 1], &[]);
        assert!(run_one(&DEF, &inputs(empty, none(), [2, 5], 1, false), output()).is_err());
    }
}
