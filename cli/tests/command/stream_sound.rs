//! Sound and state: WAV files and frames of values through audio and LSTM models.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use burst_testing::shared;

use crate::support::{json, run};

burst_testing::tests![
    a_keyword_spotter_carries_its_state_as_the_reference_does(&shared("")?),
    lstm_models_begin_as_their_goldens_do_and_then_remember(&shared("")?),
    an_audio_model_hears_what_its_goldens_hear(&shared("")?),
    a_row_of_pixels_goes_through_an_integer_lstm(&shared("")?),
    ten_seconds_of_sound_go_through_every_model_of_sound_and_state(&shared("")?),
    the_text_goes_along_with_the_sound(&shared("")?),
    sound_for_a_model_of_pictures_is_refused_in_words(),
    sound_that_cannot_be_streamed_is_refused_in_words(&shared("")?),
];

/// A model with states or sound, and how far its float outputs may be from the reference.
const MODELS: [&str; 5] = [
    "yamnet_wavin_int8",
    "asr_lstm_float",
    "kws_svdf_rnn_float",
    "tts_lstm_float",
    "lstm_mnist_int8",
];

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn model(root: &Path, name: &str) -> String {
    text(&root.join(format!("models/{name}.tflite")))
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Ten seconds at 16 kHz: a voice-like buzz that rises and falls, with pauses.
fn ten_seconds(folder: &Path) -> PathBuf {
    let mut phase = 0.0_f64;
    let mut data = Vec::new();
    for at in 0..160_000_u32 {
        let time = f64::from(at) / 16_000.0;
        phase += (120.0 + 60.0 * (time * 2.0).sin()) / 16_000.0;
        let buzz: f64 = (1..=12_u8)
            .map(|k| (std::f64::consts::TAU * phase * f64::from(k)).sin() / f64::from(k))
            .sum();
        let loud = if time % 2.5 < 2.0 { 6_000.0 } else { 20.0 };
        #[expect(clippy::cast_possible_truncation, reason = "within 16 bits")]
        data.extend(((buzz * loud) as i16).to_le_bytes());
    }
    let file = folder.join("ten.wav");
    std::fs::write(&file, wav(16_000, &data)).unwrap();
    file
}

/// A WAV file of one 16-bit channel.
fn wav(rate: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + length).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend(rate.to_le_bytes());
    bytes.extend((rate * 2).to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(length.to_le_bytes());
    bytes.extend(data);
    bytes
}

/// Streams a source through a model and gives the report and all bytes of the first output.
fn streamed(model: &str, source: &str, more: &[&str]) -> (Value, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    let out = text(&file);
    let mut args = vec!["stream", "--model", model, "--source", source, "--json"];
    args.extend(["--save-output", &out]);
    args.extend(more);
    let output = run(&args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    (json(&output), std::fs::read(file).unwrap())
}

/// The outputs of a golden and how far from them a float may be: absolutely, and relatively.
fn golden(root: &Path, model: &str, input: &str) -> (Vec<f32>, f32) {
    let folder = root.join("golden").join(model);
    let bytes = std::fs::read(folder.join(format!("{input}.bin"))).unwrap();
    let manifest = read_json(&root.join("models/MANIFEST.json"));
    let entries = manifest["models"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == model).unwrap();
    let tolerance = entry["yardstick"]["tolerance"]["abs"].as_f64().unwrap_or(0.0);
    #[expect(clippy::cast_possible_truncation, reason = "a tolerance")]
    (floats(&bytes), tolerance as f32)
}

fn assert_near(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let off = (got - want).abs();
        assert!(off <= tolerance + 1e-4 * want.abs(), "{what}: value {at}: {got}, want {want}");
    }
}

/// One frame per execution, with three states that the driver alone ever touches.
fn a_keyword_spotter_carries_its_state_as_the_reference_does(root: &Path) {
    let name = "kws_svdf_rnn_float";
    let frames = text(&root.join("inputs/raw/speech_logmel80.f32"));
    let (want, tolerance) = golden(root, name, "stream_at_0_n120");
    for path in ["burst", "sync", "in-process"] {
        let more = ["--frames", "120", "--path", path];
        let (report, got) = streamed(&model(root, name), &frames, &more);
        assert_eq!((&report["frames"], &report["states"]), (&120.into(), &3.into()));
        assert_near(&floats(&got), &want, tolerance, path);
    }
    // All frames of the file: the state goes on, the beginning stays the same.
    let (report, got) = streamed(&model(root, name), &frames, &[]);
    assert_eq!(report["frames"], 283);
    assert_near(&floats(&got)[..want.len()], &want, tolerance, "the whole file");
}

/// The reference ran these models from states that are zero.
fn lstm_models_begin_as_their_goldens_do_and_then_remember(root: &Path) {
    let source = text(&root.join("inputs/raw/speech_logmel80.f32"));
    for (name, frames, offsets) in
        [("asr_lstm_float", 40, &[0_usize, 40, 80, 120][..]), ("tts_lstm_float", 64, &[0, 64, 128])]
    {
        let model = model(root, name);
        // The file is no whole number of what these models take.
        let (report, got) = streamed(&model, &source, &["--lenient", "--state", "reset"]);
        assert_eq!(report["frames"], 283 / frames, "{report}");
        let fresh = floats(&got);
        for (execution, offset) in offsets.iter().enumerate() {
            let (want, tolerance) = golden(root, name, &format!("logmel_at_{offset}"));
            let got = &fresh[execution * want.len()..][..want.len()];
            assert_near(got, &want, tolerance, &format!("{name} at {offset}"));
        }
        // Where states are carried the second execution goes on from the first.
        let (report, got) = streamed(&model, &source, &["--frames", "2"]);
        assert_eq!(report["states"], 4, "{report}");
        let got = floats(&got);
        let (first, tolerance) = golden(root, name, "logmel_at_0");
        let (got_first, got_second) = got.split_at(first.len());
        assert_near(got_first, &first, tolerance, name);
        let fresh = &fresh[first.len()..][..first.len()];
        let differ = got_second.iter().zip(fresh).any(|(a, b)| (a - b).abs() > 100.0 * tolerance);
        assert!(differ, "{name}: the second execution knows nothing of the first");
    }
}

fn an_audio_model_hears_what_its_goldens_hear(root: &Path) {
    let name = "yamnet_wavin_int8";
    let labels = text(&root.join("inputs/yamnet_521_labels.txt"));
    for (sound, offsets) in [("speech", &[0_usize, 15_600, 31_200][..]), ("two_heads", &[0])] {
        let source = text(&root.join(format!("inputs/audio/{sound}.wav")));
        let more = ["--labels", &labels, "--top", "5"];
        let (report, got) = streamed(&model(root, name), &source, &more);
        let got = floats(&got);
        for (window, offset) in offsets.iter().enumerate() {
            let input = format!("{sound}_at_{offset}");
            let (want, _) = golden(root, name, &input);
            // The spectrum is computed in this process; all behind it is exact.
            assert_eq!(got[window * 521..][..521], want, "{input}");
            let file = root.join(format!("golden/{name}/{input}.json"));
            let best = read_json(&file)["top5"][0]["label"].clone();
            let result = &report["results"][window];
            assert_eq!(result["top"][0]["label"], best, "{report}");
            #[expect(clippy::cast_precision_loss, reason = "a small offset")]
            let at = *offset as f64 / 16_000.0;
            assert!((result["at_seconds"].as_f64().unwrap() - at).abs() < 1e-9, "{report}");
        }
    }
}

fn a_row_of_pixels_goes_through_an_integer_lstm(root: &Path) {
    for digit in ["digit9_28x28", "digit9_shift_28x28"] {
        let source = text(&root.join(format!("inputs/raw/{digit}.gray")));
        let more = ["--size", "28x28", "--pixels", "gray", "--top", "1"];
        let (report, got) = streamed(&model(root, "lstm_mnist_int8"), &source, &more);
        let want = root.join(format!("golden/lstm_mnist_int8/{digit}.bin"));
        assert_eq!(got, std::fs::read(want).unwrap(), "{digit}");
        assert_eq!(report["results"][0]["top"][0]["index"], 9, "{report}");
    }
}

fn real(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key} in {report}"))
}

