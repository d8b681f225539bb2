//! A camera that streams.

use std::path::Path;
use std::time::{Duration, Instant};

use zerocopy::FromZeros;

use crate::clock::{Clock, Now, Stamp};
use crate::counts::Counts;
use crate::device::Device;
use crate::error::CaptureError;
use crate::format::{Format, MAX_FRAME_BYTES, PixelFormat};
use crate::fourcc::FourCc;
use crate::kernel::abi::{
    self, BUF_FLAG_ERROR, BUF_TYPE_VIDEO_CAPTURE, Buffer, CAP_TIMEPERFRAME, Fraction, MEMORY_MMAP,
    PixFormat, RequestBuffers, StreamParm,
};
use crate::kernel::ioctl::{
    self, DQBUF, G_PARM, QBUF, QUERYBUF, REQBUFS, S_FMT, S_PARM, STREAMOFF, STREAMON,
};
use crate::kernel::mapping::Mapping;
use crate::kernel::poll;
use crate::modes::rate;

/// Buffers that are asked for: one that is being filled, one that waits, and two for who is late.
const BUFFERS: u32 = 4;
/// As many buffers as the kernel has at most for a device.
const MAX_BUFFERS: u32 = 32;
/// How long a camera may give nothing: some take seconds for their first frame.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many damaged frames one after the other are no accident: ten seconds of a slow camera.
const MAX_DAMAGED_IN_A_ROW: u64 = 100;
/// Up to so many pixels a camera's bus has room for frames that are not compressed.
const UNCOMPRESSED_PIXELS: u64 = 640 * 480;

/// What is asked of a camera, which may do otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wish {
    /// Width and height; 640 x 480 where it does not matter.
    pub size: Option<(u32, u32)>,
    /// How pixels are stored; where it does not matter YUYV of small frames, JPEG of others.
    pub pixels: Option<PixelFormat>,
    /// Frames per second; as many as the camera likes where it does not matter.
    pub rate: Option<f64>,
    /// Every frame is wanted, however old it is by then, and not only the newest.
    pub every_frame: bool,
}

const DEFAULT_SIZE: (u32, u32) = (640, 480);

/// A camera that streams, until it is dropped.
#[derive(Debug)]
pub struct Camera {
    // Mappings go first: a driver keeps its buffers while they are mapped.
    buffers: Vec<Mapping>,
    device: Device,
    format: Format,
    rate: Option<f64>,
    every_frame: bool,
    /// Which buffers the driver has.
    queued: Vec<bool>,
    is_streaming: bool,
    clock: Clock,
    counts: Counts,
    damaged_in_a_row: u64,
    /// The driver's number of the last frame.
    sequence: Option<u32>,
}

impl Camera {
    /// Agrees with the camera on a format. It begins to stream when the first frame is asked for, so that none is old by then.
    ///
    /// # Errors
    /// [`CaptureError::Busy`] where another program streams from it; [`CaptureError::NoFormat`], [`CaptureError::Interlaced`],
    /// [`CaptureError::FrameSize`] and [`CaptureError::Buffers`] where what it has is not read; [`CaptureError::Call`] for anything else.
    pub fn start(device: Device, wish: Wish) -> Result<Camera, CaptureError> {
        let format = agree(&device, wish)?;
        let rate = agreed_rate(&device, wish.rate)?;
        let buffers = map_buffers(&device)?;
        let queued = vec![false; buffers.len()];
        let mut camera = Camera {
            is_streaming: false,
            buffers,
            device,
            format,
            rate,
            every_frame: wish.every_frame,
            queued,
            clock: Clock::default(),
            counts: Counts::default(),
            damaged_in_a_row: 0,
            sequence: None,
        };
        for index in 0..camera.buffers.len() {
            camera.queue(index)?;
        }
        Ok(camera)
    }

