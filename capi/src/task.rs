//! What the functions for tasks do, in safe code.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use burst_client::{RemoteDevice, Stream, StreamOptions};
use burst_tasks::{
    AudioClassifier, Class, ImageClassifier, ImageSegmenter, ImageUpscaler, ObjectDetector,
    PictureView, Sound, TaskError, TaskModel, TaskOptions,
};

use crate::client;
use crate::error::{Error, Status};
use crate::handles::Handles;

static TASKS: Handles<Mutex<Running>> = Handles::new(3);

/// A task, and the labels that callers have pointers to.
struct Running {
    task: Kind,
    labels: Labels,
}

enum Kind {
    Classifier(ImageClassifier<Stream>),
    Detector(ObjectDetector<Stream>),
    Segmenter(ImageSegmenter<Stream>),
    Upscaler(ImageUpscaler<Stream>),
    Audio(Box<AudioClassifier<Stream>>),
}

impl Kind {
    /// What messages call it.
    fn name(&self) -> &'static str {
        match self {
            Kind::Classifier(_) => "image classifier",
            Kind::Detector(_) => "object detector",
            Kind::Segmenter(_) => "image segmenter",
            Kind::Upscaler(_) => "image upscaler",
            Kind::Audio(_) => "audio classifier",
        }
    }
}

/// Labels as C has them, by class. They stay where they are as long as the task does: none is ever taken out.
#[derive(Default)]
struct Labels(BTreeMap<usize, CString>);

impl Labels {
    fn of(&mut self, index: usize, label: &str) -> *const c_char {
        let text = || CString::new(label.replace('\0', " ")).unwrap_or_default();
        self.0.entry(index).or_insert_with(text).as_ptr()
    }

    fn class(&mut self, Class { index, label, score }: &Class) -> FoundClass {
        FoundClass { label: self.of(*index, label), index: number(*index), score: *score }
    }
}

/// Classes are far fewer than that.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// `burst_class` of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct FoundClass {
    label: *const c_char,
    index: u32,
    score: f32,
}

/// `burst_detection` of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct FoundThing {
    what: FoundClass,
    edges: [f32; 4],
}

/// `burst_heard` of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct FoundSound {
    what: FoundClass,
    at_ns: u64,
    span_ns: u64,
}

/// Prepares the model of a file for a task of this kind; gives its number.
pub(crate) fn load(
    service: usize,
    device: &str,
    file: &Path,
    kind: i32,
    options: &TaskOptions,
) -> Result<usize, Error> {
    let client = client::service(service)?;
    let bad = |error: TaskError| Error::of_task(&error, Status::BadModel);
    let refused = |error| Error::of(&error, Status::Refused);
    let model = TaskModel::read(file).map_err(bad)?;
    let device = client.device(device).map_err(refused)?;
    let stream = stream(&device, &model)?;
    let task = match kind {
        1 => ImageClassifier::over(stream, &model, options).map(Kind::Classifier),
        2 => ObjectDetector::over(stream, &model, options).map(Kind::Detector),
        3 => ImageSegmenter::over(stream, &model, options).map(Kind::Segmenter),
        4 => ImageUpscaler::over(stream, &model, options).map(Kind::Upscaler),
        5 => AudioClassifier::over(stream, &device, &model, options)
            .map(|task| Kind::Audio(Box::new(task))),
        other => return Err(Error::argument(format!("{other} is no kind of task"))),
    };
    let task = task.map_err(bad)?;
    Ok(TASKS.add(Mutex::new(Running { task, labels: Labels::default() })))
}

fn stream(device: &RemoteDevice, model: &TaskModel) -> Result<Stream, Error> {
    let mut options = StreamOptions::default();
    options.states = model.imported.state_bindings();
    let stream = device.stream(&model.imported.model, &options);
    stream.map_err(|error| Error::of(&error, Status::Refused))
}

/// A task that a caller has a handle of.
pub(crate) struct Task(Arc<Mutex<Running>>);

impl Task {
    pub(crate) fn find(task: usize) -> Result<Self, Error> {
        let found = TASKS.find(task).map(Task);
        found.ok_or_else(|| Error::argument("the handle is no task's"))
    }

    pub(crate) fn free(task: usize) {
        TASKS.remove(task);
    }

    /// Has the task work; `work` gives `None` where it is of another kind than `wanted`.
    fn work<T>(
        &self,
        wanted: &str,
        work: impl FnOnce(&mut Kind, &mut Labels) -> Option<Result<T, TaskError>>,
    ) -> Result<T, Error> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { task, labels } = &mut *running;
        let done = work(task, labels);
        let other = || Error::argument(format!("the task is an {}, no {wanted}", task.name()));
        done.ok_or_else(other)?.map_err(|error| match error {
            TaskError::Picture(_) | TaskError::Sound(_) | TaskError::TooShort { .. } => {
                Error::argument(error.to_string())
            }
            error => Error::of_task(&error, Status::Failed),
        })
    }

    pub(crate) fn classify(&self, picture: PictureView<'_>) -> Result<Vec<FoundClass>, Error> {
        self.work("image classifier", |task, labels| {
            let Kind::Classifier(task) = task else { return None };
            let found = task.classify(picture);
            Some(found.map(|found| found.iter().map(|class| labels.class(class)).collect()))
        })
    }

    pub(crate) fn detect(&self, picture: PictureView<'_>) -> Result<Vec<FoundThing>, Error> {
        self.work("object detector", |task, labels| {
            let Kind::Detector(task) = task else { return None };
            let mut thing = |found: &burst_tasks::Detection| {
                let label = labels.of(found.index, &found.label);
                let (index, score) = (number(found.index), found.score);
                FoundThing { what: FoundClass { label, index, score }, edges: found.edges }
            };
            Some(task.detect(picture).map(|found| found.iter().map(&mut thing).collect()))
        })
    }

    /// Windows in which nothing scores enough are left out.
    pub(crate) fn hear(&self, sound: &Sound) -> Result<Vec<FoundSound>, Error> {
        self.work("audio classifier", |task, labels| {
            let Kind::Audio(task) = task else { return None };
            let nanos =
                |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let mut best = |heard: &burst_tasks::Heard| {
                let what = labels.class(heard.classes.first()?);
                Some(FoundSound { what, at_ns: nanos(heard.at), span_ns: nanos(heard.span) })
            };
            Some(task.classify(sound).map(|heard| heard.iter().filter_map(&mut best).collect()))
        })
    }

    /// The class of each pixel, width and height.
    pub(crate) fn segment(&self, picture: PictureView<'_>) -> Result<(Vec<u16>, u32, u32), Error> {
        self.work("image segmenter", |task, _| {
            let Kind::Segmenter(task) = task else { return None };
            Some(task.segment(picture).map(|found| {
                let (width, height) = found.size();
                (found.mask().to_vec(), number(width), number(height))
            }))
        })
    }

    /// The bytes of the larger picture, width and height.
    pub(crate) fn upscale(&self, picture: PictureView<'_>) -> Result<(Vec<u8>, u32, u32), Error> {
        self.work("image upscaler", |task, _| {
            let Kind::Upscaler(task) = task else { return None };
            Some(task.upscale(picture).map(|found| (found.rgb, found.width, found.height)))
        })
    }
}
