//! A model of the extension, in this process and over a burst of a service.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, Client, ClientError, Deadline, ShmMemory, StreamOptions};
use burst_driver::{CpuDevice, DeviceOptions, Isa};
use burst_hal::session::{
    HeapAllocator, LayoutOptions, ModelSession, SessionLayout, SessionOptions,
};
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, ExtensionCode, ExtensionOperandType,
    Failure, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool, PrepareOptions,
    PreparedModel, Request, RequestArgument, RequestPool,
};
use example_extension::{COMPLEX_Q15, MAGNITUDE, MULTIPLY, NAME, TENSOR_COMPLEX_Q15, device};

/// Turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

/// What stands for the extension in the models here.
const PREFIX: u16 = 0x123;

/// Values of the model's inputs.
const VALUES: u32 = 3;

fn operand(number: u16) -> OperandType {
    ExtensionCode { prefix: PREFIX, number }.operand_type()
}

fn operation(number: u16) -> OperationType {
    ExtensionCode { prefix: PREFIX, number }.operation_type()
}

fn complex(dims: &[u32]) -> OutputSpec {
    OutputSpec::new(operand(TENSOR_COMPLEX_Q15), dims)
}

/// Bytes of a value.
fn value(real: i16, imaginary: i16) -> [u8; 4] {
    let [a, b] = [real, imaginary].map(i16::to_ne_bytes);
    [a[0], a[1], b[0], b[1]]
}

/// `x * i * y`, and 1 less than its magnitude.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    b.extension(NAME, PREFIX);
    let x = b.input_of(complex(&[VALUES]));
    let y = b.input_of(complex(&[VALUES]));
    let i = b.constant_bytes(OutputSpec::new(operand(COMPLEX_Q15), &[]), &value(0, i16::MAX));
    let turned = b.result_of(operation(MULTIPLY), &[x, i], complex(&[VALUES]));
    let product = b.result_of(operation(MULTIPLY), &[turned, y], complex(&[]));
    let magnitude = b.result_of(operation(MAGNITUDE), &[product], OutputSpec::f32(&[]));
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let less = b.result_of(OperationType::Sub, &[magnitude, one, none], OutputSpec::f32(&[VALUES]));
    b.output(product);
    b.output(less);
    b.build().unwrap()
}

/// x is 1/2, -i/2 and (almost) 1 + i; y is 1/2, 1/2 and -1 - i.
fn inputs() -> Vec<u8> {
    let (half, most, least) = (1 << 14, i16::MAX, i16::MIN);
    let x = [value(half, 0), value(0, -half), value(most, most)];
    let y = [value(half, 0), value(half, 0), value(least, least)];
    [x, y].concat().concat()
}

/// i/4, 1/4, and (almost) 2, which is clamped.
fn outputs() -> Vec<u8> {
    let quarter = 1 << 13;
    let products = [value(0, quarter), value(quarter, 0), value(i16::MAX, 0)];
    let magnitudes = [0.25_f32, 0.25, 32767.0 / 32768.0].map(|value| (value - 1.0).to_ne_bytes());
    products.iter().chain(&magnitudes).flatten().copied().collect()
}

/// Inputs and outputs one behind the other in one memory.
fn request(memory: &Pool) -> Request {
    let length = 4 * VALUES;
    let argument = |index: u32| RequestArgument {
        location: DataLocation { pool_index: 0, offset: index * length, length },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0), argument(1)],
        outputs: vec![argument(2), argument(3)],
        pools: vec![RequestPool::Memory(Pool::clone(memory))],
    }
}

fn memory() -> Pool {
    let memory: Pool = Arc::new(ShmMemory::create(4 * 4 * VALUES as usize).unwrap());
    memory.write(0, &inputs()).unwrap();
    memory
}

fn results(memory: &Pool) -> Vec<u8> {
    let mut bytes = vec![0; 2 * 4 * VALUES as usize];
    memory.read(u64::from(2 * 4 * VALUES), &mut bytes).unwrap();
    bytes
}

fn text<T>(result: Result<T, Failure>) -> (ErrorStatus, String) {
    let failure = result.err().unwrap();
    (failure.status, failure.cause.to_string())
}

/// A service in a process of its own, which ends with its test.
struct Service(Child, tempfile::TempDir);

impl Service {
    fn start() -> Service {
        let folder = tempfile::tempdir().unwrap();
        let program = Command::new(env!("CARGO_BIN_EXE_extension_driver"))
            .arg(folder.path().join("driver.sock"))
            .stdin(Stdio::null())
            .spawn();
        Service(program.unwrap(), folder)
    }

