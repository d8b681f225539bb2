//! What services and the checkpoints of executions cost, model by model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use burst_client::{
    BurstOptions, RemoteBuffer, RemoteDevice, RemotePreparedModel, SharedAllocator, ShmMemory,
};
use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, PoolAllocator, SessionLayout, SessionTensors};
use burst_hal::{
    BufferRequest, BufferRole, Caller, CancelWord, DataLocation, Device, ExecutionOptions, Fence,
    FenceState, FencedExecution, FencedOptions, Pool, PrepareOptions, Request, RequestArgument,
    RequestPool, TimePoint, Turn,
};
use burst_harness::HarnessError;
use burst_harness::model::Workload;
use burst_server::ServiceOptions;

use super::pairs::{Effort, Side, compare};
use super::service::{Connected, check, patience};
use super::{Found, Row, tokens};

/// Executions of a chain.
const CHAIN: usize = 3;
/// A deadline that is looked at and does not pass.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// All rows of one model.
pub(super) fn measure(
    workload: &Workload,
    effort: Effort,
    found: &mut Found,
) -> Result<(), HarnessError> {
    let bench = Bench { workload, effort };
    let local = tensors(workload, &HeapAllocator)?;
    found.rows.push(bench.checkpoints(local.request(0))?);
    let request = local.request(0).clone();
    let model = &workload.imported.model;
    found.rows.extend(tokens::measure(&workload.name, model, request, effort)?);
    let connected = Connected::start(Arc::new(CpuDevice::default()), ServiceOptions::default())?;
    let measured = bench.remote(&connected, found);
    measured?;
    connected.end()
}

/// The tensors of a workload, with its inputs in them.
pub(crate) fn tensors(
    workload: &Workload,
    allocator: &dyn PoolAllocator,
) -> Result<SessionTensors, HarnessError> {
    let layout = SessionLayout::new(&workload.imported.model, &workload.layout());
    let layout = layout.map_err(HarnessError::peer)?;
    let tensors = SessionTensors::allocate(layout, allocator).map_err(HarnessError::peer)?;
    for index in workload.given_inputs() {
        let input = &workload.inputs[index];
        tensors.write_input(0, index, input).map_err(HarnessError::peer)?;
    }
    Ok(tensors)
}

/// A turn that costs what that of a service costs while nobody waits: a load.
#[derive(Debug, Default)]
struct Nobody(AtomicU64);

impl Turn for Nobody {
    fn give_way(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            std::thread::yield_now();
        }
    }
}

/// One model and how much of it is measured.
struct Bench<'w> {
    workload: &'w Workload,
    effort: Effort,
}

/// A model in the service, with the ways to it.
struct Remote {
    device: RemoteDevice,
    prepared: Arc<RemotePreparedModel>,
    burst: burst_client::Burst,
    tensors: SessionTensors,
}

