//! Rows, and pairs of taps, against the plain loops and the scalar rule.

use std::ops::Range;

use super::*;
use crate::budget::Budget;
use crate::kernels::conv::testing::depthwise_shapes;
use crate::kernels::conv::{Axis, Conv, Filter, Images, Operands, Rule, convolve};
use crate::kernels::quant::Multiplier;
use crate::kernels::requantize::Requantize;
use crate::kernels::simd::{Isa, has_avx2, has_vnni};
use crate::kernels::testing::Numbers;
use crate::stop::Stop;

/// A convolution of bytes with weights less their zero point, and what it makes.
struct Case {
    conv: Conv,
    input: Vec<u8>,
    weights: Vec<i16>,
    rules: Requantize,
    is_signed: bool,
    /// The stored input value of real 0.
    zero: i32,
    want: Vec<u8>,
}

fn value(byte: u8, is_signed: bool) -> i32 {
    if is_signed { byte.cast_signed().into() } else { byte.into() }
}

fn cases() -> impl Iterator<Item = Case> {
    cases_of(depthwise_shapes(), 130)
}

/// Convolutions of these shapes by filters with this zero point.
fn cases_of(shapes: impl Iterator<Item = Conv>, weight_zero: i16) -> impl Iterator<Item = Case> {
    let mut numbers = Numbers::new(1);
    let kinds = [(false, 0), (false, 117), (true, -20), (true, -128)];
    shapes.flat_map(move |conv| kinds.map(|kind| (conv, kind))).map(
        move |(conv, (is_signed, low))| {
            let input = numbers.bytes(conv.input.values());
            let weights: Vec<i16> = numbers
                .bytes(conv.filter.values())
                .iter()
                .map(|w| i16::from(*w) - weight_zero)
                .collect();
            let bias: Vec<i32> =
                (0..).take(conv.filter.outputs).map(|unit| unit * 91 - 900).collect();
            let factor =
                |unit: usize| Multiplier::new(1e-3 / f64::from(u16::try_from(unit + 1).unwrap()));
            let (zero, zero_point) = (if is_signed { -11 } else { 100 }, low);
            let range = (low, if is_signed { 127 } else { 255 });
            let rules = Requantize::new(bias.clone(), factor, zero_point, range).unwrap();
            let mut want = vec![0; conv.output.values()];
            let step =
                |sum, byte, weight| sum + (value(byte, is_signed) - zero) * i32::from(weight);
            let finish = |sum: i32, unit: usize| {
                let scaled = factor(unit).unwrap().apply(sum + bias[unit]) + zero_point;
                scaled.clamp(range.0, range.1).to_le_bytes()[0]
            };
            let operands =
                Operands { conv: &conv, input: &input, filter: &weights, stop: Stop::default() };
            convolve(operands, &Rule { zero: 0, step, finish }, 0, &mut want).unwrap();
            Case { conv, input, weights, rules, is_signed, zero, want }
        },
    )
}

pub(crate) fn rows(isa: Isa) {
    for Case { conv, input, weights, rules, is_signed, zero, want } in cases() {
        let (flip, zero) = if is_signed { (0x80, zero + 128) } else { (0, zero) };
        let filter = ByteFilter { weights: &weights, flip, zero };
        let channels = conv.output.channels;
        let all = 0..conv.output.batches * conv.output.height;
        let mut got = vec![0xA5; want.len()];
        let sums = &mut vec![7; channels];
        super::rows(isa, &conv, &input, filter, rules.channels(0..channels), all, sums, &mut got);
        assert_eq!(got, want, "{conv:?}");
    }
}

pub(crate) fn pairs(isa: Isa) {
    for Case { conv, input, weights, rules, is_signed, zero, want } in cases() {
        let is_dense = conv.horizontal.stride == 1;
        let given = DepthwiseInput { zero, is_signed, is_dense, is_three_by_three: false };
        let pairs =
            DepthwisePairs::new(isa, &weights, &rules, given, &Budget::default()).unwrap().unwrap();
        assert_eq!((pairs.channels(), pairs.weights()), (conv.output.channels, weights.len()));
        let all = 0..conv.output.batches * conv.output.height;
        let mut got = vec![0xA5; want.len()];
        pairs.run(isa, &conv, &input, all, &mut got).unwrap();
        assert_eq!(got, want, "{conv:?}");
    }
}

