//! The models, inputs and goldens of the shared folder.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};

use burst_driver::CpuDevice;
use burst_tasks::{Picture, TaskModel, TaskOptions};
use serde_json::Value;

/// A model of the manifest.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) model: TaskModel,
    /// With the labels of its classes, where the manifest names some.
    pub(crate) options: TaskOptions,
    pub(crate) goldens: Vec<Golden>,
}

/// An input, and what the reference kernels made of it.
pub(crate) struct Golden {
    pub(crate) json: Value,
    bin: Vec<u8>,
    folder: PathBuf,
}

/// The models with a task that begins like this. There has to be one.
pub(crate) fn models(root: &Path, task: &str) -> Vec<Entry> {
    let manifest = json(&root.join("models/MANIFEST.json"));
    let of_task = |entry: &&Value| entry["task"].as_str().unwrap().contains(task);
    let found: Vec<Entry> = manifest["models"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_task)
        .map(|entry| Entry::new(root, entry))
        .collect();
    assert!(!found.is_empty(), "no model for {task}");
    found
}

impl Entry {
    fn new(root: &Path, entry: &Value) -> Entry {
        let text = |key: &str| entry[key].as_str();
        let model = TaskModel::read(root.join(text("file").unwrap())).unwrap();
        let mut options = TaskOptions::default();
        options.labels =
            text("labels").map(|file| burst_tasks::read_labels(&root.join(file)).unwrap());
        let goldens = entry["goldens"].as_array().unwrap().iter();
        let goldens: Vec<Golden> =
            goldens.map(|file| Golden::new(&root.join(file.as_str().unwrap()))).collect();
        assert!(!goldens.is_empty());
        Entry { name: text("name").unwrap().to_owned(), model, options, goldens }
    }
}

impl Golden {
    fn new(file: &Path) -> Golden {
        let (json, folder) = (json(file), file.parent().unwrap().to_owned());
        let bin = std::fs::read(folder.join(json["bin"].as_str().unwrap())).unwrap();
        Golden { json, bin, folder }
    }

    /// The bytes of an output as they are stored.
    pub(crate) fn output(&self, index: usize) -> &[u8] {
        let output = &self.json["outputs"][index];
        let number = |key: &str| usize::try_from(output[key].as_u64().unwrap()).unwrap();
        &self.bin[number("offset")..][..number("bytes")]
    }

    pub(crate) fn floats(&self, index: usize) -> Vec<f32> {
        self.output(index).as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    /// Another file beside it.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap()
    }

    pub(crate) fn input(&self) -> &Value {
        &self.json["input"]
    }
}

pub(crate) fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The pictures of a golden: one, or those of a pan over a larger one.
pub(crate) fn pictures(root: &Path, golden: &Golden) -> Vec<Picture> {
    let file = golden.input()["file"].as_str().unwrap();
    if let Some(size) = golden.input()["size"].as_u64() {
        return pan(root, &json(&root.join(file)), u32::try_from(size).unwrap());
    }
    let inputs = json(&root.join("inputs/INPUTS.json"));
    let stated = inputs.as_object().unwrap().values().find(|input| input["file"] == file).unwrap();
    let side = |key: &str| u32::try_from(stated[key].as_u64().unwrap()).unwrap();
    let bytes = std::fs::read(root.join(file)).unwrap();
    let rgb = match stated["channels"].as_u64() {
        Some(3) => bytes,
        _ => bytes.iter().flat_map(|grey| [*grey; 3]).collect(),
    };
    vec![Picture { width: side("width"), height: side("height"), rgb }]
}

fn pan(root: &Path, camera: &Value, size: u32) -> Vec<Picture> {
    let panorama = std::fs::read(root.join(camera["file"].as_str().unwrap())).unwrap();
    let width = usize::try_from(camera["width"].as_u64().unwrap()).unwrap();
    let crops = camera["crops"][size.to_string()].as_array().unwrap();
    let side = size as usize;
    let crop = |corner: &Value| {
        let [left, top] = [0, 1].map(|at| usize::try_from(corner[at].as_u64().unwrap()).unwrap());
        let rows = (top..top + side).map(|row| &panorama[(row * width + left) * 3..][..side * 3]);
        Picture { width: size, height: size, rgb: rows.flatten().copied().collect() }
    };
    crops.iter().map(crop).collect()
}

/// The CPU of this process.
pub(crate) fn device() -> CpuDevice {
    CpuDevice::default()
}

/// The index and label of each class of a golden's best five, with its score, which has six digits.
pub(crate) fn top_five(golden: &Golden) -> Vec<(usize, String, f64)> {
    let top = golden.json["top5"].as_array().unwrap().iter();
    top.map(|class| {
        let index = usize::try_from(class["index"].as_u64().unwrap()).unwrap();
        let label = class["label"].as_str().unwrap_or_default().to_owned();
        (index, label, class["score"].as_f64().unwrap())
    })
    .collect()
}

/// Asserts that these are a golden's best five.
#[track_caller]
pub(crate) fn assert_top_five(name: &str, golden: &Golden, found: &[burst_tasks::Class]) {
    let want = top_five(golden);
    assert_eq!(found.len(), want.len(), "{name}");
    for (found, (index, label, score)) in found.iter().zip(want) {
        assert_eq!((found.index, &found.label), (index, &label), "{name} {}", golden.input());
        assert!((f64::from(found.score) - score).abs() < 2e-4, "{name}: {found:?}, {score}");
    }
}
