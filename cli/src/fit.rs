//! From a frame of any size to a model's input: crop or pad to its aspect, resize, convert.

use anyhow::{Result, bail};
use burst_hal::OperandType;
use burst_pictures::{Area, Scaler};

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

impl FloatRange {
    /// The real number that a byte stands for.
    fn real(self, byte: u8) -> f32 {
        let byte = f32::from(byte);
        match self {
            FloatRange::Signed => (byte - 127.5) / 127.5,
            FloatRange::Unit => byte / 255.0,
            FloatRange::Byte => byte,
        }
    }

    /// The byte that stands for a real number, or for the nearest one that has a byte.
    pub(crate) fn byte(self, real: f32) -> u8 {
        let exact = match self {
            FloatRange::Signed => real * 127.5 + 127.5,
            FloatRange::Unit => real * 255.0,
            FloatRange::Byte => real,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let byte = exact.round() as u8;
        byte
    }
}

/// A picture input of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputShape {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 3: red, green, blue; 1: brightness alone.
    pub(crate) channels: u32,
    pub(crate) ty: OperandType,
}

impl InputShape {
    /// The picture input with this type and these dimensions: `[1, height, width, 3]`, or
    /// `[1, height, width, 1]` for brightness alone; of 8-bit inputs `[1, height, width]` too.
    pub(crate) fn new(ty: OperandType, dims: &[u32]) -> Result<Self> {
        let is_float = match ty {
            OperandType::TensorFloat32 => true,
            OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => false,
            other => bail!("the model's input is {other}; a picture cannot be turned into that"),
        };
        let (height, width, channels) = match *dims {
            [1, height @ (1..), width @ (1..), channels @ (1 | 3)] => (height, width, channels),
            [1, height @ (1..), width @ (1..)] if !is_float => (height, width, 1),
            _ => bail!(
                "the model's input has the shape {dims:?}; a picture needs [1, height, width, 3]"
            ),
        };
        Ok(InputShape { width, height, channels, ty })
    }

    fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// Where a frame lies in a model's input: the part of the frame, in its own pixels, that the whole
/// input shows. Beyond the frame's edges where the input has bars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Placement {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Turns frames into a model's input.
pub(crate) struct Fitter {
    shape: InputShape,
    fit: Fit,
    range: FloatRange,
    scaler: Scaler,
    /// The resized picture, where the input does not take its bytes as they are; else empty.
    bytes: Vec<u8>,
}

impl Fitter {
    pub(crate) fn new(shape: InputShape, fit: Fit, range: FloatRange) -> Self {
        let as_they_are = shape.channels == 3 && shape.ty != OperandType::TensorFloat32;
        let bytes = vec![0; if as_they_are { 0 } else { shape.pixels() * 3 }];
        Fitter { shape, fit, range, scaler: Scaler::new(), bytes }
    }

    /// Writes the frame into `input`, the memory that the driver reads.
    pub(crate) fn write(&mut self, frame: &Frame<'_>, input: &mut [u8]) -> Result<()> {
        if self.bytes.is_empty() {
            self.resize(frame, input)?;
        } else {
            let mut bytes = std::mem::take(&mut self.bytes);
            let resized = self.resize(frame, &mut bytes);
            self.bytes = bytes;
            resized?;
            self.convert(input);
        }
        if self.shape.ty == OperandType::TensorQuant8AsymmSigned {
            // A signed input means the same byte 128 lower.
            input.iter_mut().for_each(|byte| *byte ^= 0x80);
        }
        Ok(())
    }

    /// From resized bytes to the input's channels and type.
    fn convert(&self, input: &mut [u8]) {
        let floats = self.shape.ty == OperandType::TensorFloat32;
        let mut put = |index: usize, byte: u8| {
            if floats {
                input[index * 4..][..4].copy_from_slice(&self.range.real(byte).to_ne_bytes());
            } else {
                input[index] = byte;
            }
        };
        if self.shape.channels == 3 {
            self.bytes.iter().enumerate().for_each(|(at, byte)| put(at, *byte));
        } else {
            let pixels = self.bytes.chunks_exact(3).enumerate();
            pixels.for_each(|(at, rgb)| put(at, brightness([rgb[0], rgb[1], rgb[2]])));
        }
    }

    /// Where a frame of this size lies in the input.
    pub(crate) fn placement(&self, width: u32, height: u32) -> Placement {
        let InputShape { width: to_width, height: to_height, .. } = self.shape;
        let (frame_width, frame_height) = (f64::from(width), f64::from(height));
        match self.fit {
            Fit::Crop => {
                let (left, top, width, height) = centre_crop(width, height, to_width, to_height);
                Placement { left, top, width, height }
            }
            Fit::Stretch => {
                Placement { left: 0.0, top: 0.0, width: frame_width, height: frame_height }
            }
            Fit::Pad => {
                let (left, top, inner_width, inner_height) =
                    inside(width, height, to_width, to_height);
                let across = frame_width / f64::from(inner_width);
                let down = frame_height / f64::from(inner_height);
                Placement {
                    left: -f64::from(left) * across,
                    top: -f64::from(top) * down,
                    width: f64::from(to_width) * across,
                    height: f64::from(to_height) * down,
                }
            }
        }
    }