/// Shapes of filters of 3 by 3 over blocks of channels that are full and that are not, with edges on each side, and
/// with strides that leave two columns, one and none of a pixel for the next.
fn columns_shapes() -> impl Iterator<Item = Conv> {
    let windows = [(1, 1, 1), (1, 0, 1), (2, 1, 1), (2, 0, 1), (3, 1, 1), (5, 2, 1), (1, 4, 2)];
    windows.into_iter().flat_map(|(stride, pad, down)| {
        [45, 64, 96, 128, 144].map(|channels| {
            let (height, width) = (7, 9);
            let vertical = Axis { stride, dilation: down, pad };
            let horizontal = Axis { stride, dilation: 1, pad };
            let out = |size: usize, span| (size + 2 * pad - span) / stride + 1;
            let (out_height, out_width) = (out(height, 2 * down + 1), out(width, 3));
            Conv {
                input: Images::nhwc([2, height, width, channels]),
                filter: Filter::depthwise([3, 3, channels]),
                output: Images::nhwc([2, out_height, out_width, channels]),
                vertical,
                horizontal,
                groups: channels,
            }
        })
    })
}

pub(crate) fn columns(isa: Isa) {
    for Case { conv, input, weights, rules, is_signed, zero, want } in
        cases_of(columns_shapes(), 128)
    {
        let is_dense = conv.horizontal.stride == 1;
        let given = DepthwiseInput { zero, is_signed, is_dense, is_three_by_three: true };
        let filter =
            DepthwisePairs::new(isa, &weights, &rules, given, &Budget::default()).unwrap().unwrap();
        assert_eq!(filter.name(), "depthwise 8 bit, tap columns");
        assert_eq!((filter.channels(), filter.weights()), (conv.output.channels, weights.len()));
        // The second image by itself, too.
        let (all, line) =
            (conv.output.batches * conv.output.height, conv.output.width * conv.output.channels);
        for rows in [0..all, all / 2..all] {
            let want = &want[rows.start * line..];
            let mut got = vec![0xA5; want.len()];
            filter.run(isa, &conv, &input, rows, &mut got).unwrap();
            assert_eq!(got, want, "{conv:?}");
        }
        let other = Conv { horizontal: Axis { dilation: 2, ..conv.horizontal }, ..conv };
        assert!(filter.run(isa, &other, &input, 0..0, &mut []).is_err());
        // Some channels of all pixels by themselves.
        assert!(filter.has_parts());
        let channels = conv.output.channels;
        let picked = |bytes: &[u8], part: &Range<usize>| -> Vec<u8> {
            bytes.chunks_exact(channels).flat_map(|pixel| &pixel[part.clone()]).copied().collect()
        };
        for part in [0..32, 32..channels, 0..channels] {
            let narrow = conv.with_channels(part.len());
            let (input, want) = (picked(&input, &part), picked(&want, &part));
            let mut got = vec![0xA5; want.len()];
            filter.run_part(isa, &narrow, &input, part.start, &mut got).unwrap();
            assert_eq!(got, want, "{part:?} of {conv:?}");
        }
        let end = channels.next_multiple_of(32);
        for (first, len) in [(0, 0), (16, 16), (0, 40), (end, 32), (32, channels)] {
            let narrow = conv.with_channels(len);
            assert!(filter.run_part(isa, &narrow, &input, first, &mut []).is_err());
        }
    }
}

#[test]
fn columns_are_not_packed_where_they_do_not_fit() {
    let case = cases_of(columns_shapes(), 128).next().unwrap();
    let name = |weights: &[i16], channels: usize| {
        let input =
            DepthwiseInput { zero: 3, is_signed: false, is_dense: true, is_three_by_three: true };
        let factor = |_| Multiplier::new(1e-3);
        let rules = Requantize::new(vec![0; channels], factor, 0, (0, 255)).unwrap();
        let filter = DepthwisePairs::new(Isa::detect(), weights, &rules, input, &Budget::default());
        filter.unwrap().map(|filter| filter.name())
    };
    let pairs = Some("depthwise 8 bit, tap pairs");
    let here = if has_vnni(Isa::detect()) { Some("depthwise 8 bit, tap columns") } else { pairs };
    let here = here.filter(|_| has_avx2(Isa::detect()));
    let channels = case.conv.output.channels;
    assert_eq!(name(&case.weights, channels), here);
    let pairs = pairs.filter(|_| here.is_some());
    let mut wide = case.weights;
    wide[7] = 128;
    assert_eq!(name(&wide, channels), pairs, "a weight of 9 bits");
    assert_eq!(name(&wide[..9 * 44], 44), pairs, "blocks that are filled too little");
    assert_eq!(name(&[1; 8 * 64], 64), pairs, "a tap too little");
}

#[test]
fn pairs_are_not_packed_for_a_cpu_without_their_kernel() {
    let case = cases().next().unwrap();
    let packed = |isa| {
        let input = DepthwiseInput {
            zero: case.zero,
            is_signed: case.is_signed,
            is_dense: true,
            is_three_by_three: false,
        };
        DepthwisePairs::new(isa, &case.weights, &case.rules, input, &Budget::default()).unwrap()
    };
    assert!(packed(Isa::PORTABLE).is_none());
    if let Some(pairs) = packed(Isa::detect()) {
        let out = &mut vec![0; case.want.len()];
        assert!(pairs.run(Isa::PORTABLE, &case.conv, &case.input, 0..1, out).is_err());
    }
}
