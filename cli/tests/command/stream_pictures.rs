//! Detection, segmentation and super-resolution: what is said of pictures, and what is drawn.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_pictures::Picture;
use embedded_graphics::Drawable;
use embedded_graphics::geometry::Point;
use embedded_graphics::mock_display::MockDisplay;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_1::FONT_6X10;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::primitives::PointsIter;
use embedded_graphics::text::{Baseline, Text};
use serde_json::Value;

use burst_testing::shared;

use crate::support::{json, run};

burst_testing::tests![
    a_detector_finds_what_the_golden_finds(&shared("")?),
    boxes_are_drawn_into_the_frame_that_they_belong_to(&shared("")?),
    labels_of_a_small_frame_do_not_cover_each_other(&shared("")?),
    a_segmentation_has_the_shares_of_the_golden(&shared("")?),
    a_super_resolution_model_saves_the_larger_picture(&shared("")?),
    a_folder_that_cannot_be_written_is_told_before_the_stream_starts(),
    classes_are_written_into_saved_frames(),
];

/// A detection: class, score, and left, top, right, bottom.
type Found = (u64, f32, [f32; 4]);

/// From this score on a detection of the reference has to be found again.
const MIN_SCORE: f32 = 0.45;

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "was written as a float")]
fn number(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

/// Streams pictures through a model, with labels where a file of them is named; the report.
fn stream(root: &Path, model: &str, labels: &str, source: &str, more: &[&str]) -> Value {
    let model = text(&root.join(format!("models/{model}.tflite")));
    let labels = (!labels.is_empty()).then(|| text(&root.join("inputs").join(labels)));
    let mut args = vec!["stream", "--model", &model, "--source", source, "--json"];
    if let Some(labels) = &labels {
        args.extend(["--labels", labels]);
    }
    args.extend(more);
    let output = run(&args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    json(&output)
}

fn boxes(report: &Value) -> Vec<Found> {
    let all = report["results"][0]["boxes"].as_array().expect("boxes");
    all.iter()
        .map(|found| {
            let edges = [0, 1, 2, 3].map(|at| number(&found["edges"][at]));
            (found["index"].as_u64().unwrap(), number(&found["score"]), edges)
        })
        .collect()
}

/// What the reference found with enough score.
fn golden_boxes(root: &Path, input: &str) -> Vec<Found> {
    let folder = root.join("golden/ssd_mobilenet_v1_coco_quant");
    let golden: Value =
        serde_json::from_slice(&std::fs::read(folder.join(format!("{input}.json"))).unwrap())
            .unwrap();
    let bytes = std::fs::read(folder.join(format!("{input}.bin"))).unwrap();
    let values = floats(&bytes);
    let output = |index: usize| {
        let offset = golden["outputs"][index]["offset"].as_u64().unwrap();
        &values[usize::try_from(offset).unwrap() / 4..]
    };
    (0..10)
        .filter(|at| output(2)[*at] >= MIN_SCORE)
        .map(|at| {
            let [top, left, bottom, right] = [0, 1, 2, 3].map(|edge| output(0)[at * 4 + edge]);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a class")]
            let class = output(1)[at] as u64;
            (class, output(2)[at], [left, top, right, bottom].map(|edge| edge.clamp(0.0, 1.0)))
        })
        .collect()
}

/// How much of two boxes they have in common.
fn overlap(a: [f32; 4], b: [f32; 4]) -> f32 {
    let area = |e: [f32; 4]| (e[2] - e[0]).max(0.0) * (e[3] - e[1]).max(0.0);
    let both = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    both / (area(a) + area(b) - both)
}

const DETECTOR: &str = "ssd_mobilenet_v1_coco_quant";

fn a_detector_finds_what_the_golden_finds(root: &Path) {
    for picture in ["cats_and_dogs", "pets", "dogs"] {
        let want = golden_boxes(root, &format!("{picture}_300"));
        assert!(!want.is_empty(), "{picture}: a picture with something in it");
        // The very bytes that the reference had.
        let raw = text(&root.join(format!("inputs/raw/{picture}_300.rgb")));
        let report = stream(root, DETECTOR, "coco_labels.txt", &raw, &["--size", "300x300"]);
        let got = boxes(&report);
        assert_eq!(got.len(), want.len(), "{picture}: {report}");
        for (want, got) in want.iter().zip(&got) {
            assert_eq!((want.0, want.1), (got.0, got.1), "{picture}: {report}");
            assert!(overlap(want.2, got.2) > 0.999, "{picture}: {want:?} {got:?}");
        }
        // The photograph as published: decoded and resized here.
        let jpeg = text(&root.join(format!("inputs/images/{picture}.jpg")));
        let got = boxes(&stream(root, DETECTOR, "coco_labels.txt", &jpeg, &[]));
        for want in &want {
            let found = got.iter().any(|one| one.0 == want.0 && overlap(one.2, want.2) > 0.7);
            // A little above the least score it may just fall below it.
            assert!(found || want.1 < MIN_SCORE + 0.1, "{picture}: no {want:?} in {got:?}");
        }
    }
}

fn boxes_are_drawn_into_the_frame_that_they_belong_to(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let dogs = root.join("inputs/images/dogs.jpg");
    let saved = folder.path().join("new/folder");
    let save = text(&saved);
    let more = ["--save-frames", save.as_str(), "--frames", "2"];
    let report = stream(root, DETECTOR, "coco_labels.txt", &text(&dogs), &more);
    let names: Vec<_> =
        std::fs::read_dir(&saved).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let plain = burst_pictures::read(&dogs).unwrap();
    let drawn = burst_pictures::read(&saved.join("frame-000002.png")).unwrap();
    let (width, height) = (plain.width, plain.height);
    assert_eq!((width, height), (drawn.width, drawn.height));
    for (_, _, [left, top, right, bottom]) in boxes(&report) {
        let middle = |a: f32, b: f32| (a + b) / 2.0;
        for (x, y) in [(left, middle(top, bottom)), (middle(left, right), bottom)] {
            assert_ne!(
                near(&plain, x, y, width, height),
                near(&drawn, x, y, width, height),
                "no line at {x}, {y}"
            );
        }
    }
    let changed =
        plain.rgb.chunks_exact(3).zip(drawn.rgb.chunks_exact(3)).filter(|(a, b)| a != b).count();
    assert!(changed < plain.rgb.len() / 3 / 5, "boxes are lines: {changed} pixels changed");
}

/// How many pixels the letters of a text have, in the font that small frames get.
fn ink(text: &str) -> usize {
    let style = MonoTextStyle::new(&FONT_6X10, BinaryColor::On);
    let letter = |letter: char| {
        let mut paper = MockDisplay::new();
        let text = letter.to_string();
        Text::with_baseline(&text, Point::zero(), style, Baseline::Top).draw(&mut paper).unwrap();
        let area = paper.affected_area();
        area.points().filter(|at| paper.get_pixel(*at) == Some(BinaryColor::On)).count()
    };
    // One at a time: the paper is 64 pixels wide.
    text.chars().map(letter).sum()
}

fn labels_of_a_small_frame_do_not_cover_each_other(root: &Path) {
    const SMALL: (u32, u32) = (128, 96);
    let folder = tempfile::tempdir().unwrap();
    let dogs = burst_pictures::read(&root.join("inputs/images/dogs.jpg")).unwrap();
    // Neither black nor white, which are the colours of letters.
    let muted = |channel: u8| channel / 2 + 64;
    let (columns, rows) = SMALL;
    let small: Vec<u8> = (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (column, row)))
        .flat_map(|(x, y)| pixel(&dogs, x * dogs.width / columns, y * dogs.height / rows))
        .map(muted)
        .collect();
    let source = folder.path().join("small.png");
    burst_pictures::write_png(&source, columns, rows, &small).unwrap();
    let saved = text(&folder.path().join("saved"));
    let more = ["--min-score", "0.3", "--save-frames", &saved];
    let report = stream(root, DETECTOR, "coco_labels.txt", &text(&source), &more);
    let found = report["results"][0]["boxes"].as_array().unwrap();
    assert!(found.len() > 1, "labels of one box cover nothing: {report}");
    let lettered: usize = found
        .iter()
        .map(|found| {
            let (label, score) = (found["label"].as_str().unwrap(), number(&found["score"]));
            ink(&format!("{label} {score:.2}"))
        })
        .sum();
    let drawn = burst_pictures::read(&Path::new(&saved).join("frame-000001.png")).unwrap();
    let seen = drawn.rgb.chunks_exact(3).filter(|rgb| **rgb == [0; 3] || **rgb == [255; 3]).count();
    assert_eq!(seen, lettered, "every letter of every label can be seen: {report}");
}

fn pixel(picture: &Picture, column: u32, row: u32) -> [u8; 3] {
    let at = (row as usize * picture.width as usize + column as usize) * 3;
    [picture.rgb[at], picture.rgb[at + 1], picture.rgb[at + 2]]
}

/// The pixels about a position that is given in parts of the picture.
fn near(picture: &Picture, x: f32, y: f32, width: u32, height: u32) -> Vec<[u8; 3]> {
    let at = |part: f32, length: u32| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a pixel"
        )]
        let pixel = (part * length as f32) as u32;
        pixel.saturating_sub(2)..(pixel + 2).min(length)
    };
    let columns = at(x, width);
    at(y, height)
        .flat_map(|row| columns.clone().map(move |column| (column, row)))
        .map(|(column, row)| pixel(picture, column, row))
        .collect()
}

