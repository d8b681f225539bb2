//! HEATMAP_MAX_KEYPOINT: where in its box each keypoint lies, out of one heat map per keypoint.
//!
//! Inputs: heat maps `[boxes, size, size, keypoints]` (or channels first), boxes `[boxes, 4]`,
//! layout. Outputs: scores `[boxes, keypoints]`, positions `[boxes, keypoints, 2]` (x, y).
//!
//! The maximum is refined between the pixels by the top of a parabola through its 3 x 3
//! neighbourhood: one Newton step, at most 1.5 pixels long. Where the curvature has no clear top the
//! maximum itself is the answer. Quantized scores may have another scale than the heat maps.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::HEATMAP_MAX_KEYPOINT`.

#![allow(clippy::cast_precision_loss, reason = "pixels of a heat map, computed with in f32")]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperandType, OperationType};

use crate::op::types::{BOOL, TF16, TF32, TQ8, TQ8S, TQ16A};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Layout;
use crate::ops::detection::boxes::expect_ordered;
use crate::ops::detection::reals::{Reals, RealsMut, expect, expect_eighths};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of HEATMAP_MAX_KEYPOINT.
pub static DEF: OpDef = OpDef {
    code: OperationType::HeatmapMaxKeypoint,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, BOOL], &[TF32, TF32]),
    Form::new(V1_2, &[TF16, TF16, BOOL], &[TF16, TF16]),
    Form::new(V1_2, &[TQ8, TQ16A, BOOL], &[TQ8, TQ16A]),
    Form::new(V1_3, &[TQ8S, TQ16A, BOOL], &[TQ8S, TQ16A]),
];

/// Longest step away from the maximum, in pixels along one axis.
const LONGEST_STEP: f32 = 1.5;

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<Layout, OpError> {
    Layout::required(operands, 2)
}

fn infer(args: &Args<'_>, layout: Parsed<'_, Layout>) -> Result<Inferred, OpError> {
    expect_eighths(args.input(1)?.info)?;
    if let [_, (keypoints, _)] = args.outputs {
        expect_eighths(keypoints)?;
    }
    let (maps, boxes) = (args.dims(0)?, args.dims(1)?);
    let maps = Maps::new(*layout?, maps, boxes)?;
    let [boxes, keypoints] = maps.dims;
    Ok(Inferred::many([
        Dimensions::from_slice(&[boxes, keypoints]),
        Dimensions::from_slice(&[boxes, keypoints, 2]),
    ]))
}

/// The sizes of the heat maps, and how they are stored.
#[derive(Debug, Clone, Copy)]
struct Maps {
    /// Boxes and keypoints.
    dims: [u32; 2],
    /// Pixels along each side.
    size: usize,
    layout: Layout,
}

impl Maps {
    fn new(layout: Layout, maps: &[u32], boxes: &[u32]) -> Result<Self, OpError> {
        let sizes = <[u32; 4]>::try_from(maps)
            .map_err(|_| OpError::shape("heat maps have 4 dimensions", maps, &[0; 4]))?;
        let [count, height, width, keypoints] = layout.sizes(sizes);
        expect(height == width && height >= 2, "heat maps are squares of 2 x 2 or more", maps)?;
        if *boxes != [count, 4] {
            return Err(OpError::shape("boxes against heat maps", boxes, maps));
        }
        Ok(Maps { dims: [count, keypoints], size: height as usize, layout })
    }

    fn boxes(&self) -> usize {
        self.dims[0] as usize
    }

    fn keypoints(&self) -> usize {
        self.dims[1] as usize
    }

    fn stored(&self, of_box: usize, keypoint: usize, [x, y]: [usize; 2]) -> usize {
        let (keypoints, size) = (self.keypoints(), self.size);
        match self.layout {
            Layout::Nhwc => ((of_box * size + y) * size + x) * keypoints + keypoint,
            Layout::Nchw => ((of_box * keypoints + keypoint) * size + y) * size + x,
        }
    }

    /// The pixel `step - 1` away from `at`, mirrored at the borders.
    fn neighbour(&self, at: usize, step: usize) -> usize {
        match at + step {
            0 => 1,
            beyond if beyond > self.size => self.size - 2,
            beyond => beyond - 1,
        }
    }
}

