//! Resizing of images.

use burst_hal::OperationType;

use super::{expect_inputs, positive};
use crate::error::Refusal;
use crate::file::Operator;
use crate::mapper::{Mapper, options};
use crate::schema::{ResizeBilinearOptions, ResizeNearestOptions};

/// RESIZE_BILINEAR.
pub(super) fn bilinear(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: ResizeBilinearOptions<'_> = options(operator)?;
    let ty = OperationType::ResizeBilinear;
    resize(m, operator, ty, o.align_corners(), o.half_pixel_centers())
}

/// RESIZE_NEAREST_NEIGHBOR, whose layout operand is not optional.
pub(super) fn nearest(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: ResizeNearestOptions<'_> = options(operator)?;
    let ty = OperationType::ResizeNearestNeighbor;
    resize(m, operator, ty, o.align_corners(), o.half_pixel_centers())
}

fn resize(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
    align_corners: bool,
    half_pixel_centers: bool,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    let size = m.ints(operator, 1, "the new size")?;
    let &[height, width] = size.as_slice() else {
        return Err(Refusal::Shape { what: "the new size" });
    };
    let width = m.graph.int(positive("width", width)?)?;
    let height = m.graph.int(positive("height", height)?)?;
    let mut inputs = vec![input, width, height];
    let placed = align_corners || half_pixel_centers;
    // Without these flags the operation is in HAL 1.0, with them in 1.3.
    if placed || ty == OperationType::ResizeNearestNeighbor {
        inputs.push(m.graph.bool(false)?);
    }
    if placed {
        inputs.push(m.graph.bool(align_corners)?);
        inputs.push(m.graph.bool(half_pixel_centers)?);
    }
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(ty, inputs, output)
}