fn a_segmentation_has_the_shares_of_the_golden(root: &Path) {
    let labels = "pascal_voc_segmentation_labels.txt";
    for (model, input, side) in [
        ("deeplabv3_257_float", "dogs_257", 257),
        ("deeplabv3_257_float", "segin_257", 257),
        ("deeplabv3_mnv2_dm05_513_quant", "pets_513", 513),
    ] {
        let raw = text(&root.join(format!("inputs/raw/{input}.rgb")));
        let size = format!("{side}x{side}");
        let report = stream(root, model, labels, &raw, &["--size", &size]);
        let want = golden_classes(root, model, input);
        let pixels: f64 = want.iter().map(|(_, count)| count).sum();
        let got = report["results"][0]["classes"].as_array().unwrap();
        for (class, count) in &want {
            let share = got
                .iter()
                .find(|share| share["index"] == *class)
                .map_or(0.0, |share| share["share"].as_f64().unwrap());
            let off = (share - count / pixels).abs();
            assert!(off < 0.005, "{model} {input}: class {class} is off by {off}");
        }
        let best = got[0]["label"].as_str().unwrap();
        assert_eq!(best, "background", "{report}");
    }
}

/// How many pixels the reference gave to each class.
fn golden_classes(root: &Path, model: &str, input: &str) -> Vec<(u64, f64)> {
    let folder = root.join("golden").join(model);
    let golden: Value =
        serde_json::from_slice(&std::fs::read(folder.join(format!("{input}.json"))).unwrap())
            .unwrap();
    let names = golden["argmax"]["classes"].as_object();
    let labels = root.join("inputs/pascal_voc_segmentation_labels.txt");
    let labels = std::fs::read_to_string(labels).unwrap();
    if let Some(names) = names {
        let index = |name: &str| labels.lines().position(|line| line == name).unwrap() as u64;
        return names.iter().map(|(name, count)| (index(name), count.as_f64().unwrap())).collect();
    }
    // Without such a table the output is the class of each pixel, one byte each.
    let bytes = std::fs::read(folder.join(format!("{input}.bin"))).unwrap();
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|class| counts[usize::from(*class)] += 1);
    let counted = (0..).zip(counts.map(f64::from));
    counted.filter(|(_, count)| *count > 0.0).collect()
}

