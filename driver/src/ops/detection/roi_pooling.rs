//! ROI_POOLING: regions of a feature map, each reduced to a map of one size by maxima.
//!
//! Inputs: the feature map, regions (x1, y1, x2, y2 in pixels of the image), the batch of each,
//! output height and width, pixels of the image per pixel of the map (height, width), layout.
//! Output: one picture per region, of the map's scale and zero point.
//!
//! A region's corners are divided by the ratios and rounded, and both corner pixels belong to it.
//! It is cut into bins that may overlap; a bin without pixels gives 0.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::ROI_POOLING`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "coordinates are checked to lie in the map"
)]

use std::ops::Range;

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TI32, TQ8, TQ8S, TQ16A};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop, WithAttributes,
};
use crate::ops::detection::regions::{RegionAttributes, Regions, Source};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of ROI_POOLING.
pub static DEF: OpDef = OpDef {
    code: OperationType::RoiPooling,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, TI32, I32, I32, F32, F32, BOOL], &[TF32]),
    Form::new(V1_2, &[TF16, TF16, TI32, I32, I32, F16, F16, BOOL], &[TF16]),
    Form::new(V1_2, &[TQ8, TQ16A, TI32, I32, I32, F32, F32, BOOL], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TQ16A, TI32, I32, I32, F32, F32, BOOL], &[TQ8S]),
];

const LAYOUT: usize = 7;

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<RegionAttributes, OpError> {
    RegionAttributes::parse(operands, LAYOUT)
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, RegionAttributes>) -> Result<Inferred, OpError> {
    if let Some((output, _)) = args.outputs.first() {
        expect_same(args.input(0)?.info, output)?;
    }
    Regions::infer(args, attributes)
}

fn execute(run: &mut Run<'_, '_>, attributes: &RegionAttributes) -> Result<(), OpError> {
    let source = Source::of(run)?;
    let regions = source.regions(run, attributes)?;
    let (map, stop) = (source.map, run.stop);
    let out = run.output(0)?;
    match map.info.ty {
        OperandType::TensorFloat32 => {
            pool(&regions, &source, map.f32()?, out.f32_mut()?, 0.0, stop)
        }
        OperandType::TensorFloat16 => {
            pool(&regions, &source, map.f16()?, out.f16_mut()?, f16::ZERO, stop)
        }
        OperandType::TensorQuant8Asymm => {
            let zero = map.info.zero_point as u8;
            pool(&regions, &source, map.u8()?, out.u8_mut()?, zero, stop)
        }
        OperandType::TensorQuant8AsymmSigned => {
            let zero = map.info.zero_point as i8;
            pool(&regions, &source, map.i8()?, out.i8_mut()?, zero, stop)
        }
        got => Err(OpError::Type { want: "a type of ROI_POOLING", got }),
    }
}

/// The pixels of a region along one axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    start: f32,
    /// Map pixels per output pixel.
    step: f32,
    /// Pixels of the map.
    size: usize,
}

impl Axis {
    fn new(start: f32, end: f32, outputs: usize, size: usize) -> Self {
        let (start, end) = (start.round(), end.round());
        Axis { start, step: (end - start + 1.0).max(1.0) / outputs as f32, size }
    }

    /// The pixels that go into an output pixel.
    fn bin(&self, output: usize) -> Range<usize> {
        let start = (self.start + self.step * output as f32).floor() as usize;
        let end = (self.start + self.step * (output + 1) as f32).ceil() as usize;
        start.min(self.size)..end.min(self.size)
    }
}

