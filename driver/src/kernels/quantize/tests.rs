//! Floats against the rule, value by value, in double precision where that is exact.

use crate::kernels::lut::Quant8;
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

pub(crate) fn floats(isa: Isa) {
    let numbers = &mut Numbers::new(5);
    for (signed, scale, zero_point) in
        [(false, 0.5, 10), (true, 0.031_25, -118), (true, 1.0 / 3.0, 0), (false, 7.25, 255)]
    {
        let quant = Quant8 { signed, scale, zero_point };
        let mut values = numbers.small_floats(1003);
        values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e20, -1e20, -0.0]);
        // Halves of a step, which go away from zero.
        values.extend((-40..40_i8).map(|half| f32::from(half) * 0.5 * scale));
        let mut got = vec![7; values.len()];
        super::floats(isa, &values, quant, &mut got);
        for (value, got) in values.iter().zip(got) {
            let steps = (value / scale).round();
            let (low, high) = quant.range();
            let want = if steps.is_nan() { 0.0 } else { f64::from(steps) };
            let want = (want + f64::from(zero_point)).clamp(low.into(), high.into());
            let got = if signed { f64::from(got.cast_signed()) } else { f64::from(got) };
            assert!((got - want).abs() < 0.5, "{value} with {quant:?}: {got}, not {want}");
        }
    }
}

pub(crate) fn bytes(isa: Isa) {
    let values = Numbers::new(6).bytes(1003);
    for (signed, scale, zero_point) in [(false, 0.5, 10), (true, 0.031_25, -118), (true, 0.3, 0)] {
        let mut got = vec![7.0; values.len()];
        super::bytes(isa, &values, Quant8 { signed, scale, zero_point }, &mut got);
        for (value, got) in values.iter().zip(got) {
            let stored = if signed { i32::from(value.cast_signed()) } else { i32::from(*value) };
            let want = scale * f32::from(i16::try_from(stored - zero_point).unwrap());
            assert_eq!(got.to_bits(), want.to_bits(), "{value}");
        }
    }
}