fn a_super_resolution_model_saves_the_larger_picture(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let raw = text(&root.join("inputs/raw/cat_240x135.rgb"));
    let bytes = std::fs::read(&raw).unwrap();
    for model in ["edsr_f32b5_240x135_float", "edsr_f32b5_240x135_int8"] {
        let saved = folder.path().join(model);
        let save = text(&saved);
        let more = ["--size", "240x135", "--save-frames", save.as_str()];
        let report = stream(root, model, "", &raw, &more);
        assert_eq!(report["results"][0]["width"], 480, "{report}");
        let picture = burst_pictures::read(&saved.join("frame-000001.png")).unwrap();
        assert_eq!((picture.width, picture.height), (480, 270));
        // Four pixels for one: their mean is near the one they come from.
        let mut off = 0_u64;
        for (at, channel) in bytes.iter().enumerate() {
            let (x, y, c) = (at / 3 % 240, at / 720, at % 3);
            let (x, y) = (u32::try_from(x * 2).unwrap(), u32::try_from(y * 2).unwrap());
            let of = |dx, dy| u64::from(pixel(&picture, x + dx, y + dy)[c]);
            off +=
                (of(0, 0) + of(1, 0) + of(0, 1) + of(1, 1)).div_ceil(4).abs_diff((*channel).into());
        }
        let mean = off / bytes.len() as u64;
        assert!(mean < 8, "{model}: off by {mean} on average");
    }
}

fn a_folder_that_cannot_be_written_is_told_before_the_stream_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    for wrong in [text(&file), text(&file.join("below")), "/proc/nowhere".to_owned()] {
        let output = run(&["stream", "--save-frames", &wrong]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("cannot save frames in") && said.contains(&wrong), "{said}");
    }
    let wrong = text(&folder.path().join("no/such/folder/out"));
    let output = run(&["stream", "--save-output", &wrong]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

fn classes_are_written_into_saved_frames() {
    let folder = tempfile::tempdir().unwrap();
    let save = text(folder.path());
    let report = json(&run(&["stream", "--frames", "3", "--save-frames", &save, "--json"]));
    assert_eq!(report["frames"], 3, "{report}");
    for number in 1..=3 {
        let file = folder.path().join(format!("frame-{number:06}.png"));
        let picture = burst_pictures::read(&file).unwrap();
        assert_eq!((picture.width, picture.height), (160, 120), "the synthetic camera's size");
    }
}