/// No speed is asserted but the one that a stream cannot do without: sound goes through faster than
/// it plays, by far even where the machine is busy (the factor is printed).
fn ten_seconds_of_sound_go_through_every_model_of_sound_and_state(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let ten = text(&ten_seconds(folder.path()));
    let speech = text(&root.join("inputs/audio/speech.wav"));
    for name in MODELS {
        for (source, seconds) in [(&ten, 10.0), (&speech, 4.2725)] {
            let (report, got) = streamed(&model(root, name), source, &[]);
            assert_eq!(report["errors"], 0, "{report}");
            let sound = report["sound_seconds"].as_f64().unwrap();
            assert!((sound - seconds).abs() < 0.03, "{name}: {sound} of {seconds} s");
            assert!(!got.is_empty(), "{name}");
            let (factor, took) = (real(&report, "times_real_time"), real(&report, "seconds"));
            println!("{name}: {sound:.2} s of sound, {factor} x real time");
            assert!((factor - sound / took).abs() <= 0.01 * factor, "{name}: {report}");
            assert!(factor > 1.0, "{name}: slower than the sound plays: {report}");
        }
    }
}

fn the_text_goes_along_with_the_sound(root: &Path) {
    let labels = text(&root.join("inputs/yamnet_521_labels.txt"));
    let yamnet = model(root, "yamnet_wavin_int8");
    let speech = text(&root.join("inputs/audio/speech.wav"));
    let args = ["stream", "--model", &yamnet, "--source", &speech, "--labels", &labels];
    let output = run(&args);
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("    0.00 s  Speech 0.92, "), "{said}");
    assert!(lines[1].starts_with("    0.97 s  Speech"), "{said}");
    assert!(said.contains("4.27 s of sound, "), "{said}");
    // Windows that overlap: twice as many.
    let mut overlapping = args.to_vec();
    overlapping.extend(["--hop", "0.4875", "--json"]);
    let report = json(&run(&overlapping));
    assert_eq!(report["frames"], 9, "{report}");
    let steps = run(&["stream", "--model", &model(root, "asr_lstm_float"), "--source", &speech]);
    let said = String::from_utf8(steps.stdout).unwrap();
    assert!(said.contains("4 states carried from frame to frame"), "{said}");
}

