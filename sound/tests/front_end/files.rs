//! Sound from files, and the front end against log-mel frames that another program made.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_sound::{LogMel, LogMelShape, Sound, SoundError, normalise};
use burst_testing::shared;
use hound::{SampleFormat, WavSpec, WavWriter};

burst_testing::tests![
    samples_of_every_kind_are_numbers_from_minus_1_to_1(),
    channels_become_their_mean(),
    what_is_no_sound_is_refused_in_words(),
    another_rate_lasts_as_long(),
    log_mel_frames_are_those_that_the_models_were_given(&shared("")?),
];

fn spec(channels: u16, bits_per_sample: u16, sample_format: SampleFormat) -> WavSpec {
    WavSpec { channels, sample_rate: 16_000, bits_per_sample, sample_format }
}

fn written<S: hound::Sample + Copy>(path: &Path, spec: WavSpec, samples: &[S]) -> Sound {
    let mut writer = WavWriter::create(path, spec).unwrap();
    samples.iter().for_each(|sample| writer.write_sample(*sample).unwrap());
    writer.finalize().unwrap();
    Sound::read(path).unwrap()
}

fn samples_of_every_kind_are_numbers_from_minus_1_to_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.wav");
    let int = SampleFormat::Int;
    let sound = written(&file, spec(1, 16, int), &[-32768_i16, 0, 16384]);
    assert_eq!((sound.rate, sound.samples), (16_000, vec![-1.0, 0.0, 0.5]));
    let sound = written(&file, spec(1, 8, int), &[-128_i8, 64]);
    assert_eq!(sound.samples, [-1.0, 0.5]);
    let sound = written(&file, spec(1, 24, int), &[-8_388_608_i32, 4_194_304]);
    assert_eq!(sound.samples, [-1.0, 0.5]);
    let sound = written(&file, spec(1, 32, int), &[i32::MIN, 1 << 30]);
    assert_eq!(sound.samples, [-1.0, 0.5]);
    let sound = written(&file, spec(1, 32, SampleFormat::Float), &[-1.0_f32, 0.25]);
    assert_eq!(sound.samples, [-1.0, 0.25]);
}

fn channels_become_their_mean() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stereo.wav");
    let sound = written(&file, spec(2, 16, SampleFormat::Int), &[16384_i16, 0, -16384, 16384]);
    assert_eq!(sound.samples, [0.25, 0.0]);
    assert_eq!(sound.duration().as_micros(), 125);
}

fn what_is_no_sound_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.wav");
    assert!(matches!(Sound::read(&file), Err(SoundError::Read { .. })), "no such file");
    std::fs::write(&file, b"RIFF nothing of the kind").unwrap();
    assert!(matches!(Sound::read(&file), Err(SoundError::Read { .. })));
    written(&file, spec(1, 16, SampleFormat::Int), &[1_i16; 100]);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 21]).unwrap();
    let error = Sound::read(&file).unwrap_err();
    assert!(matches!(error, SoundError::Read { .. }), "cut short: {error}");
    let (sound, damage) = Sound::read_as_far_as_it_goes(&file).unwrap();
    assert_eq!(sound.samples.len(), 89, "what is there");
    assert!(matches!(damage, Some(SoundError::Read { .. })), "{damage:?}");
    std::fs::write(&file, b"").unwrap();
    let error = Sound::read(&file).unwrap_err().to_string();
    assert!(error.ends_with("wrong.wav: the file is empty"), "{error}");
    for at in 0..44 {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x5a;
        std::fs::write(&file, &damaged).unwrap();
        let _ = Sound::read(&file); // whatever it says, it does not panic
    }
    let mut writer = WavWriter::create(&file, spec(1, 32, SampleFormat::Float)).unwrap();
    writer.write_sample(f32::NAN).unwrap();
    writer.finalize().unwrap();
    assert!(matches!(Sound::read(&file), Err(SoundError::NotFinite { at: 0, .. })));
}

fn another_rate_lasts_as_long() {
    let sound = Sound { rate: 44_100, samples: vec![0.1; 44_100] };
    let other = sound.clone().resampled(16_000).unwrap();
    assert_eq!((other.rate, other.samples.len()), (16_000, 16_000));
    assert!(sound.resampled(10).is_err());
}

/// The frames of speech that go with the shared models.
fn log_mel_frames_are_those_that_the_models_were_given(shared: &Path) {
    let bytes = std::fs::read(shared.join("inputs/raw/speech_logmel80.f32")).unwrap();
    let want: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let sound = Sound::read(shared.join("inputs/audio/speech.wav")).unwrap();
    let mut got = LogMel::new(LogMelShape::speech(80)).unwrap().frames(&sound.samples);
    normalise(&mut got, 80);
    assert!(got.len() > want.len(), "the shared frames are the first part");
    for (at, (got, want)) in got.iter().zip(&want).enumerate() {
        let off = (got - want).abs();
        assert!(off < 5e-3, "frame {} band {}: {got}, want {want}", at / 80, at % 80);
    }
}