    /// Opens the device with this name and starts it.
    ///
    /// # Errors
    /// Those of [`Device::open`] and [`Camera::start`].
    pub fn open(path: &Path, wish: Wish) -> Result<Camera, CaptureError> {
        Camera::start(Device::open(path)?, wish)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What it agreed to.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Frames per second that it agreed to, where it says.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// What became of its frames so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Waits for a frame, copies its bytes and says when it was taken: the newest frame there is, unless every one was wished for.
    /// Damaged frames are passed over and counted.
    ///
    /// # Errors
    /// [`CaptureError::Unplugged`], [`CaptureError::Silent`], [`CaptureError::OnlyDamaged`]; [`CaptureError::WrongBuffer`] and
    /// [`CaptureError::Call`] of a driver that does not keep to the rules. None of them goes away by trying again.
    pub fn next_frame(&mut self, bytes: &mut Vec<u8>) -> Result<Instant, CaptureError> {
        if !self.is_streaming {
            self.device.demand(&STREAMON, &mut { CAPTURE })?;
            self.is_streaming = true;
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let ready = poll::wait(self.device.fd(), left);
            if !ready.map_err(|reason| CaptureError::of("poll", reason))? {
                return Err(CaptureError::Silent { seconds: PATIENCE.as_secs() });
            }
            let mut newest = None;
            while let Some(taken) = self.take(bytes)? {
                if newest.replace(taken).is_some() {
                    self.counts.skipped += 1;
                }
                if self.every_frame {
                    break;
                }
            }
            if let Some(taken) = newest {
                self.counts.given += 1;
                return Ok(taken);
            }
        }
    }

    /// Copies the next frame that is there, if one is.
    fn take(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Instant>, CaptureError> {
        while let Some(buffer) = self.dequeue()? {
            let now = Now::read();
            let index = self.given_back(buffer.index)?;
            self.note_gap(buffer.sequence);
            let mapping = &self.buffers[index];
            let used = buffer.bytesused as usize;
            let is_whole = buffer.flags & BUF_FLAG_ERROR == 0
                && used <= mapping.bytes()
                && u64::from(buffer.bytesused) >= self.format.least_bytes();
            if is_whole {
                mapping.copy_out(used, bytes);
            }
            self.queue(index)?;
            if is_whole {
                self.damaged_in_a_row = 0;
                let (taken, distrust) = self.clock.taken(Stamp::of(&buffer), now);
                if distrust.is_some() {
                    self.counts.untimed += 1;
                    self.counts.distrust = distrust;
                }
                return Ok(Some(taken));
            }
            self.note_damaged()?;
        }
        Ok(None)
    }

    /// The driver's next full buffer, if it has one.
    fn dequeue(&mut self) -> Result<Option<Buffer>, CaptureError> {
        let mut buffer = buffer(0);
        match ioctl::call(self.device.fd(), &DQBUF, &mut buffer) {
            Ok(()) => Ok(Some(buffer)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN) => Ok(None),
                // "A temporary problem like signal loss": whether it goes by shows.
                Some(libc::EIO) => self.note_damaged().map(|()| None),
                _ => Err(CaptureError::of(DQBUF.name(), error)),
            },
        }
    }

    fn note_damaged(&mut self) -> Result<(), CaptureError> {
        self.counts.damaged += 1;
        self.damaged_in_a_row += 1;
        match self.damaged_in_a_row {
            count @ MAX_DAMAGED_IN_A_ROW.. => Err(CaptureError::OnlyDamaged { count }),
            _ => Ok(()),
        }
    }

    /// Counts the frames between this one and the one before, which the driver had no buffer for.
    fn note_gap(&mut self, sequence: u32) {
        let before = self.sequence.replace(sequence);
        // A number that is not ahead by less than half of all numbers is one of a driver that counts otherwise.
        let ahead = before.map_or(1, |before| sequence.wrapping_sub(before));
        if (2..u32::MAX / 2).contains(&ahead) {
            self.counts.missed += u64::from(ahead - 1);
        }
    }

    /// The buffer that the driver says it gives back, where it had it.
    fn given_back(&mut self, index: u32) -> Result<usize, CaptureError> {
        let at = index as usize;
        match self.queued.get_mut(at) {
            Some(queued) if *queued => {
                *queued = false;
                Ok(at)
            }
            _ => Err(CaptureError::WrongBuffer { index }),
        }
    }

    /// Gives a buffer to the driver.
    fn queue(&mut self, at: usize) -> Result<(), CaptureError> {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        self.device.demand(&QBUF, &mut buffer(index))?;
        self.queued[at] = true;
        Ok(())
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let mut kind = CAPTURE;
        // Closing it ends the stream too.
        let _ = ioctl::call(self.device.fd(), &STREAMOFF, &mut kind);
    }
}

const CAPTURE: i32 = BUF_TYPE_VIDEO_CAPTURE.cast_signed();

fn buffer(index: u32) -> Buffer {
    let (kind, memory) = (BUF_TYPE_VIDEO_CAPTURE, MEMORY_MMAP);
    Buffer { index, kind, memory, ..Buffer::new_zeroed() }
}

/// Asks for the formats that are read, the better one first, until the driver agrees to one that is.
fn agree(device: &Device, wish: Wish) -> Result<Format, CaptureError> {
    let found = device.codes()?;
    let size = wish.size.unwrap_or(DEFAULT_SIZE);
    let has = |pixels: PixelFormat| found.iter().any(|code| PixelFormat::of(*code) == Some(pixels));
    for pixels in order(wish.pixels, size).into_iter().filter(|pixels| has(*pixels)) {
        let mut asked = abi::Format::new_zeroed();
        asked.kind = BUF_TYPE_VIDEO_CAPTURE;
        asked.pix = PixFormat {
            width: size.0,
            height: size.1,
            pixelformat: pixels.code().0,
            field: abi::FIELD_NONE,
            ..PixFormat::new_zeroed()
        };
        device.demand(&S_FMT, &mut asked)?;
        // The driver may have put another one in its place.
        if let Some(pixels) = PixelFormat::of(FourCc(asked.pix.pixelformat)) {
            return Format::new(&asked.pix, pixels);
        }
    }
    Err(CaptureError::NoFormat { found })
}

/// The formats to ask for, the better one first.
fn order(wished: Option<PixelFormat>, (width, height): (u32, u32)) -> [PixelFormat; 2] {
    let is_small = u64::from(width) * u64::from(height) <= UNCOMPRESSED_PIXELS;
    let small = if is_small { PixelFormat::Yuyv } else { PixelFormat::Mjpeg };
    match wished.unwrap_or(small) {
        PixelFormat::Yuyv => [PixelFormat::Yuyv, PixelFormat::Mjpeg],
        PixelFormat::Mjpeg => [PixelFormat::Mjpeg, PixelFormat::Yuyv],
    }
}

/// Asks for a rate where one is wished for; gives the one that the camera has then, where it says.
fn agreed_rate(device: &Device, wished: Option<f64>) -> Result<Option<f64>, CaptureError> {
    let mut parm = StreamParm::new_zeroed();
    parm.kind = BUF_TYPE_VIDEO_CAPTURE;
    if let Err(reason) = ioctl::call(device.fd(), &G_PARM, &mut parm) {
        return match reason.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL) => Ok(None), // it has no rates
            _ => Err(CaptureError::of(G_PARM.name(), reason)),
        };
    }
    if let Some(wished) = wished
        && parm.capture.capability & CAP_TIMEPERFRAME != 0
    {
        parm.capture.timeperframe = interval(wished);
        device.demand(&S_PARM, &mut parm)?;
    }
    Ok(rate(parm.capture.timeperframe))
}

