//! From a frame of any size to a model's input: crop or pad to its aspect, resize, convert.

use anyhow::{Result, bail};
use burst_hal::OperandType;
use fast_image_resize::images::{CroppedImageMut, Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::source::Frame;

/// How a frame of another aspect than the model's is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Fit {
    /// Cut the longer side, keep the centre.
    #[default]
    Crop,
    /// Squeeze the whole frame.
    Stretch,
    /// Keep the whole frame, with black bars.
    Pad,
}

/// What real number a byte of 0 and a byte of 255 stand for in a float input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum FloatRange {
    /// −1 to 1: `(byte − 127.5) / 127.5`.
    #[default]
    Signed,
    /// 0 to 1.
    Unit,
    /// 0 to 255.
    Byte,
}

/// A picture input of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputShape {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) ty: OperandType,
}

impl InputShape {
    /// The picture input with this type and these dimensions, `[1, height, width, 3]`.
    pub(crate) fn new(ty: OperandType, dims: &[u32]) -> Result<Self> {
        let &[1, height @ (1..), width @ (1..), 3] = dims else {
            bail!(
                "the model's input has the shape {dims:?}; a picture needs [1, height, width, 3]"
            );
        };
        match ty {
            OperandType::TensorFloat32
            | OperandType::TensorQuant8Asymm
            | OperandType::TensorQuant8AsymmSigned => Ok(InputShape { width, height, ty }),
            other => bail!("the model's input is {other}; a picture cannot be turned into that"),
        }
    }
}

/// Turns frames into a model's input.
pub(crate) struct Fitter {
    shape: InputShape,
    fit: Fit,
    range: FloatRange,
    resizer: Resizer,
    /// The resized picture, where the input does not take its bytes as they are.
    bytes: Vec<u8>,
}

impl Fitter {
    pub(crate) fn new(shape: InputShape, fit: Fit, range: FloatRange) -> Self {
        let bytes = match shape.ty {
            OperandType::TensorFloat32 => {
                vec![0; shape.width as usize * shape.height as usize * 3]
            }
            _ => Vec::new(),
        };
        Fitter { shape, fit, range, resizer: Resizer::new(), bytes }
    }

    /// Writes the frame into `input`, the memory that the driver reads.
    pub(crate) fn write(&mut self, frame: &Frame<'_>, input: &mut [u8]) -> Result<()> {
        match self.shape.ty {
            OperandType::TensorFloat32 => {
                let mut bytes = std::mem::take(&mut self.bytes);
                let resized = self.resize(frame, &mut bytes);
                self.bytes = bytes;
                resized?;
                for (out, byte) in input.chunks_exact_mut(4).zip(&self.bytes) {
                    out.copy_from_slice(&self.float(*byte).to_ne_bytes());
                }
            }
            OperandType::TensorQuant8AsymmSigned => {
                self.resize(frame, input)?;
                // A signed input means the same byte 128 lower.
                input.iter_mut().for_each(|byte| *byte ^= 0x80);
            }
            _ => self.resize(frame, input)?,
        }
        Ok(())
    }

    fn float(&self, byte: u8) -> f32 {
        let byte = f32::from(byte);
        match self.range {
            FloatRange::Signed => (byte - 127.5) / 127.5,
            FloatRange::Unit => byte / 255.0,
            FloatRange::Byte => byte,
        }
    }

    fn resize(&mut self, frame: &Frame<'_>, out: &mut [u8]) -> Result<()> {
        let InputShape { width, height, .. } = self.shape;
        if (frame.width, frame.height) == (width, height) {
            out.copy_from_slice(frame.rgb);
            return Ok(());
        }
        let from = ImageRef::new(frame.width, frame.height, frame.rgb, PixelType::U8x3)?;
        let options = ResizeOptions::new()
            .use_alpha(false)
            .resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
        match self.fit {
            Fit::Crop => {
                let (left, top, crop_width, crop_height) =
                    centre_crop(frame.width, frame.height, width, height);
                let options = options.crop(left, top, crop_width, crop_height);
                let mut to = Image::from_slice_u8(width, height, out, PixelType::U8x3)?;
                self.resizer.resize(&from, &mut to, &options)?;
            }
            Fit::Stretch => {
                let mut to = Image::from_slice_u8(width, height, out, PixelType::U8x3)?;
                self.resizer.resize(&from, &mut to, &options)?;
            }
            Fit::Pad => {
                out.fill(0);
                let (left, top, inner_width, inner_height) =
                    inside(frame.width, frame.height, width, height);
                let mut to = Image::from_slice_u8(width, height, out, PixelType::U8x3)?;
                let mut to = CroppedImageMut::new(&mut to, left, top, inner_width, inner_height)?;
                self.resizer.resize(&from, &mut to, &options)?;
            }
        }
        Ok(())
    }
}

