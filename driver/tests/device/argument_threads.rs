//! Large arguments are copied by all threads of the device, where that cannot keep a helper waiting for somebody.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, HeapMemory, Memory, MemoryError, Model,
    ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions, Request, RequestArgument,
    RequestPool,
};

const F32: OperandType = OperandType::TensorFloat32;

/// Floats of an argument: 16 MiB, so that sleeping helpers are woken for them.
const FLOATS: u32 = 4 << 20;

/// Only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn model() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[FLOATS]);
    let y = b.result_of(OperationType::Relu, &[x], OutputSpec::new(F32, &[FLOATS]));
    b.output(y);
    b.build().unwrap()
}

/// Who touches a memory. While there is one thread only, it waits for a second one.
#[derive(Debug, Default)]
struct Visitors {
    threads: Mutex<HashSet<ThreadId>>,
    came: Condvar,
}

impl Visitors {
    fn visit(&self) {
        let mut threads = self.threads.lock().unwrap();
        threads.insert(std::thread::current().id());
        self.came.notify_all();
        let alone = |threads: &mut HashSet<ThreadId>| threads.len() < 2;
        drop(self.came.wait_timeout_while(threads, PATIENCE, alone).unwrap());
    }

    fn count(&self) -> usize {
        self.threads.lock().unwrap().len()
    }
}

/// An input that counts the threads and the calls that read it, or cannot be read behind its middle.
#[derive(Debug, Default)]
struct Input {
    bytes: HeapMemory,
    is_mapped: bool,
    ends_early: bool,
    visitors: Visitors,
    reads: Mutex<usize>,
}

impl Memory for Input {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        *self.reads.lock().unwrap() += 1;
        if self.is_mapped {
            self.visitors.visit();
        }
        if self.ends_early && offset + out.len() as u64 > self.len() / 2 {
            return Err(MemoryError::Backing { errno: 5 });
        }
        self.bytes.read(offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.bytes.write(offset, bytes)
    }

    fn is_mapped(&self) -> bool {
        self.is_mapped
    }
}

fn argument(pool_index: u32) -> RequestArgument {
    let location = DataLocation { pool_index, offset: 0, length: 4 * FLOATS };
    RequestArgument { location, ..RequestArgument::default() }
}

fn run(input: &Arc<Input>, output: &Arc<dyn Memory>) -> burst_hal::ExecutionResult {
    let two = NonZeroUsize::new(2).unwrap();
    let device = CpuDevice::new(DeviceOptions { threads: two.into(), ..DeviceOptions::default() });
    let prepared = device.prepare_model(&model(), &PrepareOptions::default()).unwrap();
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: vec![
            RequestPool::Memory(Arc::clone(input) as _),
            RequestPool::Memory(Arc::clone(output)),
        ],
    };
    prepared.execute_synchronously(&request, &ExecutionOptions::default())
}

fn floats() -> Vec<u8> {
    let value = |index: u32| f32::from(u16::try_from(index % 1000).unwrap()) + 0.5;
    (0..FLOATS).flat_map(|index| value(index).to_ne_bytes()).collect()
}

#[test]
fn two_threads_copy_a_large_input_and_a_large_output() {
    let bytes = floats();
    let input =
        Input { bytes: HeapMemory::new(bytes.clone()), is_mapped: true, ..Input::default() };
    let input = Arc::new(input);
    let output = Arc::new(HeapMemory::new(vec![0; bytes.len()]));
    let result = run(&input, &(Arc::clone(&output) as _));
    assert_eq!(result.status, ErrorStatus::None);
    assert!(output.to_vec() == bytes, "the values of the output");
    assert_eq!(input.visitors.count(), 2, "threads that read the input");
}

#[test]
fn memory_that_may_keep_its_reader_waiting_is_read_by_the_thread_that_executes() {
    let bytes = floats();
    let input = Arc::new(Input { bytes: HeapMemory::new(bytes.clone()), ..Input::default() });
    let output = Arc::new(HeapMemory::new(vec![0; bytes.len()]));
    let result = run(&input, &(Arc::clone(&output) as _));
    assert_eq!(result.status, ErrorStatus::None);
    assert!(output.to_vec() == bytes, "the values of the output");
    assert_eq!(*input.reads.lock().unwrap(), 1, "one call reads all of it");
}

#[test]
fn what_cannot_be_read_fails_the_execution_whichever_thread_finds_out() {
    let output: Arc<dyn Memory> = Arc::new(HeapMemory::new(vec![0; 4 * FLOATS as usize]));
    let of = |is_mapped: bool| {
        let bytes = HeapMemory::new(floats());
        let input = Input { bytes, is_mapped, ends_early: true, ..Input::default() };
        run(&Arc::new(input), &output).status
    };
    assert_ne!(of(false), ErrorStatus::None);
    assert_eq!(of(true), of(false));
}
