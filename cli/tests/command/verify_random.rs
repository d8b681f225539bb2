//! `burst verify --random`: models that nobody wrote, on every lane.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use serde_json::json;

use crate::support::{Service, json as parse, run};

burst_testing::tests![
    models_of_every_class_are_right_on_every_lane(),
    a_running_service_is_judged_over_its_routes(),
    a_seed_and_an_operation_give_the_same_models_again(),
    what_cannot_be_judged_ends_with_status_2_and_one_sentence(),
];

/// Models of each class.
const MODELS: u64 = 40;

fn models_of_every_class_are_right_on_every_lane() {
    let folder = tempfile::tempdir().unwrap();
    let failures = folder.path().join("failures");
    let failures = failures.to_str().unwrap();
    let count = MODELS.to_string();
    let output = run(&["verify", "--random", &count, "--failures", failures, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let report = parse(&output);
    let counts = ["models", "passed", "failed", "unsupported"].map(|key| &report[key]);
    let all = 3 * MODELS;
    assert_eq!(counts, [all, all, 0, 0].map(|count| json!(count)).each_ref());
    let lanes: Vec<&str> =
        report["lanes"].as_array().unwrap().iter().map(|lane| lane.as_str().unwrap()).collect();
    for lane in ["in process", "3 threads", "from files", "sync", "async", "burst", "fenced"] {
        assert!(lanes.contains(&lane), "{lanes:?}");
    }
    let (executions, inapplicable) =
        (report["executions"].as_u64().unwrap(), report["inapplicable"].as_u64().unwrap());
    assert_eq!(executions + inapplicable, all * lanes.len() as u64);
    // Fences know the sizes of outputs, as most models do.
    assert!(inapplicable < all / 2, "{inapplicable}");
    assert!(!std::path::Path::new(failures).exists(), "nothing failed");
}

fn a_running_service_is_judged_over_its_routes() {
    let service = Service::start();
    let args = ["verify", "--random", "5", "--class", "small", "--socket", service.path()];
    let report = parse(&run(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["lanes"], json!(["sync", "async", "burst", "fenced"]));
    assert_eq!((&report["passed"], &report["models"]), (&json!(5), &json!(5)));
    let text = run(&[&args[..], &["--mode", "burst"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("lanes: burst\n5 random models from seed 0: 5 passed, 0 failed"),
        "{text}"
    );
}

fn a_seed_and_an_operation_give_the_same_models_again() {
    let of = |op: &str, seed: &str| {
        let args = ["verify", "--random", "3", "--class", "single", "--op", op, "--seed", seed];
        parse(&run(&[&args[..], &["--mode", "in-process", "--json"]].concat()))["forms"].clone()
    };
    let forms = of("lstm", "9");
    assert_eq!(forms, of("LSTM", "9"));
    assert_ne!(forms, of("LSTM", "11"));
    let occurrences = |forms: &serde_json::Value| -> u64 {
        let forms = forms.as_object().unwrap().iter();
        let lstm = forms.filter(|(name, _)| name.starts_with("LSTM "));
        lstm.map(|(_, counts)| counts["occurrences"].as_u64().unwrap()).sum()
    };
    assert_eq!(occurrences(&forms), 3);
}

fn what_cannot_be_judged_ends_with_status_2_and_one_sentence() {
    let cases: &[(&[&str], &str)] = &[
        (&["--random", "1", "--op", "TELEPORT"], "there is no such operation"),
        (&["--random", "1", "--mode", "ndk"], "--mode ndk goes with a folder of vectors"),
        (&["--random", "1", "--device", "tpu"], "tpu"),
        (&["--random", "0"], "0 is not in"),
        (&["--random", "1", "--class", "huge"], "huge"),
        (&["--seed", "1"], "--random"),
    ];
    for (args, what) in cases {
        let output = run(&[&["verify"], *args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(what), "{args:?}: {text}");
    }
}
