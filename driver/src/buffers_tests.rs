#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{
    BufferRequest, BufferRole, Device, ErrorStatus, HeapMemory, MemoryAccount, ModelBuilder,
    OperandType, OperationType, OutputSpec, PrepareOptions, PreparedModel,
};

use super::*;
use crate::CpuDevice;

/// Bytes of each buffer here: a line of memory, so that what is charged is that.
const BYTES: u64 = 64;

/// What is charged, and how much may be.
#[derive(Debug)]
struct Count(AtomicU64, AtomicU64);

impl Default for Count {
    fn default() -> Self {
        Count(AtomicU64::new(0), AtomicU64::new(u64::MAX))
    }
}

impl MemoryAccount for Count {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let limit = self.1.load(Ordering::Relaxed);
        let grown = |held: u64| held.checked_add(bytes).filter(|held| *held <= limit);
        let charged = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        charged.map(drop).map_err(|_| ErrorStatus::ResourceExhaustedTransient.into())
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A device, a model of one RELU on 16 floats, a buffer for its input and output, and who pays for that.
fn buffer() -> (CpuDevice, Arc<dyn PreparedModel>, Arc<dyn Buffer>, Arc<Count>) {
    buffer_of(16)
}

/// The same for so many floats; 0 where only a value says how many.
fn buffer_of(floats: u32) -> (CpuDevice, Arc<dyn PreparedModel>, Arc<dyn Buffer>, Arc<Count>) {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[floats]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[floats]));
    builder.output(output);
    let device = CpuDevice::default();
    let model = builder.build().unwrap();
    let model = device.prepare_model(&model, &PrepareOptions::default()).unwrap();
    let role = BufferRole { model: 0, position: 0, frequency: 1.0 };
    let request = BufferRequest {
        models: vec![Arc::clone(&model)],
        inputs: vec![role],
        outputs: vec![role],
        ..BufferRequest::default()
    };
    let count = Arc::new(Count::default());
    let caller = Caller::default().with_account(Arc::clone(&count) as _);
    let buffer = device.allocate(&request, &caller).unwrap();
    (device, model, buffer, count)
}

fn tracked(buffer: &Arc<dyn Buffer>) -> &Arc<Tracked> {
    &buffer.downcast_ref::<CpuBuffer>().unwrap().handle
}

fn pool(byte: u8) -> Pool {
    Arc::new(HeapMemory::new(vec![byte; 64]))
}

fn dims() -> Dimensions {
    [16].as_slice().into()
}

fn address(buffer: &Tracked) -> usize {
    value(buffer).unwrap().1.as_slice().as_ptr().addr()
}

#[test]
fn a_buffer_is_paid_for_from_its_beginning_to_its_last_reader() {
    let (_device, _model, buffer, count) = buffer();
    let charged = || count.0.load(Ordering::Relaxed);
    let lists = charged() - BYTES;
    assert!(lists > 0);
    buffer.copy_from(&pool(1), &[]).unwrap();
    assert_eq!(charged(), BYTES + lists);
    let (_, read) = value(tracked(&buffer)).unwrap();
    drop(buffer);
    assert_eq!(charged(), BYTES);
    drop(read);
    assert_eq!(charged(), 0);
}

#[test]
fn who_reads_keeps_its_value_and_who_writes_makes_another() {
    let (_device, _model, buffer, count) = buffer();
    let before = count.0.load(Ordering::Relaxed);
    buffer.copy_from(&pool(1), &[]).unwrap();
    let first = address(tracked(&buffer));
    buffer.copy_from(&pool(2), &[16]).unwrap();
    assert_eq!(address(tracked(&buffer)), first, "nobody read it: the same memory again");
    let (_, old) = value(tracked(&buffer)).unwrap();
    let mut writing = Writing::begin(tracked(&buffer)).unwrap();
    assert!(value(tracked(&buffer)).is_none(), "it has no value while it is written");
    assert_eq!(count.0.load(Ordering::Relaxed), before + BYTES, "both are paid for");
    writing.memory().unwrap().as_mut_slice().fill(3);
    writing.finish(dims());
    assert_eq!(old.as_slice(), [2; 64], "the reader's value is whole");
    assert_eq!(value(tracked(&buffer)).unwrap().1.as_slice(), [3; 64]);
    drop(old);
    assert_eq!(count.0.load(Ordering::Relaxed), before);
}

#[test]
fn of_several_who_write_at_once_none_waits_and_the_last_to_end_says_what_there_is() {
    let (_device, _model, buffer, count) = buffer();
    let before = count.0.load(Ordering::Relaxed);
    let write = |byte| {
        let mut writing = Writing::begin(tracked(&buffer)).unwrap();
        writing.memory().unwrap().as_mut_slice().fill(byte);
        writing
    };
    let (one, two, three) = (write(1), write(2), write(3));
    two.finish(dims());
    one.finish(dims());
    assert_eq!(value(tracked(&buffer)).unwrap().1.as_slice(), [1; 64]);
    three.give_up();
    assert!(value(tracked(&buffer)).is_none(), "the last one failed");
    drop(write(4));
    assert!(value(tracked(&buffer)).is_none(), "a writer that went away leaves no value");
    assert_eq!(count.0.load(Ordering::Relaxed), before - BYTES, "nor memory");
    write(5).finish(dims());
    assert_eq!(value(tracked(&buffer)).unwrap().1.as_slice(), [5; 64]);
    assert_eq!(count.0.load(Ordering::Relaxed), before);
}

