#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{
    BufferRequest, BufferRole, Device, ErrorStatus, HeapMemory, MemoryAccount, ModelBuilder,
    OperandType, OperationType, OutputSpec, PrepareOptions, PreparedModel,
};

use super::*;
use crate::CpuDevice;

/// Bytes of each buffer here: a line of memory, so that what is charged is that.
const BYTES: u64 = 64;

#[derive(Debug, Default)]
struct Count(AtomicU64);

impl MemoryAccount for Count {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A device, a model of one RELU on 16 floats, a buffer for its input and output, and who pays for that.
fn buffer() -> (CpuDevice, Arc<dyn PreparedModel>, Arc<dyn Buffer>, Arc<Count>) {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[16]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[16]));
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
    &(&**buffer as &dyn Any).downcast_ref::<CpuBuffer>().unwrap().handle
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
