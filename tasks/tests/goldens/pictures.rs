//! Classes, boxes, masks and larger pictures.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_tasks::{ImageClassifier, ImageSegmenter, ImageUpscaler, ObjectDetector};
use burst_testing::shared;

use crate::files::{Golden, assert_top_five, device, models, pictures};

burst_testing::tests![
    classifiers_give_the_goldens_best_five(&shared("")?),
    a_model_of_digits_gives_the_goldens_best_five(&shared("")?),
    detectors_give_the_goldens_boxes(&shared("")?),
    segmenters_give_the_goldens_masks(&shared("")?),
    super_resolution_gives_the_goldens_pictures(&shared("")?),
];

fn classifiers_give_the_goldens_best_five(root: &Path) {
    classify(root, "image classification");
}

fn a_model_of_digits_gives_the_goldens_best_five(root: &Path) {
    classify(root, "digit classification");
}

fn classify(root: &Path, task: &str) {
    for entry in models(root, task) {
        let options = entry.options.clone().with_max_results(5);
        let mut classifier = ImageClassifier::new(&device(), &entry.model, &options).unwrap();
        for golden in &entry.goldens {
            let pictures = pictures(root, golden);
            if let Some(best) = golden.json["top1"].as_array() {
                assert_eq!(best.len(), pictures.len());
                for (picture, best) in pictures.iter().zip(best) {
                    let found = classifier.classify(picture.view().unwrap()).unwrap();
                    assert_eq!(found[0].index as u64, best.as_u64().unwrap(), "{}", entry.name);
                }
                continue;
            }
            let found = classifier.classify(pictures[0].view().unwrap()).unwrap();
            assert_top_five(&entry.name, golden, &found);
        }
    }
}

fn detectors_give_the_goldens_boxes(root: &Path) {
    for entry in models(root, "object detection") {
        let options = entry.options.clone().with_score_threshold(0.0);
        let labels = options.labels.clone().unwrap();
        let mut detector = ObjectDetector::new(&device(), &entry.model, &options).unwrap();
        for golden in &entry.goldens {
            let want = (golden.floats(0), golden.floats(1), golden.floats(2), golden.floats(3));
            for (at, picture) in pictures(root, golden).iter().enumerate() {
                let found = detector.detect(picture.view().unwrap()).unwrap();
                assert_eq!(found.len(), 10);
                assert_eq!(want.3[at], 10.0);
                for (number, found) in (at * 10..).zip(&found) {
                    let (score, class) = (want.2[number], want.1[number]);
                    assert!((found.score - score).abs() < 1e-5, "{found:?} {score}");
                    let index = f32::from(u16::try_from(found.index).unwrap());
                    assert_eq!(index, class, "{} {}", entry.name, golden.input());
                    assert_eq!(found.label, labels[found.index]);
                    let &[top, left, bottom, right] = &want.0[number * 4..][..4] else { panic!() };
                    for (found, want) in found.edges.iter().zip([left, top, right, bottom]) {
                        assert!((found - want.clamp(0.0, 1.0)).abs() < 1e-4, "{found} {want}");
                    }
                }
            }
        }
    }
}

/// The class of each pixel.
fn mask(golden: &Golden) -> Vec<u8> {
    match golden.json["argmax"]["bin"].as_str() {
        Some(file) => golden.file(file),
        None => golden.output(0).to_vec(),
    }
}

fn segmenters_give_the_goldens_masks(root: &Path) {
    for entry in models(root, "semantic segmentation") {
        let mut segmenter = ImageSegmenter::new(&device(), &entry.model, &entry.options).unwrap();
        for golden in &entry.goldens {
            let picture = &pictures(root, golden)[0];
            let found = segmenter.segment(picture.view().unwrap()).unwrap();
            let want = mask(golden);
            let same = found.mask().iter().zip(&want).filter(|(a, b)| **a == u16::from(**b));
            let (same, all) = (same.count(), want.len());
            assert_eq!(found.mask().len(), all);
            // Scores that are equal but for the last bit are decided by it.
            assert!(all - same <= all / 10_000, "{}: {same} of {all}", entry.name);
            let (width, height) = found.size();
            assert_eq!((width, height), (picture.width as usize, picture.height as usize));
            let (x, y) = (picture.width / 2, picture.height / 3);
            let there = found.mask()[y as usize * width + x as usize];
            assert_eq!(found.class_at(x, y), Some(there));
            let shares: f32 = found.shares().iter().map(|share| share.share).sum();
            assert!((shares - 1.0).abs() < 1e-3, "{shares}");
        }
    }
}

/// The values that a golden keeps of a picture, with their rows, columns and channels.
fn kept(golden: &Golden, width: usize) -> Vec<(usize, f32)> {
    let (down, across) =
        if golden.json["outputs"][0]["stored"].is_null() { (1, 1) } else { (2, 3) };
    let values: Vec<f32> = match golden.json["outputs"][0]["dtype"].as_str().unwrap() {
        "float32" => golden.floats(0),
        // Stored as -128 to 127, with a scale of 1.
        _ => golden.output(0).iter().map(|b| f32::from(b.cast_signed()) + 128.0).collect(),
    };
    let columns = width.div_ceil(across);
    let place = |at: usize| {
        let (pixel, channel) = (at / 3, at % 3);
        let (row, column) = (pixel / columns * down, pixel % columns * across);
        (row * width + column) * 3 + channel
    };
    values.into_iter().enumerate().map(|(at, value)| (place(at), value)).collect()
}

fn super_resolution_gives_the_goldens_pictures(root: &Path) {
    for entry in models(root, "super-resolution") {
        let mut upscaler = ImageUpscaler::new(&device(), &entry.model, &entry.options).unwrap();
        for golden in &entry.goldens {
            let picture = &pictures(root, golden)[0];
            let found = upscaler.upscale(picture.view().unwrap()).unwrap();
            assert_eq!((found.width, found.height), (picture.width * 2, picture.height * 2));
            assert_eq!(found.rgb.len(), found.width as usize * found.height as usize * 3);
            for (at, want) in kept(golden, found.width as usize) {
                let byte = f32::from(found.rgb[at]);
                assert!((byte - want.clamp(0.0, 255.0)).abs() <= 0.51, "{}: {at}", entry.name);
            }
        }
    }
}
