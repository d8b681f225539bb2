//! `docs/PROTOCOL.md` is true and complete: a client that was written from it alone gets everything
//! it is owed, its example is what really crosses the boundary, its codes are those of the HAL.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use burst_client::{BurstOptions, Client, ShmMemory};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::trace::SpanKind;
use burst_hal::{
    Burst, DataLocation, ErrorStatus, ExecutionOptions, ExecutionResult, Model, ModelBuilder,
    OperandType, OperationType, OutputSpec, Pool, PrepareOptions, Request, RequestArgument,
    RequestPool,
};
use burst_server::{Service, ServiceOptions};
use burst_tests::repository;
use burst_wire::control::{
    self, Answer, Call, ClientGreeting, ClientMessage, ServerGreeting, ServerMessage, StatedLimit,
};
use burst_wire::socket::{self, Inbox};

fn page() -> String {
    std::fs::read_to_string(repository().join("docs/PROTOCOL.md")).unwrap()
}

/// Everything that crossed a socket, with the memories that were handed over.
#[derive(Default)]
struct Crossed {
    client: Vec<(Vec<u8>, Vec<OwnedFd>)>,
    service: Vec<(Vec<u8>, Vec<OwnedFd>)>,
}

/// Passes on what comes on one socket to another, until the end.
fn pass_on(
    from: OwnedFd,
    to: OwnedFd,
    keep: impl Fn(Vec<u8>, Vec<OwnedFd>) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        while socket::receive(&from, &mut inbox).is_ok() {
            let descriptors = inbox.take_descriptors();
            let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
            let sent = socket::send(&to, inbox.message(), &borrowed);
            keep(inbox.message().to_vec(), descriptors);
            if sent.is_err() {
                break;
            }
        }
        // The other end hangs up too; an error means that it has.
        let _ = rustix::net::shutdown(&to, rustix::net::Shutdown::Both);
    })
}

/// The model of the example: the sum of two tensors of two floats.
fn sum() -> Model {
    let mut builder = ModelBuilder::new();
    let inputs = [(); 2].map(|()| builder.input(OperandType::TensorFloat32, &[2]));
    let none = builder.scalar_i32(0);
    let arguments = [inputs[0], inputs[1], none];
    let output = builder.result_of(OperationType::Add, &arguments, OutputSpec::f32(&[2]));
    builder.output(output);
    builder.build().unwrap()
}

/// Our client runs the sum once, through a relay that keeps what passes.
fn conversation() -> Crossed {
    let (ours, relay_client) = socket::pair().unwrap();
    let (relay_service, theirs) = socket::pair().unwrap();
    let service = Service::new(
        vec![Arc::new(CpuDevice::new(DeviceOptions::default()))],
        ServiceOptions::default(),
    );
    let serving = std::thread::spawn(move || service.serve_socket(theirs));
    let crossed = Arc::new(Mutex::new(Crossed::default()));
    let (to_service, to_client) = (Arc::clone(&crossed), Arc::clone(&crossed));
    let copies = (relay_client.try_clone().unwrap(), relay_service.try_clone().unwrap());
    let relays = [
        pass_on(relay_client, relay_service, move |message, descriptors| {
            to_service.lock().unwrap().client.push((message, descriptors));
        }),
        pass_on(copies.1, copies.0, move |message, descriptors| {
            to_client.lock().unwrap().service.push((message, descriptors));
        }),
    ];

    let device = Client::from_socket(ours).unwrap().device("cpu").unwrap();
    let prepared = device.prepare(&sum(), &PrepareOptions::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(24).unwrap());
    let inputs: Vec<u8> =
        [1.0_f32, 2.0, 10.0, 20.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    memory.write(0, &inputs).unwrap();
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 8 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0), argument(8)],
        outputs: vec![argument(16)],
        pools: vec![RequestPool::Memory(Pool::clone(&memory))],
    };
    let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
    Burst::execute(&mut burst, &request, &ExecutionOptions::default(), &mut result);
    assert_eq!(result.status, ErrorStatus::None);
    let mut sums = [0; 8];
    memory.read(16, &mut sums).unwrap();
    assert_eq!(sums, [0, 0, 0x30, 0x41, 0, 0, 0xB0, 0x41], "11 and 22");

    drop((burst, prepared, device));
    for relay in relays {
        relay.join().unwrap();
    }
    serving.join().unwrap().unwrap();
    std::mem::take(&mut *crossed.lock().unwrap())
}

fn contents(memory: &OwnedFd, from: u64, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    assert_eq!(rustix::io::pread(memory, &mut read, from), Ok(bytes));
    read
}

