//! Tasks: pictures and sound in, answers out.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_client::{ClientError, Deadline, RemoteDevice, ShmMemory};
use burst_hal::session::{LayoutOptions, SessionLayout, SessionTensors};
use burst_hal::{Pool, PrepareOptions};
use burst_shm::SoleWriter;
use burst_tasks::{
    AudioClassifier, Class as Seen, Detection, ImageClassifier, ImageSegmenter, ImageUpscaler,
    ObjectDetector, Outputs, PictureView, RecurrentStream, Runner, Sound, TaskError, TaskModel,
    TaskOptions, read_labels,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::connection::{Connection, Found};
use crate::errors::{self, Class};
use crate::memory;
use crate::private_driver::DriverProcess;
use crate::running::Running;
use crate::waiting::{aside, lock};

/// Runs a task's model, and hears Ctrl-C while it waits.
struct Listening {
    running: Running,
    /// None for a model without inputs.
    inputs: Option<SoleWriter>,
    outputs: Vec<Vec<u8>>,
}

impl Listening {
    fn open(device: &RemoteDevice, model: &TaskModel) -> Result<Self, TaskError> {
        let states = model.imported.state_bindings();
        let options = LayoutOptions { states, ..LayoutOptions::default() };
        let layout = SessionLayout::new(&model.imported.model, &options);
        let layout = layout.map_err(ClientError::from)?;
        let prepared = device.prepare(&model.imported.model, &PrepareOptions::default())?;
        let bytes = layout.input_bytes();
        let (mut inputs, mut pool) = (None, None);
        if bytes > 0 {
            let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
            let system = ClientError::Memory;
            let mut writer = SoleWriter::create("burst-input", length).map_err(system)?;
            layout.write_initial_states(writer.bytes_mut());
            let descriptor = writer.memory().duplicate_fd().map_err(system)?;
            pool = Some(Arc::new(ShmMemory::open(descriptor, bytes)?) as Pool);
            inputs = Some(writer);
        }
        let output_pool = memory::output_pool(&prepared, layout.output_bytes())?;
        let outputs = vec![Vec::new(); layout.outputs().len()];
        let tensors = SessionTensors::new(layout, pool, output_pool);
        Ok(Listening { running: Running::open(prepared, tensors)?, inputs, outputs })
    }
}

impl Outputs for Listening {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        let missing = TaskError::OutputLength { index, wanted: 1, found: 0 };
        let bytes = self.outputs.get_mut(index).ok_or(missing)?;
        self.running.read_output(index, bytes)?;
        Ok(bytes)
    }
}

impl Runner for Listening {
    fn input(&mut self, index: usize) -> &mut [u8] {
        let layout = self.running.tensors.layout();
        let range = (index < layout.inputs().len()).then(|| layout.input_slot(0, index).range());
        match (range, &mut self.inputs) {
            (Some(range), Some(memory)) => &mut memory.bytes_mut()[range],
            _ => &mut [],
        }
    }

    fn run(&mut self, timeout: Duration) -> Result<(), TaskError> {
        let done = self.running.run(Deadline::after(timeout));
        done.map_err(|raised| TaskError::Runner(Box::new(raised)))
    }

    fn reset_states(&mut self) {
        self.running.tensors.reset_states();
    }
}

enum Kind {
    Classifier(ImageClassifier<Listening>),
    Detector(ObjectDetector<Listening>),
    Segmenter(ImageSegmenter<Listening>),
    Upscaler(ImageUpscaler<Listening>),
    Audio(AudioClassifier<Listening>),
    Recurrent(RecurrentStream<Listening>),
}

/// See `package/burst/tasks.py`.
#[pyclass(module = "burst._burst", frozen)]
pub(crate) struct Task {
    kind: String,
    model: Arc<TaskModel>,
    device: String,
    options: TaskOptions,
    live: Mutex<Live>,
}

struct Live {
    task: Kind,
    /// Ends with the last that uses it, and after the connection.
    _process: Option<Arc<DriverProcess>>,
}

