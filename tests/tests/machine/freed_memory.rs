//! What clients have given back goes back to the system: a service that has seen many of them is as small as one
//! that has seen few.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::Path;

use burst_client::Client;
use burst_hal::{Model, ModelBuilder, OperationType, OutputSpec, PrepareOptions};

use crate::burst_support::wait_until;
use crate::peer;

burst_testing::tests![
    what_clients_gave_back_goes_back_to_the_system(),
    huge_pages_of_weights_go_back_to_the_system_with_their_client(),
];

const CLIENTS: usize = 8;
const GENERATIONS: usize = 4;

/// Values of the constant that a client's models add. None is large for a heap, which keeps what it frees.
const SIZES: [u32; 3] = [15_000, 25_000, 31_000];
const MODELS_OF_EACH_SIZE: usize = 20;

/// What the service may keep beside what it had before, in pages that something is left in: half of what one generation
/// takes, all of which stayed.
const KEPT_MAX_KIB: usize = 40 << 10;

/// The sum of an input and a constant.
fn model(size: u32) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(burst_hal::OperandType::TensorFloat32, &[size]);
    let y = b.constant_f32(&[size], &vec![1.5; size as usize]);
    let none = b.scalar_i32(0);
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::f32(&[size]));
    b.output(sum);
    b.build().unwrap()
}

/// A client that has many models prepared at the same time.
fn be_a_client(path: &Path) {
    let client = Client::connect(path).unwrap();
    let device = client.devices().unwrap().remove(0);
    let models = SIZES.map(model);
    let prepared = models.iter().flat_map(|model| std::iter::repeat_n(model, MODELS_OF_EACH_SIZE));
    let prepared: Vec<_> =
        prepared.map(|model| device.prepare(model, &PrepareOptions::default()).unwrap()).collect();
    assert_eq!(prepared.len(), SIZES.len() * MODELS_OF_EACH_SIZE);
}

/// Anonymous memory of the process, in KiB.
fn anonymous_kib(service: &peer::Service) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.0.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn what_clients_gave_back_goes_back_to_the_system() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = peer::Service::start_as("serve-cpu", &path);
    let before = anonymous_kib(&service);
    for generation in 1..=GENERATIONS {
        std::thread::scope(|scope| {
            (0..CLIENTS).for_each(|_| {
                scope.spawn(|| be_a_client(&path));
            });
        });
        let what = format!("the memory of generation {generation} to go back to the system");
        wait_until(&what, || anonymous_kib(&service) <= before + KEPT_MAX_KIB);
    }
}

/// Units of a layer whose weights are 24 MiB: they lie on huge pages where the machine has some free, and the process keeps
/// as many of those that were freed.
const UNITS: u32 = 3 << 10;
const DEPTH: u32 = 2 << 10;
const WEIGHTS_KIB: usize = (UNITS * DEPTH * 4) as usize / 1024;

/// What the service may have then, beside what it had before: a third of the weights.
const REST_MAX_KIB: usize = 8 << 10;

fn large_layer() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(burst_hal::OperandType::TensorFloat32, &[1, DEPTH]);
    let weights = b.constant_f32(&[UNITS, DEPTH], &vec![1.5; (UNITS * DEPTH) as usize]);
    let bias = b.constant_f32(&[UNITS], &vec![0.5; UNITS as usize]);
    let none = b.scalar_i32(0);
    let operands = [x, weights, bias, none];
    let y = b.result_of(OperationType::FullyConnected, &operands, OutputSpec::f32(&[1, UNITS]));
    b.output(y);
    b.build().unwrap()
}

fn huge_pages_of_weights_go_back_to_the_system_with_their_client() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = peer::Service::start_as("serve-cpu", &path);
    let before = anonymous_kib(&service);
    let client = Client::connect(&path).unwrap();
    let device = client.devices().unwrap().remove(0);
    let model = large_layer();
    // One after the other: the second may have the pages of the first.
    for _ in 0..2 {
        let prepared = device.prepare(&model, &PrepareOptions::default()).unwrap();
        assert!(anonymous_kib(&service) >= before + WEIGHTS_KIB);
        drop(prepared);
    }
    drop((device, client));
    let what = "the pages of the weights to go back to the system";
    wait_until(what, || anonymous_kib(&service) <= before + REST_MAX_KIB);
}
