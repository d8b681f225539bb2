//! Sound files of one channel with 16 bits per sample.

/// The samples of such a file, as bytes; or what is wrong with it.
pub(crate) fn samples(bytes: &[u8]) -> Result<&[u8], &'static str> {
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err("no WAVE file");
    }
    let mut rest = bytes.get(12..).unwrap_or_default();
    let mut is_known = false;
    while let Some((head, body)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, length @ ..] = *head;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        let content = body.get(..length).ok_or("the WAVE file is cut short")?;
        match &[a, b, c, d] {
            b"fmt " => {
                check_format(content)?;
                is_known = true;
            }
            b"data" if is_known => return Ok(content),
            b"data" => return Err("the WAVE file does not say its format"),
            _ => {}
        }
        // Chunks begin at even offsets.
        rest = body.get(length.next_multiple_of(2)..).unwrap_or_default();
    }
    Err("the WAVE file has no samples")
}

fn check_format(content: &[u8]) -> Result<(), &'static str> {
    let field = |at: usize| content.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match (field(0), field(2), field(14)) {
        (Some(1), Some(1), Some(16)) => Ok(()),
        _ => Err("the WAVE file has not one channel of 16-bit PCM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        let pad = vec![0; content.len() % 2];
        [name, &length, content, &pad].concat()
    }

    fn file(channels: u8, bits: u8) -> Vec<u8> {
        let format = [1, 0, channels, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, bits, 0];
        let chunks = [chunk(b"fmt ", &format), chunk(b"LIST", b"odd"), chunk(b"data", &[1, 2])];
        [b"RIFF\0\0\0\0WAVE".as_slice(), &chunks.concat()].concat()
    }

    #[test]
    fn samples_are_found_behind_other_chunks() {
        assert_eq!(samples(&file(1, 16)), Ok([1, 2].as_slice()));
    }

    #[test]
    fn other_formats_and_damaged_files_are_refused() {
        assert!(samples(&file(2, 16)).unwrap_err().contains("one channel"));
        assert!(samples(&file(1, 8)).unwrap_err().contains("16-bit"));
        assert!(samples(b"RIFX").unwrap_err().contains("no WAVE"));
        let whole = file(1, 16);
        for length in 0..whole.len() - 1 {
            assert!(samples(&whole[..length]).is_err(), "{length}");
        }
    }
}
