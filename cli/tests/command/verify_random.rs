//! `burst verify --random`: models that nobody wrote, on every lane.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::sync::Arc;

use burst_driver::ReferenceDevice;
use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, OperationType,
    PrepareOptions, PrepareResult, PreparedModel, Request, RequestPool,
};
use burst_server::{Listener, ServiceOptions, Stop};
use serde_json::json;

use crate::support::{Service, json as parse, run};

burst_testing::tests![
    models_of_every_class_are_right_on_every_lane(),
    a_running_service_is_judged_over_its_routes(),
    a_device_of_another_driver_that_falsifies_a_result_fails_with_the_seed(),
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

/// A device that is not the CPU driver, and gives another last byte of the first output of whatever has a FLOOR.
struct Falsifying(ReferenceDevice);

impl Device for Falsifying {
    fn name(&self) -> &str {
        "falsifying"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.0.supported_operations(model)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let right = self.0.prepare_model(model, options)?;
        let mut operations = model.main.operations.iter();
        match operations.any(|operation| operation.ty == OperationType::Floor) {
            true => Ok(Arc::new(Falsified(right))),
            false => Ok(right),
        }
    }
}

struct Falsified(Arc<dyn PreparedModel>);

impl PreparedModel for Falsified {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let result = self.0.execute_synchronously(request, options);
        let location = request.outputs[0].location;
        if let (ErrorStatus::None, RequestPool::Memory(memory)) =
            (result.status, &request.pools[location.pool_index as usize])
        {
            let (mut byte, last) = ([0], u64::from(location.offset + location.length - 1));
            memory.read(last, &mut byte).unwrap();
            // Of a float the highest bit of its exponent: nothing near it.
            memory.write(last, &[byte[0] ^ 0x40]).unwrap();
        }
        result
    }
}

fn a_device_of_another_driver_that_falsifies_a_result_fails_with_the_seed() {
    let device = Arc::new(Falsifying(ReferenceDevice::default()));
    let service = burst_server::Service::new(vec![device], ServiceOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let listener = Listener::bind(&socket).unwrap();
    let (stopper, stop) = Stop::new().unwrap();
    let serving = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
    let failures = folder.path().join("failures");
    // The first model has a FLOOR, the second a NEG.
    let verify = |more: &[&str]| {
        let args = ["verify", "--random", "2", "--class", "single", "--op", "floor,neg"];
        let place = ["--seed", "41", "--device", "falsifying", "--mode", "sync"];
        let place = [&place[..], &["--socket", socket.to_str().unwrap()]].concat();
        let place = [&place[..], &["--failures", failures.to_str().unwrap()]].concat();
        run(&[&args[..], &place, more].concat())
    };
    let output = verify(&["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = parse(&output);
    let counts = ["models", "passed", "failed", "unsupported"].map(|key| &report[key]);
    assert_eq!(counts, [2, 1, 1, 0].map(|count| json!(count)).each_ref(), "{report:#}");
    let finding = &report["findings"][0];
    let of_finding = ["seed", "class", "only", "lane"].map(|key| &finding[key]);
    let expected = [json!(41), json!("single"), json!("FLOOR"), json!("sync")];
    assert_eq!(of_finding, expected.each_ref(), "{finding:#}");
    assert!(finding["operations"].as_array().unwrap().contains(&json!("FLOOR")), "{finding:#}");
    let output = verify(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let again = "again: burst verify --random 1 --seed 41 --class single --op FLOOR";
    assert!(output.status.code() == Some(1) && text.contains(again), "{output:?}");
    assert!(text.contains("2 random models from seed 41: 1 passed, 1 failed"), "{text}");
    drop(stopper);
    serving.join().unwrap();
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
        (&["--random", "0"], "0 is not "),
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
