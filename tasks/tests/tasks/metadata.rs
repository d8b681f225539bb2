//! What a model's file says of itself.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use burst_driver::CpuDevice;
use burst_tasks::{ImageSegmenter, Normalisation, TaskModel, TaskOptions, picture_fitter};
use burst_tflite::MetadataFileKind;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};
use rawzip::CompressionMethod;

use crate::support::{FLOAT32, File, Operator, Tensor};

type Offset = WIPOffset<TableFinishedWIPOffset>;

fn slot(id: u16) -> u16 {
    4 + 2 * id
}

fn table<'b>(
    b: &mut FlatBufferBuilder<'b>,
    fill: impl FnOnce(&mut FlatBufferBuilder<'b>),
) -> Offset {
    let start = b.start_table();
    fill(b);
    b.end_table(start)
}

/// A unit of work: a table of this kind.
fn unit(b: &mut FlatBufferBuilder<'_>, kind: u8, options: Offset) -> Offset {
    table(b, |b| {
        b.push_slot(slot(0), kind, 0);
        b.push_slot_always(slot(1), options);
    })
}

/// Metadata of an input with a normalisation and a rate, and of an output with files and a least score.
fn metadata(files: &[(&str, i8, &str)]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let b = &mut builder;
    let (mean, std) = (b.create_vector(&[10.0_f32, 20.0, 30.0]), b.create_vector(&[2.0_f32]));
    let normalization = table(b, |b| {
        b.push_slot_always(slot(0), mean);
        b.push_slot_always(slot(1), std);
    });
    let normalization = unit(b, 1, normalization);
    let units = b.create_vector(&[normalization]);
    let audio = table(b, |b| b.push_slot(slot(0), 44_100_u32, 0));
    let content = unit(b, 4, audio);
    let input = table(b, |b| {
        b.push_slot_always(slot(3), content);
        b.push_slot_always(slot(4), units);
    });
    let threshold = table(b, |b| b.push_slot(slot(0), 0.25_f32, 0.0));
    let threshold = unit(b, 3, threshold);
    let units = b.create_vector(&[threshold]);
    let files: Vec<Offset> = files
        .iter()
        .map(|(name, kind, locale)| {
            let (name, locale) = (b.create_string(name), b.create_string(locale));
            table(b, |b| {
                b.push_slot_always(slot(0), name);
                b.push_slot(slot(2), *kind, 0);
                b.push_slot_always(slot(3), locale);
            })
        })
        .collect();
    let files = b.create_vector(&files);
    let output = table(b, |b| {
        b.push_slot_always(slot(4), units);
        b.push_slot_always(slot(6), files);
    });
    let (inputs, outputs) = (b.create_vector(&[input]), b.create_vector(&[output]));
    let graph = table(b, |b| {
        b.push_slot_always(slot(2), inputs);
        b.push_slot_always(slot(3), outputs);
    });
    let graphs = b.create_vector(&[graph]);
    let root = table(b, |b| b.push_slot_always(slot(3), graphs));
    builder.finish(root, Some("M001"));
    builder.finished_data().to_vec()
}

const FILES: [(&str, i8, &str); 4] =
    [("about.txt", 1, ""), ("de.txt", 2, "de"), ("en.txt", 2, "en"), ("words.txt", 5, "")];

/// A model of two by two pixels, which says of each channel whether it is bright.
fn model(metadata: Option<Vec<u8>>, packed: &[(&str, &str)]) -> Vec<u8> {
    let tensor = |name| Tensor::new(name, FLOAT32, &[1, 2, 2, 3]);
    let tensors = vec![tensor("image"), tensor("mask")];
    let mut file = File::new(tensors, vec![Operator::new(19, &[0], &[1])], (&[0], &[1]));
    file.metadata = metadata;
    let mut bytes = file.write();
    if packed.is_empty() {
        return bytes;
    }
    let mut behind = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut behind);
    for (name, text) in packed {
        let file = archive.new_file(name).compression_method(CompressionMethod::Store);
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(&mut entry);
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes.extend(behind);
    bytes
}

