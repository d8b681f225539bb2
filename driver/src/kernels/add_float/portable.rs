//! Sums value by value.

/// A value held between two bounds; NaN stays NaN.
#[inline(always)]
pub(crate) fn held(value: f32, (low, high): (f32, f32)) -> f32 {
    let value = if value < low { low } else { value };
    if value > high { high } else { value }
}

/// Sums, each held between two bounds; NaN stays NaN.
#[inline(always)]
pub(crate) fn sums(a: &[f32], b: &[f32], range: (f32, f32), out: &mut [f32]) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = held(a + b, range);
    }
}

/// Adds to each value, and holds the sum between two bounds; NaN stays NaN.
#[inline(always)]
pub(crate) fn add_to(values: &mut [f32], addends: &[f32], range: (f32, f32)) {
    for (value, addend) in values.iter_mut().zip(addends) {
        *value = held(*value + addend, range);
    }
}
