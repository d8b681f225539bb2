//! Between the scene and the file: light, lens and sensor.

use crate::colour::Colour;
use crate::math::{Point, mix};
use crate::rng::Rng;

/// Light over a scene, and its colour.
#[derive(Debug)]
pub(crate) struct Light {
    /// Strength in the middle at the scene's start and end.
    strength: [f32; 2],
    /// Change per unit to the right and downwards.
    slope: Point,
    /// Loss towards the corners.
    vignette: f32,
    tint: Colour,
}

impl Light {
    pub(crate) fn random(rng: &mut Rng) -> Light {
        let start = rng.range(0.7, 1.05);
        Light {
            strength: [start, start + rng.range(-0.08, 0.08)],
            slope: [rng.range(-0.2, 0.2), rng.range(-0.2, 0.2)],
            vignette: rng.range(0.0, 0.25),
            tint: [rng.range(0.88, 1.1), rng.range(0.94, 1.05), rng.range(0.88, 1.1)],
        }
    }

    /// What each colour is multiplied with at a point, `time` (0 to 1) into the scene.
    pub(crate) fn at(&self, [x, y]: Point, time: f32) -> Colour {
        let falloff = self.vignette * (x * x + y * y);
        let middle = mix(self.strength[0], self.strength[1], time);
        let strength = middle + self.slope[0] * x + self.slope[1] * y - falloff;
        self.tint.map(|t| t * strength)
    }
}

/// Blur and noise of one scene.
#[derive(Debug)]
pub(crate) struct Sensor {
    /// Half the width of the lens's tent-shaped blur, in units of the frame's shorter side.
    pub(crate) blur: f32,
    /// Standard deviation of the noise.
    pub(crate) noise: f32,
}

impl Sensor {
    pub(crate) fn random(rng: &mut Rng) -> Sensor {
        let blur = if rng.chance(0.4) { 0.0 } else { rng.range(0.009, 0.02) };
        Sensor { blur, noise: rng.range(0.0, 0.035) }
    }
}

/// Weights of a tent whose half width is `half` pixels: the middle first, then outwards.
pub(crate) fn tent(half: f32) -> Vec<f32> {
    let mut weights = vec![1.0];
    let mut distance = 1.0;
    while distance < half {
        weights.push(1.0 - distance / half);
        distance += 1.0;
    }
    let sum = 2.0 * weights.iter().sum::<f32>() - 1.0;
    weights.iter().map(|w| w / sum).collect()
}

/// Standard deviation of what [`grain`] gives. A uniform seven-bit number has the variance
/// (128^2 - 1) / 12, the sum of three has three times that: 4095.75.
pub(crate) const GRAIN_DEVIATION: f32 = 63.998;

/// Three values of noise with mean 0 out of one draw, their deviation [`GRAIN_DEVIATION`].
///
/// Each is a sum of three seven-bit numbers (mean 190.5): near enough to a bell curve, and quick.
pub(crate) fn grain(rng: &mut Rng) -> Colour {
    let bits = rng.next();
    let sum = |shift: u32| {
        let seven = |more: u32| u16::try_from((bits >> (shift + more)) & 127).unwrap_or(0);
        f32::from(seven(0) + seven(7) + seven(14)) - 190.5
    };
    [sum(0), sum(21), sum(42)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grain_has_its_stated_mean_and_deviation() {
        let mut rng = Rng::new(11);
        let values: Vec<f64> = (0..20_000)
            .flat_map(|_| grain(&mut rng))
            .map(|v| f64::from(v / GRAIN_DEVIATION))
            .collect();
        let count = 60_000.0;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / count - mean * mean;
        // Standard errors: 0.004 for the mean, 0.006 for the variance.
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn a_tent_of_two_pixels_weighs_quarter_half_quarter() {
        assert_eq!(tent(2.0), [0.5, 0.25]);
        assert_eq!(tent(0.0), [1.0]);
        assert_eq!(tent(1.0), [1.0]);
        // 1/9, 2/9, 3/9, 2/9, 1/9
        let three = tent(3.0);
        for (got, ninths) in three.iter().zip([3.0, 2.0, 1.0]) {
            assert!((got - ninths / 9.0).abs() < 1e-6, "{three:?}");
        }
    }
}
