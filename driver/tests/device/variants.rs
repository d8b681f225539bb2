//! Several devices of one engine: what each takes, what each says of its speed, whose threads they use.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_driver::{CpuDevice, DeviceOptions, Engine, Figures, Variant};
use burst_hal::{
    Capabilities, Device, ErrorStatus, Model, ModelBuilder, OperandKind, OperandType,
    OperationType, OutputSpec, PerformanceInfo, PrepareOptions,
};

const F32: OperandType = OperandType::TensorFloat32;
const U8: OperandType = OperandType::TensorQuant8Asymm;
const I8: OperandType = OperandType::TensorQuant8AsymmSigned;

/// Turns a hang into a failure.
const LONG: Duration = Duration::from_secs(60);

fn device(name: &str) -> CpuDevice {
    CpuDevice::of(&Arc::new(Engine::default()), Variant::named(name).unwrap())
}

fn spec(ty: OperandType, dims: &[u32]) -> OutputSpec {
    let scale = if ty.is_quantized() { 0.5 } else { 0.0 };
    OutputSpec::new(ty, dims).quantized(scale, 0)
}

/// Adds an operation on a new input of this type, and makes its result an output.
fn unary(b: &mut ModelBuilder, operation: OperationType, ty: OperandType) {
    let x = b.input_of(spec(ty, &[1, 2, 2, 1]));
    let y = b.result_of(operation, &[x], spec(ty, &[1, 2, 2, 1]));
    b.output(y);
}

fn sum(b: &mut ModelBuilder, ty: OperandType) {
    let x = b.input_of(spec(ty, &[2]));
    let none = b.scalar_i32(0);
    let y = b.result_of(OperationType::Add, &[x, x, none], spec(ty, &[2]));
    b.output(y);
}

fn selected(b: &mut ModelBuilder, ty: OperandType) {
    let choice = b.input(OperandType::TensorBool8, &[2]);
    let x = b.input_of(spec(ty, &[2]));
    let y = b.result_of(OperationType::Select, &[choice, x, x], spec(ty, &[2]));
    b.output(y);
}

/// A convolution of a picture of floats with a kernel of this size.
fn convolved(b: &mut ModelBuilder, height: u32, width: u32) {
    let x = b.input(F32, &[1, 8, 8, 1]);
    let weights = vec![1.0; (height * width) as usize];
    let filter = b.constant_f32(&[1, height, width, 1], &weights);
    let bias = b.constant_f32(&[1], &[0.0]);
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let operands = [x, filter, bias, same, one, one, none];
    let y = b.result_of(OperationType::Conv2d, &operands, spec(F32, &[1, 8, 8, 1]));
    b.output(y);
}

/// An IF whose graphs convolve with a kernel of this size.
fn chosen(b: &mut ModelBuilder, size: u32) {
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let graph = b.referenced(|b| convolved(b, size, size));
    let [then, otherwise] = [b.subgraph(graph), b.subgraph(graph)];
    let x = b.input(F32, &[1, 8, 8, 1]);
    let operands = [condition, then, otherwise, x];
    let y = b.result_of(OperationType::If, &operands, spec(F32, &[1, 8, 8, 1]));
    b.output(y);
}

/// Operations of many kinds, without anything between them.
fn many() -> Model {
    let mut b = ModelBuilder::new();
    unary(&mut b, OperationType::Relu, F32);
    unary(&mut b, OperationType::Relu, U8);
    unary(&mut b, OperationType::Relu, I8);
    unary(&mut b, OperationType::Relu, OperandType::TensorFloat16);
    sum(&mut b, F32);
    sum(&mut b, U8);
    selected(&mut b, F32);
    selected(&mut b, I8);
    convolved(&mut b, 5, 5);
    convolved(&mut b, 1, 7);
    chosen(&mut b, 5);
    chosen(&mut b, 6);
    b.build().unwrap()
}

#[test]
fn each_device_takes_its_part_and_refuses_the_rest() {
    let (y, n) = (true, false);
    for (name, want) in [
        ("cpu", [y; 12]),
        // Floats; a SELECT begins with what selects, an IF with its condition.
        ("cpu-float-fast", [y, n, n, n, y, n, n, n, y, y, n, n]),
        ("cpu-float-slow", [y, n, n, n, y, n, n, n, y, y, n, n]),
        ("cpu-quant", [n, y, y, n, n, y, n, y, n, n, n, n]),
        ("cpu-minimal", [n, n, n, n, y, n, n, n, y, y, n, n]),
        ("cpu-arithmetic", [n, n, n, n, y, y, n, n, n, n, n, n]),
        ("cpu-small-kernels", [y, y, y, y, y, y, y, y, y, n, y, n]),
    ] {
        let device = device(name);
        assert_eq!(device.name(), name);
        assert_eq!(device.supported_operations(&many()).unwrap(), want, "{name}");
        let prepared = device.prepare_model(&many(), &PrepareOptions::default());
        // The model is legal, so it is not INVALID_ARGUMENT.
        let refused = want.contains(&false).then_some(ErrorStatus::GeneralFailure);
        assert_eq!(prepared.err().map(|failure| failure.status), refused, "{name}");
    }
    let mut part = ModelBuilder::new();
    unary(&mut part, OperationType::Relu, U8);
    let part = part.build().unwrap();
    assert!(device("cpu-quant").prepare_model(&part, &PrepareOptions::default()).is_ok());
    let refused = device("cpu-float-fast").prepare_model(&part, &PrepareOptions::default());
    let words = refused.err().unwrap().cause.to_string();
    assert_eq!(words, "operation 0 (RELU) of the main graph is not supported by this device");
}

