//! The inputs of one model, made of a data set one after the other: pictures, parts of pictures, windows of sound.

use anyhow::{Context, Result};
use burst_pictures::Picture;
use burst_tasks::{
    Numbers, PictureFitter, Sound, SoundFitter, TaskModel, TaskOptions, Windows, picture_fitter,
};

use super::crops::Crop;
use super::data::{DataSet, File};
use crate::threads::Threads;

/// An input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// Whether states begin anew: with each picture, and with each sound.
    pub(super) begins: bool,
    /// What it shows: a number of a class, or its label.
    pub(super) truth: Option<String>,
}

/// What stands in the way of a data set for a model.
#[derive(Debug)]
pub(super) struct Unfit(pub(super) String);

/// The inputs of one model.
pub(super) struct Inputs<'d> {
    feed: Feed<'d>,
    /// Bytes of the input that the device takes.
    pub(super) driver: Vec<u8>,
    /// Bytes of the input that the whole model has, where that is another one.
    whole: Vec<u8>,
    /// The name of that one.
    pub(super) name: String,
    /// What could not be read, and why.
    pub(super) damaged: Vec<String>,
}

enum Feed<'d> {
    Pictures(Box<Pictures<'d>>),
    Sounds(Box<Sounds<'d>>),
}

struct Pictures<'d> {
    fitter: PictureFitter,
    data: &'d DataSet,
    next: u64,
    /// The file that was read last.
    open: Option<(usize, Picture)>,
}

struct Sounds<'d> {
    fitter: SoundFitter,
    numbers: Numbers,
    files: std::slice::Iter<'d, File>,
    /// The sound that is under way: where its next window begins.
    open: Option<(&'d File, Windows, usize)>,
}

impl<'d> Inputs<'d> {
    /// What of the data goes into this model.
    pub(super) fn new(
        model: &TaskModel,
        data: &'d DataSet,
        options: &TaskOptions,
    ) -> Result<Result<Inputs<'d>, Unfit>> {
        let input = match model.own_input() {
            Ok(input) => input,
            Err(error) => return Ok(Err(Unfit(error.to_string()))),
        };
        let Some(bytes) = input.ty.byte_length(&input.dims) else {
            return Ok(Err(Unfit(format!("its input {} has an open shape", input.name))));
        };
        let (feed, name) = match Feed::new(model, data, options)? {
            Ok(found) => found,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let driver = vec![0; usize::try_from(bytes)?];
        let whole = match &feed {
            Feed::Sounds(sounds) => vec![0; sounds.fitter.window() * sounds.numbers.bytes()],
            Feed::Pictures(_) => Vec::new(),
        };
        Ok(Ok(Inputs { feed, driver, whole, name, damaged: Vec::new() }))
    }

    /// How many there are, where that is known before they are read.
    pub(super) fn count(&self) -> Option<u64> {
        match &self.feed {
            Feed::Pictures(pictures) => Some(pictures.data.picture_inputs()),
            Feed::Sounds(_) => None,
        }
    }

    /// What fits pictures into the model, where it takes some.
    pub(super) fn fitter(&self) -> Option<&PictureFitter> {
        match &self.feed {
            Feed::Pictures(pictures) => Some(&pictures.fitter),
            Feed::Sounds(_) => None,
        }
    }

    /// Bytes of the input that the whole model has.
    pub(super) fn whole(&self) -> &[u8] {
        if self.whole.is_empty() { &self.driver } else { &self.whole }
    }

    /// Makes the next one; `None` where there are no more. What cannot be read is left out and noted.
    pub(super) fn next(&mut self) -> Result<Option<Item>> {
        match &mut self.feed {
            Feed::Pictures(pictures) => pictures.next(&mut self.driver, &mut self.damaged),
            Feed::Sounds(sounds) => {
                sounds.next(&mut self.driver, &mut self.whole, &mut self.damaged)
            }
        }
    }
}