    fn resize(&mut self, frame: &Frame<'_>, out: &mut [u8]) -> Result<()> {
        let InputShape { width, height, .. } = self.shape;
        if (frame.width, frame.height) == (width, height) {
            out.copy_from_slice(frame.rgb);
            return Ok(());
        }
        let from = (frame.rgb, (frame.width, frame.height));
        match self.fit {
            Fit::Crop => {
                let (left, top, crop_width, crop_height) =
                    centre_crop(frame.width, frame.height, width, height);
                let area = Area { left, top, width: crop_width, height: crop_height };
                self.scaler.fill(from, area, (out, (width, height)))?;
            }
            Fit::Stretch => {
                let (all_across, all_down) = (f64::from(frame.width), f64::from(frame.height));
                let area = Area { left: 0.0, top: 0.0, width: all_across, height: all_down };
                self.scaler.fill(from, area, (out, (width, height)))?;
            }
            Fit::Pad => {
                out.fill(0);
                let (left, top, inner_width, inner_height) =
                    inside(frame.width, frame.height, width, height);
                let inner = ((left, top), (inner_width, inner_height));
                self.scaler.inset(from, inner, (out, (width, height)))?;
            }
        }
        Ok(())
    }
}

/// Brightness as BT.601 weighs it; of a grey pixel the very same value.
fn brightness([red, green, blue]: [u8; 3]) -> u8 {
    let weighted = u32::from(red) * 77 + u32::from(green) * 150 + u32::from(blue) * 29;
    u8::try_from((weighted + 128) >> 8).unwrap_or(u8::MAX)
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
        assert!(InputShape::new(OperandType::TensorFloat32, &[1, 40, 80]).is_err(), "features");
    }

    #[test]
    fn a_model_of_brightness_sees_grey_as_it_is() {
        for ty in [OperandType::TensorQuant8Asymm, OperandType::TensorFloat32] {
            let shape = InputShape::new(ty, &[1, 16, 16, 1]).unwrap();
            let rgb: Vec<u8> = (0..=255).flat_map(|v| [v; 3]).collect();
            let mut input = vec![0; if ty == OperandType::TensorFloat32 { 1024 } else { 256 }];
            let frame = Frame { width: 16, height: 16, rgb: &rgb, name: "", truth: None };
            Fitter::new(shape, Fit::Crop, FloatRange::Byte).write(&frame, &mut input).unwrap();
            for grey in 0..=255_u8 {
                let at = usize::from(grey);
                match ty {
                    OperandType::TensorFloat32 => {
                        assert_eq!(input[at * 4..][..4], f32::from(grey).to_ne_bytes());
                    }
                    _ => assert_eq!(input[at], grey),
                }
            }
        }
        assert_eq!(
            InputShape::new(OperandType::TensorQuant8Asymm, &[1, 28, 28]).unwrap().channels,
            1
        );
    }

    #[test]
    fn bytes_come_back_from_every_range() {
        for range in [FloatRange::Signed, FloatRange::Unit, FloatRange::Byte] {
            for byte in 0..=255 {
                assert_eq!(range.byte(range.real(byte)), byte, "{range:?}");
            }
            assert_eq!((range.byte(-9.0), range.byte(999.0), range.byte(f32::NAN)), (0, 255, 0));
        }
    }

    #[test]
    fn a_frame_is_found_again_in_the_input() {
        let shape = InputShape::new(OperandType::TensorQuant8Asymm, &[1, 100, 100, 3]).unwrap();
        let placed = |fit| Fitter::new(shape, fit, FloatRange::Signed).placement(400, 200);
        let area = |left, top, width, height| Placement { left, top, width, height };
        assert_eq!(placed(Fit::Crop), area(100.0, 0.0, 200.0, 200.0));
        assert_eq!(placed(Fit::Stretch), area(0.0, 0.0, 400.0, 200.0));
        assert_eq!(placed(Fit::Pad), area(0.0, -100.0, 400.0, 400.0));
    }

    #[test]
    fn geometry_is_centred() {
        assert_eq!(centre_crop(640, 480, 224, 224), (80.0, 0.0, 480.0, 480.0));
        assert_eq!(centre_crop(100, 400, 200, 100), (0.0, 175.0, 100.0, 50.0));
        assert_eq!(inside(640, 480, 224, 224), (0, 28, 224, 168));
        assert_eq!(inside(1, 10_000, 224, 224), (111, 0, 1, 224));
    }
}
