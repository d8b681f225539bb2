//! Colours, and how far apart two of them look.

use crate::rng::Rng;

/// Red, green, blue; each 0 (none) to 1 (full).
pub(crate) type Colour = [f32; 3];

/// Difference in brightness that keeps two things apart for a human, blurred and noisy.
pub(crate) const CLEAR: f32 = 0.26;

/// Largest difference in brightness within one background pattern.
const PATTERN: f32 = 0.22;

/// Largest difference within one background pattern in red, green or blue.
const KINSHIP: f32 = 0.4;

/// Draws that are made before a fitting colour is built instead of found.
const TRIES: usize = 24;

/// Brightness as a video camera weighs it (ITU-R BT.601).
pub(crate) fn luma([r, g, b]: Colour) -> f32 {
    0.299 * r + 0.587 * g + 0.114 * b
}

pub(crate) fn any(rng: &mut Rng) -> Colour {
    [rng.unit(), rng.unit(), rng.unit()]
}

/// Two colours of a background: of kin, as in a wall or a lawn, and not far apart in brightness.
pub(crate) fn pair(rng: &mut Rng) -> [Colour; 2] {
    let first = any(rng);
    for _ in 0..TRIES {
        let second = first.map(|c| (c + rng.range(-KINSHIP, KINSHIP)).clamp(0.0, 1.0));
        if (luma(first) - luma(second)).abs() <= PATTERN {
            return [first, second];
        }
    }
    [first, first]
}

/// A colour that stands out clearly from both colours of a background.
pub(crate) fn standing_out(rng: &mut Rng, background: [Colour; 2]) -> Colour {
    let [a, b] = background.map(luma);
    let clear = |l: f32| (l - a).abs() >= CLEAR && (l - b).abs() >= CLEAR && on_one_side(a, b, l);
    for _ in 0..TRIES {
        let colour = any(rng);
        if clear(luma(colour)) {
            return colour;
        }
    }
    // The pattern spans at most 0.22, so black or white is at least 0.39 away from all of it.
    if a + b > 1.0 { [0.0; 3] } else { [1.0; 3] }
}

/// False when `l` lies between `a` and `b`, where a mixture of the two could meet it.
fn on_one_side(a: f32, b: f32, l: f32) -> bool {
    (l < a) == (l < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_clear_of_every_mixture_of_its_background() {
        for seed in 0..5000 {
            let mut rng = Rng::new(seed);
            let [a, b] = pair(&mut rng);
            let shape = luma(standing_out(&mut rng, [a, b]));
            let (low, high) = (luma(a).min(luma(b)), luma(a).max(luma(b)));
            assert!(high - low <= PATTERN, "seed {seed}");
            assert!(
                shape >= high + CLEAR || shape <= low - CLEAR,
                "seed {seed}: {shape} is too near to {low}..{high}"
            );
        }
    }
}
