//! Real models against the outputs of reference kernels, on any [`burst_hal::Device`].
//!
//! Reads a folder of models, inputs and goldens (`models/MANIFEST.json` names them all), runs every
//! golden over each route to a device, and says of each how close it came: equal to the reference,
//! as close as other fast kernels are, or neither. A model whose state lives in variable tensors is
//! executed frame by frame, with its states carried from one execution to the next; where the
//! reference's values at the edge of a part are known, the part is run by itself too.
//!
//! Who turns a file into a model is not known here: see [`Importer`].

mod closeness;
mod device_route;
mod element;
mod files;
mod golden;
mod input;
mod manifest;
mod model;
mod model_run;
mod pipeline;
mod report;
mod run;
mod wave;

pub use crate::golden_error::GoldenError;
pub use device_route::DeviceRoute;
pub use golden::Golden;
pub use manifest::{Fair, FairClasses, Folder, ModelEntry, Tolerance, tolerances};
pub use model::{OutputTensor, StatefulModel};
pub use pipeline::{Bridge, ImportedModel, Importer, Pipeline, PipelineError};
pub use report::{Class, GoldenReport, GoldenResult};
pub use run::{run_goldens, run_goldens_while};
