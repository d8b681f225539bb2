//! Pictures of a source, fitted into the model's input.

use anyhow::Result;

use super::{Feed, Label, Placed};
use crate::fit::Fitter;
use crate::source::{CameraFacts, Live, Source};

pub(crate) struct Pictures {
    source: Box<dyn Source>,
    fitter: Fitter,
}

impl Pictures {
    pub(crate) fn new(source: Box<dyn Source>, fitter: Fitter) -> Self {
        Pictures { source, fitter }
    }
}

impl Feed for Pictures {
    fn advance(&mut self) -> Result<bool> {
        self.source.advance()
    }

    fn write(&mut self, input: &mut [u8]) -> Result<()> {
        self.fitter.write(&self.source.frame(), input)
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

    fn class_names(&self) -> Option<&'static [&'static str]> {
        self.source.class_names()
    }
}
