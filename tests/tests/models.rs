//! Real models against the outputs of reference kernels, in this process and over a burst.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_client::{Client, Deadline, StreamOptions};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    PrepareOptions, Request, RequestArgument, RequestPool,
};
use burst_server::{Service, ServiceOptions};
use burst_tests::golden::{self, Case, Entry};
use burst_tests::shared;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Only turns a hang into a failure.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(120);

/// The models of the first milestone.
const MODELS: [&str; 5] = [
    "mobilenet_v1_0.25_224_float",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_ptq_int8",
    "mobilenet_v2_1.0_224_float_fp16w",
];

fn argument(pool_index: u32, length: usize) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 0, length: u32::try_from(length).unwrap() },
        dimensions: Dimensions::new(),
    }
}

/// Runs every case on one burst of the device; panics at the first answer that is too far off.
fn check(device: &dyn Device, entry: &Entry, cases: &[Case], bytes: &[u8]) -> f64 {
    let imported = burst_tflite::import(bytes).unwrap();
    let model = device.prepare_model(&imported.model, &PrepareOptions::default()).unwrap();
    let mut burst = model.open_burst().unwrap();
    let mut result = ExecutionResult::of(ErrorStatus::None);
    let mut largest = 0f64;
    for case in cases {
        let output = Arc::new(HeapMemory::new(vec![0; case.want.len()]));
        let request = Request {
            inputs: vec![argument(0, case.input.len())],
            outputs: vec![argument(1, case.want.len())],
            pools: vec![
                RequestPool::Memory(Arc::new(HeapMemory::new(case.input.clone()))),
                RequestPool::Memory(output.clone()),
            ],
        };
        burst.execute(&request, &ExecutionOptions::default(), &mut result);
        assert_eq!(result.status, ErrorStatus::None, "{}", case.name);
        match golden::judge(case, &output.to_vec(), &entry.yardstick.tolerance) {
            Ok(difference) => largest = largest.max(difference),
            Err(error) => panic!("{}: {error}", case.name),
        }
    }
    largest
}

fn check_in_process(test: &str, device: &CpuDevice, name: &str, most_cases: usize) {
    let Some(root) = shared(test, "") else { return };
    let entry = golden::manifest(&root).into_iter().find(|entry| entry.name == name).unwrap();
    let bytes = std::fs::read(root.join(&entry.file)).unwrap();
    let mut cases: Vec<Case> =
        entry.goldens.iter().flat_map(|golden| golden::cases(&root, golden)).collect();
    cases.truncate(most_cases);
    let largest = check(device, &entry, &cases, &bytes);
    println!("{name}: {} executions, largest difference {largest:e}", cases.len());
}

#[test]
fn goldens_hold_in_this_process() {
    let device = CpuDevice::default();
    for name in MODELS {
        check_in_process("goldens_hold_in_this_process", &device, name, usize::MAX);
    }
}

#[test]
fn goldens_hold_with_reference_kernels() {
    let options = DeviceOptions { fast_kernels: false, ..DeviceOptions::default() };
    let device = CpuDevice::new(options);
    for name in MODELS {
        check_in_process("goldens_hold_with_reference_kernels", &device, name, 1);
    }
}

/// A client of a service that offers the CPU, over a socket pair.
fn connect() -> (Client, std::thread::JoinHandle<()>) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
    let thread = std::thread::spawn(move || service.serve_socket(theirs).unwrap());
    (Client::from_socket(ours).unwrap(), thread)
}

/// Strict for quantized models, within tolerance for float: every golden of every frame.
#[test]
fn goldens_hold_over_the_burst() {
    let Some(root) = shared("goldens_hold_over_the_burst", "") else { return };
    let (client, service) = connect();
    let device = client.device("cpu").unwrap();
    for name in MODELS {
        let entry = golden::manifest(&root).into_iter().find(|entry| entry.name == name).unwrap();
        let bytes = std::fs::read(root.join(&entry.file)).unwrap();
        let model = burst_tflite::import(&bytes).unwrap().model;
        let mut stream = device.stream(&model, &StreamOptions::default()).unwrap();
        let mut largest = 0f64;
        let mut executions = 0;
        for golden in &entry.goldens {
            for case in golden::cases(&root, golden) {
                stream.input(0).copy_from_slice(&case.input);
                stream.run(Deadline::after(DEADLINE)).unwrap();
                assert!(!stream.burst().unwrap().fell_back(), "the burst took it");
                let got = stream.output(0).unwrap();
                match golden::judge(&case, got, &entry.yardstick.tolerance) {
                    Ok(difference) => largest = largest.max(difference),
                    Err(error) => panic!("{}: {error}", case.name),
                }
                executions += 1;
            }
        }
        println!("{name}: {executions} executions, largest difference {largest:e}");
    }
    drop((device, client));
    service.join().unwrap();
}
