//! The device: answers to requests, by the numbers and offsets of the kernel's documentation. It is written without a look
//! at the structures of `burst-capture`, which it is there to try.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

use crate::script::{Format, Frame, Script, Step};

const CAPTURES_AND_STREAMS: u32 = 0x0420_0001;
const BUFFER_BYTES_MULTIPLE: u64 = 4096;
/// What a buffer holds that was handed over: who looks at it then sees that.
const POISON: u8 = 0xEE;

/// A frame that is ready.
struct Ready {
    frame: Frame,
    sequence: u32,
}

/// The device while somebody has it open.
pub(crate) struct Device {
    script: Script,
    steps: VecDeque<Step>,
    file: Option<File>,
    format: Option<Format>,
    rate: u32,
    /// Bytes of a buffer.
    length: u64,
    buffers: u32,
    /// Buffers that were handed over, the first one first.
    queued: VecDeque<u32>,
    is_streaming: bool,
    is_gone: bool,
    ready: VecDeque<Ready>,
    sequence: u32,
    stamp_us: u64,
}

type Answer = Result<(), i32>;

impl Device {
    pub(crate) fn open(script: Script) -> Result<Device, i32> {
        if let Some((_, errno)) = script.refusals.iter().find(|(request, _)| request == "open") {
            return Err(*errno);
        }
        let steps = script.steps.iter().cloned().collect();
        Ok(Device {
            script,
            steps,
            file: Some(memory()),
            format: None,
            rate: 30,
            length: 0,
            buffers: 0,
            queued: VecDeque::new(),
            is_streaming: false,
            is_gone: false,
            ready: VecDeque::new(),
            sequence: 0,
            stamp_us: 0,
        })
    }

