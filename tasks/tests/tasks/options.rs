//! What a caller asks for.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use burst_camera::LABELS;
use burst_driver::CpuDevice;
use burst_tasks::{Class, ImageClassifier, TaskError, TaskOptions};

use crate::{frames, named, shapes};

fn classify(options: &TaskOptions) -> Result<Vec<Class>, TaskError> {
    let mut classifier = ImageClassifier::new(&CpuDevice::default(), &shapes(), options)?;
    classifier.classify(frames(1)[0].0.view()?)
}

#[test]
fn results_are_as_many_and_as_good_as_asked_for() {
    let all = classify(&named()).unwrap();
    assert_eq!(all.len(), LABELS.len());
    assert_eq!(classify(&named().with_max_results(3)).unwrap(), all[..3]);
    assert_eq!(classify(&named().with_score_threshold(all[1].score)).unwrap()[..2], all[..2]);
    assert!(classify(&named().with_score_threshold(1.5)).unwrap().is_empty());
}

#[test]
fn labels_are_allowed_or_denied() {
    let all = classify(&named()).unwrap();
    let (first, second) = (all[0].name(), all[1].name());
    let only = classify(&named().with_allowed([second.clone()])).unwrap();
    assert_eq!(only, all[1..2]);
    let others = classify(&named().with_denied([first])).unwrap();
    assert_eq!(others, all[1..]);
    let error = classify(&named().with_allowed(["circel"])).unwrap_err().to_string();
    assert!(error.contains("no class of ") && error.contains("\"circel\""), "{error}");
}

#[test]
fn labels_have_to_be_as_many_as_classes() {
    let few = TaskOptions::default().with_labels(["one", "two"]);
    let error = classify(&few).unwrap_err().to_string();
    assert!(error.starts_with("2 labels, where the model has 10 classes"), "{error}");
    let without = classify(&TaskOptions::default()).unwrap();
    assert_eq!(without[0].name(), format!("class {}", without[0].index));
}
