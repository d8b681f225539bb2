//! Label files inside a model's own file. Tools that write `.tflite` metadata append the files that go with a model
//! as a ZIP archive behind it.

use std::io::Read;

use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipSliceArchive};

use crate::labels::{MAX_LABEL_BYTES, labels_of};

/// Most files of an archive that are looked at.
const MAX_FILES: usize = 64;
/// Why a file of the archive is not read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Archive(#[from] rawzip::Error),
    #[error("{file} is packed in a way that is not read: {method:?}")]
    Method { file: String, method: CompressionMethod },
    #[error("{file} has more than {MAX_LABEL_BYTES} bytes")]
    TooLong { file: String },
    #[error(transparent)]
    Text(#[from] std::io::Error),
}

/// The labels that are packed into a model's file: those of the file that is `named` in its metadata, else those of its
/// only text file, or of the only one that is called labels. None where there is no such file or more than one.
pub(crate) fn labels(model: &[u8], named: Option<&str>) -> Vec<String> {
    // Whatever is not such an archive is a model without one.
    let Ok(archive) = ZipArchive::from_slice(model) else { return Vec::new() };
    look(&archive, named).unwrap_or_else(|error| {
        tracing::warn!("the labels in the model's file cannot be read: {error}");
        Vec::new()
    })
}

fn look(archive: &ZipSliceArchive<&[u8]>, named: Option<&str>) -> Result<Vec<String>, Unread> {
    let names = names(archive)?;
    let named = named.filter(|named| names.iter().any(|name| name == named));
    let Some(wanted) = named.map(str::to_owned).or_else(|| label_file(&names)) else {
        return Ok(Vec::new());
    };
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry()? {
        if entry.file_path().as_ref() != wanted.as_bytes() {
            continue;
        }
        let method = entry.compression_method();
        let packed = archive.get_entry(entry.wayfinder())?;
        let bytes: Box<dyn Read> = match method {
            CompressionMethod::Store => Box::new(packed.data()),
            CompressionMethod::Deflate => Box::new(DeflateDecoder::new(packed.data())),
            method => return Err(Unread::Method { file: wanted, method }),
        };
        let mut text = String::new();
        let reader = packed.verifying_reader(bytes);
        let read = reader.take(MAX_LABEL_BYTES + 1).read_to_string(&mut text)?;
        if read as u64 > MAX_LABEL_BYTES {
            return Err(Unread::TooLong { file: wanted });
        }
        return Ok(labels_of(&text));
    }
    Ok(Vec::new())
}

/// The names of the first files, as far as they are text.
fn names(archive: &ZipSliceArchive<&[u8]>) -> Result<Vec<String>, Unread> {
    let mut names = Vec::new();
    let mut entries = archive.entries();
    while names.len() < MAX_FILES
        && let Some(entry) = entries.next_entry()?
    {
        names.extend(std::str::from_utf8(entry.file_path().as_ref()).map(str::to_owned));
    }
    Ok(names)
}

/// Which of the files has the labels.
fn label_file(names: &[String]) -> Option<String> {
    let is_text = |name: &&String| name.to_ascii_lowercase().ends_with(".txt");
    let texts: Vec<&String> = names.iter().filter(is_text).collect();
    let is_labels = |name: &&String| name.to_ascii_lowercase().contains("label");
    let labels: Vec<&String> = texts.iter().copied().filter(is_labels).collect();
    match (texts.as_slice(), labels.as_slice()) {
        ([only], _) | (_, [only]) => Some((*only).clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn model_with(files: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (name, text) in files {
            let file = archive.new_file(name).compression_method(CompressionMethod::Store);
            let (mut entry, config) = file.start().unwrap();
            let mut writer = config.wrap(&mut entry);
            writer.write_all(text.as_bytes()).unwrap();
            let (_, descriptor) = writer.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        // Offsets count from the archive's own beginning, as the tools for metadata leave them.
        [&b"a model, as far as it goes"[..], &bytes].concat()
    }

    #[test]
    fn the_only_text_file_or_the_one_that_is_called_labels_is_taken() {
        assert_eq!(labels(&model_with(&[("x.txt", "cat\ndog\n")]), None), ["cat", "dog"]);
        let two = [("vocab.txt", "a"), ("labelmap.txt", "cat"), ("x.json", "{}")];
        assert_eq!(labels(&model_with(&two), None), ["cat"]);
        assert!(labels(&model_with(&[("a.txt", "a"), ("b.txt", "b")]), None).is_empty());
        assert!(labels(&model_with(&[("labels.json", "{}")]), None).is_empty());
        // The model's metadata may say which; a name that is not there says nothing.
        assert_eq!(labels(&model_with(&two), Some("vocab.txt")), ["a"]);
        assert_eq!(labels(&model_with(&two), Some("gone.txt")), ["cat"]);
        assert!(labels(b"no archive", None).is_empty());
    }

    #[test]
    fn what_is_damaged_is_no_label() {
        let whole = model_with(&[("labels.txt", "cat\ndog\n")]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x5a;
            let _ = labels(&damaged, None); // whatever it says, it does not panic
            let _ = labels(&whole[..at], None);
        }
    }
}
