//! A camera of this machine: `/dev/videoN`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use burst_capture::{Counts, Distrust, Encoding, Format, PixelFormat, Wish};
use burst_pictures::Picture;
use serde::Serialize;

use super::colours::Yuv;
use super::{Frame, Size, Source};

/// So many frames one after the other that are no pictures are no accident.
const MAX_UNREADABLE_IN_A_ROW: u64 = 100;

/// What is asked of a camera.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CameraOptions {
    /// Pixels of its frames.
    pub(crate) size: Option<Size>,
    /// Frames per second.
    pub(crate) fps: Option<f64>,
    /// How it stores pixels.
    pub(crate) format: Option<CameraFormat>,
    /// Every frame, not the newest only.
    pub(crate) every_frame: bool,
}

/// How a camera stores pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CameraFormat {
    /// As they are, two bytes each.
    Yuyv,
    /// As JPEG pictures.
    Mjpeg,
}

/// What a camera said of itself when it was started; its JSON form is a part of that of `burst stream`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CameraFacts {
    /// What it calls itself.
    pub(crate) name: String,
    /// Its driver.
    pub(crate) driver: String,
    /// Four letters: how it stores pixels.
    pub(crate) format: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Frames per second, where it says.
    pub(crate) fps: Option<f64>,
}

/// A camera's current frame, and what became of others so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    /// When the current frame was taken.
    pub(crate) taken: Instant,
    /// Frames that were damaged.
    pub(crate) damaged: u64,
    /// Frames that were skipped as newer ones were there.
    pub(crate) skipped: u64,
    /// Frames that the camera had no room for.
    pub(crate) missed: u64,
    /// Frames of whose time only that of their arrival is known.
    pub(crate) untimed: u64,
    /// Why.
    pub(crate) distrust: Option<Distrust>,
}

pub(super) struct Camera {
    camera: burst_capture::Camera,
    /// A frame as the camera gave it.
    bytes: Vec<u8>,
    picture: Picture,
    taken: Instant,
    unreadable: u64,
    unreadable_in_a_row: u64,
    is_over: bool,
    distrust_is_said: bool,
    name: String,
}

impl Camera {
    pub(super) fn open(name: &str, options: CameraOptions) -> Result<Self> {
        let size = options.size.map(|size| (size.width, size.height));
        let pixels = options.format.map(|format| match format {
            CameraFormat::Yuyv => PixelFormat::Yuyv,
            CameraFormat::Mjpeg => PixelFormat::Mjpeg,
        });
        let CameraOptions { fps: rate, every_frame, .. } = options;
        let wish = Wish { size, pixels, rate, every_frame };
        let camera = burst_capture::Camera::open(Path::new(name), wish)
            .with_context(|| format!("cannot use the camera {name}"))?;
        say_differences(name, wish, &camera);
        Ok(Camera {
            camera,
            bytes: Vec::new(),
            picture: Picture { width: 0, height: 0, rgb: Vec::new() },
            taken: Instant::now(),
            unreadable: 0,
            unreadable_in_a_row: 0,
            is_over: false,
            distrust_is_said: false,
            name: name.into(),
        })
    }

    /// Waits for the next frame that is a picture.
    fn next_picture(&mut self) -> Result<()> {
        loop {
            let next = self.camera.next_frame(&mut self.bytes);
            self.taken = next.with_context(|| format!("the camera {}", self.name))?;
            let error = match self.decode() {
                Ok(()) => {
                    self.unreadable_in_a_row = 0;
                    return Ok(());
                }
                Err(error) => error,
            };
            self.unreadable += 1;
            self.unreadable_in_a_row += 1;
            if self.unreadable_in_a_row >= MAX_UNREADABLE_IN_A_ROW {
                let count = self.unreadable_in_a_row;
                let what = format!("the camera {}: none of the last {count} frames", self.name);
                return Err(error).context(format!("{what} can be read"));
            }
        }
    }

    fn decode(&mut self) -> Result<()> {
        let format = self.camera.format();
        match format.pixels {
            PixelFormat::Mjpeg => self.picture = burst_pictures::decode_motion_jpeg(&self.bytes)?,
            PixelFormat::Yuyv => {
                let (width, height) = (format.width as usize, format.height as usize);
                self.picture.rgb.resize(width * height * 3, 0);
                (self.picture.width, self.picture.height) = (format.width, format.height);
                if !yuyv_to_rgb(&self.bytes, format, &mut self.picture.rgb) {
                    bail!("{} bytes are less than a frame", self.bytes.len());
                }
            }
        }
        Ok(())
    }

    /// Says once why latency counts from when frames arrived.
    fn say_distrust(&mut self) {
        let Some(distrust) = self.camera.counts().distrust.filter(|_| !self.distrust_is_said)
        else {
            return;
        };
        self.distrust_is_said = true;
        let name = &self.name;
        tracing::warn!("{name}: {distrust}; latency of such frames counts from when they arrived");
    }
}