impl<'d> Feed<'d> {
    /// What feeds the model, and the name of the whole model's input.
    fn new(
        model: &TaskModel,
        data: &'d DataSet,
        options: &TaskOptions,
    ) -> Result<Result<(Feed<'d>, String), Unfit>> {
        if model.front.is_none()
            && let Ok(fitter) = picture_fitter(model, options)
        {
            if data.pictures.is_empty() {
                return Ok(Err(Unfit("it takes pictures, and the data has none".to_owned())));
            }
            let name = model.own_input()?.name.clone();
            let pictures = Pictures { fitter, data, next: 0, open: None };
            return Ok(Ok((Feed::Pictures(Box::new(pictures)), name)));
        }
        let device = Threads { count: 1 }.device("cpu")?;
        let fitter =
            SoundFitter::new(model, &device).and_then(|fitter| fitter.shape().map(|_| fitter));
        let fitter = match fitter {
            Ok(fitter) => fitter,
            Err(error) => {
                return Ok(Err(Unfit(format!("it takes neither pictures nor sound: {error}"))));
            }
        };
        let Some(numbers) = Numbers::real(fitter.input()) else {
            return Ok(Err(Unfit(format!("its input {} has no numbers", fitter.input().name))));
        };
        if data.sounds.is_empty() {
            return Ok(Err(Unfit("it takes sound, and the data has none".to_owned())));
        }
        let name = fitter.input().name.clone();
        let sounds = Sounds { fitter, numbers, files: data.sounds.iter(), open: None };
        Ok(Ok((Feed::Sounds(Box::new(sounds)), name)))
    }
}

impl Pictures<'_> {
    fn next(&mut self, driver: &mut [u8], damaged: &mut Vec<String>) -> Result<Option<Item>> {
        let count = self.data.picture_inputs();
        while self.next < count {
            let number = self.next;
            self.next += 1;
            let files = self.data.pictures.len() as u64;
            // All parts of one picture one after the other, so that it is read once.
            let index =
                usize::try_from(u128::from(number) * u128::from(files) / u128::from(count))?;
            let file = &self.data.pictures[index];
            if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
                match burst_pictures::read(&file.path) {
                    Ok(picture) => self.open = Some((index, picture)),
                    Err(error) => {
                        let said = format!("{}: {error}", file.name);
                        if damaged.last() != Some(&said) {
                            damaged.push(said); // once, however many parts it has
                        }
                        continue;
                    }
                }
            }
            let Some((_, picture)) = &self.open else { continue };
            let write = |fitter: &mut PictureFitter, picture: &Picture, to: &mut [u8]| {
                fitter.write(picture.view()?, to).with_context(|| file.name.clone())
            };
            match self.data.crops {
                None => write(&mut self.fitter, picture, driver)?,
                Some(crops) => {
                    let size = (picture.width, picture.height);
                    let part = Crop::choose(crops.seed, number, size).of(picture);
                    write(&mut self.fitter, &part, driver)?;
                }
            }
            return Ok(Some(Item { begins: true, truth: file.truth.clone() }));
        }
        Ok(None)
    }
}

impl Sounds<'_> {
    fn next(
        &mut self,
        driver: &mut [u8],
        whole: &mut [u8],
        damaged: &mut Vec<String>,
    ) -> Result<Option<Item>> {
        loop {
            if let Some((file, windows, at)) = &mut self.open
                && *at < windows.values.len()
            {
                let end = windows.values.len().min(*at + windows.window);
                let mut values = windows.values[*at..end].to_vec();
                let begins = *at == 0;
                *at += windows.hop.max(1);
                values.resize(windows.window, 0.0); // the end of a sound is filled up with silence
                self.fitter.write(&values, driver).with_context(|| file.name.clone())?;
                self.numbers.write(&values, whole);
                return Ok(Some(Item { begins, truth: file.truth.clone() }));
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            let read = Sound::read(&file.path).map_err(anyhow::Error::from);
            let windows = read.and_then(|sound| Ok(self.fitter.windows(sound, None, None)?));
            match windows {
                Ok(windows) => self.open = Some((file, windows, 0)),
                Err(error) => damaged.push(format!("{}: {error:#}", file.name)),
            }
        }
    }
}
