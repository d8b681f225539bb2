//! Memories for roles that a device provides, and what becomes of them where the device fails.

use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_hal::ResultCode;

use super::support::*;
use crate::{Argument, Compilation, Execution, Memory, MemoryDesc, Registry, RuntimeDevice};

fn cpu() -> Arc<RuntimeDevice> {
    RuntimeDevice::local(Arc::new(CpuDevice::default())).unwrap()
}

fn memory_for(output: &Arc<Compilation>, input: &Arc<Compilation>) -> Arc<Memory> {
    let desc = MemoryDesc::new();
    desc.add_output_role(output, 0, 1.0).unwrap();
    desc.add_input_role(input, 0, 1.0).unwrap();
    desc.finish().unwrap();
    Memory::from_desc(&desc).unwrap()
}

#[test]
fn a_device_that_has_all_the_roles_provides_the_memory() {
    let device = cpu();
    let compile = || {
        let devices = std::slice::from_ref(&device);
        let compilation = Compilation::for_devices(&chain(), devices).unwrap();
        compilation.finish().unwrap();
        compilation
    };
    let (first, second) = (compile(), compile());
    let memory = memory_for(&first, &second);
    assert_eq!(memory.size(), 0, "only the device knows how long it is");
    let whole = || Argument::Memory { memory: memory.clone(), offset: 0, length: 0 };
    let write = Execution::new(&first).unwrap();
    write.set_input(0, None, host(&[0.0, 1.0, 0.0, 0.0])).unwrap();
    write.set_output(0, None, whole()).unwrap();
    let read = Execution::new(&second).unwrap();
    read.set_input(0, None, whole()).unwrap();
    let output = heap(16);
    read.set_output(0, None, Argument::Host(output.clone())).unwrap();
    assert_eq!(code(read.compute()), ResultCode::OpFailed, "nobody has written it");
    write.compute().unwrap();
    read.compute().unwrap();
    assert_eq!(values(&output.to_vec()), [0.0, 21.0, 0.0, 0.0]);
    // Into plain memory and back.
    let plain = heap(16);
    let there = Memory::from_pool(plain.clone());
    Memory::copy(&memory, &there).unwrap();
    assert_eq!(values(&plain.to_vec()), [0.0, 3.0, 0.0, 0.0]);
    let other = memory_for(&first, &second);
    Memory::copy(&there, &other).unwrap();
    Memory::copy(&other, &memory).unwrap();
    assert_eq!(code(Memory::copy(&Memory::from_pool(heap(12)), &memory)), ResultCode::BadData);
}

#[test]
fn roles_on_several_devices_share_memory_of_the_framework() {
    let both = [cpu(), cpu()].map(|device| {
        let compilation = Compilation::for_devices(&chain(), &[device]).unwrap();
        compilation.finish().unwrap();
        compilation
    });
    let memory = memory_for(&both[0], &both[1]);
    assert_eq!(memory.size(), 16);
    let registry = two().registry;
    let compound = compiled(&chain(), &registry);
    let memory = memory_for(&compound, &compound);
    assert_eq!(memory.size(), 16, "the input is read by two devices");
    let write = Execution::new(&compound).unwrap();
    write.set_input(0, None, host(&CHAIN_IN)).unwrap();
    let whole = Argument::Memory { memory: memory.clone(), offset: 0, length: 0 };
    write.set_output(0, None, whole).unwrap();
    write.compute().unwrap();
    let plain = heap(16);
    Memory::copy(&memory, &Memory::from_pool(plain.clone())).unwrap();
    assert_eq!(values(&plain.to_vec()), CHAIN_OUT);
    drop(Registry::of(vec![reference()]));
}
