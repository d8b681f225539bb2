//! The synthetic camera as a source.

use anyhow::Result;
use burst_camera::{Camera, HEIGHT, LABELS, WIDTH};

use super::{Frame, Source};

pub(super) struct Demo {
    camera: Camera,
    rgb: Vec<u8>,
    size: (u32, u32),
    truth: Option<usize>,
}

impl Demo {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let camera = Camera::new(seed, WIDTH, HEIGHT)?;
        let rgb = vec![0; camera.frame_bytes()];
        let size = (u32::try_from(WIDTH)?, u32::try_from(HEIGHT)?);
        Ok(Demo { camera, rgb, size, truth: None })
    }
}

impl Source for Demo {
    fn advance(&mut self) -> Result<bool> {
        self.truth = Some(self.camera.next_frame(&mut self.rgb)?.class);
        Ok(true)
    }

    fn frame(&self) -> Frame<'_> {
        let (width, height) = self.size;
        Frame { width, height, rgb: &self.rgb, name: "demo", truth: self.truth }
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn class_names(&self) -> Option<&'static [&'static str]> {
        Some(&LABELS)
    }
}