    pub(crate) fn fd(&self) -> i32 {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Somebody closes the descriptor.
    pub(crate) fn closed(mut self) {
        self.log("CLOSE");
        if let Some(file) = self.file.take() {
            let _ = file.into_raw_fd();
        }
    }

    fn log(&self, line: &str) {
        let Some(path) = &self.script.log else { return };
        let mut file = File::options().append(true).create(true).open(path).expect("a log");
        writeln!(file, "{line}").expect("room");
    }

    /// What somebody who waits for a frame is told.
    pub(crate) fn poll(&mut self) -> i16 {
        if !self.is_streaming || self.queued.is_empty() {
            return libc::POLLERR;
        }
        if self.ready.is_empty() {
            self.go_on();
        }
        match (self.is_gone, self.ready.is_empty()) {
            (true, _) => libc::POLLERR | libc::POLLHUP,
            (false, false) => libc::POLLIN,
            (false, true) => 0, // as if the time were over
        }
    }

    /// The next steps of the script.
    fn go_on(&mut self) {
        while let Some(step) = self.steps.pop_front() {
            let Step::Frame(frame) = step else {
                self.is_gone = true;
                return;
            };
            self.sequence += frame.gap;
            let (sequence, with_next) = (self.sequence, frame.with_next);
            self.sequence += 1;
            // A frame without a buffer is lost.
            if self.ready.len() < self.queued.len() {
                self.ready.push_back(Ready { frame, sequence });
            }
            if !with_next {
                return;
            }
        }
    }

    pub(crate) fn request(&mut self, request: u64, payload: &mut [u8]) -> Answer {
        if self.is_gone {
            return Err(libc::ENODEV);
        }
        let name = match request {
            0x8068_5600 => "QUERYCAP",
            0xC040_5602 => "ENUM_FMT",
            0xC0D0_5605 => "S_FMT",
            0xC014_5608 => "REQBUFS",
            0xC058_5609 => "QUERYBUF",
            0xC058_560F => "QBUF",
            0xC058_5611 => "DQBUF",
            0x4004_5612 => "STREAMON",
            0x4004_5613 => "STREAMOFF",
            0xC0CC_5615 => "G_PARM",
            0xC0CC_5616 => "S_PARM",
            0xC02C_564A => "ENUM_FRAMESIZES",
            0xC034_564B => "ENUM_FRAMEINTERVALS",
            _ => return Err(libc::ENOTTY),
        };
        if let Some((_, errno)) = self.script.refusals.iter().find(|(refused, _)| refused == name) {
            return Err(*errno);
        }
        match name {
            "QUERYCAP" => self.capabilities(payload),
            "ENUM_FMT" => self.name_format(payload),
            "S_FMT" => self.set_format(payload),
            "REQBUFS" => self.make_buffers(payload),
            "QUERYBUF" => self.describe_buffer(payload),
            "QBUF" => self.take_buffer(payload),
            "DQBUF" => self.give_buffer(payload),
            "STREAMON" | "STREAMOFF" => self.stream(name, payload),
            "G_PARM" | "S_PARM" => self.rate(name, payload),
            "ENUM_FRAMESIZES" => self.name_size(payload),
            _ => self.name_rate(payload),
        }
    }

    fn capabilities(&self, payload: &mut [u8]) -> Answer {
        payload.fill(0);
        text(payload, 0, b"stand_in");
        text(payload, 16, b"Stand-in camera");
        text(payload, 48, b"platform:stand-in");
        // The whole device has a second file, for what it says beside its pictures.
        put(payload, 84, 0x84A0_0001);
        put(payload, 88, self.script.capabilities.unwrap_or(CAPTURES_AND_STREAMS));
        Ok(())
    }

    fn name_format(&self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 4))?;
        let mut codes: Vec<u32> = self.script.formats.iter().map(|format| format.code).collect();
        codes.dedup();
        let code = codes.get(get(payload, 0) as usize).ok_or(libc::EINVAL)?;
        put(payload, 44, *code);
        Ok(())
    }

    fn name_size(&self, payload: &mut [u8]) -> Answer {
        let code = get(payload, 4);
        let mut own = self.script.formats.iter().filter(|format| format.code == code);
        let format = own.nth(get(payload, 0) as usize).ok_or(libc::EINVAL)?;
        put(payload, 8, 1);
        put(payload, 12, format.width);
        put(payload, 16, format.height);
        Ok(())
    }

    fn name_rate(&self, payload: &mut [u8]) -> Answer {
        let wanted = (get(payload, 4), get(payload, 8), get(payload, 12));
        let is_it = |format: &&Format| (format.code, format.width, format.height) == wanted;
        let format = self.script.formats.iter().find(is_it).ok_or(libc::EINVAL)?;
        let rate = format.rates.get(get(payload, 0) as usize).ok_or(libc::EINVAL)?;
        put(payload, 16, 1);
        put(payload, 20, 1);
        put(payload, 24, *rate);
        Ok(())
    }

    /// The format that is asked for, in the nearest size; another one where it has it not, or insists.
    fn set_format(&mut self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 0))?;
        if self.buffers > 0 {
            return Err(libc::EBUSY);
        }
        let (width, height, code) = (get(payload, 8), get(payload, 12), get(payload, 16));
        self.log(&format!("S_FMT {} {width}x{height}", letters(code)));
        let far = |format: &&Format| {
            (format.code != code, format.width.abs_diff(width) + format.height.abs_diff(height))
        };
        let nearest = self.script.formats.iter().min_by_key(far);
        let format = self.script.insisted.as_ref().or(nearest).ok_or(libc::EINVAL)?.clone();
        let is_yuyv = format.code == u32::from_le_bytes(*b"YUYV");
        let stride = if is_yuyv { format.stride } else { 0 };
        let image = if is_yuyv { format.stride } else { format.width * 2 } * format.height;
        for (at, value) in [
            (8, format.width),
            (12, format.height),
            (16, format.code),
            (20, 1),
            (24, stride),
            (28, image),
            (32, 8), // sRGB, so BT.601 in the limited range
            (44, 0),
            (48, 0),
        ] {
            put(payload, at, value);
        }
        self.length = u64::from(image).next_multiple_of(BUFFER_BYTES_MULTIPLE);
        self.format = Some(format);
        Ok(())
    }

    fn rate(&mut self, name: &str, payload: &mut [u8]) -> Answer {
        capture(get(payload, 0))?;
        if name == "S_PARM" {
            let (numerator, denominator) = (get(payload, 12), get(payload, 16));
            self.log(&format!("S_PARM {numerator}/{denominator}"));
            let rates = self.format.as_ref().map(|format| &format.rates[..]).unwrap_or_default();
            if let Some(rate) = rates.iter().find(|rate| **rate * numerator == denominator) {
                self.rate = *rate;
            }
        }
        put(payload, 4, 0x1000);
        put(payload, 12, 1);
        put(payload, 16, self.rate);
        Ok(())
    }

    fn make_buffers(&mut self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 4))?;
        mapped(get(payload, 8))?;
        if self.is_streaming || self.format.is_none() {
            return Err(libc::EBUSY);
        }
        self.buffers = get(payload, 0).min(self.script.buffers.unwrap_or(32));
        let bytes = self.length * u64::from(self.buffers);
        self.file.as_ref().expect("open").set_len(bytes).expect("memory");
        put(payload, 0, self.buffers);
        self.log(&format!("REQBUFS {}", self.buffers));
        Ok(())
    }

    fn describe_buffer(&self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 4))?;
        let index = get(payload, 0);
        if index >= self.buffers {
            return Err(libc::EINVAL);
        }
        self.place(index, payload);
        Ok(())
    }

    /// Where a buffer lies.
    fn place(&self, index: u32, payload: &mut [u8]) {
        put(payload, 60, 1);
        put(payload, 64, u32::try_from(u64::from(index) * self.length).expect("a small offset"));
        put(payload, 72, u32::try_from(self.length).expect("a small buffer"));
    }

    fn take_buffer(&mut self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 4))?;
        mapped(get(payload, 60))?;
        let index = get(payload, 0);
        if index >= self.buffers || self.queued.contains(&index) {
            return Err(libc::EINVAL);
        }
        self.queued.push_back(index);
        self.write(index, &vec![POISON; usize::try_from(self.length).expect("small")]);
        Ok(())
    }

    fn write(&self, index: u32, bytes: &[u8]) {
        let file = self.file.as_ref().expect("open");
        file.write_all_at(bytes, u64::from(index) * self.length).expect("memory");
    }

    fn stream(&mut self, name: &str, payload: &[u8]) -> Answer {
        capture(get(payload, 0))?;
        self.log(name);
        self.is_streaming = name == "STREAMON";
        if !self.is_streaming {
            self.queued.clear();
            self.ready.clear();
        }
        Ok(())
    }

    fn give_buffer(&mut self, payload: &mut [u8]) -> Answer {
        capture(get(payload, 4))?;
        mapped(get(payload, 60))?;
        if !self.is_streaming {
            return Err(libc::EINVAL);
        }
        let Ready { frame, sequence } = self.ready.pop_front().ok_or(libc::EAGAIN)?;
        if frame.is_eio {
            return Err(libc::EIO);
        }
        let index = self.queued.pop_front().ok_or(libc::EAGAIN)?;
        let bytes = std::fs::read(&frame.file).expect("a frame");
        assert!(bytes.len() as u64 <= self.length, "the frame fits its buffer");
        self.write(index, &bytes);
        let (flags, stamp_us) = self.stamp(&frame);
        payload.fill(0);
        self.place(index, payload);
        put(payload, 0, index);
        put(payload, 4, 1);
        put(payload, 8, frame.used.unwrap_or(u32::try_from(bytes.len()).expect("small")));
        put(payload, 12, flags | if frame.is_damaged { 0x40 } else { 0 });
        put(payload, 16, 1);
        payload[24..32].copy_from_slice(&(stamp_us / 1_000_000).to_ne_bytes());
        payload[32..40].copy_from_slice(&(stamp_us % 1_000_000).to_ne_bytes());
        put(payload, 56, sequence);
        Ok(())
    }

    /// The flags that say what clock it is, and the time in microseconds.
    fn stamp(&mut self, frame: &Frame) -> (u32, u64) {
        let now = monotonic_us().saturating_sub(frame.age_ms * 1000).max(self.stamp_us);
        match frame.time.as_deref() {
            None => {
                self.stamp_us = now;
                (0x2000, now)
            }
            Some("back") => (0x2000, self.stamp_us - 1),
            Some("future") => (0x2000, now + 3_600_000_000),
            Some("unset") => (0x2000, 0),
            Some("other") => (0x0000, now),
            Some(kind) => panic!("{kind}: no time that is known here"),
        }
    }
}

fn monotonic_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).expect("after the start");
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).expect("positive") / 1000
}

/// A file in memory, without a name.
fn memory() -> File {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    File::from(rustix::fs::memfd_create("stand-in", flags).expect("memory"))
}

fn capture(kind: u32) -> Answer {
    if kind == 1 { Ok(()) } else { Err(libc::EINVAL) }
}

fn mapped(memory: u32) -> Answer {
    if memory == 1 { Ok(()) } else { Err(libc::EINVAL) }
}

fn letters(code: u32) -> String {
    String::from_utf8_lossy(&code.to_le_bytes()).into_owned()
}

fn get(payload: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(payload[at..at + 4].try_into().expect("four bytes"))
}

fn put(payload: &mut [u8], at: usize, value: u32) {
    payload[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn text(payload: &mut [u8], at: usize, text: &[u8]) {
    payload[at..at + text.len()].copy_from_slice(text);
}