fn assert_legal(name: &str, capabilities: &Capabilities) {
    let list = &capabilities.operand_performance;
    let codes: Vec<i32> = list.iter().map(|(ty, _)| ty.code()).collect();
    assert!(codes.is_sorted_by(|a, b| a < b), "{name}");
    assert!(list.iter().all(|(ty, _)| ty.kind() != OperandKind::Subgraph), "{name}");
    let others = [
        capabilities.relaxed_float32_to_float16_scalar,
        capabilities.relaxed_float32_to_float16_tensor,
        capabilities.if_performance,
        capabilities.while_performance,
    ];
    for info in list.iter().map(|(_, info)| *info).chain(others) {
        assert!(info.exec_time > 0.0 && info.power_usage > 0.0, "{name}: {info:?}");
    }
}

#[test]
fn each_device_reports_figures_of_its_own() {
    for variant in Variant::ALL {
        assert_legal(variant.name, &device(variant.name).capabilities().unwrap());
    }
    let of = |name| device(name).capabilities().unwrap();
    let info = |exec_time, power_usage| PerformanceInfo { exec_time, power_usage };
    for (name, float, relaxed, others) in [
        ("cpu-float-fast", info(0.8, 1.2), info(0.7, 1.1), info(1.0, 1.0)),
        ("cpu-float-slow", info(1.3, 0.7), info(1.2, 0.6), info(1.0, 1.0)),
        ("cpu-quant", info(50.0, 1.0), info(50.0, 1.0), info(50.0, 1.0)),
        ("cpu-minimal", info(0.4, 0.5), info(0.4, 0.5), info(1.0, 1.0)),
        ("cpu-arithmetic", info(0.01, 0.01), info(0.01, 0.01), info(0.01, 0.01)),
    ] {
        let said = of(name);
        assert_eq!(said.performance_of(F32), float, "{name}");
        assert_eq!(said.performance_of(OperandType::Float32), float, "{name}");
        assert_eq!(said.relaxed_float32_to_float16_tensor, relaxed, "{name}");
        assert_eq!(said.relaxed_float32_to_float16_scalar, relaxed, "{name}");
        assert_eq!(said.performance_of(U8), others, "{name}");
        assert_eq!((said.if_performance, said.while_performance), (others, others), "{name}");
    }
}

#[test]
fn what_was_measured_is_reported_by_the_devices_that_make_nothing_up() {
    assert_eq!(Figures::BUILT_IN.illegal(), None);
    let slow = PerformanceInfo { exec_time: 3.0, power_usage: 4.0 };
    let figures = Figures { quant8_asymm: slow, ..Figures::BUILT_IN };
    let engine = Arc::new(Engine::new(DeviceOptions::default()).with_figures(figures));
    let of = |variant| CpuDevice::of(&engine, variant).capabilities().unwrap();
    let said = of(&Variant::CPU);
    assert_eq!(said.performance_of(U8), slow);
    assert_eq!(said.performance_of(F32), Figures::BUILT_IN.float32);
    assert_eq!(said, figures.capabilities());
    let entry = |name| figures.entries().into_iter().find(|(known, _)| *known == name);
    let again = Figures::from_entries(|name| entry(name).map(|(_, info)| info).ok_or(name));
    assert_eq!(again, Ok(figures));
    assert_eq!(of(&Variant::SMALL_KERNELS), said);
    assert_eq!(of(&Variant::QUANT), device("cpu-quant").capabilities().unwrap());
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let info = PerformanceInfo { exec_time: 1.0, power_usage: bad };
        let figures = Figures { control_while: info, ..Figures::BUILT_IN };
        assert_eq!(figures.illegal(), Some("while"), "{bad}");
    }
}

/// Threads of this process that compute for some engine.
fn helpers() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("comm")).unwrap_or_default()
    };
    threads.map(name).filter(|name| name.starts_with("burst-compute-7")).count()
}

#[test]
fn devices_of_one_engine_share_its_threads() {
    // No other test here has helpers with this number.
    let options = DeviceOptions { threads: 8, ..DeviceOptions::default() };
    let engine = Arc::new(Engine::new(options));
    let devices = Variant::ALL.map(|variant| CpuDevice::of(&engine, variant));
    assert_eq!(helpers(), 0, "devices that only answer questions have no threads");
    let mut b = ModelBuilder::new();
    sum(&mut b, F32);
    let model = b.build().unwrap();
    let prepared = devices.iter().map(|device| device.prepare(&model).is_ok());
    assert_eq!(prepared.filter(|is_ok| *is_ok).count(), 6, "all but the one for bytes");
    let until = Instant::now() + LONG;
    while helpers() == 0 {
        assert!(Instant::now() < until, "a thread gives itself its name");
        std::thread::yield_now();
    }
    assert_eq!(helpers(), 1, "the seventh helper of one engine");
}