/// The interval of a rate: in whole frames per second where it is one, else in thousandths.
fn interval(rate: f64) -> Fraction {
    let whole = |rate: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = rate.round() as u32;
        whole.max(1)
    };
    if rate.fract() == 0.0 {
        return Fraction { numerator: 1, denominator: whole(rate) };
    }
    Fraction { numerator: 1000, denominator: whole(rate * 1000.0) }
}

fn map_buffers(device: &Device) -> Result<Vec<Mapping>, CaptureError> {
    let (kind, memory) = (BUF_TYPE_VIDEO_CAPTURE, MEMORY_MMAP);
    let mut request =
        RequestBuffers { count: BUFFERS, kind, memory, ..RequestBuffers::new_zeroed() };
    device.demand(&REQBUFS, &mut request)?;
    let count = request.count;
    if count == 0 {
        return Err(CaptureError::Buffers { count, bytes: 0 });
    }
    (0..count.min(MAX_BUFFERS))
        .map(|index| {
            let mut asked = buffer(index);
            device.demand(&QUERYBUF, &mut asked)?;
            let bytes = asked.length;
            if !(1..=MAX_FRAME_BYTES).contains(&bytes) {
                return Err(CaptureError::Buffers { count, bytes });
            }
            let mapped = Mapping::new(device.file(), u64::from(asked.offset), bytes as usize);
            mapped.map_err(|reason| CaptureError::of("mmap", reason))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_frames_are_asked_for_as_they_are_and_large_ones_compressed() {
        use PixelFormat::{Mjpeg, Yuyv};
        assert_eq!(order(None, (640, 480)), [Yuyv, Mjpeg]);
        assert_eq!(order(None, (641, 480)), [Mjpeg, Yuyv]);
        assert_eq!(order(Some(Yuyv), (4096, 4096)), [Yuyv, Mjpeg]);
        assert_eq!(order(Some(Mjpeg), (16, 16)), [Mjpeg, Yuyv]);
    }

    #[test]
    fn a_rate_is_a_fraction_of_a_second() {
        let fraction = |rate| {
            let Fraction { numerator, denominator } = interval(rate);
            (numerator, denominator)
        };
        assert_eq!(fraction(30.0), (1, 30));
        assert_eq!(fraction(7.5), (1000, 7500));
        assert_eq!(fraction(0.0001), (1000, 1));
        assert_eq!(rate(interval(29.97)), Some(29.97));
    }
}
