//! Pooling.

use burst_hal::OperationType;

use super::{expect_inputs, fused, padding, positive};
use crate::error::Refusal;
use crate::file::Operator;
use crate::mapper::{Mapper, options};
use crate::schema::PoolOptions;

/// AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.
pub(super) fn map(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let o: PoolOptions<'_> = options(operator)?;
    let mut inputs = vec![m.input(operator, 0, "the input")?];
    for value in [
        padding(o.padding())?,
        positive("stride_w", o.stride_w())?,
        positive("stride_h", o.stride_h())?,
        positive("filter_width", o.filter_w())?,
        positive("filter_height", o.filter_h())?,
        fused(o.activation())?,
    ] {
        inputs.push(m.graph.int(value)?);
    }
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(ty, inputs, output)
}