/// A class: its number, its label, its score.
type Found3 = (usize, String, f32);

/// A thing: the same, and its edges.
type FoundThing = (usize, String, f32, [f32; 4]);

fn class(Seen { index, label, score }: Seen) -> Found3 {
    (index, label, score)
}

fn open(kind: &str, found: Found, model: &Arc<TaskModel>, options: &TaskOptions) -> PyResult<Live> {
    let (kind, model, options) = (kind.to_owned(), Arc::clone(model), options.clone());
    aside(move || open_aside(&kind, found, &model, &options))
}

fn open_aside(
    kind: &str,
    Found { device, process }: Found,
    model: &TaskModel,
    options: &TaskOptions,
) -> PyResult<Live> {
    let refused = |error| errors::of_task(error, Class::Refused);
    let runner = Listening::open(&device, model).map_err(refused)?;
    let task = match kind {
        "classifier" => ImageClassifier::over(runner, model, options).map(Kind::Classifier),
        "detector" => ObjectDetector::over(runner, model, options).map(Kind::Detector),
        "segmenter" => ImageSegmenter::over(runner, model, options).map(Kind::Segmenter),
        "upscaler" => ImageUpscaler::over(runner, model, options).map(Kind::Upscaler),
        "audio" => AudioClassifier::over(runner, &device, model, options).map(Kind::Audio),
        "recurrent" => RecurrentStream::over(runner, &device, model, options).map(Kind::Recurrent),
        other => return Err(PyValueError::new_err(format!("{other:?} is no kind of task"))),
    };
    let task = task.map_err(|error| errors::of_task(error, Class::BadModel))?;
    Ok(Live { task, _process: process })
}

/// What was asked for, as keywords.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Asked {
    max_results: Option<usize>,
    score_threshold: Option<f32>,
    allowed: Vec<String>,
    denied: Vec<String>,
    labels: Option<Vec<String>>,
    label_file: Option<PathBuf>,
    timeout: Option<f64>,
}

fn options(asked: Asked) -> PyResult<TaskOptions> {
    let mut options = TaskOptions::default().with_allowed(asked.allowed).with_denied(asked.denied);
    options.max_results = asked.max_results;
    options.score_threshold = asked.score_threshold;
    options.labels = asked.labels;
    if let Some(file) = asked.label_file {
        let labels = read_labels(&file);
        options.labels = Some(labels.map_err(|error| PyValueError::new_err(error.to_string()))?);
    }
    if let Some(seconds) = asked.timeout {
        let time = Duration::try_from_secs_f64(seconds);
        let wrong = |_| PyValueError::new_err(format!("timeout={seconds}: no number of seconds"));
        options.timeout = Some(time.map_err(wrong)?);
    }
    Ok(options)
}

impl Task {
    /// Has the task work on a thread that lets the interpreter go on; `None` is a task of another kind.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Kind) -> Option<Result<T, TaskError>> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let done = work(&mut lock(&self.live)?.task);
            let other = || {
                PyValueError::new_err(format!(
                    "a task of the kind {:?} has no such answer",
                    self.kind
                ))
            };
            done.ok_or_else(other)?.map_err(|error| errors::of_task(error, Class::Failed))
        })
    }
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

#[pymethods]
impl Task {
    #[staticmethod]
    fn load(
        py: Python<'_>,
        connection: &Connection,
        kind: String,
        file: PathBuf,
        device: String,
        asked: Asked,
    ) -> PyResult<Self> {
        py.detach(|| {
            let options = options(asked)?;
            let model = TaskModel::read(&file);
            let model = Arc::new(model.map_err(|error| errors::of_task(error, Class::BadModel))?);
            let live = open(&kind, connection.device(&device)?, &model, &options)?;
            Ok(Task { kind, model, device, options, live: Mutex::new(live) })
        })
    }

    /// Everything again over the connection that there is now. States begin anew.
    fn renew(&self, py: Python<'_>, connection: &Connection) -> PyResult<()> {
        py.detach(|| {
            let found = connection.device(&self.device)?;
            let live = open(&self.kind, found, &self.model, &self.options)?;
            let before = std::mem::replace(&mut *lock(&self.live)?, live);
            drop(before);
            Ok(())
        })
    }

