//! What a user of the camera may rely on.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a test's unwrap is its failure; casts are of pixel positions"
)]

use burst_camera::{Camera, CameraError, Drawing, HEIGHT, LABELS, SCENE_FRAMES, WIDTH};

fn camera(seed: u64) -> (Camera, Vec<u8>) {
    let camera = Camera::new(seed, WIDTH, HEIGHT).unwrap();
    let frame = vec![0; camera.frame_bytes()];
    (camera, frame)
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

/// The first 40 frames of seed 1 and five of its samples: whoever changes a picture must train
/// the built-in model again and write the new number here.
#[test]
fn the_same_seed_draws_the_same_bytes_on_every_machine() {
    let (mut camera, mut frame) = camera(1);
    let mut sum = 0xCBF2_9CE4_8422_2325;
    for _ in 0..40 {
        camera.next_frame(&mut frame).unwrap();
        sum = hash(&frame, sum);
    }
    for index in 0..5 {
        camera.draw_sample(index, &mut frame).unwrap();
        sum = hash(&frame, sum);
    }
    assert_eq!(sum, 0xEEBC_0CE5_04C5_60BF, "0x{sum:016X}");
}

#[test]
fn every_ten_scenes_show_every_class_once() {
    let (mut camera, mut frame) = camera(5);
    for deck in 0..3 {
        let mut shown = Vec::new();
        for number in 0..10 {
            let drawings: Vec<Drawing> =
                (0..SCENE_FRAMES).map(|_| camera.next_frame(&mut frame).unwrap()).collect();
            let class = drawings[0].class;
            for (within, drawing) in (0..).zip(&drawings) {
                let place = (drawing.class, drawing.scene, drawing.frame);
                assert_eq!(place, (class, deck * 10 + number, within));
            }
            shown.push(class);
        }
        shown.sort_unstable();
        assert_eq!(shown, (0..LABELS.len()).collect::<Vec<_>>(), "deck {deck}");
    }
}

#[test]
fn a_shape_glides_through_its_scene_and_stays_in_the_middle_square() {
    let (mut camera, mut frame) = camera(8);
    let mut longest = 0.0f32;
    for scene in 0..30 {
        let mut before: Option<Drawing> = None;
        for _ in 0..SCENE_FRAMES {
            let drawing = camera.next_frame(&mut frame).unwrap();
            let [x, y] = drawing.centre;
            let r = drawing.radius;
            assert!(x - r >= 20.0 && x + r <= 140.0, "scene {scene}: {drawing:?}");
            assert!(y - r >= 0.0 && y + r <= 120.0, "scene {scene}: {drawing:?}");
            if let Some(before) = before {
                let way = (x - before.centre[0]).hypot(y - before.centre[1]);
                // Corner to corner of what is free for the smallest shape, in 19 steps.
                assert!(way > 0.0 && way < 72.0 * 1.415 / 19.0, "scene {scene}: moved {way}");
                longest = longest.max(way);
            }
            before = Some(drawing);
        }
    }
    assert!(longest > 1.0, "nothing moved by a whole pixel: {longest}");
}

#[test]
fn frames_of_a_scene_differ_and_so_do_scenes_and_seeds() {
    let (mut first, mut frame) = camera(3);
    let mut sums = Vec::new();
    for _ in 0..2 * SCENE_FRAMES {
        first.next_frame(&mut frame).unwrap();
        sums.push(hash(&frame, 0));
    }
    let (mut second, _) = camera(4);
    second.next_frame(&mut frame).unwrap();
    sums.push(hash(&frame, 0));
    let count = sums.len();
    sums.sort_unstable();
    sums.dedup();
    assert_eq!(sums.len(), count);
}

/// Brightness of what a human would look at: the shape's pixels against those just around it.
#[test]
fn the_shape_stands_out_from_what_surrounds_it() {
    let (mut camera, mut frame) = camera(21);
    for index in 0..300 {
        let drawing = camera.draw_sample(index, &mut frame).unwrap();
        // Of these classes the middle is inside the shape; of a ring and a crescent it is not.
        if !["circle", "square", "cross", "star"].contains(&drawing.label()) {
            continue;
        }
        let [x, y] = drawing.centre;
        let inside = mean_luma(&frame, |px, py| (px - x).hypot(py - y) < 3.0);
        let around = mean_luma(&frame, |px, py| {
            let far = (px - x).hypot(py - y);
            far > drawing.radius + 3.0 && far < drawing.radius + 8.0
        });
        // 0.26 of full brightness, in light that may be as low as a half, of 255; less what small
        // clutter may add to the surroundings.
        assert!((inside - around).abs() > 20.0, "sample {index}: {inside} in {around}");
    }
}

fn mean_luma(frame: &[u8], here: impl Fn(f32, f32) -> bool) -> f32 {
    let mut sum = 0.0;
    let mut count = 0.0f32;
    for (index, pixel) in frame.chunks_exact(3).enumerate() {
        let [x, y] = [index % WIDTH, index / WIDTH].map(|v| v as f32 + 0.5);
        if here(x, y) {
            let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(f32::from);
            sum += 0.299 * r + 0.587 * g + 0.114 * b;
            count += 1.0;
        }
    }
    sum / count.max(1.0)
}

/// With nothing but the mean colour of the picture nobody can guess the class.
#[test]
fn no_class_has_a_colour() {
    let (mut camera, mut frame) = camera(2);
    let mut sums = [[0.0f32; 3]; LABELS.len()];
    for index in 0..2000 {
        let drawing = camera.draw_sample(index, &mut frame).unwrap();
        let [x, y] = drawing.centre.map(|v| v as usize);
        for (k, sum) in sums[drawing.class].iter_mut().enumerate() {
            *sum += f32::from(frame[(y * WIDTH + x) * 3 + k]) / 200.0;
        }
    }
    for (class, mean) in sums.iter().enumerate() {
        for value in mean {
            // The mean of 200 colours with a deviation of 75 each: standard error 5.3.
            let middle = sums.iter().flatten().sum::<f32>() / 30.0;
            assert!((value - middle).abs() < 30.0, "{}: {mean:?} of {middle}", LABELS[class]);
        }
    }
}

#[test]
fn samples_do_not_depend_on_order_and_never_show_the_stream() {
    let (mut camera, mut frame) = camera(6);
    let mut first = frame.clone();
    let drawing = camera.draw_sample(3, &mut first).unwrap();
    camera.next_frame(&mut frame).unwrap();
    assert_ne!(frame, first);
    camera.draw_sample(2, &mut frame).unwrap();
    assert_ne!(frame, first);
    assert_eq!(camera.draw_sample(3, &mut frame), Ok(drawing));
    assert_eq!(frame, first);
}

#[test]
fn looking_at_samples_does_not_disturb_the_stream() {
    let (mut quiet, mut want) = camera(6);
    let (mut disturbed, mut got) = camera(6);
    for index in 0..SCENE_FRAMES + 2 {
        disturbed.draw_sample(index.into(), &mut got).unwrap();
        assert_eq!(disturbed.next_frame(&mut got), quiet.next_frame(&mut want));
        assert_eq!(got, want, "frame {index}");
    }
}

#[test]
fn sizes_and_buffers_that_do_not_fit_are_refused() {
    for (width, height) in [(31, 120), (160, 0), (4097, 120), (160, usize::MAX)] {
        let error = Camera::new(1, width, height).unwrap_err();
        assert_eq!(error, CameraError::Size { width, height, min: 32, max: 4096 });
    }
    let (mut camera, mut frame) = camera(1);
    let want = 160 * 120 * 3;
    for got in [0, want - 1] {
        let error = camera.next_frame(&mut frame[..got]).unwrap_err();
        assert_eq!(error, CameraError::Buffer { want, got });
    }
    let drawing = camera.next_frame(&mut frame).unwrap();
    assert_eq!((drawing.scene, drawing.frame), (0, 0), "refused frames count as not taken");
}

#[test]
fn tall_wide_and_smallest_frames_work() {
    for (width, height) in [(32, 32), (33, 200), (640, 480)] {
        let mut camera = Camera::new(1, width, height).unwrap();
        let mut frame = vec![7; camera.frame_bytes()];
        let drawing = camera.next_frame(&mut frame).unwrap();
        let side = width.min(height) as f32;
        assert!(drawing.radius > 0.17 * side && drawing.radius < 0.44 * side, "{drawing:?}");
        let middle = [width as f32 / 2.0, height as f32 / 2.0];
        for (centre, middle) in drawing.centre.iter().zip(middle) {
            assert!((centre - middle).abs() + drawing.radius < side / 2.0, "{drawing:?}");
        }
    }
}
