//! From a picture of any size to a model's input: crop or pad to its aspect, resize, convert.

use burst_hal::OperandType;
use burst_pictures::{Area, PictureView, Scaler};
use burst_tflite::TensorInfo;

use crate::error::TaskError;

/// How a picture of another aspect than the model's is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Cut the longer side, keep the centre.
    #[default]
    Crop,
    /// Squeeze the whole picture.
    Stretch,
    /// Keep the whole picture, with black bars.
    Pad,
}

/// What real number a byte stands for in a float input: `(byte - mean) / deviation`, for red, green and blue. An
/// input of brightness takes the first of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    mean: [f32; 3],
    deviation: [f32; 3],
}

impl Normalisation {
    /// −1 to 1.
    pub const SIGNED: Normalisation = Normalisation::all(127.5, 127.5);
    /// 0 to 1.
    pub const UNIT: Normalisation = Normalisation::all(0.0, 255.0);
    /// 0 to 255.
    pub const BYTE: Normalisation = Normalisation::all(0.0, 1.0);

    const fn all(mean: f32, deviation: f32) -> Self {
        Normalisation { mean: [mean; 3], deviation: [deviation; 3] }
    }

    /// A normalisation by these numbers.
    ///
    /// # Errors
    /// [`TaskError::Normalisation`]: one of them is not finite, or a deviation is 0.
    pub fn new(mean: [f32; 3], deviation: [f32; 3]) -> Result<Self, TaskError> {
        let refuse = |why| Err(TaskError::Normalisation { mean, deviation, why });
        if mean.iter().chain(&deviation).any(|number| !number.is_finite()) {
            return refuse("expected finite numbers");
        }
        if deviation.contains(&0.0) {
            return refuse("nothing can be divided by 0");
        }
        Ok(Normalisation { mean, deviation })
    }

    /// The real number that a byte of a channel stands for.
    fn real(self, channel: usize, byte: u8) -> f32 {
        (f32::from(byte) - self.mean[channel]) / self.deviation[channel]
    }

    /// The real numbers that the bytes of a channel stand for.
    fn reals(self, channel: usize) -> [f32; 256] {
        let mut reals = [0.0; 256];
        for (byte, real) in (0..=u8::MAX).zip(&mut reals) {
            *real = self.real(channel, byte);
        }
        reals
    }

    /// The byte that stands for a real number of a channel, or for the nearest one that has a byte.
    pub(crate) fn byte(self, channel: usize, real: f32) -> u8 {
        let exact = real * self.deviation[channel] + self.mean[channel];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let byte = exact.round() as u8;
        byte
    }
}

/// A picture input of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureShape {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// 3: red, green, blue; 1: brightness alone.
    pub channels: u32,
    /// How it stores them.
    pub ty: OperandType,
}

impl PictureShape {
    /// The picture that this input takes: `[1, height, width, 3]`, or `[1, height, width, 1]` for brightness alone; of
    /// 8-bit inputs `[1, height, width]` too.
    ///
    /// # Errors
    /// [`TaskError::InputType`] or [`TaskError::InputShape`] where it takes none.
    pub fn of(input: &TensorInfo) -> Result<Self, TaskError> {
        let ty = input.ty;
        let is_float = match ty {
            OperandType::TensorFloat32 => true,
            OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => false,
            ty => {
                let (input, what) = (input.name.clone(), "a picture");
                return Err(TaskError::InputType { input, ty, what });
            }
        };
        let (height, width, channels) = match *input.dims.as_slice() {
            [1, height @ (1..), width @ (1..), channels @ (1 | 3)] => (height, width, channels),
            [1, height @ (1..), width @ (1..)] if !is_float => (height, width, 1),
            _ => {
                let (input, dims) = (input.name.clone(), input.dims.to_vec());
                let needed = "a picture needs [1, height, width, 3]";
                return Err(TaskError::InputShape { input, dims, needed });
            }
        };
        Ok(PictureShape { width, height, channels, ty })
    }

    fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Bytes of such an input.
    #[must_use]
    pub fn bytes(self) -> usize {
        let element = if self.ty == OperandType::TensorFloat32 { 4 } else { 1 };
        self.pixels() * self.channels as usize * element
    }
}

/// Where a picture lies in a model's input: the part of the picture, in its own pixels, that the whole
/// input shows. Beyond the picture's edges where the input has bars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placement {
    /// Distance of the part from the picture's left edge.
    pub left: f64,
    /// Distance from its upper edge.
    pub top: f64,
    /// Width of the part.
    pub width: f64,
    /// Height of the part.
    pub height: f64,
    /// Width of the whole picture.
    pub picture_width: u32,
    /// Height of the whole picture.
    pub picture_height: u32,
}

/// Turns pictures into a model's input.
#[derive(Debug)]
pub struct PictureFitter {
    /// The input's name.
    name: String,
    shape: PictureShape,
    fit: Fit,
    normalisation: Normalisation,
    scaler: Scaler,
    /// What each byte becomes in a float input, by channel; else empty.
    reals: Vec<[f32; 256]>,
    /// The resized picture, where the input does not take its bytes as they are; else empty.
    bytes: Vec<u8>,
}

