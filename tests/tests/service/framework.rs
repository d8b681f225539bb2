//! The framework over services in processes of their own: which devices it finds, and what an application sees when
//! they die and come back.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::Path;
use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::{HeapMemory, OperandType, OperationType, Pool, ResultCode};
use neuralnetworks::{
    Argument, Compilation, Execution, Memory, MemoryDesc, Model, OperandTypeDesc, Registry,
    RuntimeDevice,
};

use crate::peer::Service;

fn floats(dimensions: &[u32]) -> OperandTypeDesc {
    let code = OperandType::TensorFloat32.code();
    OperandTypeDesc { code, dimensions: dimensions.to_vec(), ..OperandTypeDesc::default() }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// `x * x + weights`, with weights that are long enough to lie in memory of their own.
fn model() -> Arc<Model> {
    let model = Model::new();
    let x = model.add_operand(&floats(&[64])).unwrap();
    let weights = model.add_operand(&floats(&[64])).unwrap();
    model.set_operand_value(1, Some(&bytes(&[0.5; 64]))).unwrap();
    let int = OperandType::Int32.code();
    let none = OperandTypeDesc { code: int, ..OperandTypeDesc::default() };
    let none = model.add_operand(&none).unwrap();
    model.set_operand_value(2, Some(&[0; 4])).unwrap();
    let between = model.add_operand(&floats(&[64])).unwrap();
    let y = model.add_operand(&floats(&[64])).unwrap();
    model.add_operation(OperationType::Mul.code(), &[x, x, none], &[between]).unwrap();
    model.add_operation(OperationType::Add.code(), &[between, weights, none], &[y]).unwrap();
    model.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    model.finish().unwrap();
    model
}

fn wanted(x: f32) -> Vec<u8> {
    bytes(&[x * x + 0.5; 64])
}

fn run(compilation: &Arc<Compilation>, x: f32) -> neuralnetworks::Result<Vec<u8>> {
    let execution = Execution::new(compilation)?;
    let input: Pool = Arc::new(HeapMemory::new(bytes(&[x; 64])));
    let output = Arc::new(HeapMemory::new(vec![0; 256]));
    execution.set_input(0, None, Argument::Host(input))?;
    execution.set_output(0, None, Argument::Host(output.clone()))?;
    execution.compute()?;
    Ok(output.to_vec())
}

fn finished(compilation: Arc<Compilation>) -> Arc<Compilation> {
    compilation.finish().unwrap();
    compilation
}

fn names(registry: &Registry) -> Vec<&str> {
    registry.devices().iter().map(|device| device.name()).collect()
}

#[test]
fn devices_are_those_of_the_services_that_answer_and_the_reference_last() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(names(&Registry::at(&[at("none.sock")])), ["cpu", "nnapi-reference"]);
    let (_first, _second) = (
        Service::start_as("serve-cpu", &at("a.sock")),
        Service::start_as("serve-cpu", &at("b.sock")),
    );
    let sockets = [at("a.sock"), at("none.sock"), at("b.sock")];
    let registry = Registry::at(&sockets);
    assert_eq!(names(&registry), ["cpu", "cpu@b", "nnapi-reference"]);
    for device in registry.devices() {
        let compilation = Compilation::for_devices(&model(), std::slice::from_ref(device)).unwrap();
        let compilation = finished(compilation);
        for x in [1.0, 2.0] {
            assert_eq!(run(&compilation, x).unwrap(), wanted(x), "{}", device.name());
        }
    }
}

#[test]
fn a_service_that_dies_is_stood_in_for_and_used_again_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = Service::start_as("serve-cpu", &path);
    let device = RuntimeDevice::remote(&path, "cpu").unwrap();
    let local = burst_driver::ReferenceDevice::default();
    let reference = RuntimeDevice::reference(Arc::new(local)).unwrap();
    let registry = Registry::of(vec![device.clone(), reference]);
    let model = model();
    let named = || Compilation::for_devices(&model, std::slice::from_ref(&device)).unwrap();
    let (alone, any) = (finished(named()), finished(Compilation::new(&model, &registry).unwrap()));
    assert_eq!(run(&alone, 3.0).unwrap(), wanted(3.0));
    assert_eq!(run(&any, 3.0).unwrap(), wanted(3.0));
    service.kill();
    assert_eq!(run(&alone, 2.0).unwrap_err().code, ResultCode::DeadObject);
    assert_eq!(run(&any, 2.0).unwrap(), wanted(2.0), "the reference stands in");
    // Nobody is there to prepare anything.
    assert_eq!(named().finish().unwrap_err().code, ResultCode::DeadObject);
    assert_eq!(
        run(&finished(Compilation::new(&model, &registry).unwrap()), 4.0).unwrap(),
        wanted(4.0)
    );
    let again = std::thread::spawn({
        let path = path.clone();
        move || Service::start_as("serve-cpu", &path)
    });
    device.wait().expect("it comes back in time");
    let service = again.join().unwrap();
    assert_eq!(run(&alone, 5.0).unwrap(), wanted(5.0), "it is made again by itself");
    assert_eq!(run(&any, 5.0).unwrap(), wanted(5.0));
    let renewed = finished(named());
    assert_eq!(run(&renewed, 5.0).unwrap(), wanted(5.0));
    drop(service);
}

