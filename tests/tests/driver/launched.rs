//! Deadlines of executions that nobody waits for, on the devices of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use burst_driver::{CpuDevice, ReferenceDevice};
use burst_hal::{
    Caller, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, FencedOptions,
    HeapMemory, Model, ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions,
    PreparedModel, Request, RequestArgument, RequestPool, TimePoint, Turn,
};
use burst_launch::Launcher;

burst_testing::tests![
    a_hopeless_deadline_of_a_launch_is_refused_by_what_the_model_has_taken(),
    a_deadline_that_passes_midway_ends_a_launched_execution(),
];

/// Turns a hang into a failure.
const LONG: Duration = Duration::from_secs(60);
const STEPS: usize = 4;

/// Each adds one to a number.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let last = (0..STEPS)
        .fold(x, |x, _| b.result_of(OperationType::Add, &[x, one, none], OutputSpec::f32(&[1])));
    b.output(last);
    b.build().expect("a legal model")
}

fn request() -> Request {
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    let memory = Arc::new(HeapMemory::new(vec![0; 8]));
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(4)],
        pools: vec![RequestPool::Memory(memory)],
    }
}

type Prepared = Arc<dyn PreparedModel>;

fn prepared() -> [Prepared; 2] {
    let devices: [Arc<dyn Device>; 2] =
        [Arc::new(CpuDevice::default()), Arc::new(ReferenceDevice::default())];
    devices.map(|device| {
        let device = Launcher::default().wrap(device);
        device.prepare_model(&model(), &PrepareOptions::default()).expect("a model")
    })
}

/// In front of its third step an execution waits until this time, or for a while.
#[derive(Debug)]
struct Waits {
    /// `None` for [`A_WHILE`].
    until: Option<TimePoint>,
    asked: AtomicUsize,
}

const WAITS_AT: usize = 2;
const A_WHILE: Duration = Duration::from_millis(50);

impl Turn for Waits {
    fn give_way(&self) {
        if self.asked.fetch_add(1, Ordering::Relaxed) == WAITS_AT {
            let until = self.until.unwrap_or_else(|| TimePoint::after(A_WHILE));
            while !until.has_passed() {
                std::thread::yield_now();
            }
        }
    }
}

impl Waits {
    fn until(until: Option<TimePoint>) -> Arc<Self> {
        Arc::new(Waits { until, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Launches an execution by this deadline, in turns like these; gives its status.
type Way = fn(&Prepared, Option<TimePoint>, &Arc<Waits>) -> ErrorStatus;

const WAYS: [(&str, Way); 2] = [("asynchronous", asynchronous), ("fenced", fenced)];

fn parts(deadline: Option<TimePoint>, turn: &Arc<Waits>) -> (ExecutionOptions, Caller) {
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    (options, Caller::default().with_turn(Arc::clone(turn) as _))
}

fn asynchronous(model: &Prepared, deadline: Option<TimePoint>, turn: &Arc<Waits>) -> ErrorStatus {
    let (options, caller) = parts(deadline, turn);
    let (say, said) = channel();
    let callback = Box::new(move |result: ExecutionResult| {
        let _ = say.send(result.status);
    });
    Arc::clone(model)
        .execute_asynchronously(request(), options, caller, callback)
        .expect("a missed deadline is no refusal of the launch");
    said.recv_timeout(LONG).expect("an end")
}

fn fenced(model: &Prepared, deadline: Option<TimePoint>, turn: &Arc<Waits>) -> ErrorStatus {
    let (execution, caller) = parts(deadline, turn);
    let options = FencedOptions { execution, duration: None };
    let launched = Arc::clone(model)
        .execute_fenced(request(), Vec::new(), options, caller)
        .expect("a missed deadline is no refusal of the launch");
    let begun = Instant::now();
    loop {
        if let Ok(info) = launched.info.execution_info() {
            return info.status;
        }
        assert!(begun.elapsed() < LONG, "no end");
        std::thread::yield_now();
    }
}

fn a_hopeless_deadline_of_a_launch_is_refused_by_what_the_model_has_taken() {
    for (way, launch) in WAYS {
        for model in prepared() {
            let from = TimePoint::now();
            // The only execution so far, and so the quickest.
            assert_eq!(launch(&model, None, &Waits::until(None)), ErrorStatus::None, "{way}");
            let most = TimePoint::now().since(from);
            let never = Waits::until(Some(from));
            let hopeless = Some(TimePoint::after(A_WHILE / 2));
            let status = launch(&model, hopeless, &never);
            assert_eq!(status, ErrorStatus::MissedDeadlinePersistent, "{way}");
            assert_eq!(never.asked(), 0, "{way}: it was begun");
            let enough = Some(TimePoint::after(most + LONG));
            assert_eq!(launch(&model, enough, &never), ErrorStatus::None, "{way}");
            assert!(never.asked() >= STEPS, "{way}");
        }
    }
}

fn a_deadline_that_passes_midway_ends_a_launched_execution() {
    for (way, launch) in WAYS {
        for model in prepared() {
            // Where this machine has much to do it has passed before the execution begins: then the next one is tried.
            let is_ended_midway = [50, 2_000, 30_000].into_iter().any(|ms| {
                let deadline = TimePoint::after(Duration::from_millis(ms));
                let turn = Waits::until(Some(deadline));
                let status = launch(&model, Some(deadline), &turn);
                if turn.asked() <= WAITS_AT {
                    return false;
                }
                assert_eq!(status, ErrorStatus::MissedDeadlineTransient, "{way}");
                assert_eq!(turn.asked(), WAITS_AT + 1, "{way}: nothing more is begun");
                true
            });
            assert!(is_ended_midway, "{way}");
        }
    }
}