    fn classify(
        &self,
        py: Python<'_>,
        rgb: &[u8],
        width: u32,
        height: u32,
    ) -> PyResult<Vec<Found3>> {
        self.work(py, |task| {
            let Kind::Classifier(task) = task else { return None };
            let picture = PictureView::new(width, height, rgb).map_err(TaskError::from);
            let found = picture.and_then(|picture| task.classify(picture));
            Some(found.map(|found| found.into_iter().map(class).collect()))
        })
    }

    fn detect(
        &self,
        py: Python<'_>,
        rgb: &[u8],
        width: u32,
        height: u32,
    ) -> PyResult<Vec<FoundThing>> {
        let thing = |Detection { index, label, score, edges }| (index, label, score, edges);
        self.work(py, |task| {
            let Kind::Detector(task) = task else { return None };
            let picture = PictureView::new(width, height, rgb).map_err(TaskError::from);
            let found = picture.and_then(|picture| task.detect(picture));
            Some(found.map(|found| found.into_iter().map(thing).collect()))
        })
    }

    /// The class of each pixel as bytes, rows, columns, and shares.
    fn segment<'py>(
        &self,
        py: Python<'py>,
        rgb: &[u8],
        width: u32,
        height: u32,
    ) -> PyResult<(Bound<'py, PyBytes>, usize, usize, Vec<Found3>)> {
        let (mask, (width, height), shares) = self.work(py, |task| {
            let Kind::Segmenter(task) = task else { return None };
            let picture = PictureView::new(width, height, rgb).map_err(TaskError::from);
            let found = picture.and_then(|picture| {
                task.segment(picture).map(|found| {
                    let mask: Vec<u8> =
                        found.mask().iter().flat_map(|class| class.to_le_bytes()).collect();
                    let shares = found.shares().into_iter();
                    let shares = shares.map(|share| (share.index, share.label, share.share));
                    (mask, found.size(), shares.collect())
                })
            });
            Some(found)
        })?;
        Ok((PyBytes::new(py, &mask), height, width, shares))
    }

    /// The bytes of the larger picture, rows, columns.
    fn upscale<'py>(
        &self,
        py: Python<'py>,
        rgb: &[u8],
        width: u32,
        height: u32,
    ) -> PyResult<(Bound<'py, PyBytes>, u32, u32)> {
        let larger = self.work(py, |task| {
            let Kind::Upscaler(task) = task else { return None };
            let picture = PictureView::new(width, height, rgb).map_err(TaskError::from);
            Some(picture.and_then(|picture| task.upscale(picture)))
        })?;
        Ok((PyBytes::new(py, &larger.rgb), larger.height, larger.width))
    }

    /// Of each window of sound when it begins, how long it is, and its classes.
    fn hear(
        &self,
        py: Python<'_>,
        samples: &[u8],
        rate: u32,
    ) -> PyResult<Vec<(f64, f64, Vec<Found3>)>> {
        let sound = Sound { rate, samples: numbers(samples) };
        self.work(py, |task| {
            let Kind::Audio(task) = task else { return None };
            Some(task.classify(&sound).map(|heard| {
                let window = |heard: burst_tasks::Heard| {
                    let classes = heard.classes.into_iter().map(class).collect();
                    (heard.at.as_secs_f64(), heard.span.as_secs_f64(), classes)
                };
                heard.into_iter().map(window).collect()
            }))
        })
    }

    /// The numbers of the first output.
    fn step(&self, py: Python<'_>, values: &[u8]) -> PyResult<Vec<f32>> {
        let values = numbers(values);
        self.work(py, |task| {
            let Kind::Recurrent(task) = task else { return None };
            Some(task.step(&values).map(<[f32]>::to_vec))
        })
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, |task| {
            let Kind::Recurrent(task) = task else { return None };
            task.reset();
            Some(Ok(()))
        })
    }
}
