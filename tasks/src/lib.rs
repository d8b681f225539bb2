//! From pictures and sound to answers: what a model sees, where, and what it hears.
//!
//! A [`TaskModel`] is a `.tflite` file with what it says of itself: labels that are packed into it, how its input is
//! normalised. A task runs it: [`ImageClassifier`], [`ObjectDetector`], [`ImageSegmenter`], [`ImageUpscaler`],
//! [`AudioClassifier`], [`RecurrentStream`]. Each takes any [`burst_hal::Device`] (`new`), or whatever runs the model
//! already, such as a client's [`burst_client::Stream`] (`over`), which is the fastest way.
//!
//! ```no_run
//! use burst_client::Client;
//! use burst_tasks::{ImageClassifier, TaskModel, TaskOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = TaskModel::read("mobilenet.tflite")?;
//! let device = Client::connect("/run/burst/burst.sock")?.device("cpu")?;
//! let options = TaskOptions::default().with_max_results(3);
//! let mut classifier = ImageClassifier::new(&device, &model, &options)?;
//! let picture = burst_pictures::read("cat.jpg".as_ref())?;
//! for class in classifier.classify(picture.view()?)? {
//!     println!("{} {:.2}", class.name(), class.score);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Below the tasks lie their parts, for programs that keep the time of each step by themselves: [`PictureFitter`]
//! and [`SoundFitter`] write inputs, a [`Runner`] runs, a [`Decoder`] reads its [`Outputs`].
#![forbid(unsafe_code)]

mod audio_classifier;
mod decode;
mod error;
mod image_classifier;
mod image_segmenter;
mod image_upscaler;
mod labels;
mod model;
mod numbers;
mod object_detector;
mod options;
mod packed;
mod picture_input;
mod picture_task;
mod recurrent_stream;
mod runner;
mod sound_input;

pub use audio_classifier::{AudioClassifier, Heard};
pub use burst_pictures::{Picture, PictureView};
pub use burst_sound::Sound;
pub use decode::{
    Answer, BoxDecoder, Class, ClassDecoder, Decoder, Detection, PictureDecoder, SegmentDecoder,
    Share, Stretch, ValueDecoder,
};
pub use error::TaskError;
pub use image_classifier::ImageClassifier;
pub use image_segmenter::{ImageSegmenter, Segmentation};
pub use image_upscaler::ImageUpscaler;
pub use labels::{LabelsNeeded, MAX_LABEL_BYTES, labels_of, read_labels};
pub use model::{MAX_MODEL_BYTES, SoundFront, TaskModel};
pub use numbers::Numbers;
pub use object_detector::ObjectDetector;
pub use options::{DEFAULT_MIN_SCORE, DEFAULT_TIMEOUT, TaskOptions};
pub use picture_input::{Fit, Normalisation, PictureFitter, PictureShape, Placement};
pub use picture_task::picture_fitter;
pub use recurrent_stream::RecurrentStream;
pub use runner::{Outputs, Runner, SessionRunner};
pub use sound_input::{SoundFitter, SoundShape, Windows};
