//! Two users on one service: one with 64 busy bursts, one with a single one.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use burst_client::{
    Burst, BurstOptions, Client, RemotePreparedModel, ShmMemory, Stream, StreamOptions, Wait,
};
use burst_hal::{
    Caller, DataLocation, Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult,
    Failure, Model, Pool, PrepareOptions, PrepareResult, PreparedModel, Request, RequestArgument,
    RequestPool,
};
use burst_server::{Access, Listener, Service, ServiceOptions, Stop};
use burst_testing::Missing;

use crate::burst_support::{LONG, long, wide_model};

burst_testing::tests![one_burst_of_one_user_gets_its_share_beside_many_of_another(&root()?)];

/// Bursts of the one user; the other has one.
const MANY: u64 = 64;
/// Cores that the device computes on.
const TOKENS: usize = 2;
/// Steps that are computed in all, some 0.1 ms each.
const STEPS: u64 = 30_000;
/// Steps of an execution.
const STEPS_EACH: u64 = 20;
/// Of the computing time: half where the machine is ours alone. Other processes take from both, and not
/// alike: far from half, and far from the 1.5 % without turns.
const SHARE_MIN: f64 = 0.25;

/// May become any user.
struct Root;

fn root() -> Result<Root, Missing> {
    match rustix::process::geteuid().is_root() {
        true => Ok(Root),
        false => Err(Missing::new("root, to be two users")),
    }
}

/// What was computed for a model.
#[derive(Debug, Default)]
struct Computed {
    steps: AtomicU64,
    /// How long that took, while the device had a core to itself or had to share it with other
    /// processes: the service can give a client a turn, and the kernel alone a core.
    nanos: AtomicU64,
}

/// Computes, and counts for which of two models.
#[derive(Clone)]
struct Counting {
    computed: Arc<[Computed; 2]>,
    model: usize,
}

impl Device for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
        let model = model.main.operations.len() - 1;
        Ok(Arc::new(Counting { model, ..self.clone() }))
    }
}

impl PreparedModel for Counting {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("the service names its client")
    }

    fn execute_for(&self, _: &Request, _: &ExecutionOptions, caller: &Caller) -> ExecutionResult {
        for _ in 0..STEPS_EACH {
            caller.give_way();
            if caller.is_cancelled() {
                break;
            }
            let begun = Instant::now();
            black_box((0..60_000_u64).fold(1_u64, |x, y| black_box(x.wrapping_mul(y | 1))));
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap();
            let computed = &self.computed[self.model];
            computed.nanos.fetch_add(took, Ordering::Relaxed);
            computed.steps.fetch_add(1, Ordering::Relaxed);
        }
        ExecutionResult::of(ErrorStatus::None)
    }
}

/// A model of so many operations, prepared for a client that connects as this user; the calling thread
/// stays that user.
fn prepare_as(uid: u32, path: &Path, model: &Model) -> Arc<RemotePreparedModel> {
    let user = rustix::process::Uid::from_raw(uid);
    rustix::thread::set_thread_res_uid(user, user, user).unwrap();
    let client = Client::connect(path).unwrap();
    client.device("counting").unwrap().prepare(model, &PrepareOptions::default()).unwrap()
}

fn streams(path: &Path) -> Vec<Stream> {
    let model = wide_model(1);
    let prepared = prepare_as(4001, path, &model);
    let mut options = StreamOptions::default();
    options.wait = Wait::Sleep;
    (0..MANY).map(|_| Stream::new(&prepared, &model, &options).unwrap()).collect()
}

fn burst(path: &Path) -> Burst {
    let options = BurstOptions::default().with_depth(2).waiting(Wait::Sleep);
    prepare_as(4002, path, &wide_model(2)).configure_burst(&options).unwrap()
}

fn keep_busy(mut stream: Stream, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        stream.run(long()).unwrap();
    }
}

/// A burst with two requests under way all the time, so that it always wants to compute.
fn keep_wanting(mut burst: Burst, ended: &AtomicBool) {
    let memory: Pool = Arc::new(ShmMemory::create(64).unwrap());
    let arguments = [0, 16, 32, 48].map(|offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    });
    let (inputs, outputs) = arguments.split_at(2);
    let request = Request {
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        pools: vec![RequestPool::Memory(memory)],
    };
    let submit =
        |burst: &mut Burst| burst.submit(&request, &ExecutionOptions::default(), long()).unwrap();
    let mut first = submit(&mut burst);
    while !ended.load(Ordering::Relaxed) {
        let second = submit(&mut burst);
        assert_eq!(burst.wait(&first, long()).unwrap().status, ErrorStatus::None);
        first = second;
    }
    burst.wait(&first, long()).unwrap();
}

fn one_burst_of_one_user_gets_its_share_beside_many_of_another(_: &Root) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("burst.sock");
    let listener = Listener::bind_with_mode(&path, 0o666).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let computed: Arc<[Computed; 2]> = Arc::default();
    let mut options = ServiceOptions::default();
    options.access = Access { anyone: true, ..Access::default() };
    options.run_tokens = NonZeroUsize::new(TOKENS);
    let device = Counting { computed: Arc::clone(&computed), model: 0 };
    let service = Service::new(vec![Arc::new(device)], options);
    let (stopper, stop) = Stop::new().unwrap();
    let counts = || computed.each_ref().map(|one| one.steps.load(Ordering::Relaxed));
    let nanos = || computed.each_ref().map(|one| one.nanos.load(Ordering::Relaxed));
    let ended = AtomicBool::new(false);
    let ended = &ended;
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || service.run(&listener, &stop));
        // Threads of their own, as each becomes another user for good.
        let (many, one) = (
            scope.spawn(|| streams(&path)).join().unwrap(),
            scope.spawn(|| burst(&path)).join().unwrap(),
        );
        let mut clients: Vec<_> =
            many.into_iter().map(|stream| scope.spawn(move || keep_busy(stream, ended))).collect();
        let until = Instant::now() + 4 * LONG;
        let reach = |at: usize, from: u64| {
            while counts()[at] < from {
                assert!(Instant::now() < until, "{:?}", counts());
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        reach(0, STEPS / 10);
        clients.push(scope.spawn(move || keep_wanting(one, ended)));
        reach(1, STEPS_EACH);
        let (steps, times) = (counts(), nanos());
        reach(0, steps[0] + STEPS / 2);
        let shares = [(steps, counts()), (times, nanos())].map(|(before, after)| {
            let [many, one] = [0, 1].map(|at| Duration::from_nanos(after[at] - before[at]));
            one.as_secs_f64() / (one + many).as_secs_f64()
        });
        ended.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        let [of_steps, of_time] = shares;
        println!(
            "one burst beside {MANY} of another user: {:.1} % of computing time, {:.1} % of steps",
            of_time * 100.0,
            of_steps * 100.0
        );
        assert!(of_time >= SHARE_MIN, "{of_time}");
        drop(stopper);
        serving.join().unwrap().unwrap();
    });
}
