//! The synthetic camera as a source.

use anyhow::Result;
use burst_camera::{Camera, HEIGHT, LABELS, WIDTH};

use super::{Frame, Source};

pub(super) struct Demo {
    camera: Camera,
    rgb: Vec<u8>,
}

impl Demo {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let camera = Camera::new(seed, WIDTH, HEIGHT)?;
        let rgb = vec![0; camera.frame_bytes()];
        Ok(Demo { camera, rgb })
    }
}

impl Source for Demo {
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        let drawing = self.camera.next_frame(&mut self.rgb)?;
        Ok(Some(Frame {
            width: u32::try_from(WIDTH)?,
            height: u32::try_from(HEIGHT)?,
            rgb: &self.rgb,
            name: "demo",
            truth: Some(drawing.class),
        }))
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn class_names(&self) -> Option<&'static [&'static str]> {
        Some(&LABELS)
    }
}
