//! Sound, and models with states.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_tasks::{AudioClassifier, RecurrentStream, Sound, TaskOptions};
use burst_testing::shared;

use crate::files::{Golden, assert_top_five, device, models};

burst_testing::tests![
    an_audio_classifier_gives_the_goldens_best_five(&shared("")?),
    a_recogniser_and_a_voice_give_the_goldens_values(&shared("")?),
    a_keyword_spotter_gives_the_goldens_values_step_by_step(&shared("")?),
];

fn number(golden: &Golden, key: &str) -> usize {
    usize::try_from(golden.input()[key].as_u64().unwrap()).unwrap()
}

fn an_audio_classifier_gives_the_goldens_best_five(root: &Path) {
    for entry in models(root, "audio event classification") {
        let options = entry.options.clone().with_max_results(5);
        let mut classifier = AudioClassifier::new(&device(), &entry.model, &options).unwrap();
        for golden in &entry.goldens {
            let sound = Sound::read(root.join(golden.input()["file"].as_str().unwrap())).unwrap();
            let (begin, count) = (number(golden, "sample_offset"), number(golden, "samples"));
            let samples = sound.samples[begin..begin + count].to_vec();
            let found = classifier.classify_values(&samples).unwrap();
            assert_top_five(&entry.name, golden, &found);
            // The same as a whole sound, which is one window long.
            let heard = classifier.classify(&Sound { rate: sound.rate, samples }).unwrap();
            assert_eq!(heard.len(), 1);
            assert_eq!(heard[0].classes, found);
        }
    }
}

/// The frames of features that go into a golden.
fn frames(root: &Path, golden: &Golden) -> Vec<f32> {
    const BANDS: usize = 80;
    let bytes = std::fs::read(root.join(golden.input()["file"].as_str().unwrap())).unwrap();
    let floats: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let (begin, count) = (number(golden, "frame_offset"), number(golden, "frames"));
    floats[begin * BANDS..][..count * BANDS].to_vec()
}

#[track_caller]
fn assert_close(name: &str, found: &[f32], want: &[f32]) {
    assert_eq!(found.len(), want.len(), "{name}");
    for (found, want) in found.iter().zip(want) {
        assert!((found - want).abs() <= 1e-4, "{name}: {found} {want}");
    }
}

fn a_recogniser_and_a_voice_give_the_goldens_values(root: &Path) {
    for task in ["speech recogniser", "acoustic model"] {
        for entry in models(root, task) {
            let options = TaskOptions::default();
            let mut stream = RecurrentStream::new(&device(), &entry.model, &options).unwrap();
            for golden in &entry.goldens {
                stream.reset();
                let found = stream.step(&frames(root, golden)).unwrap();
                assert_close(&entry.name, found, &golden.floats(0));
            }
        }
    }
}

fn a_keyword_spotter_gives_the_goldens_values_step_by_step(root: &Path) {
    for entry in models(root, "keyword spotter") {
        let options = TaskOptions::default();
        let mut stream = RecurrentStream::new(&device(), &entry.model, &options).unwrap();
        for golden in &entry.goldens {
            // Twice: what was carried is gone after a reset.
            for _ in 0..2 {
                stream.reset();
                let mut found = Vec::new();
                for frame in frames(root, golden).chunks(stream.window()) {
                    found.extend_from_slice(stream.step(frame).unwrap());
                }
                assert_close(&entry.name, &found, &golden.floats(0));
            }
        }
    }
}
