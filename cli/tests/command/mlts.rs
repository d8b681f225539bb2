//! `burst bench mlts`: answers beside those of LiteRT, data sets, and what it says of wrong ones. No test here
//! looks at a time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::path::Path;
use std::process::{Command, Output};

use burst_testing::{Missing, shared};
use serde_json::Value;

use crate::support::{burst, json, opener, repository, run};

burst_testing::tests![
    every_path_computes_the_same_on_a_data_set_and_what_cannot_be_read_is_named(),
    parts_of_pictures_are_chosen_by_the_seed(),
    what_files_are_known_to_show_is_counted(),
    a_model_that_is_none_is_named_and_others_follow(),
    rates_and_clients_are_measured_where_asked_for_and_tables_are_for_documents_too(),
    what_cannot_be_done_is_said_in_one_sentence(),
    a_page_is_shown_by_what_opens_pages_here_and_figures_are_told_where_nothing_does(),
    beside_litert_all_bytes_are_those_of_its_reference_kernels(&python_with_litert()?),
    models_of_every_kind_are_not_worse_than_litert(&python_with_litert()?, &shared("")?),
];

/// A Python with LiteRT.
fn python_with_litert() -> Result<String, Missing> {
    let advice =
        "LiteRT: examples/tflite/setup FOLDER litert, then BURST_PYTHON=FOLDER/litert/bin/python";
    let missing = || Missing::new(advice);
    let python = std::env::var("BURST_PYTHON").map_err(|_| missing())?;
    let import = "import ai_edge_litert.interpreter";
    let found = Command::new(&python).args(["-c", import]).output().map_err(|_| missing())?;
    if found.status.success() { Ok(python) } else { Err(missing()) }
}

/// A folder with so many pictures, with a file that is none, and with one that is damaged.
pub(crate) fn data(pictures: u8) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..pictures {
        let rgb: Vec<u8> = (0..96_u32 * 72)
            .flat_map(|pixel| {
                let [x, y] = [pixel % 96, pixel / 96].map(|at| u8::try_from(at).unwrap());
                [x.wrapping_mul(number + 1), y.wrapping_mul(3), x ^ y.wrapping_add(number * 40)]
            })
            .collect();
        let file = folder.path().join(format!("{number}.png"));
        burst_pictures::write_png(&file, 96, 72, &rgb).unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "none").unwrap();
    std::fs::write(folder.path().join("zz.jpg"), "no picture").unwrap();
    folder
}

fn model() -> String {
    repository().join("models/shapes.tflite").to_str().unwrap().to_owned()
}

fn mlts(models: &[&str], data: &Path, more: &[&str]) -> Output {
    let base = [&["bench", "mlts"][..], models, &["--data", data.to_str().unwrap()]].concat();
    run(&[&base[..], more].concat())
}

