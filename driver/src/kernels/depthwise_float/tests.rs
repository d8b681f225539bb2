//! Rows against the plain loops.

use super::*;
use crate::kernels::conv::testing::depthwise_shapes;
use crate::kernels::conv::{Operands, Rule, convolve};
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;
use crate::stop::Stop;

pub(crate) fn rows(isa: Isa) {
    let numbers = &mut Numbers::new(1);
    for conv in depthwise_shapes() {
        let input = numbers.small_floats(conv.input.values());
        let weights = numbers.small_floats(conv.filter.values());
        let bias = numbers.small_floats(conv.filter.outputs);
        let (low, high) = (-40.0, 50.0);
        let mut want = vec![0.0; conv.output.values()];
        let operands =
            Operands { conv: &conv, input: &input, filter: &weights, stop: Stop::default() };
        let rule = Rule {
            zero: 0.0,
            step: |sum, x, w| sum + x * w,
            finish: |sum, unit| f32::clamp(sum + bias[unit], low, high),
        };
        convolve(operands, &rule, 0, &mut want).unwrap();
        let filter = FloatFilter { weights: &weights, bias: &bias, low, high };
        let row_len = conv.output.width * conv.output.channels;
        let count = conv.output.batches * conv.output.height;
        // In two parts, as threads would take them.
        let mut got = vec![f32::NAN; want.len()];
        let (first, second) = got.split_at_mut(count / 2 * row_len);
        super::rows(isa, &conv, &input, filter, 0..count / 2, first);
        super::rows(isa, &conv, &input, filter, count / 2..count, second);
        assert_eq!(got, want, "{conv:?}");
    }
}
