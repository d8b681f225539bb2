//! Parts of a picture, chosen by a seed: many pictures out of few.

use burst_pictures::Picture;

use crate::random::Random;

/// A part is at least so many hundredths of what fits.
const SIDE_MIN: usize = 30;
/// Its aspect lies within three to four and four to three, in hundredths of the height.
const ASPECT: (usize, usize) = (75, 133);

/// A part of a picture, as it is or from right to left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crop {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    mirrored: bool,
}

impl Crop {
    /// The part number `number` of a picture of this size, for this seed.
    pub(super) fn choose(seed: u64, number: u64, (width, height): (u32, u32)) -> Crop {
        let mut random = Random::new(seed, number);
        let (all_across, all_down) = (width as usize, height as usize);
        let aspect = ASPECT.0 + random.below(ASPECT.1 - ASPECT.0 + 1);
        let tallest = all_down.min(all_across * 100 / aspect).max(1);
        let height = (tallest * (SIDE_MIN + random.below(101 - SIDE_MIN)) / 100).max(1);
        let width = (height * aspect / 100).clamp(1, all_across);
        Crop {
            left: random.below(all_across - width + 1),
            top: random.below(all_down - height + 1),
            width,
            height,
            mirrored: random.below(2) == 1,
        }
    }

    /// The part of this picture, which has the size that it was chosen for.
    pub(super) fn of(&self, picture: &Picture) -> Picture {
        let stride = picture.width as usize * 3;
        let mut rgb = Vec::with_capacity(self.width * self.height * 3);
        for row in picture.rgb.chunks_exact(stride).skip(self.top).take(self.height) {
            let row = &row[self.left * 3..(self.left + self.width) * 3];
            if self.mirrored {
                rgb.extend(row.chunks_exact(3).rev().flatten());
            } else {
                rgb.extend_from_slice(row);
            }
        }
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        Picture { width: side(self.width), height: side(self.height), rgb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_and_the_seed_repeats_them() {
        for size in [(1, 1), (640, 480), (3, 500), (1280, 720)] {
            for number in 0..200 {
                let crop = Crop::choose(7, number, size);
                assert_eq!(crop, Crop::choose(7, number, size));
                let right = crop.left + crop.width;
                let bottom = crop.top + crop.height;
                assert!(right <= size.0 as usize && bottom <= size.1 as usize, "{size:?} {crop:?}");
                assert!(crop.width > 0 && crop.height > 0, "{size:?} {crop:?}");
            }
        }
        let some = |seed| (0..20).map(|n| Crop::choose(seed, n, (640, 480))).collect::<Vec<_>>();
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn a_part_has_its_own_pixels() {
        let rgb = (0..4 * 3 * 3).collect();
        let picture = Picture { width: 4, height: 3, rgb };
        let mut crop = Crop { left: 1, top: 2, width: 2, height: 1, mirrored: false };
        assert_eq!(crop.of(&picture).rgb, [27, 28, 29, 30, 31, 32]);
        crop.mirrored = true;
        assert_eq!(crop.of(&picture).rgb, [30, 31, 32, 27, 28, 29]);
    }
}