fn done(models: &[&str], data: &Path, more: &[&str]) -> Value {
    let output = mlts(models, data, &[more, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    json(&output)
}

fn every_path_computes_the_same_on_a_data_set_and_what_cannot_be_read_is_named() {
    let data = data(4);
    let report = done(&[&model()], data.path(), &["--windows", "2", "--sustain", "1"]);
    assert_eq!((&report["data"]["pictures"], &report["data"]["others"]), (&5.into(), &1.into()));
    assert!(report["litert"].is_null());
    let model = &report["models"][0];
    assert_eq!((&model["inputs"], &model["task"]), (&4.into(), &"classification".into()));
    assert!(model["verdict"].is_null() && model["failed"].is_null(), "{model}");
    let damaged = model["damaged"].as_array().unwrap();
    assert!(
        damaged.len() == 1 && damaged[0].as_str().unwrap().starts_with("zz.jpg: "),
        "{damaged:?}"
    );
    let rows = model["paths"].as_array().unwrap();
    let paths: Vec<&str> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["in-process", "burst", "sync", "async", "fenced"]);
    for row in rows {
        assert_eq!(row["equal"], 4, "{row}");
        let us = |key: &str| row[key].as_f64().unwrap();
        assert!((us("prepare_us") + us("first_us") - us("cold_us")).abs() < 1e-3, "{row}");
        for quantiles in [&row["latency_us"], &row["over_data_us"], &row["sustained"]["latency_us"]]
        {
            let values =
                ["p50", "p90", "p99", "p999", "max"].map(|q| quantiles[q].as_f64().unwrap());
            assert!(values[0] > 0.0 && values.is_sorted(), "{row}");
        }
        assert!(row["memory_kib"].as_u64().unwrap() > 1000, "{row}");
        assert_eq!(row["windows_p50_us"].as_array().unwrap().len(), 2, "{row}");
        assert_eq!(row["is_stable"], false, "two windows are too few: {row}");
    }
    let text = mlts(&[&crate::mlts::model()], data.path(), &["--windows", "0", "--limit", "2"]);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["1 file of the data", "no Python with LiteRT", "2 of 2"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn parts_of_pictures_are_chosen_by_the_seed() {
    let data = data(2);
    std::fs::remove_file(data.path().join("zz.jpg")).unwrap();
    let labels = data.path().join("truth");
    std::fs::write(&labels, "0.png 3\n1.png 3\n").unwrap();
    let truth = ["--truth", labels.to_str().unwrap(), "--path", "in-process", "--windows", "0"];
    let right = |seed: &str| {
        let report = done(
            &[&model()],
            data.path(),
            &[&truth[..], &["--crops", "40", "--seed", seed]].concat(),
        );
        let model = &report["models"][0];
        assert_eq!((&model["inputs"], &model["truth"]["of"]), (&40.into(), &40.into()), "{model}");
        assert_eq!(report["data"]["crops"]["count"], 40);
        model["truth"]["burst"].as_u64().unwrap()
    };
    assert_eq!(right("7"), right("7"));
}

fn what_files_are_known_to_show_is_counted() {
    let data = data(3);
    let truth = data.path().join("truth.csv");
    let all = |class: usize| (0..3).map(|n| format!("{n}.png,{class}\n")).collect::<String>();
    let mut right = 0;
    for class in 0..10 {
        std::fs::write(&truth, all(class)).unwrap();
        let more = ["--truth", truth.to_str().unwrap(), "--path", "in-process", "--windows", "0"];
        let report = done(&[&model()], data.path(), &more);
        let found = &report["models"][0]["truth"];
        assert_eq!((&found["of"], found["litert"].is_null()), (&3.into(), true), "{found}");
        right += found["burst"].as_u64().unwrap();
    }
    assert_eq!(right, 3, "each picture has one best class");
}

fn a_model_that_is_none_is_named_and_others_follow() {
    let (data, models) = (data(1), tempfile::tempdir().unwrap());
    std::fs::write(models.path().join("a.tflite"), "this is no model").unwrap();
    std::fs::copy(model(), models.path().join("b.tflite")).unwrap();
    let more = ["--path", "in-process", "--windows", "0", "--json"];
    let output = mlts(&[models.path().to_str().unwrap()], data.path(), &more);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    let [a, b] = [0, 1].map(|index| &report["models"][index]);
    assert!(a["failed"].as_str().unwrap().contains("cannot use the model a"), "{a}");
    assert_eq!((b["failed"].is_null(), &b["inputs"]), (true, &1.into()), "{b}");
}

fn rates_and_clients_are_measured_where_asked_for_and_tables_are_for_documents_too() {
    let data = data(2);
    let base = ["--windows", "1", "--path", "in-process"];
    // A bound that every rate keeps to, and one that none does.
    for (bound, is_found) in [("900000000", true), ("0.001", false)] {
        let more = [&base[..], &["--rate-for-p99", bound, "--clients", "1,2"]].concat();
        let report = done(&[&model()], data.path(), &more);
        let model = &report["models"][0];
        let rate = &model["paths"][0]["rate_for_p99"];
        assert_eq!(rate["per_second"].is_f64(), is_found, "{bound}: {rate}");
        assert_eq!(rate["trials"].as_array().unwrap().len(), 7, "{rate}");
        let clients: Vec<u64> = model["clients"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["clients"].as_u64().unwrap())
            .collect();
        assert_eq!(clients, [1, 2]);
        assert!(model["clients"][1]["per_second"].as_f64().unwrap() > 0.0, "{model}");
    }
    let said = |format: &str| {
        let output = mlts(&[&model()], data.path(), &[&base[..], &["--format", format]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let csv = said("csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("model,path,p50 us,") && lines.len() == 2, "{csv}");
    assert!(lines[0].ends_with(",judged,judged the same,too near,LiteRT disagrees"), "{csv}");
    assert!(lines[1].starts_with("shapes,in-process,"), "{csv}");
    let markdown = said("markdown");
    for part in ["`burst bench mlts", "| shapes |", "## Left out", "\n## shapes"] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
}

fn what_cannot_be_done_is_said_in_one_sentence() {
    let data = data(1);
    let empty = tempfile::tempdir().unwrap();
    let truth = data.path().join("truth");
    std::fs::write(&truth, "nobody.png 1\n").unwrap();
    let (own, truth) = (model(), truth.to_str().unwrap());
    for (models, data, more, part) in [
        (own.as_str(), Path::new("/nonexistent"), &[][..], "/nonexistent"),
        (&own, empty.path(), &[], "no .jpg"),
        (empty.path().to_str().unwrap(), data.path(), &[], "no .tflite"),
        ("/nonexistent", data.path(), &[], "/nonexistent"),
        (&own, data.path(), &["--truth", truth], "no file nobody.png"),
        (&own, data.path(), &["--python", "/bin/true"], "pip install ai-edge-litert"),
        (&own, data.path(), &["--report", "/nonexistent/x/y.html"], "--report"),
    ] {
        let output = mlts(&[models], data, more);
        assert_eq!(output.status.code(), Some(2), "{part}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(part) && said.lines().count() == 1, "{part}: {said}");
    }
    let said = mlts(&[&own], data.path(), &["--open"]);
    assert_eq!(said.status.code(), Some(2), "a page that is not written cannot be opened");
}

fn a_page_is_shown_by_what_opens_pages_here_and_figures_are_told_where_nothing_does() {
    let data = data(1);
    std::fs::remove_file(data.path().join("zz.jpg")).unwrap();
    let own = model();
    // What opens pages does, does not, and is not there.
    for (status, said) in
        [(Some(0), None), (Some(3), Some("--open: xdg-open")), (None, Some("--open: cannot start"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.html");
        let noted = status.map(|status| opener(folder.path(), status));
        let shown = ["--report", page.to_str().unwrap(), "--open"];
        let short = ["--windows", "1", "--path", "in-process"];
        let base = ["bench", "mlts", &own, "--data", data.path().to_str().unwrap()];
        let output = burst(&[&base[..], &short, &shown].concat())
            .env("PATH", folder.path())
            .output()
            .unwrap();
        let code = if said.is_some() { 2 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let err = String::from_utf8(output.stderr).unwrap();
        match said {
            Some(said) => assert!(err.contains(said), "{err}"),
            None => assert!(!err.contains("--open"), "{err}"),
        }
        if let Some(noted) = noted {
            let opened = std::fs::read_to_string(noted).unwrap();
            assert_eq!(Path::new(&opened), page, "it was there, and was the one to open");
        }
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains("shapes") && page.exists(), "{out}");
    }
}

fn beside_litert_all_bytes_are_those_of_its_reference_kernels(python: &str) {
    let data = data(5);
    let more = ["--python", python, "--windows", "1", "--path", "in-process,burst"];
    let report = done(&[&model()], data.path(), &more);
    assert_eq!(report["litert"]["package"], "ai-edge-litert");
    let model = &report["models"][0];
    assert_eq!(model["verdict"]["not_worse"], true, "{model}");
    assert_eq!((&model["inputs"], &model["referred"]), (&5.into(), &5.into()));
    let find = |of: &str, with: &str| {
        let all = model["comparisons"].as_array().unwrap();
        all.iter().find(|one| one["of"] == of && one["with"] == with).unwrap()
    };
    let ours = find("burst", "litert-reference");
    assert_eq!((&ours["inputs"], &ours["equal"]), (&5.into(), &5.into()), "{ours}");
    assert_eq!(ours["mean_square_error"], 0.0, "{ours}");
    let (beside, theirs) = (find("burst", "litert"), find("litert", "litert-reference"));
    assert_eq!(beside["largest"], theirs["largest"], "ours are the reference's");
    for one in [ours, beside, theirs] {
        let classes = &one["classes"];
        let count = |key: &str| classes[key].as_u64().unwrap();
        let left_out = count("too_near") + count("litert_disagrees");
        assert_eq!((count("left_out"), count("clear")), (left_out, 5 - left_out), "{one}");
        assert_eq!(count("clear_top1"), count("clear"), "what both kinds of kernels see: {one}");
    }
    let text = mlts(&[&crate::mlts::model()], data.path(), &more);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["LiteRT disagrees with itself: ", "not clear: ", "that can be judged"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let litert = &model["paths"][2];
    assert_eq!(litert["path"], "litert");
    assert!(litert["latency_us"]["p50"].as_f64().unwrap() > 0.0, "{litert}");
    // A few of the inputs alone for the slow kernels.
    let more = [&more[..], &["--reference-inputs", "2"]].concat();
    let report = done(&[&crate::mlts::model()], data.path(), &more);
    assert_eq!(report["models"][0]["referred"], 2, "{report}");
}

/// A classifier, a detector, a segmenter, super-resolution and models of sound with states.
fn models_of_every_kind_are_not_worse_than_litert(python: &str, root: &Path) {
    let models = [
        ("mobilenet_v1_0.25_224_float", "classification"),
        ("ssd_mobilenet_v1_coco_quant", "detection"),
        ("deeplabv3_257_float", "segmentation"),
        ("edsr_f32b5_240x135_int8", "super-resolution"),
        ("tts_lstm_float", "numbers"),
        ("kws_svdf_rnn_float", "classification"),
        ("yamnet_wavin_int8", "classification"),
    ];
    let files = models.map(|(name, _)| root.join(format!("models/{name}.tflite")));
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let more = [
        "--python",
        python,
        "--windows",
        "0",
        "--limit",
        "4",
        "--reference-inputs",
        "1",
        "--path",
        "in-process",
    ];
    let report = done(&files, &root.join("inputs"), &more);
    for (model, (name, task)) in report["models"].as_array().unwrap().iter().zip(models) {
        assert_eq!((&model["model"], &model["task"]), (&name.into(), &task.into()), "{model}");
        assert_eq!((&model["inputs"], &model["failed"]), (&4.into(), &Value::Null), "{model}");
        assert_eq!(model["verdict"]["not_worse"], true, "{model}");
    }
    // Pixels are decisions.
    let masks = report["models"][2]["comparisons"].as_array().unwrap();
    let judged: Vec<&Value> =
        masks.iter().map(|one| &one["mask"]).filter(|mask| mask["clear"] != 0).collect();
    assert_eq!(judged.len(), 3, "each with each, on the one input that all three have: {masks:?}");
    for mask in judged {
        let count = |key: &str| mask[key].as_u64().unwrap();
        assert_eq!(count("clear"), count("clear_equal"), "{mask}");
        assert_eq!(count("left_out"), count("of") - count("clear"), "{mask}");
        assert!(count("beyond_fair") <= count("litert_disagrees"), "{mask}");
    }
}
