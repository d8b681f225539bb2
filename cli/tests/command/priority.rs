//! `burst stream --priority`: what the device of a service is told.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::{Arc, Mutex};

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{Device, DeviceType, Failure, Model, PrepareOptions, PrepareResult, Priority};
use burst_server::{Listener, Service, ServiceOptions, Stop};

use crate::support::{json, run};

burst_testing::tests![
    a_device_is_told_how_urgent_a_stream_is(),
    a_priority_is_taken_wherever_a_model_is_run(),
    a_priority_that_there_is_not_is_refused_with_those_that_there_are(),
];

/// The CPU device, which remembers with which priorities it was asked to prepare.
struct Listening {
    cpu: CpuDevice,
    told: Arc<Mutex<Vec<Priority>>>,
}

impl Device for Listening {
    fn name(&self) -> &str {
        "listening"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.cpu.supported_operations(model)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.told.lock().unwrap().push(options.priority);
        self.cpu.prepare_model(model, options)
    }
}

fn a_device_is_told_how_urgent_a_stream_is() {
    let told = Arc::<Mutex<Vec<Priority>>>::default();
    let cpu = CpuDevice::new(DeviceOptions { threads: 1, ..DeviceOptions::default() });
    let device = Listening { cpu, told: Arc::clone(&told) };
    let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let listener = Listener::bind(&socket).unwrap();
    let (stopper, stop) = Stop::new().unwrap();
    let serving = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
    let args = ["stream", "--frames", "1", "--device", "listening", "--json"];
    let args = [&args[..], &["--socket", socket.to_str().unwrap()]].concat();
    for (priority, want) in [
        (None, Priority::Medium),
        (Some("low"), Priority::Low),
        (Some("medium"), Priority::Medium),
        (Some("high"), Priority::High),
    ] {
        let more = priority.map_or_else(Vec::new, |priority| vec!["--priority", priority]);
        let output = run(&[&args[..], &more].concat());
        assert_eq!(json(&output)["errors"], 0, "{priority:?}: {output:?}");
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), [want], "{priority:?}");
    }
    drop(stopper);
    serving.join().unwrap();
}

fn a_priority_is_taken_wherever_a_model_is_run() {
    for place in [&["--path", "in-process"][..], &["--devices", "cpu,nnapi-reference"], &[]] {
        let output = run(&[&["stream", "--frames", "1", "--priority", "high"], place].concat());
        assert!(output.status.success(), "{place:?}: {output:?}");
    }
}

fn a_priority_that_there_is_not_is_refused_with_those_that_there_are() {
    let output = run(&["stream", "--priority", "urgent", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let object = json(&output);
    let error = object["error"].as_str().unwrap();
    for part in ["urgent", "--priority", "low, medium, high"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