fn execute(run: &mut Run<'_, '_>, layout: &Layout) -> Result<(), OpError> {
    let (heat, boxes) = (run.input(0)?, run.input(1)?);
    let maps = Maps::new(*layout, heat.dims, boxes.dims)?;
    // Halves are too coarse to tell a smaller determinant from none.
    let tolerance = if heat.info.ty == OperandType::TensorFloat16 { 1e-3 } else { 1e-5 };
    let (heat, boxes) = (Reals::of(&heat)?, Reals::of(&boxes)?);
    let stop = run.stop;
    let got = run.outputs.len();
    let [scores, keypoints] = &mut *run.outputs else {
        return Err(OpError::Arity { want: 2, got });
    };
    let (mut scores, mut keypoints) = (RealsMut::of(scores)?, RealsMut::of(keypoints)?);
    let size = maps.size as f32;
    for of_box in 0..maps.boxes() {
        let corners = boxes.quad(of_box);
        expect_ordered(corners)?;
        let [x1, y1, x2, y2] = corners;
        for keypoint in 0..maps.keypoints() {
            stop.check()?;
            let heat = |at| heat.get(maps.stored(of_box, keypoint, at));
            let [x, y] = maximum(maps.size, heat);
            let grid = std::array::from_fn(|dy| {
                std::array::from_fn(|dx| heat([maps.neighbour(x, dx), maps.neighbour(y, dy)]))
            });
            let top = Top::of(&grid, tolerance);
            let at = of_box * maps.keypoints() + keypoint;
            scores.set(at, top.score);
            let across = (x as f32 + top.step[0] + 0.5) / size;
            let down = (y as f32 + top.step[1] + 0.5) / size;
            keypoints.set(at * 2, across * (x2 - x1) + x1);
            keypoints.set(at * 2 + 1, down * (y2 - y1) + y1);
        }
    }
    Ok(())
}

/// Where the highest value is, the first one row by row.
fn maximum(size: usize, heat: impl Fn([usize; 2]) -> f32) -> [usize; 2] {
    let mut best = ([0, 0], heat([0, 0]));
    for y in 0..size {
        for x in 0..size {
            let value = heat([x, y]);
            if value > best.1 {
                best = ([x, y], value);
            }
        }
    }
    best.0
}

/// The top of the surface around a maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Top {
    /// Its distance from the middle, x and y.
    step: [f32; 2],
    /// Its height.
    score: f32,
}

