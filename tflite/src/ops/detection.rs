//! The detection post-processing of TFLite's object detectors, a custom operator.

use burst_hal::{Dimensions, OperandType, OperationType};

use super::expect_inputs;
use super::flexbuffer::Map;
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::Mapper;
use crate::verdict::Note;

/// What TFLite takes where the file does not say.
const DEFAULT_DETECTIONS_PER_CLASS: i32 = 100;

/// Its options.
struct Parameters {
    scale_y: f32,
    scale_x: f32,
    scale_h: f32,
    scale_w: f32,
    regular: bool,
    max_detections: i32,
    classes_per_detection: i32,
    detections_per_class: i32,
    score_threshold: f32,
    iou_threshold: f32,
    classes: i32,
}

impl Parameters {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let map = Map::root(bytes)?;
        let float = |name, problem| {
            let value = map.number(name).ok_or(Refusal::CustomOptions { problem })?;
            narrow(value).ok_or(Refusal::OptionValue { option: name, value })
        };
        let int = |name, problem| {
            let value = map.number(name).ok_or(Refusal::CustomOptions { problem })?;
            whole(value).ok_or(Refusal::OptionValue { option: name, value })
        };
        Ok(Parameters {
            scale_y: float("y_scale", "y_scale is missing")?,
            scale_x: float("x_scale", "x_scale is missing")?,
            scale_h: float("h_scale", "h_scale is missing")?,
            scale_w: float("w_scale", "w_scale is missing")?,
            regular: map.number("use_regular_nms").is_some_and(|value| value != 0.0),
            max_detections: int("max_detections", "max_detections is missing")?,
            classes_per_detection: int(
                "max_classes_per_detection",
                "max_classes_per_detection is missing",
            )?,
            detections_per_class: map
                .number("detections_per_class")
                .and_then(whole)
                .unwrap_or(DEFAULT_DETECTIONS_PER_CLASS),
            score_threshold: float("nms_score_threshold", "nms_score_threshold is missing")?,
            iou_threshold: float("nms_iou_threshold", "nms_iou_threshold is missing")?,
            classes: int("num_classes", "num_classes is missing")?,
        })
    }

    /// Detections in one row of the result.
    fn row(&self) -> Option<u32> {
        let row = if self.regular {
            self.max_detections
        } else {
            self.max_detections.checked_mul(self.classes_per_detection)?
        };
        u32::try_from(row).ok()
    }
}

/// `TFLite_Detection_PostProcess` as DETECTION_POSTPROCESSING.
///
/// NNAPI's works on floats only and gives classes and counts as integers; conversions stand before
/// and behind it. TFLite keeps a score equal to the threshold and a box whose overlap equals the
/// limit, NNAPI does neither: the next float below, or above, says the same.
pub(super) fn map(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[3])?;
    let &[boxes_out, classes_out, scores_out, count_out] = operator.outputs.as_slice() else {
        return Err(Refusal::Count { what: "outputs", found: operator.outputs.len() });
    };
    let p = Parameters::read(operator.table.custom_options().bytes())?;
    let row = p
        .row()
        .ok_or(Refusal::OptionValue { option: "max_detections", value: p.max_detections.into() })?;

    let boxes = real(m, operator, 0, "the boxes")?;
    let scores = real(m, operator, 1, "the scores")?;
    let anchors = real(m, operator, 2, "the anchors")?;
    background_comes_first(m, scores, p.classes)?;
    let score_threshold = below(p.score_threshold);

    let mut inputs = vec![scores, boxes, anchors];
    for scale in [p.scale_y, p.scale_x, p.scale_h, p.scale_w] {
        inputs.push(m.graph.float(scale)?);
    }
    inputs.push(m.graph.bool(p.regular)?);
    for count in [p.max_detections, p.classes_per_detection, p.detections_per_class] {
        inputs.push(m.graph.int(count)?);
    }
    inputs.push(m.graph.float(score_threshold)?);
    inputs.push(m.graph.float(p.iou_threshold.next_up())?);
    inputs.push(m.graph.bool(false)?);

    let batch = m.graph.operand(scores).dimensions.first().copied().unwrap_or(0);
    let scores_made = float_result(m, scores_out, &[batch, row])?;
    let boxes_made = float_result(m, boxes_out, &[batch, row, 4])?;
    let classes_made = integers(m, &[batch, row])?;
    let count_made = integers(m, &[batch])?;
    let outputs = vec![scores_made, boxes_made, classes_made, count_made];
    m.graph.operation(OperationType::DetectionPostprocessing, inputs, outputs)?;

    for (made, tensor, shape) in
        [(classes_made, classes_out, &[batch, row][..]), (count_made, count_out, &[batch])]
    {
        let result = float_result(m, tensor, shape)?;
        m.graph.operation(OperationType::Cast, vec![made], vec![result])?;
    }
    m.notes.push(Note::Int32AsFloat32);
    Ok(())
}