fn pool<T: Copy + PartialOrd>(
    regions: &Regions,
    source: &Source<'_>,
    map: &[T],
    out: &mut [T],
    empty: T,
    stop: Stop,
) -> Result<(), OpError> {
    let (from, to) = (regions.map_strides(), regions.out_strides());
    for index in 0..regions.count {
        let (batch, [x1, y1, x2, y2]) = regions.region(&source.rois, source.split, index)?;
        let rows = Axis::new(y1, y2, regions.out_height, regions.height);
        let columns = Axis::new(x1, x2, regions.out_width, regions.width);
        for row in 0..regions.out_height {
            stop.check()?;
            for column in 0..regions.out_width {
                let out = &mut out[to.at(index, row, column)..];
                for channel in 0..regions.depth {
                    let pixels =
                        rows.bin(row).flat_map(|y| columns.bin(column).map(move |x| (y, x)));
                    out[channel * to.channel] = pixels
                        .map(|(y, x)| map[from.at(batch, y, x) + channel * from.channel])
                        .reduce(|best, value| if value > best { value } else { best })
                        .unwrap_or(empty);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn inputs(map: Tensor, rois: Tensor, out: [i32; 2], nchw: bool) -> Vec<Tensor> {
        let count = rois.dims[0];
        let float = |value| match map.info.ty {
            OperandType::TensorFloat16 => Tensor::scalar_f16(value),
            _ => Tensor::scalar_f32(value),
        };
        let (height, width) = (float(2.0), float(2.0));
        let split = Tensor::i32(&[count], &vec![0; count as usize]);
        let [rows, columns] = out.map(Tensor::scalar_i32);
        let layout = Tensor::scalar_bool(nchw);
        vec![map, rois, split, rows, columns, height, width, layout]
    }

    #[test]
    fn both_corner_pixels_belong_to_a_region() {
        let map = Tensor::f32(&[1, 3, 3, 1], &[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        // Pixels 1 to 2 of the map along both axes.
        let rois = Tensor::f32(&[1, 4], &[2.0, 2.0, 4.0, 4.0]);
        let output = || Tensor::output(OperandType::TensorFloat32);
        let out = run_one(&DEF, &inputs(map.clone(), rois.clone(), [2, 2], false), output());
        assert_eq!(out.unwrap().values::<f32>(), [4.0, 5.0, 7.0, 8.0]);
        let out = run_one(&DEF, &inputs(map, rois, [1, 1], false), output()).unwrap();
        assert_eq!(out.values::<f32>(), [8.0]);
    }

    #[test]
    fn corners_round_half_away_from_zero_and_bins_overlap() {
        let map = Tensor::f16(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
        // 0.5 becomes 1 and 3 stays: pixels 1, 2, 3 in two bins of 1.5: 1..3 and 2..4.
        let rois = Tensor::f16(&[1, 4], &[1.0, 0.0, 6.0, 0.0]);
        let out = run_one(
            &DEF,
            &inputs(map, rois, [1, 2], true),
            Tensor::output(OperandType::TensorFloat16),
        );
        let out = out.unwrap();
        assert_eq!(&*out.dims, [1, 1, 1, 2]);
        assert_eq!(out.halves(), [3.0, 4.0]);
    }

    #[test]
    fn a_bin_without_pixels_gives_the_zero_point() {
        let map = Tensor::i8(&[1, 1, 2, 1], &[-3, 5], 0.5, -7);
        let sixteenth = |values: &[u16]| {
            Tensor::new(OperandType::TensorQuant16Asymm, &[1, 4], values).quantized(0.125, 0)
        };
        // From 2 to 2 on a map two pixels wide: on its edge, where no pixel is.
        let rois = sixteenth(&[32, 0, 32, 0]);
        let output = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -7);
        let out = run_one(&DEF, &inputs(map.clone(), rois, [1, 1], false), output.clone());
        assert_eq!(out.unwrap().values::<i8>(), [-7]);
        let other_scale = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.25, -7);
        let rois = sixteenth(&[0, 0, 16, 0]);
        assert!(
            run_one(&DEF, &inputs(map.clone(), rois.clone(), [1, 1], false), other_scale).is_err()
        );
        let odd_boxes = rois.quantized(0.5, 0);
        assert!(run_one(&DEF, &inputs(map, odd_boxes, [1, 1], false), output).is_err());
    }
}
