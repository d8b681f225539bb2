//! What goes from one execution to the next in a buffer of the driver is copied by nobody: neither by the
//! driver, nor out of shared memory or into it.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;

use burst_client::{BurstOptions, Client, RemoteBuffer, ShmMemory};
use burst_driver::{CpuDevice, argument_copies};
use burst_hal::{
    Buffer, BufferRequest, BufferRole, ErrorStatus, ExecutionOptions, Memory, Model, ModelBuilder,
    OperandType, OperationType, OutputSpec, Pool, PrepareOptions, PreparedModel, RequestPool,
};
use burst_server::{Service, ServiceOptions};
use burst_shm::pool_copies;

use crate::burst_support::{long, request_whole};

burst_testing::tests![values_in_buffers_are_copied_by_nobody()];

/// `x + 1` on four floats.
fn plus_one() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[4]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let y = b.result_of(OperationType::Add, &[x, one, none], OutputSpec::f32(&[4]));
    b.output(y);
    b.build().unwrap()
}

/// Copies so far: of the driver's arguments, and of pools in shared memory. Nobody counts without debug
/// assertions; then there is nothing to compare.
fn copies() -> Option<(u64, u64)> {
    Some((argument_copies()?, pool_copies()?))
}

fn values_in_buffers_are_copied_by_nobody() {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
    let serving = std::thread::spawn(move || service.serve_socket(theirs));
    let client = Client::from_socket(ours).unwrap();
    let device = client.device("cpu").unwrap();
    let models = [(); 2].map(|()| device.prepare(&plus_one(), &PrepareOptions::default()).unwrap());
    let role = |model| BufferRole { model, position: 0, frequency: 1.0 };
    let between = |input, output| {
        let request = BufferRequest {
            models: models
                .iter()
                .map(|model| Arc::clone(model) as Arc<dyn PreparedModel>)
                .collect(),
            inputs: vec![role(input)],
            outputs: vec![role(output)],
            ..BufferRequest::default()
        };
        device.allocate_buffer(&request).unwrap()
    };
    let (there, back) = (between(1, 0), between(0, 1));
    let memory = ShmMemory::create(16).unwrap();
    memory.write(0, &[0; 16]).unwrap();
    let memory: Pool = Arc::new(memory);
    back.fill_from(&memory, &[]).unwrap();
    let token = |buffer: &RemoteBuffer| RequestPool::Token(buffer.token());
    let forth = request_whole(token(&back), token(&there));
    let and_back = request_whole(token(&there), token(&back));
    let options = ExecutionOptions::default();
    let mut bursts =
        models.each_ref().map(|model| model.configure_burst(&BurstOptions::default()).unwrap());

    let before = copies();
    for _ in 0..10 {
        for (burst, request) in bursts.iter_mut().zip([&forth, &and_back]) {
            let result = burst.execute(request, &options, long()).unwrap();
            assert_eq!(result.status, ErrorStatus::None);
            assert!(!burst.fell_back());
        }
        for (model, request) in models.iter().zip([&forth, &and_back]) {
            let executed = model.execute(request, &options, long()).unwrap();
            assert_eq!(executed.result.status, ErrorStatus::None);
        }
    }
    assert_eq!(copies(), before, "forty executions");

    // What is counted does count: the same with memory at one end is one copy in the driver and one in shm.
    let out = request_whole(token(&back), RequestPool::Memory(Pool::clone(&memory)));
    let result = bursts[0].execute(&out, &options, long()).unwrap();
    assert_eq!(result.status, ErrorStatus::None);
    assert_eq!(copies(), before.map(|(driver, shm)| (driver + 1, shm + 1)));
    let mut bytes = [0; 16];
    memory.read(0, &mut bytes).unwrap();
    assert_eq!(bytes.as_slice(), [41.0_f32; 4].map(f32::to_ne_bytes).concat());

    drop((bursts, there, back, models, device, client));
    serving.join().unwrap().unwrap();
}
