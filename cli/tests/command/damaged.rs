//! Damaged input is not an answer: the stream ends there with exit status 2 and what was done so far; with
//! `--lenient` it goes on.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::process::Output;

use burst_testing::shared;

use crate::support::{json, run};

burst_testing::tests![
    a_jpeg_that_is_cut_off_is_no_balance_beam(&shared("")?),
    a_damaged_picture_in_the_middle_of_a_folder_ends_the_stream_or_is_left_out(),
    a_video_that_is_cut_off_ends_the_stream_or_itself(),
    values_that_are_cut_off_end_the_stream_or_themselves(&shared("models")?),
    a_sound_that_is_cut_off_ends_the_stream_or_itself(&shared("")?),
    a_picture_that_lies_on_its_side_is_seen_upright(&shared("")?),
    the_largest_picture_is_stated(),
    what_others_encode_is_refused_with_the_way_to_convert_it(),
    a_file_without_bytes_is_called_empty(),
];

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A picture of grey, large enough to be cut.
fn picture(path: &Path, width: u32, height: u32) {
    let pixels = width as usize * height as usize;
    burst_pictures::write_png(path, width, height, &vec![120; pixels * 3]).unwrap();
}

/// Asserts that a stream of this source fails with this reason, in text and as JSON, after `frames` frames.
#[track_caller]
fn assert_ends(args: &[&str], frames: u64, reason: &str) {
    let output = run(args);
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{out} {err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(last.starts_with("burst: ") && last.contains(reason), "{err}");
    assert_eq!(out.contains(" in ") && out.contains("latency"), frames > 0, "{out}");
    let output = run(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output);
    assert_eq!(report["frames"], frames, "{report}");
    assert!(report["error"].as_str().unwrap().contains(reason), "{report}");
}

/// Asserts that the same goes on with `--lenient`, and counts what it left out.
#[track_caller]
fn assert_goes_on(args: &[&str], frames: u64, reason: &str) {
    let output = run(&[args, &["--lenient"]].concat());
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{out} {err}");
    assert!(err.starts_with("left out: ") && err.contains(reason), "{err}");
    assert!(out.contains(", 1 damaged and left out"), "{out}");
    let output = run(&[args, &["--lenient", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!((&report["frames"], &report["damaged"]), (&frames.into(), &1.into()), "{report}");
    assert!(report["error"].is_null(), "{report}");
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn a_jpeg_that_is_cut_off_is_no_balance_beam(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.jpg");
    let whole = std::fs::read(root.join("inputs/images/cat.jpg")).unwrap();
    for percent in [5, 50, 99] {
        std::fs::write(&cut, &whole[..whole.len() * percent / 100]).unwrap();
        assert_ends(&["stream", "--source", &text(&cut)], 0, "cut.jpg: the file is cut off");
    }
    let output = run(&["stream", "--lenient", "--source", &text(&cut)]);
    assert_eq!(output.status.code(), Some(2), "nothing is left: {output:?}");
    let (_, err) = said(&output);
    assert!(err.lines().last().unwrap().contains("none of 1 frame could be read"), "{err}");
}

fn a_damaged_picture_in_the_middle_of_a_folder_ends_the_stream_or_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "b.png", "c.png"] {
        picture(&folder.path().join(name), 64, 48);
    }
    let file = folder.path().join("b.png");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let source = text(folder.path());
    let args = ["stream", "--source", &source];
    assert_ends(&args, 1, "b.png");
    assert_goes_on(&args, 2, "b.png");
    let report = json(&run(&[&args[..], &["--lenient", "--json"]].concat()));
    assert_eq!(report["results"][1]["frame"], 3, "places in the folder: {report}");
}

fn video(folder: &Path, frames: usize, cut: usize) -> PathBuf {
    let file = folder.join("v.y4m");
    let mut bytes = b"YUV4MPEG2 W64 H48 F30:1 C420jpeg\n".to_vec();
    for _ in 0..frames {
        bytes.extend(b"FRAME\n");
        bytes.extend(vec![128; 64 * 48 + 2 * 32 * 24]);
    }
    bytes.truncate(bytes.len() - cut);
    std::fs::write(&file, bytes).unwrap();
    file
}

fn a_video_that_is_cut_off_ends_the_stream_or_itself() {
    let folder = tempfile::tempdir().unwrap();
    let frame = 6 + 64 * 48 + 2 * 32 * 24;
    // In the pixels, in the word before them, and behind its first letter.
    for there in [frame - 1, 6, 5, 1] {
        let file = text(&video(folder.path(), 3, frame - there));
        let noun = if there == 1 { "byte" } else { "bytes" };
        let reason = format!("is cut off: it ends {there} {noun} into frame 3");
        assert_ends(&["stream", "--source", &file], 2, &reason);
        assert_goes_on(&["stream", "--source", &file], 2, &reason);
    }
    let whole = text(&video(folder.path(), 3, frame));
    assert_eq!(json(&run(&["stream", "--source", &whole, "--json"]))["frames"], 2, "a whole one");
}

fn values_that_are_cut_off_end_the_stream_or_themselves(models: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let (model, file) =
        (text(&models.join("kws_svdf_rnn_float.tflite")), folder.path().join("v.f32"));
    let source = text(&file);
    let args = ["stream", "--model", &model, "--source", &source];
    // The model says how many values it takes.
    std::fs::write(&file, [0; 4]).unwrap();
    let output = run(&args);
    let said = said(&output).1;
    let (_, takes) = said.split_once("v.f32: 1 value; the model takes ").unwrap();
    let window: usize = takes.split(' ').next().unwrap().parse().unwrap();
    for there in [4 * window - 1, 4, 1] {
        std::fs::write(&file, vec![0; 4 * window * 2 + there]).unwrap();
        let noun = if there == 1 { "byte" } else { "bytes" };
        let reason = format!("v.f32 is cut off: it ends {there} {noun} into frame 3");
        assert_ends(&args, 2, &reason);
        assert_goes_on(&args, 2, &reason);
    }
    std::fs::write(&file, vec![0; 4 * window * 2]).unwrap();
    assert_eq!(json(&run(&[&args[..], &["--json"]].concat()))["frames"], 2, "a whole one");
}

fn a_sound_that_is_cut_off_ends_the_stream_or_itself(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.wav");
    let whole = std::fs::read(root.join("inputs/audio/speech.wav")).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2 + 1]).unwrap();
    let (model, source) = (text(&root.join("models/yamnet_wavin_int8.tflite")), text(&cut));
    let args = ["stream", "--model", &model, "--source", &source];
    assert_ends(&args, 0, "cut.wav");
    let output = run(&[&args[..], &["--lenient", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let seconds = json(&output)["sound_seconds"].as_f64().unwrap();
    assert!((2.0..2.3).contains(&seconds), "{seconds} of 4.27 s");
    assert!(said(&output).1.starts_with("left out: "), "{output:?}");
}

/// A JPEG with an Exif segment that says how it lies.
fn lying(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xFF, 0xE1], &length, &exif, &jpeg[2..]].concat()
}

fn a_picture_that_lies_on_its_side_is_seen_upright(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let jpeg = std::fs::read(root.join("inputs/images/cat.jpg")).unwrap();
    let plain = burst_pictures::read(&root.join("inputs/images/cat.jpg")).unwrap();
    let file = folder.path().join("turned.jpg");
    std::fs::write(&file, lying(&jpeg, 6)).unwrap();
    let saved = folder.path().join("saved");
    let (source, save) = (text(&file), text(&saved));
    for is_json in [true, false] {
        let _ = std::fs::remove_dir_all(&saved);
        let args = ["stream", "--source", &source, "--save-frames", &save];
        let output = run(&[&args[..], if is_json { &["--json"] } else { &[] }].concat());
        if is_json {
            assert_eq!(json(&output)["frames"], 1);
        } else {
            let out = said(&output).0;
            assert!(out.contains("frame 1 ") && out.contains("\n1 frame in "), "{out}");
        }
        let seen = burst_pictures::read(&saved.join("frame-000001.png")).unwrap();
        assert_eq!((seen.width, seen.height), (plain.height, plain.width));
    }
}

fn the_largest_picture_is_stated() {
    let help = said(&run(&["stream", "--help"])).0;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("up to 16384 pixels a side"), "{help}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wide.png");
    picture(&file, burst_pictures::MAX_SIDE + 1, 2);
    let reason = "the picture has 16385 x 2 pixels; at most 16384 a side";
    assert_ends(&["stream", "--source", &text(&file)], 0, reason);
}

fn what_others_encode_is_refused_with_the_way_to_convert_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, parts) in [
        ("song.mp3", ["a .mp3 file is not read", "ffmpeg -i", "-ac 1 sound.wav"]),
        ("film.MP4", ["a .mp4 file is not read", "ffmpeg -i", "-pix_fmt yuv420p video.y4m"]),
        ("anim.gif", ["a .gif file is not read", "ffmpeg -i", "picture.png"]),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, b"whatever").unwrap();
        for part in parts {
            assert_ends(&["stream", "--source", &text(&file)], 0, part);
        }
    }
}

fn a_file_without_bytes_is_called_empty() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["empty.wav", "empty.jpg", "empty.png"] {
        let file = folder.path().join(name);
        std::fs::write(&file, b"").unwrap();
        let args = ["stream", "--source", &text(&file)];
        if name.ends_with("wav") {
            // A model of sound is needed to get there; the built-in one says first what it takes.
            continue;
        }
        assert_ends(&args, 0, &format!("{name}: the file is empty"));
    }
}
