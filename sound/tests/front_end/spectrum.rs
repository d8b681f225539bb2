//! Magnitude spectra, against the definition of the Fourier transform.

use burst_sound::{MAX_FFT_LENGTH, Magnitudes};

burst_testing::tests![
    a_cosine_is_one_line_and_a_constant_is_the_first(),
    against_the_definition(),
    lengths_are_checked(),
];

fn a_cosine_is_one_line_and_a_constant_is_the_first() {
    let mut magnitudes = Magnitudes::new(64).unwrap();
    let mut out = vec![0.0; 33];
    let cosine: Vec<f32> =
        (0..64_u8).map(|i| (std::f32::consts::TAU * 5.0 * f32::from(i) / 64.0).cos()).collect();
    magnitudes.of(&cosine, &mut out);
    for (line, magnitude) in out.iter().enumerate() {
        let want = if line == 5 { 32.0 } else { 0.0 };
        assert!((magnitude - want).abs() < 1e-4, "line {line}: {magnitude}");
    }
    // Shorter than the transform: the rest is silence, also after something louder.
    magnitudes.of(&[1.0; 3], &mut out);
    assert!((out[0] - 3.0).abs() < 1e-6, "{}", out[0]);
}

fn against_the_definition() {
    let samples: Vec<f32> = (0..32_u8).map(|i| f32::from(i * 7 % 31) - 15.0).collect();
    let mut magnitudes = Magnitudes::new(32).unwrap();
    let mut out = vec![0.0; 17];
    magnitudes.of(&samples, &mut out);
    for (line, got) in out.iter().enumerate() {
        let (mut re, mut im) = (0.0, 0.0);
        for (at, sample) in samples.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let angle = -std::f64::consts::TAU * (line * at) as f64 / 32.0;
            re += f64::from(*sample) * angle.cos();
            im += f64::from(*sample) * angle.sin();
        }
        assert!((f64::from(*got) - re.hypot(im)).abs() < 1e-4, "line {line}");
    }
}

fn lengths_are_checked() {
    for wrong in [0, 3, MAX_FFT_LENGTH * 2] {
        assert!(Magnitudes::new(wrong).is_err(), "{wrong}");
    }
}
