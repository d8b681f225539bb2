//! The model to run: the built-in one, or a `.tflite` file.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_tasks::{MAX_MODEL_BYTES, TaskModel};
use burst_tflite::Imported;

/// The model that this repository trained for its synthetic camera: see `models/README.md`.
const BUILT_IN: &[u8] = include_bytes!("../../models/shapes.tflite");

/// A model with the name it goes by.
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) imported: Imported,
}

/// Reads and imports a model; `None` is the built-in one.
pub(crate) fn load(path: Option<&Path>) -> Result<Loaded> {
    let (name, bytes) = read(path)?;
    let imported =
        burst_tflite::import(&bytes).with_context(|| format!("cannot use the model {name}"))?;
    Ok(Loaded { name, imported })
}

/// Reads a model for what it does: with labels and all else that its file says of it.
pub(crate) fn task_model(path: Option<&Path>) -> Result<TaskModel> {
    let (name, bytes) = read(path)?;
    Ok(TaskModel::from_bytes(&name, &bytes)?)
}

/// Name and bytes of a model file; `None` is the built-in one.
pub(crate) fn read(path: Option<&Path>) -> Result<(String, Cow<'static, [u8]>)> {
    let Some(path) = path else {
        return Ok(("built-in shapes".into(), Cow::Borrowed(BUILT_IN)));
    };
    let name = path.display().to_string();
    let what = || format!("cannot read the model {name}");
    let meta = std::fs::metadata(path).with_context(what)?;
    if !meta.is_file() {
        let hint = if meta.is_dir() {
            " but a folder"
        } else {
            "; what comes from a pipe has to be saved as one"
        };
        bail!("cannot read the model {name}: it is not a file{hint}");
    }
    if meta.len() > MAX_MODEL_BYTES {
        bail!("{name} has {} bytes, at most {MAX_MODEL_BYTES} are read", meta.len());
    }
    let bytes = std::fs::read(path).with_context(what)?;
    Ok((name, Cow::Owned(bytes)))
}
