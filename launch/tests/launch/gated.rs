//! A device whose executions wait until the test lets them go on.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_hal::{
    Caller, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure,
    HeapMemory, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pace, Pool,
    PrepareOptions, PrepareResult, PreparedModel, Request, RequestArgument, RequestPool, TimePoint,
    Timing,
};

/// Turns a hang into a failure.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Adds one to the first byte of the input.
#[derive(Clone)]
pub(crate) struct Gated {
    begun: Sender<()>,
    go_on: Arc<Mutex<Receiver<Go>>>,
    /// Whether it goes on although it is cancelled, of which it tells.
    is_stubborn: bool,
    cancelled: Sender<()>,
    pace: Option<Arc<Pace>>,
}

/// How an execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Panic,
    /// At its deadline it ends, with the word of a device that looks at what is left then.
    AtDeadline,
}

/// The test's side of it.
pub(crate) struct Watch {
    pub(crate) begun: Receiver<()>,
    pub(crate) go_on: Sender<Go>,
    /// What a stubborn device tells.
    pub(crate) cancelled: Receiver<()>,
    goes: Arc<Mutex<Receiver<Go>>>,
}

impl Watch {
    #[track_caller]
    pub(crate) fn expect_begun(&self) {
        self.begun.recv_timeout(LONG).expect("an execution begins");
    }

    /// Takes back what no execution was told.
    pub(crate) fn take_back(&self) {
        while self.goes.lock().unwrap().try_recv().is_ok() {}
    }
}

pub(crate) fn gated() -> (Gated, Watch) {
    let ((begins, begun), (go_on, goes), (cancels, cancelled)) = (channel(), channel(), channel());
    let go_ons = Arc::new(Mutex::new(goes));
    let goes = Arc::clone(&go_ons);
    let device =
        Gated { begun: begins, go_on: go_ons, is_stubborn: false, cancelled: cancels, pace: None };
    (device, Watch { begun, go_on, cancelled, goes })
}

/// One that says that its executions took this long.
pub(crate) fn paced(times: &[Duration]) -> (Gated, Watch) {
    let (device, watch) = gated();
    let pace = Pace::default();
    times.iter().for_each(|took| pace.note(*took));
    (Gated { pace: Some(Arc::new(pace)), ..device }, watch)
}

/// One that gives nothing up.
pub(crate) fn stubborn() -> (Gated, Watch) {
    let (device, watch) = gated();
    (Gated { is_stubborn: true, ..device }, watch)
}

impl Device for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn version_string(&self) -> &str {
        "gated-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(self.clone()))
    }
}

impl PreparedModel for Gated {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("a launcher names its caller")
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let _ = self.begun.send(());
        let until = Instant::now() + LONG;
        let mut is_told = false;
        loop {
            if caller.is_cancelled() && !self.is_stubborn {
                return ExecutionResult::of(ErrorStatus::GeneralFailure);
            }
            if caller.is_cancelled() && !std::mem::replace(&mut is_told, true) {
                let _ = self.cancelled.send(());
            }
            let go = self.go_on.lock().unwrap().try_recv();
            match go {
                Ok(Go::AtDeadline) => {
                    wait_until("a deadline", || {
                        options.deadline.is_some_and(TimePoint::has_passed)
                    });
                    return ExecutionResult::of(ErrorStatus::MissedDeadlinePersistent);
                }
                Ok(go) => {
                    assert!(go == Go::On, "a panic that is wanted here");
                    break;
                }
                Err(_) => assert!(Instant::now() < until, "neither ended nor cancelled"),
            }
            std::thread::yield_now();
        }
        let mut bytes = Vec::new();
        request.read_input(0, &mut bytes).unwrap();
        bytes[0] += 1;
        request.write_output(0, &bytes).unwrap();
        let timing = Timing { time_on_device_us: 3, time_in_driver_us: 4 };
        ExecutionResult { timing, ..ExecutionResult::of(ErrorStatus::None) }
    }

    fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }
}

/// RELU on a float; its output has a size of its own only where the model says so.
pub(crate) fn model(dimensions: &[u32]) -> Model {
    let mut builder = ModelBuilder::new();
    let x = builder.input(OperandType::TensorFloat32, &[1]);
    let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(dimensions));
    builder.output(y);
    builder.build().unwrap()
}

pub(crate) fn pool() -> Pool {
    Arc::new(HeapMemory::new(vec![0; 8]))
}

/// From the first four bytes of a pool to the next ones.
pub(crate) fn request(pool: &Pool) -> Request {
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(4)],
        pools: vec![RequestPool::Memory(Pool::clone(pool))],
    }
}

pub(crate) fn output(pool: &Pool) -> u8 {
    let mut byte = [0];
    pool.read(4, &mut byte).unwrap();
    byte[0]
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::yield_now();
    }
}
