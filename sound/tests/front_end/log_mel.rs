//! Log-mel frames of sounds whose frames are known.

use std::f64::consts::TAU;

use burst_sound::{LogMel, LogMelShape, normalise};

burst_testing::tests![
    a_tone_is_loudest_in_its_band(),
    silence_is_the_floor_and_short_sound_is_nothing(),
    normalised_bands_have_mean_0_and_deviation_1(),
    impossible_front_ends_are_refused(),
];

/// The mel scale as the models were trained on it, written here a second time to compare with.
fn mel(hertz: f64) -> f64 {
    2595.0 * (1.0 + hertz / 700.0).log10()
}

fn hertz(mel: f64) -> f64 {
    700.0 * (10_f64.powf(mel / 2595.0) - 1.0)
}

#[expect(clippy::cast_possible_truncation, reason = "a sample is a float")]
fn tone(hertz: f64, count: u32) -> Vec<f32> {
    (0..count).map(|i| (TAU * hertz * f64::from(i) / 16_000.0).sin() as f32).collect()
}

fn a_tone_is_loudest_in_its_band() {
    let shape = LogMelShape::speech(40);
    let mut front = LogMel::new(shape).unwrap();
    for wanted in [5_u8, 20, 35] {
        let (low, high) = (mel(shape.lowest_hz), mel(shape.highest_hz));
        let middle = hertz(low + (high - low) * f64::from(wanted + 1) / 41.0);
        let frames = front.frames(&tone(middle, 1_600));
        assert_eq!(frames.len(), front.count(1_600) * 40);
        for frame in frames.chunks_exact(40) {
            let loudest = (0..40).max_by(|a, b| frame[*a].total_cmp(&frame[*b])).unwrap();
            assert_eq!(loudest, usize::from(wanted), "{middle} Hz");
        }
    }
}

fn silence_is_the_floor_and_short_sound_is_nothing() {
    let mut front = LogMel::new(LogMelShape::speech(80)).unwrap();
    assert!(front.frames(&[0.0; 399]).is_empty());
    let frames = front.frames(&[0.0; 400]);
    assert_eq!(frames.len(), 80);
    assert!(frames.iter().all(|value| (f64::from(*value) - 1e-6_f64.ln()).abs() < 1e-4));
}

fn normalised_bands_have_mean_0_and_deviation_1() {
    let mut frames: Vec<f32> = vec![1.0, 7.0, 3.0, 7.0, 5.0, 7.0];
    normalise(&mut frames, 2);
    let bin: Vec<f32> = frames.iter().step_by(2).copied().collect();
    assert!(bin.iter().sum::<f32>().abs() < 1e-6);
    assert!((bin[2] - 1.224_745).abs() < 1e-4, "{bin:?}");
    assert_eq!(frames[1], 0.0, "a band that never changes");
    normalise(&mut [], 2);
    normalise(&mut [1.0], 0);
}

fn impossible_front_ends_are_refused() {
    let good = LogMelShape::speech(80);
    for wrong in [
        LogMelShape { hop: 0, ..good },
        LogMelShape { window: 513, ..good },
        LogMelShape { bins: 0, ..good },
        LogMelShape { bins: 257, ..good },
        LogMelShape { rate: 8_000, ..good },
        LogMelShape { fft_length: 511, ..good },
    ] {
        assert!(LogMel::new(wrong).is_err(), "{wrong:?}");
    }
}
