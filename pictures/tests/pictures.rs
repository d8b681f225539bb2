//! Pictures read, scaled and written.

use burst_pictures::{
    Area, MAX_SIDE, PictureError, Scaler, decode_motion_jpeg, encode_jpeg, read, rgb_bytes,
    write_png,
};

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
    let error = read(&file).unwrap_err();
    assert!(matches!(error, PictureError::TooLarge { height: 1, .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("16385 x 1 pixels; at most 16384 a side"), "{said}");
    std::fs::write(&file, "").unwrap();
    assert_eq!(read(&file).unwrap_err().to_string(), "the file is empty");
}

/// Eight by eight grey pixels as JPEG twice side by side, the right ones brighter.
fn small_jpeg(exif_orientation: Option<u8>) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    if let Some(orientation) = exif_orientation {
        let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
        segment(&mut bytes, 0xE1, &exif);
    }
    segment(&mut bytes, 0xDB, &[&[0][..], &[1; 64]].concat());
    // 8 rows of 16 pixels: two blocks.
    segment(&mut bytes, 0xC0, &[8, 0, 8, 0, 16, 1, 1, 0x11, 0]);
    // DC: 0 is category 0, 10 is category 7; AC: 0 is the end of the block.
    segment(&mut bytes, 0xC4, &[&[0x00, 1, 1][..], &[0; 14], &[0, 7]].concat());
    segment(&mut bytes, 0xC4, &[&[0x10, 1][..], &[0; 15], &[0]].concat());
    segment(&mut bytes, 0xDA, &[1, 1, 0x00, 0, 63, 0]);
    // 0 (no difference), 0 (end); 10 (category 7), 1111111 (difference 127), 0 (end).
    bytes.extend([0b0010_1111, 0b1110_1111]);
    bytes.extend([0xFF, 0xD9]);
    bytes
}

fn segment(bytes: &mut Vec<u8>, marker: u8, body: &[u8]) {
    bytes.extend([0xFF, marker]);
    bytes.extend(u16::try_from(body.len() + 2).expect("a short body").to_be_bytes());
    bytes.extend(body);
}

#[test]
fn a_jpeg_that_is_cut_off_is_no_picture_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.jpg");
    let whole = small_jpeg(Some(1));
    std::fs::write(&file, &whole).unwrap();
    let picture = read(&file).unwrap();
    assert_eq!((picture.width, picture.height), (16, 8));
    for length in 1..whole.len() {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(read(&file).is_err(), "{length} of {} bytes", whole.len());
    }
    std::fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    assert!(matches!(read(&file), Err(PictureError::CutOff { .. })));
    // A thumbnail has an end of its own, which is not the picture's.
    let mut with_thumbnail = vec![0xFF, 0xD8];
    segment(&mut with_thumbnail, 0xE1, &whole);
    with_thumbnail.extend(&whole[2..]);
    std::fs::write(&file, &with_thumbnail).unwrap();
    assert!(read(&file).is_ok());
    std::fs::write(&file, &with_thumbnail[..with_thumbnail.len() - 2]).unwrap();
    assert!(matches!(read(&file), Err(PictureError::CutOff { .. })));
    // What a camera puts behind the end does not matter.
    std::fs::write(&file, [&whole[..], b"more"].concat()).unwrap();
    assert!(read(&file).is_ok());
}

#[test]
fn a_picture_that_lies_on_its_side_is_turned_upright() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.jpg");
    let turned = |orientation| {
        std::fs::write(&file, small_jpeg(orientation)).unwrap();
        read(&file).unwrap()
    };
    let plain = turned(None);
    assert_eq!((plain.width, plain.height), (16, 8));
    let (dark, bright) = (plain.rgb[0], plain.rgb[15 * 3]);
    assert!(bright > dark, "{dark} {bright}");
    assert_eq!(turned(Some(1)), plain);
    // 6: to be turned clockwise, so that what is left comes to the top.
    let picture = turned(Some(6));
    assert_eq!((picture.width, picture.height), (8, 16));
    assert_eq!((picture.rgb[0], picture.rgb[15 * 8 * 3]), (dark, bright));
    // 8: counter-clockwise.
    let picture = turned(Some(8));
    assert_eq!((picture.rgb[0], picture.rgb[15 * 8 * 3]), (bright, dark));
    // 3: upside down.
    let picture = turned(Some(3));
    assert_eq!((picture.width, picture.rgb[0], picture.rgb[15 * 3]), (16, bright, dark));
}

/// A JPEG picture without its segments of Huffman tables, of which there is one at least.
fn without_tables(jpeg: &[u8]) -> Vec<u8> {
    let (mut out, mut at, mut left_out) = (jpeg[..2].to_vec(), 2, 0);
    while jpeg[at + 1] != 0xDA {
        let end = at + 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        if jpeg[at + 1] == 0xC4 {
            left_out += 1;
        } else {
            out.extend(&jpeg[at..end]);
        }
        at = end;
    }
    out.extend(&jpeg[at..]);
    assert!(left_out > 0);
    out
}

#[test]
fn a_frame_of_a_camera_without_its_huffman_tables_is_the_same_picture() {
    let noise = |at: u32| u8::try_from(at.wrapping_mul(2_654_435_761) >> 24).unwrap();
    let rgb: Vec<u8> = (0..40 * 24 * 3).map(noise).collect();
    for quality in [10, 50, 95] {
        let whole = encode_jpeg(40, 24, &rgb, quality).unwrap();
        let picture = decode_motion_jpeg(&whole).unwrap();
        assert_eq!((picture.width, picture.height), (40, 24));
        let bare = without_tables(&whole);
        assert_eq!(decode_motion_jpeg(&bare).unwrap(), picture, "quality {quality}");
        let padded = [&bare[..], &[0; 500]].concat();
        assert_eq!(decode_motion_jpeg(&padded).unwrap(), picture, "a buffer is longer");
        let cut = decode_motion_jpeg(&bare[..bare.len() / 2]);
        assert!(matches!(cut, Err(PictureError::CutOff { .. })), "{cut:?}");
    }
    assert!(matches!(decode_motion_jpeg(&[0; 9]), Err(PictureError::NoJpeg { bytes: 9 })));
    assert!(encode_jpeg(40, 24, &rgb[1..], 50).is_err());
}
