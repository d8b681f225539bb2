//! Tensors in files: the elements and nothing else.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use burst_hal::OperandType;
use burst_tflite::{ElementType, TensorInfo};
use burst_verify::models::OutputTensor;
use serde::Serialize;

/// Largest file that is read, in bytes: what all inputs can have together.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// An input, output or state of a model.
pub(super) struct Slot {
    /// `input`, `output`, `state`, with its number.
    label: String,
    info: TensorInfo,
}

/// A tensor in a file.
#[derive(Debug, Serialize)]
pub(super) struct TensorFile {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) shape: Vec<u32>,
    pub(super) bytes: usize,
    /// Its path, for people: what is not UTF-8 in it is replaced.
    pub(super) file: String,
}

impl Slot {
    /// Slots for these tensors, numbered.
    pub(super) fn all(what: &str, infos: Vec<TensorInfo>) -> Vec<Self> {
        let slot = |(number, info)| Slot { label: format!("{what} {number}"), info };
        infos.into_iter().enumerate().map(slot).collect()
    }

    /// `output0.bin`
    fn file_name(&self) -> String {
        format!("{}.bin", self.label.replace(' ', ""))
    }

    fn describe(&self) -> String {
        format!("{} {:?}", self.info.file_type, self.info.dims.as_slice())
    }

    /// Bytes of such a tensor, where its whole shape is known.
    fn length(&self) -> Option<u64> {
        let is_open = self.info.dims.contains(&0);
        if is_open { None } else { self.info.ty.byte_length(&self.info.dims) }
    }

    fn read(&self, file: &Path) -> Result<Vec<u8>> {
        let what = || format!("cannot read {} from {}", self.label, file.display());
        let meta = std::fs::metadata(file).with_context(what)?;
        if meta.is_dir() {
            bail!("{}: it is a folder", what());
        }
        let Some(wanted) = self.length() else {
            bail!("{} ({}) has an open shape, {}", self.label, self.info.name, self.describe());
        };
        let wrong = |found: &str| {
            let (label, name, tensor) = (&self.label, &self.info.name, self.describe());
            let file = file.display();
            anyhow!("{label} ({name}) takes {wanted} bytes, {tensor}; {file} has {found}")
        };
        if wanted > MAX_FILE_BYTES {
            bail!("{}: at most {MAX_FILE_BYTES} bytes are read, it takes {wanted}", what());
        }
        // The length of a file is known before it is read; that of a pipe once it has ended.
        if meta.is_file() && meta.len() != wanted {
            return Err(wrong(&meta.len().to_string()));
        }
        let mut bytes = Vec::new();
        let from = File::open(file).with_context(what)?;
        from.take(wanted + 1).read_to_end(&mut bytes).with_context(what)?;
        match bytes.len() as u64 {
            found if found == wanted => Ok(bytes),
            found if found > wanted => Err(wrong("more")),
            found => Err(wrong(&found.to_string())),
        }
    }

    fn write(&self, folder: &Path, tensor: &OutputTensor) -> Result<TensorFile> {
        let file = folder.join(self.file_name());
        let bytes = self.as_in_the_file(tensor);
        std::fs::write(&file, &bytes)
            .with_context(|| format!("cannot write {} to {}", self.label, file.display()))?;
        Ok(self.in_file(tensor.dimensions.to_vec(), bytes.len(), &file))
    }

    /// The elements in the type that the model file has: int64 results are int32 in the driver.
    fn as_in_the_file(&self, tensor: &OutputTensor) -> Vec<u8> {
        if self.info.file_type != ElementType::Int64 || tensor.ty != OperandType::TensorInt32 {
            return tensor.bytes.clone();
        }
        let (chunks, _) = tensor.bytes.as_chunks::<4>();
        chunks
            .iter()
            .flat_map(|chunk| i64::from(i32::from_ne_bytes(*chunk)).to_ne_bytes())
            .collect()
    }

    fn in_file(&self, shape: Vec<u32>, bytes: usize, file: &Path) -> TensorFile {
        let (name, ty) = (self.info.name.clone(), self.info.file_type.to_string());
        TensorFile { name, ty, shape, bytes, file: file.display().to_string() }
    }
}

/// The bytes for each slot, from one file each; `what` people call one of the slots.
pub(super) fn read(what: &str, slots: &[Slot], files: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    if slots.len() != files.len() {
        let each = |slot: &Slot| format!("{}: {}", slot.info.name, slot.describe());
        let names: Vec<String> = slots.iter().map(each).collect();
        let names =
            if names.is_empty() { String::new() } else { format!(" ({})", names.join("; ")) };
        let (wanted, given) = (counted(slots.len(), what), counted(files.len(), "file"));
        let are = if files.len() == 1 { "is" } else { "are" };
        bail!("the model has {wanted}{names}; {given} {are} given");
    }
    slots.iter().zip(files).map(|(slot, file)| slot.read(file)).collect()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What was read.
pub(super) fn given(slots: &[Slot], files: &[PathBuf], bytes: &[Vec<u8>]) -> Vec<TensorFile> {
    let outputs = slots.iter().zip(files).zip(bytes);
    outputs
        .map(|((slot, file), bytes)| slot.in_file(slot.info.dims.to_vec(), bytes.len(), file))
        .collect()
}

/// Whether a file has the name of one that an execution writes.
pub(super) fn is_file_of_tensors(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("output").or_else(|| name.strip_prefix("state"));
    let number = number.and_then(|rest| rest.strip_suffix(".bin"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Makes the folder, where it is not there.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Writes each tensor to a file of the slot's name.
pub(super) fn write(
    slots: &[Slot],
    folder: &Path,
    tensors: &[OutputTensor],
) -> Result<Vec<TensorFile>> {
    slots.iter().zip(tensors).map(|(slot, tensor)| slot.write(folder, tensor)).collect()
}
