//! Pictures of a source, fitted into the model's input.

use anyhow::Result;
use burst_tasks::{PictureFitter, PictureView};

use super::{Feed, Label, Placed};
use crate::source::{CameraFacts, Live, Source};

pub(crate) struct Pictures {
    source: Box<dyn Source>,
    fitter: PictureFitter,
}

impl Pictures {
    pub(crate) fn new(source: Box<dyn Source>, fitter: PictureFitter) -> Self {
        Pictures { source, fitter }
    }
}

impl Feed for Pictures {
    fn advance(&mut self) -> Result<bool> {
        self.source.advance()
    }

    fn write(&mut self, input: &mut [u8]) -> Result<()> {
        let frame = self.source.frame();
        Ok(self.fitter.write(PictureView::new(frame.width, frame.height, frame.rgb)?, input)?)
    }

    fn label(&self) -> Label<'_> {
        let frame = self.source.frame();
        Label { name: frame.name, truth: frame.truth, at: None }
    }

    fn picture(&self) -> Option<Placed<'_>> {
        let frame = self.source.frame();
        let placement = self.fitter.placement(frame.width, frame.height);
        Some(Placed { frame, placement })
    }

    fn is_endless(&self) -> bool {
        self.source.is_endless()
    }

    fn comes_by_itself(&self) -> bool {
        self.source.comes_by_itself()
    }

    fn live(&self) -> Option<Live> {
        self.source.live()
    }

    fn camera(&self) -> Option<CameraFacts> {
        self.source.camera()
    }
}
