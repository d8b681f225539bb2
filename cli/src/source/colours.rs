//! From brightness and two differences of colour to red, green and blue, in 16.16 fixed point.

/// How numbers become colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Yuv {
    /// The number that is black.
    black: i32,
    brightness: i32,
    red_of_v: i32,
    green_of_u: i32,
    green_of_v: i32,
    blue_of_u: i32,
}

impl Yuv {
    /// BT.601 in the limited range, 16 to 235.
    pub(super) const USUAL: Yuv = Yuv::new(false, false);

    /// By BT.709 or BT.601, over all 256 numbers or in the limited range.
    pub(super) const fn new(is_bt709: bool, is_full_range: bool) -> Yuv {
        // For the full range; kr is 0.299 or 0.2126, kb 0.114 or 0.0722.
        let [red_of_v, green_of_u, green_of_v, blue_of_u] = match is_bt709 {
            false => [91_881, 22_554, 46_802, 116_130],
            true => [103_206, 12_276, 30_679, 121_609],
        };
        if is_full_range {
            let brightness = 1 << 16;
            return Yuv { black: 0, brightness, red_of_v, green_of_u, green_of_v, blue_of_u };
        }
        // Brightness has 219 steps there, a difference of colour 224.
        Yuv {
            black: 16,
            brightness: 76_309,
            red_of_v: wider(red_of_v),
            green_of_u: wider(green_of_u),
            green_of_v: wider(green_of_v),
            blue_of_u: wider(blue_of_u),
        }
    }

    /// Red, green and blue of one pixel.
    pub(super) fn rgb(self, y: u8, u: u8, v: u8) -> [u8; 3] {
        let y = (i32::from(y) - self.black) * self.brightness;
        let (u, v) = (i32::from(u) - 128, i32::from(v) - 128);
        let byte =
            |value: i32| u8::try_from(((value + (1 << 15)) >> 16).clamp(0, 255)).unwrap_or(255);
        [
            byte(y + self.red_of_v * v),
            byte(y - self.green_of_u * u - self.green_of_v * v),
            byte(y + self.blue_of_u * u),
        ]
    }
}

/// A factor of the full range as one of the limited range: 255 steps for 224, rounded.
const fn wider(factor: i32) -> i32 {
    (factor * 255 + 112) / 224
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_range_ends_are_black_and_white_and_colours_come_out() {
        let rgb = |y, u, v| Yuv::USUAL.rgb(y, u, v);
        assert_eq!(rgb(16, 128, 128), [0, 0, 0]);
        assert_eq!(rgb(235, 128, 128), [255, 255, 255]);
        // Pure red in BT.601 limited range is (81, 90, 240).
        let [r, g, b] = rgb(81, 90, 240);
        assert!(r >= 253 && g <= 2 && b <= 2, "{r} {g} {b}");
    }

    #[test]
    fn each_standard_knows_its_own_red() {
        for (is_bt709, is_full_range, [y, u, v]) in [
            (false, true, [76, 85, 255]),
            (true, false, [63, 102, 240]),
            (true, true, [54, 99, 255]),
        ] {
            let yuv = Yuv::new(is_bt709, is_full_range);
            let [r, g, b] = yuv.rgb(y, u, v);
            assert!(r >= 252 && g <= 3 && b <= 3, "{is_bt709} {is_full_range}: {r} {g} {b}");
            let white = if is_full_range { 255 } else { 235 };
            assert_eq!(yuv.rgb(white, 128, 128), [255; 3]);
        }
    }
}