impl PictureFitter {
    /// For this input of a model.
    ///
    /// # Errors
    /// As [`PictureShape::of`].
    pub fn new(
        input: &TensorInfo,
        fit: Fit,
        normalisation: Normalisation,
    ) -> Result<Self, TaskError> {
        let shape = PictureShape::of(input)?;
        let as_they_are = shape.channels == 3 && shape.ty != OperandType::TensorFloat32;
        let bytes = vec![0; if as_they_are { 0 } else { shape.pixels() * 3 }];
        let (name, scaler) = (input.name.clone(), Scaler::new());
        let reals = (0..3).map(|channel| normalisation.reals(channel));
        let reals = reals.filter(|_| shape.ty == OperandType::TensorFloat32).collect();
        Ok(PictureFitter { name, shape, fit, normalisation, scaler, reals, bytes })
    }

    /// What the input takes.
    #[must_use]
    pub fn shape(&self) -> PictureShape {
        self.shape
    }

    /// What bytes become in it.
    #[must_use]
    pub fn normalisation(&self) -> Normalisation {
        self.normalisation
    }

    /// How pictures of another aspect are fitted.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Writes a picture into `input`, the memory that the driver reads.
    ///
    /// # Errors
    /// [`TaskError::InputLength`] where that is not the memory of such an input.
    pub fn write(&mut self, picture: PictureView<'_>, input: &mut [u8]) -> Result<(), TaskError> {
        if input.len() != self.shape.bytes() {
            return Err(TaskError::InputLength {
                input: self.name.clone(),
                unit: "bytes",
                wanted: self.shape.bytes(),
                found: input.len(),
            });
        }
        if self.bytes.is_empty() {
            self.resize(picture, input)?;
        } else {
            let mut bytes = std::mem::take(&mut self.bytes);
            let resized = self.resize(picture, &mut bytes);
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
        let is_grey = self.shape.channels == 1;
        let pixels = self.bytes.chunks_exact(3).map(|rgb| [rgb[0], rgb[1], rgb[2]]);
        let pixels = pixels.map(|rgb| if is_grey { [brightness(rgb); 3] } else { rgb });
        let channels = self.shape.channels as usize;
        if self.shape.ty != OperandType::TensorFloat32 {
            let out = input.chunks_exact_mut(channels);
            out.zip(pixels).for_each(|(out, rgb)| out.copy_from_slice(&rgb[..channels]));
            return;
        }
        let out = input.as_chunks_mut::<4>().0.chunks_exact_mut(channels);
        for (out, rgb) in out.zip(pixels) {
            for ((out, byte), reals) in out.iter_mut().zip(rgb).zip(&self.reals) {
                *out = reals[usize::from(byte)].to_ne_bytes();
            }
        }
    }

    /// Where a picture of this size lies in the input.
    #[must_use]
    pub fn placement(&self, picture_width: u32, picture_height: u32) -> Placement {
        let [left, top, width, height] = self.part(picture_width, picture_height);
        Placement { left, top, width, height, picture_width, picture_height }
    }

    /// Left, top, width and height of the part of a picture that the input shows.
    fn part(&self, width: u32, height: u32) -> [f64; 4] {
        let PictureShape { width: to_width, height: to_height, .. } = self.shape;
        let (frame_width, frame_height) = (f64::from(width), f64::from(height));
        match self.fit {
            Fit::Crop => {
                let (left, top, width, height) = centre_crop(width, height, to_width, to_height);
                [left, top, width, height]
            }
            Fit::Stretch => [0.0, 0.0, frame_width, frame_height],
            Fit::Pad => {
                let (left, top, inner_width, inner_height) =
                    inside(width, height, to_width, to_height);
                let across = frame_width / f64::from(inner_width);
                let down = frame_height / f64::from(inner_height);
                [
                    -f64::from(left) * across,
                    -f64::from(top) * down,
                    f64::from(to_width) * across,
                    f64::from(to_height) * down,
                ]
            }
        }
    }

    fn resize(&mut self, picture: PictureView<'_>, out: &mut [u8]) -> Result<(), TaskError> {
        let PictureShape { width, height, .. } = self.shape;
        let (from_width, from_height) = (picture.width(), picture.height());
        if (from_width, from_height) == (width, height) {
            out.copy_from_slice(picture.rgb());
            return Ok(());
        }
        let from = (picture.rgb(), (from_width, from_height));
        match self.fit {
            Fit::Crop => {
                let (left, top, crop_width, crop_height) =
                    centre_crop(from_width, from_height, width, height);
                let area = Area { left, top, width: crop_width, height: crop_height };
                self.scaler.fill(from, area, (out, (width, height)))?;
            }
            Fit::Stretch => {
                let (all_across, all_down) = (f64::from(from_width), f64::from(from_height));
                let area = Area { left: 0.0, top: 0.0, width: all_across, height: all_down };
                self.scaler.fill(from, area, (out, (width, height)))?;
            }
            Fit::Pad => {
                out.fill(0);
                let (left, top, inner_width, inner_height) =
                    inside(from_width, from_height, width, height);
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
    use burst_tflite::ElementType;

    use super::*;

    fn input(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let (name, file_type) = ("image".into(), ElementType::Float32);
        TensorInfo { name, ty, file_type, dims: dims.into(), scale: 0.5, zero_point: 0 }
    }

    fn fitter(ty: OperandType, dims: &[u32], fit: Fit) -> PictureFitter {
        PictureFitter::new(&input(ty, dims), fit, Normalisation::SIGNED).unwrap()
    }

    fn fitted(fit: Fit, ty: OperandType, width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
        let mut fitter = fitter(ty, &[1, 2, 2, 3], fit);
        let mut input = vec![9; fitter.shape().bytes()];
        fitter.write(PictureView::new(width, height, rgb).unwrap(), &mut input).unwrap();
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
    fn each_channel_has_its_own_normalisation() {
        let normalisation = Normalisation::new([10.0, 20.0, 30.0], [1.0, 2.0, 4.0]).unwrap();
        let input = input(OperandType::TensorFloat32, &[1, 1, 1, 3]);
        let mut fitter = PictureFitter::new(&input, Fit::Crop, normalisation).unwrap();
        let mut bytes = [0; 12];
        fitter.write(PictureView::new(1, 1, &[20, 40, 50]).unwrap(), &mut bytes).unwrap();
        let found = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b));
        assert_eq!(found.collect::<Vec<_>>(), [10.0, 10.0, 5.0]);
        assert!(Normalisation::new([0.0; 3], [1.0, 0.0, 1.0]).is_err());
        assert!(Normalisation::new([0.0, f32::NAN, 0.0], [1.0; 3]).is_err());
    }

    #[test]
    fn other_inputs_are_refused_by_name() {
        let of = |ty, dims: &[u32]| PictureShape::of(&input(ty, dims));
        let error = of(OperandType::TensorFloat32, &[1, 80]).unwrap_err().to_string();
        assert!(error.contains("[1, 80]") && error.contains("`image`"), "{error}");
        let error = of(OperandType::TensorInt32, &[1, 2, 2, 3]).unwrap_err().to_string();
        assert!(error.contains("TENSOR_INT32") && error.contains("`image`"), "{error}");
        assert!(of(OperandType::TensorFloat32, &[1, 40, 80]).is_err(), "features");
        let mut fitter = fitter(OperandType::TensorFloat32, &[1, 2, 2, 3], Fit::Crop);
        let picture = PictureView::new(1, 1, &[0; 3]).unwrap();
        let error = fitter.write(picture, &mut [0; 47]).unwrap_err().to_string();
        assert_eq!(error, "the model's input `image` takes 48 bytes, 47 were given");
    }

    #[test]
    fn a_model_of_brightness_sees_grey_as_it_is() {
        for ty in [OperandType::TensorQuant8Asymm, OperandType::TensorFloat32] {
            let input = input(ty, &[1, 16, 16, 1]);
            let mut fitter = PictureFitter::new(&input, Fit::Crop, Normalisation::BYTE).unwrap();
            let rgb: Vec<u8> = (0..=255).flat_map(|v| [v; 3]).collect();
            let mut bytes = vec![0; fitter.shape().bytes()];
            fitter.write(PictureView::new(16, 16, &rgb).unwrap(), &mut bytes).unwrap();
            for grey in 0..=255_u8 {
                let at = usize::from(grey);
                match ty {
                    OperandType::TensorFloat32 => {
                        assert_eq!(bytes[at * 4..][..4], f32::from(grey).to_ne_bytes());
                    }
                    _ => assert_eq!(bytes[at], grey),
                }
            }
        }
        let digits = input(OperandType::TensorQuant8Asymm, &[1, 28, 28]);
        assert_eq!(PictureShape::of(&digits).unwrap().channels, 1);
    }

    #[test]
    fn bytes_come_back_from_every_range() {
        for range in [Normalisation::SIGNED, Normalisation::UNIT, Normalisation::BYTE] {
            for byte in 0..=255 {
                assert_eq!(range.byte(0, range.real(0, byte)), byte, "{range:?}");
            }
            let bytes = [-9.0, 999.0, f32::NAN].map(|real| range.byte(0, real));
            assert_eq!(bytes, [0, 255, 0]);
        }
    }

    #[test]
    fn a_picture_is_found_again_in_the_input() {
        let placed = |fit| {
            let fitter = fitter(OperandType::TensorQuant8Asymm, &[1, 100, 100, 3], fit);
            fitter.placement(400, 200)
        };
        let area = |left, top, width, height| Placement {
            left,
            top,
            width,
            height,
            picture_width: 400,
            picture_height: 200,
        };
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