/// Left, top, width and height of the largest centred part of a frame with the wanted aspect.
fn centre_crop(width: u32, height: u32, to_width: u32, to_height: u32) -> (f64, f64, f64, f64) {
    let (width, height) = (f64::from(width), f64::from(height));
    let aspect = f64::from(to_width) / f64::from(to_height);
    let crop_width = width.min(height * aspect);
    let crop_height = height.min(width / aspect);
    ((width - crop_width) / 2.0, (height - crop_height) / 2.0, crop_width, crop_height)
}

/// Left, top, width and height of the largest centred part of the input that has the frame's
/// aspect; at least one pixel a side.
fn inside(width: u32, height: u32, to_width: u32, to_height: u32) -> (u32, u32, u32, u32) {
    let scaled = |side: u32, by: u32, over: u32, most: u32| {
        let exact = (u64::from(side) * u64::from(by) + u64::from(over) / 2) / u64::from(over);
        u32::try_from(exact).unwrap_or(most).clamp(1, most)
    };
    let wide = u64::from(width) * u64::from(to_height) >= u64::from(height) * u64::from(to_width);
    let (inner_width, inner_height) = if wide {
        (to_width, scaled(height, to_width, width, to_height))
    } else {
        (scaled(width, to_height, height, to_width), to_height)
    };
    ((to_width - inner_width) / 2, (to_height - inner_height) / 2, inner_width, inner_height)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(fit: Fit, ty: OperandType, width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
        let shape = InputShape::new(ty, &[1, 2, 2, 3]).unwrap();
        let bytes = if ty == OperandType::TensorFloat32 { 48 } else { 12 };
        let mut input = vec![9; bytes];
        let frame = Frame { width, height, rgb, name: "", truth: None };
        Fitter::new(shape, fit, FloatRange::Signed).write(&frame, &mut input).unwrap();
        input
    }

    #[test]
    fn crop_keeps_the_centre_pad_keeps_all() {
        // Four columns: black, white, white, black.
        let row: Vec<u8> = [0, 255, 255, 0].iter().flat_map(|v| [*v; 3]).collect();
        let rgb = [row.clone(), row].concat();
        assert_eq!(fitted(Fit::Crop, OperandType::TensorQuant8Asymm, 4, 2, &rgb), [255; 12]);
        let padded = fitted(Fit::Pad, OperandType::TensorQuant8Asymm, 4, 2, &rgb);
        assert_eq!(padded[6..], [0; 6], "half of a 4:2 frame in a square is a bar");
        assert!(padded[..6].iter().all(|byte| (80..=180).contains(byte)), "{padded:?}");
    }

    #[test]
    fn types_hold_the_same_picture() {
        let rgb: Vec<u8> = [0u8, 255, 128, 1].iter().flat_map(|v| [*v; 3]).collect();
        let signed = fitted(Fit::Crop, OperandType::TensorQuant8AsymmSigned, 2, 2, &rgb);
        assert_eq!(signed[0].cast_signed(), -128);
        assert_eq!(signed[3].cast_signed(), 127);
        let float = fitted(Fit::Crop, OperandType::TensorFloat32, 2, 2, &rgb);
        assert_eq!(float[..4], (-1.0f32).to_ne_bytes());
        assert_eq!(float[12..16], 1.0f32.to_ne_bytes());
    }

    #[test]
    fn other_inputs_are_refused_in_words() {
        let error = InputShape::new(OperandType::TensorFloat32, &[1, 80]).unwrap_err();
        assert!(error.to_string().contains("[1, 80]"), "{error}");
        assert!(InputShape::new(OperandType::TensorInt32, &[1, 2, 2, 3]).is_err());
    }

    #[test]
    fn geometry_is_centred() {
        assert_eq!(centre_crop(640, 480, 224, 224), (80.0, 0.0, 480.0, 480.0));
        assert_eq!(centre_crop(100, 400, 200, 100), (0.0, 175.0, 100.0, 50.0));
        assert_eq!(inside(640, 480, 224, 224), (0, 28, 224, 168));
        assert_eq!(inside(1, 10_000, 224, 224), (111, 0, 1, 224));
    }
}
