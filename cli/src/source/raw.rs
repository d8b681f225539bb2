//! Raw frames on standard input or in a file: pixels without any header.

use std::io::{ErrorKind, Read};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

use super::{Frame, MAX_SIDE, Source};

/// How the pixels of a raw frame are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum PixelFormat {
    /// Red, green, blue, one byte each.
    #[default]
    Rgb24,
    /// Blue, green, red, one byte each.
    Bgr24,
    /// Red, green, blue, one unused byte.
    Rgba,
    /// One byte of brightness.
    Gray,
}

impl PixelFormat {
    fn bytes(self) -> usize {
        match self {
            PixelFormat::Rgb24 | PixelFormat::Bgr24 => 3,
            PixelFormat::Rgba => 4,
            PixelFormat::Gray => 1,
        }
    }

    fn rgb(self, pixel: &[u8]) -> [u8; 3] {
        match self {
            PixelFormat::Rgb24 | PixelFormat::Rgba => [pixel[0], pixel[1], pixel[2]],
            PixelFormat::Bgr24 => [pixel[2], pixel[1], pixel[0]],
            PixelFormat::Gray => [pixel[0]; 3],
        }
    }
}

/// Width and height of raw frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || anyhow!("expected WIDTHxHEIGHT such as 640x480, each 1 to {MAX_SIDE}");
        let (width, height) = text.split_once('x').ok_or_else(wrong)?;
        let side = |text: &str| match text.parse() {
            Ok(side @ 1..=MAX_SIDE) => Ok(side),
            _ => Err(wrong()),
        };
        Ok(Size { width: side(width)?, height: side(height)? })
    }
}

/// What raw frames look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawFormat {
    pub(crate) size: Size,
    pub(crate) pixels: PixelFormat,
}

pub(super) struct Raw<R> {
    from: R,
    format: RawFormat,
    stored: Vec<u8>,
    rgb: Vec<u8>,
    frames: u64,
    /// It ended in the middle of a frame, or could not be read.
    is_over: bool,
    name: String,
}

impl<R: Read> Raw<R> {
    pub(super) fn new(from: R, format: RawFormat, name: &str) -> Self {
        let pixels = format.size.width as usize * format.size.height as usize;
        let stored = vec![0; pixels * format.pixels.bytes()];
        Raw {
            from,
            format,
            stored,
            rgb: vec![0; pixels * 3],
            frames: 0,
            is_over: false,
            name: name.into(),
        }
    }

    /// Fills `stored`; false at the end of the input.
    fn read_frame(&mut self) -> Result<bool> {
        let mut filled = 0;
        while filled < self.stored.len() {
            match self.from.read(&mut self.stored[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => bail!(
                    "{} ended in the middle of frame {}: {filled} of {} bytes",
                    self.name,
                    self.frames + 1,
                    self.stored.len()
                ),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Source for Raw<R> {
    fn advance(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.is_over = true; // unless a whole frame comes
        if !self.read_frame()? {
            return Ok(false);
        }
        self.is_over = false;
        self.frames += 1;
        let pixels = self.format.pixels;
        let stored = self.stored.chunks_exact(pixels.bytes());
        for (rgb, pixel) in self.rgb.chunks_exact_mut(3).zip(stored) {
            rgb.copy_from_slice(&pixels.rgb(pixel));
        }
        Ok(true)
    }

    /// A pipe, mostly.
    fn comes_by_itself(&self) -> bool {
        true
    }

    fn frame(&self) -> Frame<'_> {
        let Size { width, height } = self.format.size;
        Frame { width, height, rgb: &self.rgb, name: &self.name, truth: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8], pixels: PixelFormat) -> Result<Vec<Vec<u8>>> {
        let format = RawFormat { size: "2x1".parse().unwrap(), pixels };
        let mut raw = Raw::new(bytes, format, "test");
        let mut all = Vec::new();
        while raw.advance()? {
            all.push(raw.frame().rgb.to_vec());
        }
        Ok(all)
    }

    #[test]
    fn pixels_come_out_as_rgb() {
        assert_eq!(frames(&[1, 2, 3, 4, 5, 6], PixelFormat::Rgb24).unwrap(), [[1, 2, 3, 4, 5, 6]]);
        assert_eq!(frames(&[1, 2, 3, 4, 5, 6], PixelFormat::Bgr24).unwrap(), [[3, 2, 1, 6, 5, 4]]);
        assert_eq!(frames(&[1, 2, 3, 9, 4, 5, 6, 9], PixelFormat::Rgba).unwrap().len(), 1);
        assert_eq!(
            frames(&[7, 8, 9, 10], PixelFormat::Gray).unwrap(),
            [[7, 7, 7, 8, 8, 8], [9, 9, 9, 10, 10, 10]]
        );
    }

    #[test]
    fn a_frame_cut_short_is_an_error_that_says_where() {
        let error = frames(&[1, 2, 3, 4, 5, 6, 7], PixelFormat::Rgb24).unwrap_err().to_string();
        assert!(error.contains("frame 2") && error.contains("1 of 6 bytes"), "{error}");
        let format = RawFormat { size: "2x1".parse().unwrap(), pixels: PixelFormat::Gray };
        let mut raw = Raw::new(&[1][..], format, "test");
        assert!(raw.advance().is_err());
        assert!(!raw.advance().unwrap(), "behind that there is nothing");
    }

    #[test]
    fn sizes_are_checked() {
        for wrong in ["", "10", "0x3", "3x", "99999x1", "-1x2"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
