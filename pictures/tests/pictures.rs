//! Pictures read, scaled and written.

use burst_pictures::{Area, MAX_SIDE, PictureError, Scaler, read, rgb_bytes, write_png};

/// Bytes of one grey value per pixel.
fn grey(values: &[u8]) -> Vec<u8> {
    values.iter().flat_map(|value| [*value; 3]).collect()
}

#[test]
fn a_written_picture_is_read_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.png");
    let rgb: Vec<u8> = (0..2 * 3 * 3).collect();
    write_png(&file, 2, 3, &rgb).unwrap();
    let picture = read(&file).unwrap();
    assert_eq!((picture.width, picture.height, picture.rgb), (2, 3, rgb));
}

#[test]
fn bytes_of_another_size_are_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_png(&folder.path().join("p.png"), 2, 3, &[0; 17]).unwrap_err();
    assert_eq!(error.to_string(), "a picture of 2 x 3 pixels has 18 bytes, 17 were given");
    let area = Area { left: 0.0, top: 0.0, width: 1.0, height: 1.0 };
    let mut out = [0; 3];
    let wrong = Scaler::new().fill((&[0; 5], (2, 1)), area, (&mut out, (1, 1)));
    assert!(matches!(wrong, Err(PictureError::Bytes { wanted: 6, found: 5, .. })), "{wrong:?}");
    let wrong = Scaler::new().fill((&[0; 6], (2, 1)), area, (&mut out, (2, 1)));
    assert!(matches!(wrong, Err(PictureError::Bytes { wanted: 6, found: 3, .. })), "{wrong:?}");
    assert_eq!(rgb_bytes(u32::MAX, u32::MAX), None);
}

#[test]
fn an_area_outside_of_the_picture_is_refused() {
    let rgb = grey(&[0; 4]);
    for (left, top, width, height) in [
        (-0.1, 0.0, 1.0, 1.0),
        (0.0, 1.5, 1.0, 1.0),
        (0.0, 0.0, 2.1, 1.0),
        (0.0, 0.0, 0.0, 1.0),
        (f64::NAN, 0.0, 1.0, 1.0),
    ] {
        let area = Area { left, top, width, height };
        let result = Scaler::new().fill((&rgb, (2, 2)), area, (&mut [0; 3], (1, 1)));
        assert!(matches!(result, Err(PictureError::Area { .. })), "{area:?}: {result:?}");
    }
}

#[test]
fn the_middle_of_a_picture_fills_another_and_an_inset_leaves_bars() {
    let row = grey(&[0, 255, 255, 0]);
    let rgb = [row.clone(), row].concat();
    let mut out = [9; 12];
    let middle = Area { left: 1.0, top: 0.0, width: 2.0, height: 2.0 };
    Scaler::new().fill((&rgb, (4, 2)), middle, (&mut out, (2, 2))).unwrap();
    assert_eq!(out, [255; 12]);
    let mut out = [9; 12];
    Scaler::new().inset((&rgb, (4, 2)), ((0, 0), (2, 1)), (&mut out, (2, 2))).unwrap();
    assert_eq!(out[6..], [9; 6], "what is not in the rectangle stays");
    assert!(out[..6].iter().all(|byte| (80..=180).contains(byte)), "{out:?}");
    let outside = Scaler::new().inset((&rgb, (4, 2)), ((1, 0), (2, 1)), (&mut out, (2, 2)));
    assert!(matches!(outside, Err(PictureError::Scale(_))), "{outside:?}");
}

#[test]
fn what_is_no_picture_or_too_large_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    assert!(matches!(read(&file), Err(PictureError::File(_))));
    std::fs::write(&file, "no picture").unwrap();
    assert!(matches!(read(&file), Err(PictureError::Format(_))));
    let wide = MAX_SIDE + 1;
    write_png(&file, wide, 1, &vec![0; rgb_bytes(wide, 1).unwrap()]).unwrap();
    assert!(matches!(read(&file), Err(PictureError::Format(_))), "{wide} pixels a side");
}