#[test]
fn a_buffer_of_open_size_pays_for_its_values_and_for_none_where_the_account_is_short() {
    let (_device, model, buffer, count) = buffer_of(0);
    let charged = || count.0.load(Ordering::Relaxed);
    let lists = charged();
    assert!(lists > 0 && lists < BYTES * 16, "no value is paid for: {lists}");
    let long: Pool = Arc::new(HeapMemory::new(vec![1; 640]));
    buffer.copy_from(&pool(1), &[16]).unwrap();
    assert_eq!(charged(), lists + 64);
    buffer.copy_from(&long, &[160]).unwrap();
    assert_eq!(charged(), lists + 640);
    buffer.copy_from(&pool(2), &[16]).unwrap();
    assert_eq!(charged(), lists + 640, "what it had once it keeps for the next one");
    // A copy that does not fit the account, then one that fails: nothing is held.
    count.1.store(lists + 640, Ordering::Relaxed);
    let longer: Pool = Arc::new(HeapMemory::new(vec![1; 6400]));
    let refused = buffer.copy_from(&longer, &[1600]).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::ResourceExhaustedTransient);
    assert_eq!(charged(), lists);
    assert_eq!(buffer.copy_to(&pool(0)).unwrap_err().status, ErrorStatus::GeneralFailure);
    // Nor does an execution write more than is paid for.
    let argument = |pool_index, dimensions: &[u32]| burst_hal::RequestArgument {
        location: burst_hal::DataLocation { pool_index, offset: 0, length: 0 },
        dimensions: dimensions.into(),
        ..burst_hal::RequestArgument::default()
    };
    let run = |input: &Pool, floats: u32| {
        let token = burst_hal::RequestPool::Token(buffer.token());
        let request = burst_hal::Request {
            inputs: vec![argument(0, &[floats])],
            outputs: vec![argument(1, &[])],
            pools: vec![burst_hal::RequestPool::Memory(Pool::clone(input)), token],
        };
        model.execute_synchronously(&request, &burst_hal::ExecutionOptions::default()).status
    };
    assert_eq!(run(&longer, 1600), ErrorStatus::ResourceExhaustedTransient);
    assert_eq!(charged(), lists);
    assert_eq!(run(&long, 160), ErrorStatus::None);
    assert_eq!(charged(), lists + 640);
    drop(buffer);
    assert_eq!(charged(), 0);
}

#[test]
fn a_copy_that_fails_leaves_no_value() {
    let (_device, _model, buffer, _count) = buffer();
    let status = |result: Result<(), Failure>| result.unwrap_err().status;
    let target = pool(0);
    assert_eq!(status(buffer.copy_to(&target)), ErrorStatus::GeneralFailure);
    buffer.copy_from(&pool(7), &[]).unwrap();
    buffer.copy_to(&target).unwrap();
    let short: Pool = Arc::new(HeapMemory::new(vec![0; 63]));
    assert_eq!(status(buffer.copy_to(&short)), ErrorStatus::InvalidArgument);
    buffer.copy_to(&target).expect("it has its value still");
    assert_eq!(status(buffer.copy_from(&short, &[])), ErrorStatus::InvalidArgument);
    assert_eq!(status(buffer.copy_to(&target)), ErrorStatus::GeneralFailure);

    /// A pool whose file has lost its end.
    #[derive(Debug)]
    struct Truncated;
    impl burst_hal::Memory for Truncated {
        fn len(&self) -> u64 {
            BYTES
        }
        fn read(&self, _: u64, out: &mut [u8]) -> Result<(), burst_hal::MemoryError> {
            out[..10].fill(9);
            Err(burst_hal::MemoryError::Backing { errno: 0 })
        }
        fn write(&self, _: u64, _: &[u8]) -> Result<(), burst_hal::MemoryError> {
            Err(burst_hal::MemoryError::ReadOnly)
        }
    }
    buffer.copy_from(&pool(7), &[]).unwrap();
    let truncated: Pool = Arc::new(Truncated);
    assert_eq!(status(buffer.copy_to(&truncated)), ErrorStatus::GeneralFailure);
    buffer.copy_to(&target).expect("only the pool is wrong");
    assert_eq!(status(buffer.copy_from(&truncated, &[])), ErrorStatus::GeneralFailure);
    assert_eq!(status(buffer.copy_to(&target)), ErrorStatus::GeneralFailure);
}