impl Top {
    /// `grid` is rows of the 3 x 3 neighbourhood.
    fn of(grid: &[[f32; 3]; 3], tolerance: f32) -> Self {
        let middle = grid[1][1];
        // Falling slope along x and y.
        let slope = [-(grid[1][2] - grid[1][0]) / 2.0, -(grid[2][1] - grid[0][1]) / 2.0];
        let xx = grid[1][0] - 2.0 * middle + grid[1][2];
        let yy = grid[0][1] - 2.0 * middle + grid[2][1];
        let xy = (grid[2][2] - grid[2][0] - grid[0][2] + grid[0][0]) / 4.0;
        let determinant = xx * yy - xy * xy;
        if determinant.abs() < tolerance + tolerance * (xx * yy) {
            return Top { step: [0.0; 2], score: middle };
        }
        let mut step = [
            (yy * slope[0] - xy * slope[1]) / determinant,
            (xx * slope[1] - xy * slope[0]) / determinant,
        ];
        let longest = step[0].abs().max(step[1].abs());
        if longest > LONGEST_STEP {
            step = step.map(|length| length * (LONGEST_STEP / longest));
        }
        let [x, y] = step;
        let curve = (xx * x + xy * y) * x + (xy * x + yy * y) * y;
        Top { step, score: middle - slope[0] * x - slope[1] * y + curve / 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run};

    #[test]
    fn the_top_of_a_parabola_is_found_exactly() {
        // 10 - (x - 0.25)^2 - 2 (y + 0.5)^2 at x, y = -1, 0, 1.
        let value = |x: f32, y: f32| 10.0 - (x - 0.25).powi(2) - 2.0 * (y + 0.5).powi(2);
        let at = [-1.0, 0.0, 1.0];
        let grid = at.map(|y| at.map(|x| value(x, y)));
        let top = Top::of(&grid, 1e-5);
        assert!((top.step[0] - 0.25).abs() < 1e-6 && (top.step[1] + 0.5).abs() < 1e-6, "{top:?}");
        assert!((top.score - 10.0).abs() < 1e-5, "{top:?}");
    }

    #[test]
    fn a_flat_neighbourhood_is_not_refined_and_steps_are_short() {
        assert_eq!(Top::of(&[[3.0; 3]; 3], 1e-5), Top { step: [0.0; 2], score: 3.0 });
        // Curvature -0.1 along both axes, slope 1 along x: the top would be 10 pixels away.
        let grid = [[0.0, 0.95, 1.9], [0.05, 1.0, 1.95], [0.0, 0.95, 1.9]];
        let grid = grid.map(|row: [f32; 3]| [row[0] - 0.05, row[1], row[2] - 0.05]);
        let top = Top::of(&grid, 1e-5);
        assert!((top.step[0] - LONGEST_STEP).abs() < 1e-4, "{top:?}");
    }

    fn maps(values: &[f32]) -> Vec<Tensor> {
        vec![
            Tensor::f32(&[1, 3, 3, 1], values),
            Tensor::f32(&[1, 4], &[10.0, 20.0, 16.0, 32.0]),
            Tensor::scalar_bool(false),
        ]
    }

    fn floats() -> Vec<Tensor> {
        vec![Tensor::output(OperandType::TensorFloat32), Tensor::output(OperandType::TensorFloat32)]
    }

    #[test]
    fn a_keypoint_lies_in_the_middle_of_its_pixel() {
        let inputs = maps(&[0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
        let out = run(&DEF, &inputs, &floats()).unwrap();
        assert_eq!(out[0].values::<f32>(), [4.0]);
        assert_eq!(out[1].values::<f32>(), [13.0, 26.0]);
        assert_eq!((&*out[0].dims, &*out[1].dims), (&[1, 1][..], &[1, 1, 2][..]));
    }

    #[test]
    fn borders_are_mirrored() {
        // In the corner the neighbours before are those after: no slope, so no step.
        let inputs = maps(&[4.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let out = run(&DEF, &inputs, &floats()).unwrap();
        assert_eq!(out[0].values::<f32>(), [4.0]);
        assert_eq!(out[1].values::<f32>(), [11.0, 22.0]);
        let maps = Maps { dims: [1, 1], size: 3, layout: Layout::Nhwc };
        let neighbours = |at| [0, 1, 2].map(|step| maps.neighbour(at, step));
        assert_eq!(neighbours(0), [1, 0, 1]);
        assert_eq!(neighbours(2), [1, 2, 1]);
    }

    #[test]
    fn quantized_maps_channels_first() {
        let map = [0i8, 0, 0, 0, 0, 8, 0, 0, 0];
        let eighths = |t: Tensor| t.quantized(0.125, 0);
        let inputs = [
            Tensor::i8(&[1, 1, 3, 3], &map, 0.5, 0),
            eighths(Tensor::new(OperandType::TensorQuant16Asymm, &[1, 4], &[0u16, 0, 48, 48])),
            Tensor::scalar_bool(true),
        ];
        let outputs = [
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.25, -3),
            eighths(Tensor::output(OperandType::TensorQuant16Asymm)),
        ];
        let out = run(&DEF, &inputs, &outputs).unwrap();
        // 4 in steps of 0.25 from -3.
        assert_eq!(out[0].values::<i8>(), [13]);
        // Pixel (2, 1) of 3 x 3 in a box of 6 x 6: (5, 3), in eighths.
        assert_eq!(out[1].values::<u16>(), [40, 24]);
    }

    #[test]
    fn maps_that_are_no_squares_and_boxes_in_the_wrong_order_fail() {
        let mut inputs = maps(&[0.0; 9]);
        inputs[0] = Tensor::f32(&[1, 3, 2, 1], &[0.0; 6]);
        assert!(run(&DEF, &inputs, &floats()).is_err());
        inputs[0] = Tensor::f32(&[1, 1, 1, 1], &[0.0]);
        assert!(run(&DEF, &inputs, &floats()).is_err());
        inputs = maps(&[0.0; 9]);
        inputs[1] = Tensor::f32(&[1, 4], &[0.0, 5.0, 1.0, 4.0]);
        assert!(run(&DEF, &inputs, &floats()).is_err());
    }
}