/// Runs what must be refused, in words that have all these parts.
#[track_caller]
fn expect(args: &[&str], parts: &[&str]) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for part in parts {
        assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
    }
}

/// The built-in model sees only.
fn sound_for_a_model_of_pictures_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = text(&folder.path().join("a.wav"));
    expect(&["stream", "--source", &path], &["a.wav", "shape"]);
}

fn sound_that_cannot_be_streamed_is_refused_in_words(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wav");
    let path = text(&file);
    std::fs::write(&file, wav(16_000, &[0; 100])).unwrap();
    let kws = model(root, "kws_svdf_rnn_float");
    expect(&["stream", "--model", &kws, "--source", &path], &["a.wav", "too short"]);
    std::fs::write(&file, b"no sound at all").unwrap();
    expect(&["stream", "--model", &kws, "--source", &path], &["a.wav", "cannot read"]);
    std::fs::remove_file(&file).unwrap();
    expect(&["stream", "--model", &kws, "--source", &path], &["a.wav"]);
    let ten = text(&ten_seconds(folder.path()));
    expect(&["stream", "--model", &kws, "--source", &ten, "--hop", "0.001"], &["--hop"]);
    expect(&["stream", "--model", &kws, "--source", &ten, "--hop=-1"], &["--hop"]);
    let save = text(&folder.path().join("frames"));
    expect(
        &["stream", "--model", &kws, "--source", &ten, "--save-frames", &save],
        &["--save-frames", "no pictures"],
    );
    let values = folder.path().join("v.f32");
    std::fs::write(&values, [0; 6]).unwrap();
    let values = text(&values);
    expect(&["stream", "--model", &kws, "--source", &values], &["v.f32", "32-bit floats"]);
}