/// What the example shows, by the names that its blocks have.
fn shown(crossed: &Crossed) -> Vec<(&'static str, Vec<u8>)> {
    let mut shown = Vec::new();
    for (message, descriptors) in &crossed.client[1..] {
        let ClientMessage::Call { call, .. } = control::decode(message).unwrap() else {
            panic!("no call: {message:?}")
        };
        match call {
            Call::ListDevices => shown.push(("ListDevices", message.clone())),
            Call::Prepare { model, .. } => {
                shown.push(("Prepare", message.clone()));
                let total = usize::try_from(model.total_bytes().unwrap()).unwrap();
                shown.push(("the model", contents(&descriptors[0], 0, total)));
            }
            Call::ShareMemory { .. } => shown.push(("ShareMemory", message.clone())),
            Call::PushMemory { .. } => shown.push(("PushMemory", message.clone())),
            Call::ConfigureBurst { request_queue, result_queue, .. } => {
                shown.push(("ConfigureBurst", message.clone()));
                let queues = [("the request", request_queue), ("the result", result_queue)];
                for ((name, queue), memory) in queues.into_iter().zip(descriptors) {
                    let at = |grantor: usize| u64::from(queue.grantors.0[grantor].offset);
                    let written = contents(memory, at(1), 8).try_into().unwrap();
                    let written = usize::try_from(u64::from_le_bytes(written)).unwrap();
                    shown.push((name, contents(memory, at(2), written)));
                }
            }
            _ => {}
        }
    }
    for (message, _) in &crossed.service[1..] {
        let ServerMessage::Reply(reply) = control::decode(message).unwrap() else {
            panic!("no reply: {message:?}")
        };
        match reply.outcome.unwrap() {
            Answer::Devices(_) => shown.push(("Devices", message.clone())),
            Answer::Prepared { .. } => shown.push(("Prepared", message.clone())),
            Answer::Burst { .. } => shown.push(("Burst", message.clone())),
            _ => {}
        }
    }
    shown
}

/// The bytes of the example's block of this name: what stands before two spaces in each line.
fn block(page: &str, name: &str) -> Vec<u8> {
    let title = format!("\n**{name}**");
    let (_, rest) = page.split_once(&title).unwrap_or_else(|| panic!("no block {name}"));
    let block = rest.split("```").nth(1).unwrap();
    let lines = block.lines().skip(1).map(|line| line.split("  ").next().unwrap());
    let bytes = lines.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(24).map(|line| {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        line.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_what_our_client_and_service_really_send() {
    let (page, crossed) = (page(), conversation());
    let shown = shown(&crossed);
    assert_eq!(shown.len(), 11);
    for (name, bytes) in shown {
        assert_eq!(hex(&block(&page, name)), hex(&bytes), "{name}");
    }
    // Names and process ids differ from run to run, limits from service to service; all else does not.
    let (client, service) = (block(&page, "greeting, client"), block(&page, "greeting, service"));
    for part in [0..12, 16..36] {
        assert_eq!(hex(&client[part.clone()]), hex(&crossed.client[0].0[part]));
    }
    for part in [0..12, 16..44] {
        assert_eq!(hex(&service[part.clone()]), hex(&crossed.service[0].0[part]));
    }
    assert_eq!(ClientGreeting::decode(&client).unwrap().name.as_str(), "sum");
    let (shown, said) = (ServerGreeting::decode(&service), &crossed.service[0].0);
    let (shown, said) = (shown.unwrap(), ServerGreeting::decode(said).unwrap());
    assert_eq!(shown.name.as_str(), "burst");
    for limit in StatedLimit::ALL {
        let (shown, said) = (shown.limits.get(limit), said.limits.get(limit));
        assert!(shown.is_some() && said.is_some(), "{limit:?}");
    }
}

#[test]
fn the_codes_of_the_page_are_those_of_the_hal() {
    let page = page().replace('\n', " ");
    for ty in OperationType::ALL {
        let code = format!(" {} {}", ty.code(), ty.name());
        assert!([",", "."].iter().any(|end| page.contains(&format!("{code}{end}"))), "{code}");
    }
    for kind in SpanKind::ALL.iter().filter(|kind| kind.number() >= SpanKind::Request.number()) {
        let row = format!(" {} | {} |", kind.number(), kind.name());
        assert!(page.contains(&row), "{row}");
    }
    for ty in OperandType::ALL {
        let code = format!(" {} {}", ty.code(), ty.name());
        assert!([" ", ","].iter().any(|end| page.contains(&format!("{code}{end}"))), "{code}");
    }
    for status in (0..).map_while(ErrorStatus::from_code) {
        let row = format!(" {} | {} ", status.code(), status.name());
        let explained = row.trim_end().to_owned() + ":";
        assert!(page.contains(&row) || page.contains(&explained), "{row}");
    }
}
