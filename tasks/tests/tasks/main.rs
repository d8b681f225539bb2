//! Tasks over models of the tests' own.

mod devices;
mod metadata;
mod options;
mod refusals;
#[path = "../../../tflite/tests/support/mod.rs"]
mod support;

use burst_camera::{Camera, HEIGHT, LABELS, WIDTH};
use burst_tasks::{Picture, TaskModel, TaskOptions};

/// The model that the repository trained for its synthetic camera.
fn shapes() -> TaskModel {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/shapes.tflite");
    TaskModel::read(file).expect("the model is there")
}

/// With the names of what the camera shows.
fn named() -> TaskOptions {
    TaskOptions::default().with_labels(LABELS)
}

/// Frames of the camera, with the class that each shows.
fn frames(count: usize) -> Vec<(Picture, usize)> {
    let mut camera = Camera::new(7, WIDTH, HEIGHT).expect("a camera");
    let mut frame = || {
        let mut rgb = vec![0; camera.frame_bytes()];
        let class = camera.next_frame(&mut rgb).expect("a frame").class;
        let [width, height] = [WIDTH, HEIGHT].map(|side| u32::try_from(side).expect("small"));
        (Picture { width, height, rgb }, class)
    };
    (0..count).map(|_| frame()).collect()
}
