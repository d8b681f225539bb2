//! Another sampling rate, against the tone that it should be.

use std::f64::consts::PI;

use burst_sound::Sound;

burst_testing::tests![a_tone_stays_the_same_tone(), what_the_lower_rate_cannot_hold_is_taken_out(),];

fn resampled(samples: Vec<f32>, from: u32, to: u32) -> Vec<f32> {
    Sound { rate: from, samples }.resampled(to).unwrap().samples
}

#[expect(clippy::cast_possible_truncation, reason = "a sample is a float")]
fn tone(frequency: f64, rate: u32, count: u32) -> Vec<f32> {
    let sample = |i| (2.0 * PI * frequency * f64::from(i) / f64::from(rate)).sin() as f32;
    (0..count).map(sample).collect()
}

fn a_tone_stays_the_same_tone() {
    for (from, to) in [(44_100, 16_000), (8_000, 16_000), (48_000, 16_000), (16_000, 22_050)] {
        let got = resampled(tone(1_000.0, from, from / 5), from, to);
        let want = tone(1_000.0, to, to / 5);
        assert_eq!(got.len(), want.len(), "{from} to {to}");
        // The ends lack neighbours.
        let inner = 100..got.len() - 100;
        for at in inner {
            let off = (got[at] - want[at]).abs();
            assert!(off < 2e-3, "{from} to {to}: sample {at} is off by {off}");
        }
    }
}

fn what_the_lower_rate_cannot_hold_is_taken_out() {
    let got = resampled(tone(12_000.0, 48_000, 9_600), 48_000, 16_000);
    let loudest = got[100..got.len() - 100].iter().fold(0_f32, |m, s| m.max(s.abs()));
    assert!(loudest < 2e-3, "an alias of {loudest}");
}
