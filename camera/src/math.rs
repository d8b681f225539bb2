//! Plane geometry with exactly defined arithmetic: the standard library's `sin` may differ in the
//! last bit between platforms, `+ - * /`, `sqrt` and `floor` may not.

/// A point or direction: x to the right, y downwards.
pub(crate) type Point = [f32; 2];

/// Sine of an angle given in full turns; wrong by less than 4e-6.
pub(crate) fn turn_sin(turns: f32) -> f32 {
    let mut t = turns - floor(turns + 0.5); // -1/2 ..= 1/2
    if t > 0.25 {
        t = 0.5 - t;
    } else if t < -0.25 {
        t = -0.5 - t;
    }
    // Taylor up to x^9; at a quarter turn the next term is 3.6e-6.
    let x = t * std::f32::consts::TAU;
    let q = x * x;
    x * (1.0 - q / 6.0 * (1.0 - q / 20.0 * (1.0 - q / 42.0 * (1.0 - q / 72.0))))
}

/// Cosine of an angle given in full turns.
pub(crate) fn turn_cos(turns: f32) -> f32 {
    turn_sin(turns + 0.25)
}

/// Direction of an angle given in full turns.
pub(crate) fn direction(turns: f32) -> Point {
    [turn_cos(turns), turn_sin(turns)]
}

/// The largest whole number not above `x`, for |x| < 2^31.
///
/// Where the processor's baseline has no rounding instruction the standard library calls a
/// function, once or more for each pixel; this is inlined.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "whole numbers that came from an f32 go back into one exactly"
)]
pub(crate) fn floor(x: f32) -> f32 {
    let towards_zero = x as i32 as f32;
    towards_zero - f32::from(u8::from(towards_zero > x))
}

/// Straight line from `a` (at 0) to `b` (at 1).
pub(crate) fn mix(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

/// A 2 x 2 matrix, rows first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear([[f32; 2]; 2]);

impl Linear {
    pub(crate) fn rotation(turns: f32) -> Linear {
        let [c, s] = direction(turns);
        Linear([[c, -s], [s, c]])
    }

    pub(crate) fn scale(x: f32, y: f32) -> Linear {
        Linear([[x, 0.0], [0.0, y]])
    }

    /// The map that does `first`, then `self`.
    pub(crate) fn after(self, first: Linear) -> Linear {
        let [[a, b], [c, d]] = self.0;
        let [[e, f], [g, h]] = first.0;
        Linear([[a * e + b * g, a * f + b * h], [c * e + d * g, c * f + d * h]])
    }

    pub(crate) fn apply(self, [x, y]: Point) -> Point {
        let [[a, b], [c, d]] = self.0;
        [a * x + b * y, c * x + d * y]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_agrees_with_the_library_within_its_stated_error() {
        for i in -4000..4000i16 {
            let turns = f32::from(i) / 1000.0;
            let want = (f64::from(turns) * std::f64::consts::TAU).sin();
            let got = f64::from(turn_sin(turns));
            assert!((got - want).abs() < 6e-6, "{turns}: {got} for {want}");
        }
    }

    #[test]
    fn floor_goes_down_on_both_sides_of_zero() {
        let cases =
            [(2.0, 2.0), (2.75, 2.0), (0.0, 0.0), (-0.25, -1.0), (-3.0, -3.0), (-3.5, -4.0)];
        for (x, want) in cases {
            assert_eq!(floor(x), want, "{x}");
        }
    }

    #[test]
    fn a_quarter_turn_takes_right_to_down() {
        let turned = Linear::rotation(0.25).after(Linear::scale(2.0, 1.0)).apply([1.0, 0.0]);
        assert!(turned[0].abs() < 1e-5 && (turned[1] - 2.0).abs() < 1e-5, "{turned:?}");
    }
}
