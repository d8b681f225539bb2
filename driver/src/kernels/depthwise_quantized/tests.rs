//! Rows, and pairs of taps, against the plain loops and the scalar rule.

use super::*;
use crate::budget::Budget;
use crate::kernels::conv::testing::depthwise_shapes;
use crate::kernels::conv::{Conv, Operands, Rule, convolve};
use crate::kernels::quant::Multiplier;
use crate::kernels::requantize::Requantize;
use crate::kernels::simd::Isa;
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
    let mut numbers = Numbers::new(1);
    let kinds = [(false, 0), (false, 117), (true, -20), (true, -128)];
    depthwise_shapes().flat_map(move |conv| kinds.map(|kind| (conv, kind))).map(
        move |(conv, (is_signed, low))| {
            let input = numbers.bytes(conv.input.values());
            let weights: Vec<i16> =
                numbers.bytes(conv.filter.values()).iter().map(|w| i16::from(*w) - 130).collect();
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
        let given = DepthwiseInput { zero, is_signed, is_dense };
        let pairs =
            DepthwisePairs::new(isa, &weights, &rules, given, &Budget::default()).unwrap().unwrap();
        assert_eq!((pairs.channels(), pairs.weights()), (conv.output.channels, weights.len()));
        let all = 0..conv.output.batches * conv.output.height;
        let mut got = vec![0xA5; want.len()];
        pairs.run(isa, &conv, &input, all, &mut got).unwrap();
        assert_eq!(got, want, "{conv:?}");
    }
}

#[test]
fn pairs_are_not_packed_for_a_cpu_without_their_kernel() {
    let case = cases().next().unwrap();
    let packed = |isa| {
        let input = DepthwiseInput { zero: case.zero, is_signed: case.is_signed, is_dense: true };
        DepthwisePairs::new(isa, &case.weights, &case.rules, input, &Budget::default()).unwrap()
    };
    assert!(packed(Isa::PORTABLE).is_none());
    if let Some(pairs) = packed(Isa::detect()) {
        let out = &mut vec![0; case.want.len()];
        assert!(pairs.run(Isa::PORTABLE, &case.conv, &case.input, 0..1, out).is_err());
    }
}