impl Bench<'_> {
    fn row(&self, first: &'static str, second: &'static str, note: &str) -> RowOf<'_> {
        RowOf { bench: self, first, second, note: note.to_owned() }
    }

    fn checkpoints(&self, request: &Request) -> Result<Row, HarnessError> {
        let device = CpuDevice::default();
        let model = &self.workload.imported.model;
        let prepared = device.prepare_model(model, &PrepareOptions::default());
        let prepared = prepared.map_err(HarnessError::peer)?;
        let cancel = CancelWord::default();
        let asked = Caller::new(&cancel).with_turn(Arc::new(Nobody::default()));
        let row = self.row(
            "cancel word, deadline, turn",
            "none of them",
            "in process; the turn is a load, as a service's is while nobody waits",
        );
        row.measure(|side| {
            let result = match side {
                Side::First => {
                    let deadline = Some(TimePoint::after(FAR));
                    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
                    prepared.execute_for(request, &options, &asked)
                }
                Side::Second => {
                    prepared.execute_synchronously(request, &ExecutionOptions::default())
                }
            };
            check(result.status)
        })
    }

    fn remote(&self, connected: &Connected, found: &mut Found) -> Result<(), HarnessError> {
        let device = connected.client.device("cpu").map_err(HarnessError::peer)?;
        let model = &self.workload.imported.model;
        let prepared = device.prepare(model, &PrepareOptions::default());
        let prepared = prepared.map_err(HarnessError::peer)?;
        let burst = prepared.configure_burst(&BurstOptions::default());
        let burst = burst.map_err(HarnessError::peer)?;
        let tensors = tensors(self.workload, &SharedAllocator)?;
        let mut remote = Remote { device, prepared, burst, tensors };
        remote.check_routes()?;
        found.rows.push(self.timing(&mut remote)?);
        for route in Route::ALL {
            found.rows.push(self.route(route, &mut remote)?);
        }
        found.rows.extend(self.chains(&mut remote)?);
        for place in [Place::Input, Place::Output] {
            match self.buffer(place, &mut remote) {
                Ok(row) => found.rows.push(row),
                Err(reason) => found.left_out.push(format!(
                    "{}: {}: {reason}",
                    self.workload.name,
                    place.name()
                )),
            }
        }
        Ok(())
    }

    fn timing(&self, remote: &mut Remote) -> Result<Row, HarnessError> {
        let row = self.row("timing measured", "not measured", "over a burst");
        row.measure(|side| {
            let measure_timing = side == Side::First;
            let options = ExecutionOptions { measure_timing, ..ExecutionOptions::default() };
            remote.over_burst(&options)
        })
    }

    fn route(&self, route: Route, remote: &mut Remote) -> Result<Row, HarnessError> {
        let row = self.row(route.name(), "burst", route.note());
        row.measure(|side| match side {
            Side::First => remote.over(route),
            Side::Second => remote.over_burst(&ExecutionOptions::default()),
        })
    }

    fn chains(&self, remote: &mut Remote) -> Result<[Row; 2], HarnessError> {
        let chain = "a chain of three fenced";
        let fenced = self.row(chain, "three fenced, each waited for", "the client waits once");
        let fenced = fenced.measure(|side| match side {
            Side::First => remote.chain(),
            Side::Second => (0..CHAIN).try_for_each(|_| remote.over(Route::Fenced)),
        })?;
        let bursts = self.row(chain, "three over a burst", "the client waits once");
        let bursts = bursts.measure(|side| match side {
            Side::First => remote.chain(),
            Side::Second => {
                (0..CHAIN).try_for_each(|_| remote.over_burst(&ExecutionOptions::default()))
            }
        })?;
        Ok([fenced, bursts])
    }

    fn buffer(&self, place: Place, remote: &mut Remote) -> Result<Row, HarnessError> {
        let (buffer, request) = remote.with_buffer(place, self.workload)?;
        let plain = remote.tensors.request(0).clone();
        // Once for a look at the way that it takes.
        remote.execute(&request)?;
        let way = match remote.burst.fell_back() {
            true => "with a buffer over the control socket: the burst takes none",
            false => "over a burst that carries tokens",
        };
        let row = self.row(place.name(), "in a pool", way);
        let row = row.measure(|side| match side {
            Side::First => remote.execute(&request),
            Side::Second => remote.execute(&plain),
        });
        drop(buffer);
        row
    }
}

/// A row that is about to be measured.
struct RowOf<'b> {
    bench: &'b Bench<'b>,
    first: &'static str,
    second: &'static str,
    note: String,
}

impl RowOf<'_> {
    fn measure(
        self,
        run: impl FnMut(Side) -> Result<(), HarnessError>,
    ) -> Result<Row, HarnessError> {
        let RowOf { bench, first, second, note } = self;
        let measured = compare(bench.effort, run)?;
        Ok(Row::new(&bench.workload.name, [first, second], note, measured))
    }
}

/// A way over the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Synchronous,
    Asynchronous,
    Fenced,
}

impl Route {
    const ALL: [Route; 3] = [Route::Synchronous, Route::Asynchronous, Route::Fenced];

    fn name(self) -> &'static str {
        match self {
            Route::Synchronous => "sync",
            Route::Asynchronous => "async",
            Route::Fenced => "fenced",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Route::Synchronous => "over the control socket",
            Route::Asynchronous => "over the control socket, waited for at once",
            Route::Fenced => "over the control socket, its fence waited for at once",
        }
    }
}

/// What lies in a buffer of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Input,
    Output,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Input => "first input in a buffer of the driver",
            Place::Output => "first output in a buffer of the driver",
        }
    }
}

impl Remote {
    fn over_burst(&mut self, options: &ExecutionOptions) -> Result<(), HarnessError> {
        let result = self.burst.execute(self.tensors.request(0), options, patience());
        check(result.map_err(HarnessError::peer)?.status)
    }

