//! A buffer of a device as memory of a client.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::Path;
use std::sync::Arc;

use burst_client::{BurstOptions, ShmMemory};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, Pool, Request, RequestArgument, RequestPool,
};
use burst_shm::DmaHeap;
use burst_testing::Missing;

use crate::burst_support::{Private, long, model, request_in};

burst_testing::tests![a_buffer_of_a_device_is_a_memory_too(&dma_heap()?)];

fn dma_heap() -> Result<DmaHeap, Missing> {
    const HEAP: &str = "/dev/dma_heap/system";
    let opened = DmaHeap::open(Path::new(HEAP));
    opened.map_err(|error| Missing::new(format!("{HEAP}, which cannot be opened: {error}")))
}

/// Input at the beginning of one memory, output at 16 of the other.
fn across(input: &Pool, output: &Pool) -> Request {
    let argument = |pool_index, offset| RequestArgument {
        location: DataLocation { pool_index, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0, 0)],
        outputs: vec![argument(1, 16)],
        pools: [input, output].map(|pool| RequestPool::Memory(Pool::clone(pool))).to_vec(),
    }
}

fn a_buffer_of_a_device_is_a_memory_too(heap: &DmaHeap) {
    let (_service, client) = Private::connect();
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let mut run = |request: &Request| {
        burst.execute(request, &ExecutionOptions::default(), long()).unwrap().status
    };
    let buffer = heap.allocate(4096).unwrap();
    let longer = ShmMemory::open(buffer.try_clone().unwrap(), 1 << 30);
    assert!(longer.is_err(), "longer than it is");
    let memory: Pool = Arc::new(ShmMemory::open(buffer, 4096).unwrap());
    memory.write(0, &[1; 16]).unwrap();
    let both = request_in(&memory);
    for _ in 0..3 {
        assert_eq!(run(&both), ErrorStatus::None);
    }
    let mut output = [0; 16];
    memory.read(16, &mut output).unwrap();
    assert_eq!(output, [2; 16]);
    let other: Pool = Arc::new(ShmMemory::create(64).unwrap());
    assert_eq!(run(&across(&memory, &other)), ErrorStatus::None);
    assert_eq!(run(&across(&other, &memory)), ErrorStatus::None);
    memory.read(16, &mut output).unwrap();
    assert_eq!(output, [1; 16]);
}
