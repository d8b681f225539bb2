//! What ends an execution that would not end: the time-out of its loops and its deadline, over every
//! way to the CPU driver behind a service.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, ShmMemory};
use burst_driver::CpuDevice;
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, Pool, Request, RequestArgument, RequestPool, TimePoint,
};
use burst_server::ServiceOptions;

use crate::burst_support::{LONG, long};
use crate::service_support::Shared;

/// Long enough to be under way for sure, short beside [`LONG`].
const SHORT: Duration = Duration::from_millis(20);

/// `x` as long as it is below `limit`: `x + 0`, again and again.
fn endless() -> Model {
    let number = |b: &mut ModelBuilder| b.input(OperandType::TensorInt32, &[1]);
    let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, limit) = (number(b), number(b));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (number(b), number(b));
        let (zero, none) = (b.constant_i32(&[1], &[0]), b.scalar_i32(0));
        let same = b.result_of(OperationType::Add, &[x, zero, none], int());
        b.output(same);
    });
    let (x, limit) = (number(&mut b), number(&mut b));
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, limit], int());
    b.output(out);
    b.build().unwrap()
}

/// `x`, `limit` and the output, four bytes each.
fn request(x: i32, limit: i32) -> (Pool, Request) {
    let memory: Pool = Arc::new(ShmMemory::create(12).unwrap());
    memory.write(0, &[x.to_ne_bytes(), limit.to_ne_bytes()].concat()).unwrap();
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0), argument(4)],
        outputs: vec![argument(8)],
        pools: vec![RequestPool::Memory(Pool::clone(&memory))],
    };
    (memory, request)
}

fn by_loop() -> ExecutionOptions {
    ExecutionOptions { loop_timeout: Some(SHORT), ..Default::default() }
}

/// A loop would be left alone for much longer: it is the deadline that passes midway.
fn by_deadline() -> ExecutionOptions {
    ExecutionOptions {
        loop_timeout: Some(Duration::from_secs(15)),
        deadline: Some(TimePoint::after(SHORT)),
        ..Default::default()
    }
}

/// What ends an execution: options, made when it begins, and the status that says so.
type Ending = (&'static str, fn() -> ExecutionOptions, ErrorStatus);

const ENDINGS: [Ending; 2] = [
    ("loop time-out", by_loop, ErrorStatus::MissedDeadlineTransient),
    ("deadline", by_deadline, ErrorStatus::MissedDeadlinePersistent),
];

#[test]
fn an_endless_loop_ends_at_its_time_out_and_an_execution_at_its_deadline_over_burst_and_socket() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let device = client.device("cpu").unwrap();
    let prepared = device.prepare(&endless(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (_memory, never_ends) = request(0, 1);
    let (memory, ends) = request(1, 1);

    for round in 0..2 {
        for (what, options, want) in ENDINGS {
            let begun = Instant::now();
            let over_burst = burst.execute(&never_ends, &options(), long()).unwrap().status;
            assert_eq!(over_burst, want, "{what} over the burst, round {round}");
            assert!(begun.elapsed() >= SHORT, "{what}: it was under way until then");
            assert!(begun.elapsed() < LONG / 6, "{what}: ended at {SHORT:?}, not at ours");
            assert!(!burst.fell_back(), "{what}");
        }
        for (what, options, want) in ENDINGS {
            let over_socket = prepared.execute(&never_ends, &options(), long()).unwrap();
            assert_eq!(over_socket.result.status, want, "{what} over the socket, round {round}");
        }
        // The burst goes on: the next request is answered right.
        let status = burst.execute(&ends, &by_loop(), long()).unwrap().status;
        assert_eq!(status, ErrorStatus::None, "round {round}");
        let mut out = [0; 4];
        memory.read(8, &mut out).unwrap();
        assert_eq!(i32::from_ne_bytes(out), 1, "round {round}");
    }
}