/// Warns of what the camera does otherwise than it was asked to.
fn say_differences(name: &str, wish: Wish, camera: &burst_capture::Camera) {
    let format = camera.format();
    let Format { width, height, pixels, .. } = format;
    if let Some((wished_width, wished_height)) = wish.size
        && (width, height) != (wished_width, wished_height)
    {
        tracing::warn!(
            "{name} gives {width} x {height} pixels, not {wished_width} x {wished_height}"
        );
    }
    if let Some(wished) = wish.pixels.filter(|wished| *wished != pixels) {
        tracing::warn!("{name} gives {}, not {}", pixels.code(), wished.code());
    }
    match (wish.rate, camera.rate()) {
        (Some(wished), Some(rate)) if (rate - wished).abs() > 0.01 => {
            tracing::warn!("{name} gives {rate:.2} frames per second, not {wished:.2}");
        }
        (Some(_), None) => {
            tracing::warn!("{name} does not say how many frames per second it gives")
        }
        _ => {}
    }
}

impl Source for Camera {
    fn advance(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let next = self.next_picture();
        self.say_distrust();
        self.is_over = next.is_err();
        next.map(|()| true)
    }

    fn frame(&self) -> Frame<'_> {
        let Picture { width, height, ref rgb } = self.picture;
        Frame { width, height, rgb, name: &self.name, truth: None }
    }

    fn comes_by_itself(&self) -> bool {
        true
    }

    fn live(&self) -> Option<Live> {
        let Counts { damaged, skipped, missed, untimed, distrust, .. } = self.camera.counts();
        let (taken, damaged) = (self.taken, damaged + self.unreadable);
        Some(Live { taken, damaged, skipped, missed, untimed, distrust })
    }

    fn camera(&self) -> Option<CameraFacts> {
        let Format { width, height, pixels, .. } = self.camera.format();
        let device = self.camera.device();
        Some(CameraFacts {
            name: device.name().into(),
            driver: device.driver().into(),
            format: pixels.code().to_string(),
            width,
            height,
            fps: self.camera.rate(),
        })
    }
}

/// Two pixels in four bytes, lines `stride` bytes apart. False where the bytes are too few.
fn yuyv_to_rgb(bytes: &[u8], format: Format, rgb: &mut [u8]) -> bool {
    let Encoding { is_bt709, is_full_range } = format.encoding;
    let yuv = Yuv::new(is_bt709, is_full_range);
    let (width, stride) = (format.width as usize, format.stride as usize);
    let mut lines = 0;
    for (line, out) in bytes.chunks(stride).zip(rgb.chunks_exact_mut(width * 3)) {
        let Some(line) = line.get(..width * 2) else { return false };
        for (pair, out) in line.chunks(4).zip(out.chunks_mut(6)) {
            // The last pixel of an odd line has no red of its own.
            let (u, v) = (pair[1], *pair.get(3).unwrap_or(&128));
            out[..3].copy_from_slice(&yuv.rgb(pair[0], u, v));
            if let ([_, _, second, ..], Some(out)) = (pair, out.get_mut(3..)) {
                out.copy_from_slice(&yuv.rgb(*second, u, v));
            }
        }
        lines += 1;
    }
    lines == format.height as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(width: u32, height: u32, stride: u32) -> Format {
        let encoding = Encoding { is_bt709: false, is_full_range: false };
        Format { width, height, stride, pixels: PixelFormat::Yuyv, encoding }
    }

    #[test]
    fn two_pixels_share_their_colour_and_padding_is_passed_over() {
        let red = [81, 90, 235, 240];
        let line = [&red[..], &[1; 6]].concat(); // two pixels, six bytes of padding
        let bytes = [&line[..], &line[..4]].concat(); // the last line has none
        let mut rgb = vec![0; 12];
        assert!(yuyv_to_rgb(&bytes, format(2, 2, 10), &mut rgb));
        assert_eq!(rgb[..6], rgb[6..]);
        let [r, g, b] = [rgb[0], rgb[1], rgb[2]];
        assert!(r >= 253 && g <= 2 && b <= 2, "{r} {g} {b}");
        assert_ne!(rgb[..3], rgb[3..6], "each has its own brightness");
        assert!(!yuyv_to_rgb(&bytes[..13], format(2, 2, 10), &mut rgb), "a byte too few");
        assert!(!yuyv_to_rgb(&bytes[..10], format(2, 2, 10), &mut rgb), "a line too few");
    }

    #[test]
    fn a_line_may_have_an_odd_number_of_pixels() {
        let mut rgb = vec![9; 9];
        assert!(yuyv_to_rgb(&[16, 128, 235, 128, 16, 128], format(3, 1, 6), &mut rgb));
        assert_eq!(rgb, [0, 0, 0, 255, 255, 255, 0, 0, 0]);
    }
}