const PACKED: [(&str, &str); 4] = [
    ("about.txt", "a model\n"),
    ("de.txt", "rot\ngrün\nblau\n"),
    ("en.txt", "red\ngreen\nblue\n"),
    ("words.txt", "x\n"),
];

#[test]
fn the_file_says_how_inputs_are_normalised_and_what_classes_are_called() {
    let bytes = model(Some(metadata(&FILES)), &PACKED);
    let found = burst_tflite::metadata(&bytes).unwrap().unwrap();
    assert_eq!(found.outputs[0].files[1].kind, MetadataFileKind::AxisLabels);
    let model = TaskModel::from_bytes("m", &bytes).unwrap();
    let stated = Normalisation::new([10.0, 20.0, 30.0], [2.0; 3]).unwrap();
    assert_eq!(model.normalisation, Some(stated));
    assert_eq!((model.sample_rate, model.score_threshold), (Some(44_100), Some(0.25)));
    assert_eq!(model.labels, ["red", "green", "blue"]);
    let options = TaskOptions::default();
    assert_eq!(picture_fitter(&model, &options).unwrap().normalisation(), stated);
    // Options come first.
    let options = options.with_normalisation(Normalisation::UNIT);
    assert_eq!(picture_fitter(&model, &options).unwrap().normalisation(), Normalisation::UNIT);
    let mut segmenter =
        ImageSegmenter::new(&CpuDevice::default(), &model, &TaskOptions::default()).unwrap();
    // Normalised, green is the brightest: (22 - 10) / 2, (40 - 20) / 2, (40 - 30) / 2.
    let rgb = [22, 40, 40].repeat(4);
    let picture = burst_tasks::PictureView::new(2, 2, &rgb).unwrap();
    let found = segmenter.segment(picture).unwrap();
    assert_eq!(found.mask(), [1; 4]);
    assert_eq!(found.shares()[0].name(), "green");
}

#[test]
fn a_file_without_a_language_comes_first_and_one_that_is_not_there_is_nothing() {
    let files = [("de.txt", 2, "de"), ("en.txt", 3, "")];
    let labels = |files: &[_]| {
        TaskModel::from_bytes("m", &model(Some(metadata(files)), &PACKED)).unwrap().labels
    };
    assert_eq!(labels(&files), ["red", "green", "blue"]);
    assert_eq!(labels(&[("de.txt", 2, "de")]), ["rot", "grün", "blau"]);
    assert!(labels(&[("gone.txt", 2, "")]).is_empty(), "four text files, none called labels");
}

#[test]
fn a_model_without_metadata_says_nothing() {
    for bytes in [model(None, &[]), model(Some(b"????XXXX".to_vec()), &[])] {
        assert_eq!(burst_tflite::metadata(&bytes).unwrap(), None);
        let model = TaskModel::from_bytes("m", &bytes).unwrap();
        assert_eq!((model.normalisation, model.labels.len()), (None, 0));
    }
}

#[test]
fn damaged_metadata_leaves_a_model_without() {
    let whole = metadata(&FILES);
    let want = TaskModel::from_bytes("m", &model(Some(whole.clone()), &PACKED)).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x5a;
        // Whatever it says, the model is there, and nothing panics.
        let bytes = model(Some(damaged), &PACKED);
        let found = TaskModel::from_bytes("m", &bytes).unwrap();
        assert_eq!(found.imported.inputs, want.imported.inputs);
        refused += usize::from(burst_tflite::metadata(&bytes).is_err());
        let short = model(Some(whole[..at].to_vec()), &[]);
        assert!(TaskModel::from_bytes("m", &short).is_ok());
    }
    assert!(refused > 10, "{refused} of {}", whole.len());
}