    /// Another request over the burst.
    fn execute(&mut self, request: &Request) -> Result<(), HarnessError> {
        let result = self.burst.execute(request, &ExecutionOptions::default(), patience());
        check(result.map_err(HarnessError::peer)?.status)
    }

    fn over(&mut self, route: Route) -> Result<(), HarnessError> {
        let (request, options) = (self.tensors.request(0), ExecutionOptions::default());
        match route {
            Route::Synchronous => {
                let done = self.prepared.execute(request, &options, patience());
                check(done.map_err(HarnessError::peer)?.result.status)
            }
            Route::Asynchronous => {
                let started = self.prepared.start(request.clone(), &options);
                check(started.map_err(HarnessError::peer)?.wait().status)
            }
            Route::Fenced => wait(self.fenced(&[])?),
        }
    }

    /// Each waits in the service for the fence of the one before.
    fn chain(&mut self) -> Result<(), HarnessError> {
        let mut last = self.fenced(&[])?;
        let mut earlier = Vec::new();
        for _ in 1..CHAIN {
            let fences: Vec<Fence> = last.fence.iter().cloned().collect();
            earlier.push(std::mem::replace(&mut last, self.fenced(&fences)?));
        }
        wait(last)
    }

    fn fenced(&self, wait_for: &[Fence]) -> Result<FencedExecution, HarnessError> {
        let request = self.tensors.request(0).clone();
        let (options, caller) = (FencedOptions::default(), Caller::default());
        let started = self.prepared.start_fenced(request, wait_for, &options, &caller);
        started.map_err(HarnessError::peer)
    }

    /// Whether all ways give the same bytes.
    fn check_routes(&mut self) -> Result<(), HarnessError> {
        self.over_burst(&ExecutionOptions::default())?;
        let expected = bytes(self.tensors.outputs())?;
        let zeros = vec![0; expected.len()];
        for route in Route::ALL {
            self.tensors.outputs().write(0, &zeros).map_err(HarnessError::peer)?;
            self.over(route)?;
            if bytes(self.tensors.outputs())? != expected {
                let name = route.name();
                return Err(HarnessError::peer(format!("{name} and burst give different outputs")));
            }
        }
        Ok(())
    }

    /// A buffer for the first input or output, with the value where it is an input, and a request that names
    /// it.
    fn with_buffer(
        &self,
        place: Place,
        workload: &Workload,
    ) -> Result<(RemoteBuffer, Request), HarnessError> {
        let roles = vec![BufferRole { model: 0, position: 0, frequency: 1.0 }];
        let mut wanted =
            BufferRequest { models: vec![Arc::clone(&self.prepared) as _], ..Default::default() };
        let mut request = self.tensors.request(0).clone();
        let argument = match place {
            Place::Input => {
                wanted.inputs = roles;
                request.inputs.first_mut()
            }
            Place::Output => {
                wanted.outputs = roles;
                request.outputs.first_mut()
            }
        };
        let argument = argument.ok_or_else(|| HarnessError::peer("the model has none"))?;
        let pool_index = u32::try_from(request.pools.len()).map_err(HarnessError::peer)?;
        let location = DataLocation { pool_index, offset: 0, length: 0 };
        *argument = RequestArgument { location, ..RequestArgument::default() };
        let buffer = self.device.allocate_buffer(&wanted).map_err(HarnessError::peer)?;
        request.pools.push(RequestPool::Token(burst_hal::Buffer::token(&buffer)));
        if place == Place::Input {
            let value = &workload.inputs[0];
            let memory = ShmMemory::create(value.len()).map_err(HarnessError::peer)?;
            let pool: Pool = Arc::new(memory);
            pool.write(0, value).map_err(HarnessError::peer)?;
            buffer.fill_from(&pool, &[]).map_err(HarnessError::peer)?;
        }
        Ok((buffer, request))
    }
}

/// Waits for the end of a fenced execution.
fn wait(execution: FencedExecution) -> Result<(), HarnessError> {
    match execution.fence.map_or(FenceState::Done, |fence| fence.wait(None)) {
        FenceState::Done => Ok(()),
        state => Err(HarnessError::peer(format!("a fence is {state:?}"))),
    }
}

fn bytes(pool: &Pool) -> Result<Vec<u8>, HarnessError> {
    let mut bytes = vec![0; usize::try_from(pool.len()).map_err(HarnessError::peer)?];
    pool.read(0, &mut bytes).map_err(HarnessError::peer)?;
    Ok(bytes)
}