    /// Connects once it listens.
    fn connect(&self) -> Client {
        let until = Instant::now() + HANG;
        loop {
            match Client::connect(self.1.path().join("driver.sock")) {
                Err(ClientError::NobodyListens { .. }) if Instant::now() < until => {
                    std::thread::yield_now();
                }
                other => return other.unwrap(),
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_model_of_an_extension_runs_in_process_with_kernels_and_without() {
    for fast_kernels in [true, false] {
        for threads in [1, 2] {
            let options = DeviceOptions { fast_kernels, threads, ..DeviceOptions::default() };
            let device = device(options).unwrap();
            assert_eq!(device.supported_operations(&model()).unwrap(), [true; 4]);
            let prepared = device.prepare(&model()).unwrap();
            let memory = memory();
            let result =
                prepared.execute_synchronously(&request(&memory), &ExecutionOptions::default());
            assert_eq!(result.status, ErrorStatus::None);
            assert_eq!(results(&memory), outputs(), "fast kernels: {fast_kernels}");
            let kernels: Vec<_> = prepared.profile(&request(&memory), 1).unwrap();
            let kernels: Vec<_> = kernels.iter().map(|operation| operation.kernel).collect();
            let chosen = fast_kernels.then_some("complex/multiply");
            assert_eq!(kernels[..3], [chosen, None, None], "of the constant factor");
        }
    }
}

#[test]
fn a_model_of_an_extension_runs_over_a_burst() {
    let service = Service::start();
    let remote = service.connect().devices().unwrap().remove(0);
    let extensions = remote.supported_extensions();
    assert_eq!(extensions.len(), 1);
    assert_eq!(extensions[0].name, NAME);
    let types = [(0, true), (1, false)].map(|(ty, is_tensor)| ExtensionOperandType {
        ty,
        is_tensor,
        byte_size: 4,
    });
    assert_eq!(extensions[0].operand_types, types);
    assert_eq!(remote.supported_operations(&model()).unwrap(), [true; 4]);

    let prepared = remote.prepare(&model(), &PrepareOptions::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory = memory();
    let options = ExecutionOptions::default();
    for _ in 0..2 {
        let result = burst.execute(&request(&memory), &options, Deadline::after(HANG)).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
        assert!(!burst.fell_back());
        assert_eq!(results(&memory), outputs());
        memory.write(u64::from(2 * 4 * VALUES), &[0xAA; 2 * 4 * VALUES as usize]).unwrap();
    }
    // Only the device knows how long a value is.
    let mut short = request(&memory);
    short.inputs[1].location.length -= 1;
    let result = burst.execute(&short, &options, Deadline::after(HANG)).unwrap();
    assert_eq!(result.status, ErrorStatus::InvalidArgument);
    assert_eq!(results(&memory), [0xAA; 2 * 4 * VALUES as usize]);

    let unknown = remote.prepare(&with_operation(7), &PrepareOptions::default());
    let refusal = unknown.err().unwrap().to_string();
    assert!(refusal.contains("the extension org.example.complex has no operation 7"), "{refusal}");
}

/// A model of one operation of the extension and one of the base range.
fn with_operation(number: u16) -> Model {
    let mut b = ModelBuilder::new();
    b.extension(NAME, PREFIX);
    let x = b.input_of(complex(&[VALUES]));
    let y = b.result_of(operation(number), &[x], OutputSpec::f32(&[VALUES]));
    let z = b.result_of(OperationType::Relu, &[y], OutputSpec::f32(&[VALUES]));
    b.output(z);
    b.build().unwrap()
}

#[test]
fn what_is_not_there_is_not_supported_and_refused_by_name() {
    let plain = CpuDevice::new(DeviceOptions { isa: Isa::PORTABLE, ..DeviceOptions::default() });
    assert!(plain.supported_extensions().is_empty());
    let prepare = |device: &CpuDevice, model: &Model| {
        text(device.prepare_model(model, &PrepareOptions::default()))
    };
    let model = with_operation(MAGNITUDE);
    assert_eq!(plain.supported_operations(&model).unwrap(), [false, true]);
    let (status, words) = prepare(&plain, &model);
    assert_eq!(status, ErrorStatus::GeneralFailure);
    let want = "operation 0 of the main graph: the extension org.example.complex is not known here";
    assert_eq!(words, want);

    let device = device(DeviceOptions::default()).unwrap();
    let model = with_operation(7);
    assert_eq!(device.supported_operations(&model).unwrap(), [false, true]);
    let (status, words) = prepare(&device, &model);
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(words.ends_with("the extension org.example.complex has no operation 7 here"));

    // A type that the extension does not have, in an operation that takes any.
    let mut b = ModelBuilder::new();
    b.extension(NAME, PREFIX);
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let unknown = || OutputSpec::new(operand(9), &[VALUES]);
    let x = b.input_of(unknown());
    let pass = b.referenced(|b| {
        let x = b.input_of(OutputSpec::new(operand(9), &[VALUES]));
        let copy =
            b.result_of(operation(MULTIPLY), &[x, x], OutputSpec::new(operand(9), &[VALUES]));
        b.output(copy);
    });
    let [then, otherwise] = [b.subgraph(pass), b.subgraph(pass)];
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], unknown());
    b.output(y);
    let (status, words) = prepare(&plain, &b.build().unwrap());
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(words.contains("the extension org.example.complex is not known here"), "{words}");
}

#[test]
fn operands_that_are_not_as_the_extension_says_are_illegal() {
    let device = device(DeviceOptions::default()).unwrap();
    let judge = |x: OutputSpec, factor: OutputSpec, bytes: &[u8]| {
        let mut b = ModelBuilder::new();
        b.extension(NAME, PREFIX);
        let x = b.input_of(x);
        let factor = b.constant_bytes(factor, bytes);
        let y = b.result_of(operation(MULTIPLY), &[x, factor], complex(&[]));
        b.output(y);
        let model = b.build().unwrap();
        let prepared = device.prepare_model(&model, &PrepareOptions::default());
        let surveyed = device.supported_operations(&model);
        let statuses = (prepared.err().map(|f| f.status), surveyed.err().map(|f| f.status));
        assert_eq!(statuses.0, statuses.1);
        statuses.0
    };
    let scalar = |dims: &[u32]| OutputSpec::new(operand(COMPLEX_Q15), dims);
    let illegal = Some(ErrorStatus::InvalidArgument);
    assert_eq!(judge(complex(&[2]), scalar(&[]), &[0; 4]), None);
    assert_eq!(judge(complex(&[2]), complex(&[2]), &[0; 8]), None);
    assert_eq!(judge(complex(&[2]), scalar(&[1]), &[0; 4]), illegal, "a scalar with dimensions");
    assert_eq!(judge(complex(&[2]), complex(&[2]), &[0; 4]), illegal, "too few bytes");
    assert_eq!(judge(complex(&[2]), complex(&[]), &[0; 8]), illegal, "a constant of unknown rank");
    assert_eq!(judge(scalar(&[]), scalar(&[]), &[0; 4]), illegal, "no form takes a scalar first");
    assert_eq!(judge(OutputSpec::f32(&[2]), scalar(&[]), &[0; 4]), illegal, "nor floats");
    let huge = complex(&[u32::MAX, 2]);
    assert_eq!(judge(huge, scalar(&[]), &[0; 4]), illegal, "more bytes than 32 bits can count");
}

/// Neither asks for a word about the extension: the device has said how long its elements are.
#[test]
fn a_session_and_a_stream_lay_out_types_of_the_extension() {
    let device = device(DeviceOptions::default()).unwrap();
    // One element of the product, whose shape the model leaves open: the session makes room for the others.
    let layout = LayoutOptions { unknown_output_bytes: Some(4), ..LayoutOptions::default() };
    let options = SessionOptions { layout, ..SessionOptions::default() };
    let mut session =
        ModelSession::open(&device, &model(), &options, Arc::new(HeapAllocator)).unwrap();
    let inputs = inputs();
    let (x, y) = inputs.split_at(inputs.len() / 2);
    session.write_input(0, x).unwrap();
    session.write_input(1, y).unwrap();
    session.run(&ExecutionOptions::default()).unwrap();
    let (mut products, mut magnitudes) = (Vec::new(), Vec::new());
    session.read_output(0, &mut products).unwrap();
    session.read_output(1, &mut magnitudes).unwrap();
    assert_eq!([products, magnitudes].concat(), outputs());

    let service = Service::start();
    let device = service.connect().devices().unwrap().remove(0);
    let mut options = StreamOptions::default();
    options.unknown_output_bytes = Some(4 * VALUES);
    let mut stream = device.stream(&model(), &options).unwrap();
    stream.input(0).copy_from_slice(x);
    stream.input(1).copy_from_slice(y);
    stream.run(Deadline::after(HANG)).unwrap();
    let products = stream.output(0).unwrap().to_vec();
    assert_eq!([products.as_slice(), stream.output(1).unwrap()].concat(), outputs());
}

#[test]
fn without_the_extension_a_type_of_it_has_no_known_size() {
    let refused = SessionLayout::new(&model(), &LayoutOptions::default()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("input 0") && text.contains("extension that is not known"), "{text}");
}
