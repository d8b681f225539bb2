//! Whether a JPEG file is all there. The decoder fills up what is missing with grey and says nothing,
//! so its markers are followed here, to the one that ends the picture (ITU-T T.81, annex B).

const START_OF_SCAN: u8 = 0xDA;
const END_OF_IMAGE: u8 = 0xD9;
/// The marker of Huffman tables.
pub(crate) const HUFFMAN_TABLES: u8 = 0xC4;
/// The marker of arithmetic coding, which needs none.
const ARITHMETIC_CODING: u8 = 0xCC;

/// Whether these bytes begin as a JPEG file does.
pub(crate) fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xFF, 0xD8, 0xFF])
}

/// Whether the picture goes on to its end marker. What stands behind that does not matter, and neither
/// does an end marker inside a segment, such as that of a thumbnail.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some((marker, behind)) = marker(bytes, at) {
        match marker {
            END_OF_IMAGE => return true,
            START_OF_SCAN => match segment_end(bytes, behind) {
                Some(end) => at = scan_end(bytes, end),
                None => return false,
            },
            0x01 | 0xD0..=0xD8 => at = behind, // markers without a segment
            _ => match segment_end(bytes, behind) {
                Some(end) => at = end,
                None => return false,
            },
        }
    }
    false
}

/// Where the marker of the first scan stands, if no tables for its codes come before it.
pub(crate) fn scan_without_tables(bytes: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        let (marker, behind) = marker(bytes, at)?;
        at = match marker {
            START_OF_SCAN => return Some(behind - 2),
            HUFFMAN_TABLES | ARITHMETIC_CODING | END_OF_IMAGE => return None,
            0x01 | 0xD0..=0xD8 => behind,
            _ => segment_end(bytes, behind)?,
        };
    }
}

/// The marker at or behind `at`, and where what follows it begins. Bytes that belong to no segment
/// are passed over, as decoders do.
fn marker(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        match (*bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xFF, code @ 0x01..=0xFE) => return Some((code, at + 2)),
            _ => at += 1,
        }
    }
}

/// Where a segment ends whose length stands at `at`; `None` where the file ends before.
fn segment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
    let end = at + usize::from(length.max(2));
    (end <= bytes.len()).then_some(end)
}

/// Where the coded pixels end that begin at `at`: at the next marker that is not one of theirs.
fn scan_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            [0xFF, 0x00 | 0xD0..=0xD7] => at += 2, // a byte of 255, a restart
            [0xFF, 0xFF] => at += 1,               // filling
            [0xFF, _] => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}
