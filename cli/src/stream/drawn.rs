//! A frame with what the model made of it drawn in.

use burst_tasks::{BoxDecoder, Class, Decoder, SegmentDecoder};

use super::feed::Placed;
use crate::draw::{Canvas, Rect};

/// Classes with a smaller part of the picture are not named in it.
const LEAST_NAMED: f32 = 0.005;

/// The frame with what was read last drawn in; of super-resolution the larger picture.
pub(super) fn picture(decoder: &Decoder, placed: &Placed<'_>) -> Canvas {
    let frame = &placed.frame;
    let mut canvas = match decoder {
        Decoder::Upscaled(upscaled) => {
            let (width, height) = upscaled.size();
            return Canvas::new(width, height, upscaled.rgb().to_vec());
        }
        _ => Canvas::new(frame.width, frame.height, frame.rgb.to_vec()),
    };
    match decoder {
        Decoder::Boxes(boxes) => draw_boxes(boxes, placed, &mut canvas),
        Decoder::Segments(segments) => draw_segments(segments, placed, &mut canvas),
        _ => {
            let named =
                |class: Class| (class.index, format!("{} {:.2}", class.name(), class.score));
            let best: Vec<_> = decoder.best_class().map(named).into_iter().collect();
            canvas.legend(&best);
        }
    }
    canvas
}

fn draw_boxes(boxes: &BoxDecoder, placed: &Placed<'_>, canvas: &mut Canvas) {
    let (width, height) = (placed.frame.width, placed.frame.height);
    let boxes: Vec<_> = boxes
        .detections(Some(&placed.placement))
        .iter()
        .map(|found| {
            let rect = Rect::of_parts(found.edges, width, height);
            (rect, found.index, format!("{} {:.2}", found.name(), found.score))
        })
        .collect();
    canvas.labelled_boxes(&boxes);
}

/// Tints the frame by class, all but class 0, which is the background.
fn draw_segments(segments: &SegmentDecoder, placed: &Placed<'_>, canvas: &mut Canvas) {
    for y in 0..placed.frame.height {
        for x in 0..placed.frame.width {
            if let Some(class @ 1..) = segments.class_at(&placed.placement, x, y) {
                canvas.tint(x, y, class.into());
            }
        }
    }
    let named: Vec<(usize, String)> = segments
        .shares()
        .iter()
        .filter(|share| share.index > 0 && share.share >= LEAST_NAMED)
        .map(|share| (share.index, format!("{} {:.1} %", share.name(), share.share * 100.0)))
        .collect();
    canvas.legend(&named);
}