fn shared(values: &[f32]) -> (Arc<Memory>, Pool) {
    let pool: Pool = Arc::new(ShmMemory::create(256).unwrap());
    pool.write(0, &bytes(values)).unwrap();
    (Memory::from_pool(Pool::clone(&pool)), pool)
}

fn of(memory: &Arc<Memory>, length: usize) -> Argument {
    Argument::Memory { memory: Arc::clone(memory), offset: 0, length }
}

fn on_service(path: &Path) -> Arc<Compilation> {
    let device = RuntimeDevice::remote(path, "cpu").unwrap();
    finished(Compilation::for_devices(&model(), &[device]).unwrap())
}

#[test]
fn a_chain_runs_in_the_service_from_memory_to_a_buffer_of_the_device_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let _service = Service::start_as("serve-cpu", &path);
    let compilation = on_service(&path);
    let desc = MemoryDesc::new();
    desc.add_output_role(&compilation, 0, 1.0).unwrap();
    desc.add_input_role(&compilation, 0, 1.0).unwrap();
    desc.finish().unwrap();
    let between = Memory::from_desc(&desc).unwrap();
    assert_eq!(between.size(), 0, "a buffer of the device");
    let ((from, _), (to, output)) = (shared(&[2.0; 64]), shared(&[0.0; 64]));
    let link = |input: Argument, output: Argument| {
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, None, input).unwrap();
        execution.set_output(0, None, output).unwrap();
        execution
    };
    let first = link(of(&from, 256), of(&between, 0));
    let second = link(of(&between, 0), of(&to, 256));
    let one = first.start_compute_with_dependencies(&[], 0).unwrap();
    let last = second.start_compute_with_dependencies(&[one], 0).unwrap();
    assert_eq!(last.wait(), ResultCode::NoError);
    let mut found = vec![0; 256];
    output.read(0, &mut found).unwrap();
    assert_eq!(found, wanted(4.5));
    let copy = shared(&[0.0; 64]);
    Memory::copy(&between, &copy.0).unwrap();
    copy.1.read(0, &mut found).unwrap();
    assert_eq!(found, wanted(2.0));
}

#[test]
fn a_service_that_dies_over_a_chain_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = Service::start_as("serve-cpu", &path);
    let compilation = on_service(&path);
    let ((from, _), (to, _)) = (shared(&[2.0; 64]), shared(&[0.0; 64]));
    let execution = Execution::new(&compilation).unwrap();
    execution.set_input(0, None, of(&from, 256)).unwrap();
    execution.set_output(0, None, of(&to, 256)).unwrap();
    let (gate, write) = std::io::pipe().unwrap();
    let gate = std::os::fd::OwnedFd::from(gate);
    let gate = neuralnetworks::Event::from_sync_fence_fd(std::os::fd::AsFd::as_fd(&gate)).unwrap();
    let event = execution.start_compute_with_dependencies(&[gate], 0).unwrap();
    service.kill();
    assert_ne!(event.wait(), ResultCode::NoError);
    assert_eq!(execution.output_operand_rank(0).0, ResultCode::BadState);
    drop(write);
}

#[test]
fn an_output_without_elements_leaves_the_applications_buffer_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let _service = Service::start_as("serve-cpu", &path);
    // Nothing of x, from its first element on.
    let model = Model::new();
    let x = model.add_operand(&floats(&[4])).unwrap();
    let int = OperandType::TensorInt32.code();
    let list = OperandTypeDesc { code: int, dimensions: vec![1], ..OperandTypeDesc::default() };
    let (begin, size) = (model.add_operand(&list).unwrap(), model.add_operand(&list).unwrap());
    for index in [1, 2] {
        model.set_operand_value(index, Some(&[0; 4])).unwrap();
    }
    let y = model.add_operand(&floats(&[0])).unwrap();
    model.add_operation(OperationType::Slice.code(), &[x, begin, size], &[y]).unwrap();
    model.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    model.finish().unwrap();
    let device = RuntimeDevice::remote(&path, "cpu").unwrap();
    let compilation = finished(Compilation::for_devices(&model, &[device]).unwrap());
    let execution = Execution::new(&compilation).unwrap();
    let input: Pool = Arc::new(HeapMemory::new(bytes(&[1.0; 4])));
    let output = Arc::new(HeapMemory::new(vec![7; 8]));
    execution.set_input(0, None, Argument::Host(input)).unwrap();
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    execution.compute().unwrap();
    assert_eq!(execution.output_operand_dimensions(0).1, Some(vec![0]));
    assert_eq!(output.to_vec(), [7; 8]);
}