/// An input as real numbers.
fn real(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    at: usize,
    what: &'static str,
) -> Result<OperandIndex, Refusal> {
    let input = m.input(operator, at, what)?;
    let found = m.graph.operand(input);
    if found.ty == OperandType::TensorFloat32 {
        return Ok(input);
    }
    let shape = found.dimensions.clone();
    let result = m.graph.temporary(OperandType::TensorFloat32, shape, Quant::NONE)?;
    m.graph.operation(OperationType::Dequantize, vec![input], vec![result])?;
    Ok(result)
}

/// NNAPI takes the first class for the background, as detectors have it that name one class fewer
/// than they score.
fn background_comes_first(
    m: &Mapper<'_, '_>,
    scores: OperandIndex,
    classes: i32,
) -> Result<(), Refusal> {
    match m.graph.operand(scores).dimensions.get(2) {
        None | Some(0) => Err(Refusal::UnknownShape { what: "the scores" }),
        Some(&scored) if i64::from(scored) == i64::from(classes) + 1 => Ok(()),
        Some(_) => Err(Refusal::OptionValue { option: "num_classes", value: classes.into() }),
    }
}

/// An output of the operator, with its shape where the file has none.
fn float_result(
    m: &mut Mapper<'_, '_>,
    tensor: usize,
    shape: &[u32],
) -> Result<OperandIndex, Refusal> {
    let result = m.written(tensor, None)?;
    let (found, needed) = (m.graph.operand(result).ty, OperandType::TensorFloat32);
    if found != needed {
        return Err(Refusal::OperandType { what: "an output", found, needed });
    }
    m.graph.learn_shape(result, shape);
    Ok(result)
}

fn integers(m: &mut Mapper<'_, '_>, shape: &[u32]) -> Result<OperandIndex, Refusal> {
    let shape = Dimensions::from_slice(shape);
    m.graph.temporary(OperandType::TensorInt32, shape, Quant::NONE)
}

/// The threshold of which "greater" says what "greater or equal" says of this one. There is none
/// below 0 that NNAPI takes: there a score of exactly 0 is lost, which no detection needs.
fn below(threshold: f32) -> f32 {
    if threshold > 0.0 { threshold.next_down() } else { threshold }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to the nearest float is meant")]
fn narrow(value: f64) -> Option<f32> {
    let narrow = value as f32;
    narrow.is_finite().then_some(narrow)
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(value: f64) -> Option<i32> {
    let fits = value.fract() == 0.0 && (0.0..=f64::from(i32::MAX)).contains(&value);
    fits.then_some(value as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_keep_their_meaning() {
        assert!(0.5 > below(0.5));
        assert!(below(0.5).next_up() >= 0.5);
        assert_eq!(below(0.0), 0.0);
        assert_eq!(whole(90.0), Some(90));
        assert_eq!(whole(-1.0), None);
        assert_eq!(whole(1.5), None);
        assert_eq!(whole(f64::from(i32::MAX) + 1.0), None);
        assert_eq!(narrow(1e300), None);
    }
}
