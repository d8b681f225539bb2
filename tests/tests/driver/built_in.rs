//! The built-in model against the reference outputs that were made when it was trained.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, Isa};
use burst_hal::{
    DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    PrepareOptions, Request, RequestArgument, RequestPool,
};
use burst_tests::repository;
use serde::Deserialize;

burst_testing::tests![the_built_in_model_gives_its_golden_outputs_bit_for_bit()];

#[derive(Deserialize)]
struct Golden {
    count: usize,
    inputs: Part,
    outputs: Part,
}

#[derive(Deserialize)]
struct Part {
    offset: usize,
    bytes: usize,
}

impl Part {
    fn rows<'b>(&self, blob: &'b [u8], count: usize) -> std::slice::ChunksExact<'b, u8> {
        blob[self.offset..self.offset + self.bytes].chunks_exact(self.bytes / count)
    }
}

fn argument(pool_index: u32, length: usize) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 0, length: u32::try_from(length).unwrap() },
        dimensions: Dimensions::new(),
    }
}

fn the_built_in_model_gives_its_golden_outputs_bit_for_bit() {
    let models = repository().join("models");
    let read = |name: &str| std::fs::read(models.join(name)).unwrap();
    let golden: Golden = serde_json::from_slice(&read("shapes.golden.json")).unwrap();
    let blob = read("shapes.golden.bin");
    let model = burst_tflite::import(&read("shapes.tflite")).unwrap().model;
    assert!(golden.count >= 20);
    for (name, fast_kernels, isa) in [
        ("fast kernels", true, Isa::detect()),
        ("portable fast kernels", true, Isa::PORTABLE),
        ("reference kernels", false, Isa::detect()),
    ] {
        let device =
            CpuDevice::new(DeviceOptions { fast_kernels, isa, ..DeviceOptions::default() });
        let prepared = device.prepare_model(&model, &PrepareOptions::default()).unwrap();
        let mut burst = prepared.open_burst().unwrap();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let pairs =
            golden.inputs.rows(&blob, golden.count).zip(golden.outputs.rows(&blob, golden.count));
        for (index, (input, want)) in pairs.enumerate() {
            let output = Arc::new(HeapMemory::new(vec![0; want.len()]));
            let request = Request {
                inputs: vec![argument(0, input.len())],
                outputs: vec![argument(1, want.len())],
                pools: vec![
                    RequestPool::Memory(Arc::new(HeapMemory::new(input.to_vec()))),
                    RequestPool::Memory(output.clone()),
                ],
            };
            burst.execute(&request, &ExecutionOptions::default(), &mut result);
            assert_eq!(result.status, ErrorStatus::None);
            assert_eq!(output.to_vec(), want, "{name}, golden {index}");
        }
    }
}
