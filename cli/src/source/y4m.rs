//! Video in the uncompressed YUV4MPEG2 form (`.y4m`), 8 bits, BT.601 in the usual limited range.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use y4m::{Colorspace, Decoder, Limits};

use super::colours::Yuv;
use super::{Frame, MAX_SIDE, Source};
use crate::out::counted;

/// Bytes one frame may take in the file: 4:4:4 at the largest side would be 768 MiB.
const MAX_FRAME_BYTES: usize = 256 << 20;

/// Bytes of a header that the decoder reads.
const HEADER_BYTES: u64 = 1024;

/// How many pixels share one pair of colour values.
#[derive(Debug, Clone, Copy)]
struct Subsampling {
    horizontal: usize,
    vertical: usize,
}

/// A reader that counts what was read from it: the decoder does not tell an end between two frames from one in the
/// middle of a frame.
struct Counted<R> {
    from: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(bytes)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

pub(super) struct Video {
    decoder: Decoder<Counted<BufReader<File>>>,
    /// Bytes that the decoder has read.
    read: Rc<Cell<u64>>,
    frames: u64,
    /// It is damaged, and nothing behind that is read.
    is_over: bool,
    size: (u32, u32),
    colour: Option<Subsampling>,
    name: String,
    rgb: Vec<u8>,
}

impl Video {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let limits = Limits { bytes: MAX_FRAME_BYTES };
        let read = Rc::new(Cell::new(0));
        let counted = Counted { from: BufReader::new(file), bytes: Rc::clone(&read) };
        let decoder = match Decoder::new_with_limits(counted, limits) {
            Err(y4m::Error::OutOfMemory) => bail!(
                "{name}: by its header a frame has more than {} MiB, which is not read",
                MAX_FRAME_BYTES >> 20
            ),
            Err(y4m::Error::ParseError(_)) if read.get() >= HEADER_BYTES => {
                bail!("{name} is no YUV4MPEG2 video: its header has more than {HEADER_BYTES} bytes")
            }
            decoder => decoder.with_context(|| format!("{name} is not a YUV4MPEG2 video"))?,
        };
        let (width, height) = (decoder.get_width(), decoder.get_height());
        let largest = MAX_SIDE as usize;
        if !(1..=largest).contains(&width) || !(1..=largest).contains(&height) {
            bail!("{name}: frames of {width} x {height} pixels, at most {largest} a side");
        }
        let colour = match decoder.get_colorspace() {
            Colorspace::Cmono => None,
            Colorspace::C420
            | Colorspace::C420jpeg
            | Colorspace::C420paldv
            | Colorspace::C420mpeg2 => Some(Subsampling { horizontal: 2, vertical: 2 }),
            Colorspace::C422 => Some(Subsampling { horizontal: 2, vertical: 1 }),
            Colorspace::C444 => Some(Subsampling { horizontal: 1, vertical: 1 }),
            other => bail!("{name}: pixels stored as {other:?} are not read, only 8-bit ones are"),
        };
        let rgb = vec![0; width * height * 3];
        let size = (u32::try_from(width)?, u32::try_from(height)?);
        Ok(Video { decoder, read, frames: 0, is_over: false, size, colour, name, rgb })
    }
}

impl Source for Video {
    fn advance(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let (name, number, before) = (&self.name, self.frames + 1, self.read.get());
        let frame = match self.decoder.read_frame() {
            Ok(frame) => frame,
            Err(error) => {
                self.is_over = true;
                return match (error, self.read.get() - before) {
                    (y4m::Error::EOF, 0) => Ok(false),
                    (y4m::Error::EOF, bytes) => {
                        let bytes = counted(bytes, "byte");
                        bail!("{name} is cut off: it ends {bytes} into frame {number}")
                    }
                    (error, _) => {
                        Err(error).with_context(|| format!("{name} is damaged at frame {number}"))
                    }
                };
            }
        };
        self.frames = number;
        let planes = [frame.get_y_plane(), frame.get_u_plane(), frame.get_v_plane()];
        to_rgb(planes, self.size.0 as usize, self.colour, &mut self.rgb);
        Ok(true)
    }

    fn frame(&self) -> Frame<'_> {
        let (width, height) = self.size;
        Frame { width, height, rgb: &self.rgb, name: &self.name, truth: None }
    }
}

fn to_rgb(planes: [&[u8]; 3], width: usize, colour: Option<Subsampling>, rgb: &mut [u8]) {
    let [y, u, v] = planes;
    for (row, out) in rgb.chunks_exact_mut(width * 3).enumerate() {
        for (column, pixel) in out.chunks_exact_mut(3).enumerate() {
            let luma = y[row * width + column];
            let (u, v) = match colour {
                None => (128, 128),
                Some(Subsampling { horizontal, vertical }) => {
                    let at = row / vertical * width.div_ceil(horizontal) + column / horizontal;
                    (u[at], v[at])
                }
            };
            pixel.copy_from_slice(&Yuv::USUAL.rgb(luma, u, v));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_too_much_is_told_with_the_limits() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.y4m");
        let long = format!("YUV4MPEG2 W2 H2 X{}\n", "x".repeat(4096));
        let large = "YUV4MPEG2 W16384 H16384 C444\n".to_owned();
        for (header, limit) in [(long, "1024 bytes"), (large, "256 MiB")] {
            std::fs::write(&file, header).unwrap();
            let said = Video::open(&file).err().unwrap().to_string();
            assert!(said.contains("a.y4m") && said.contains(limit), "{said}");
        }
    }

    #[test]
    fn colour_planes_are_shared_by_their_pixels() {
        // 3 x 2 pixels in 4:2:0: two colour columns, one colour row.
        let mut rgb = [0; 18];
        let half = Some(Subsampling { horizontal: 2, vertical: 2 });
        to_rgb([&[81; 6], &[90, 128], &[240, 128]], 3, half, &mut rgb);
        assert_eq!(rgb[0..3], rgb[3..6]);
        assert_eq!(rgb[0..3], rgb[9..12]);
        assert_ne!(rgb[0..3], rgb[6..9]);
    }
}
