//! Real models against the outputs of reference kernels: over a burst, over the control socket, in
//! this process, with two threads; every time the same bytes.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_client::{Client, RemoteDevice, SharedAllocator};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::Route;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_server::{Service, ServiceOptions};
use burst_testing::shared;
use burst_tests::golden;
use burst_verify::models::{DeviceRoute, Folder, GoldenReport, run_goldens};
use burst_verify::{DeviceLease, RunError, Target};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

burst_testing::tests![
    goldens_are_strict_over_the_burst_with_the_same_bytes_on_every_path(&shared("")?),
    repetitions_give_the_same_bytes(&shared("")?),
    goldens_hold_with_reference_kernels(&shared("")?),
];

/// Executions per golden in these tests: a camera's pan has 60, of which the command runs all.
const MOST_EXECUTIONS: usize = 6;
/// Executions that the whole of a stream is: states are carried through all of them.
const STREAMED: usize = 120;

/// The CPU device in this process.
struct InProcess(CpuDevice, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &self.1 }
    }
}

/// A client of a service that offers the CPU, over a socket pair.
struct Remote {
    device: Option<RemoteDevice>,
    client: Option<Client>,
    service: Option<JoinHandle<()>>,
    memory: Arc<dyn PoolAllocator>,
}

impl Remote {
    fn connect() -> Self {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
        let service = Some(std::thread::spawn(move || service.serve_socket(theirs).unwrap()));
        let client = Client::from_socket(ours).unwrap();
        let device = Some(client.device("cpu").unwrap());
        Remote { device, client: Some(client), service, memory: Arc::new(SharedAllocator) }
    }
}

impl DeviceLease for Remote {
    fn target(&self) -> Target<'_> {
        Target { device: self.device.as_ref().unwrap(), memory: &self.memory }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop((self.device.take(), self.client.take()));
        self.service.take().unwrap().join().unwrap();
    }
}

fn in_process(name: &'static str, options: DeviceOptions) -> DeviceRoute<'static> {
    let lease = Box::new(InProcess(CpuDevice::new(options), Arc::new(HeapAllocator)));
    DeviceRoute { name, lease, route: Route::Burst }
}

fn every_route() -> Result<Vec<DeviceRoute<'static>>, RunError> {
    let remote = |route: Route| DeviceRoute {
        name: route.name(),
        lease: Box::new(Remote::connect()),
        route,
    };
    Ok(vec![
        remote(Route::Burst),
        remote(Route::Synchronous),
        in_process("in-process", DeviceOptions::default()),
        in_process("two threads", DeviceOptions { threads: 2, ..DeviceOptions::default() }),
    ])
}

/// The goldens of the shared folder, long ones cut short.
fn goldens(shared: &Path, most_executions: usize) -> Folder {
    let mut folder = golden::folder(shared);
    for golden in folder.models.iter_mut().flat_map(|model| &mut model.goldens) {
        golden.truncate(if golden.name == "camera" { most_executions } else { STREAMED });
    }
    folder
}

fn assert_passes(report: &GoldenReport, wanted: usize) {
    for result in &report.results {
        let why = result.why.as_deref().unwrap_or_default();
        println!(
            "{:?} {} {}: {:?} {why}",
            result.class, result.model, result.input, result.max_diff
        );
    }
    assert_eq!((report.goldens, report.strict), (wanted, wanted), "every golden is strict");
}

fn goldens_are_strict_over_the_burst_with_the_same_bytes_on_every_path(shared: &Path) {
    let folder = goldens(shared, MOST_EXECUTIONS);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = folder.golden_count();
    let report =
        run_goldens(&folder, &golden::importer(), 1, workers, every_route, |_| {}).unwrap();
    assert_passes(&report, wanted);
}

fn repetitions_give_the_same_bytes(shared: &Path) {
    let mut folder = goldens(shared, 2);
    for model in &mut folder.models {
        model.goldens.truncate(1);
    }
    folder.models.retain(|model| !model.name.starts_with("edsr"));
    let routes = || Ok(vec![in_process("in-process", DeviceOptions::default())]);
    let wanted = folder.golden_count();
    let report = run_goldens(&folder, &golden::importer(), 3, 2, routes, |_| {}).unwrap();
    assert_passes(&report, wanted);
}

/// The large ones take minutes with reference kernels.
fn goldens_hold_with_reference_kernels(shared: &Path) {
    let mut folder = goldens(shared, 1);
    for model in &mut folder.models {
        model.goldens.truncate(1);
    }
    let large = ["edsr", "deeplab", "ssd", "mobilenet_v2"];
    folder.models.retain(|model| !large.iter().any(|name| model.name.starts_with(name)));
    let options = DeviceOptions { fast_kernels: false, ..DeviceOptions::default() };
    let routes = || Ok(vec![in_process("reference kernels", options)]);
    let wanted = folder.golden_count();
    let report = run_goldens(&folder, &golden::importer(), 1, 2, routes, |_| {}).unwrap();
    assert_passes(&report, wanted);
}
