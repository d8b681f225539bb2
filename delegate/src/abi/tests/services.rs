//! Devices of a service, which may end and start again between two executions.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_driver::{CacheKey, CpuDevice};
use burst_server::{Listener, Service, ServiceOptions, Stop, Stopper};

use super::super::layout::OK;
use super::Own;
use super::runtime::{ADD, FLOAT32, Runtime};

/// A service with the CPU driver, which ends with this value.
struct Running {
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(path: &Path) -> Self {
        let listener = Listener::bind(path).unwrap();
        let key = CacheKey::new([7; CacheKey::BYTES]);
        let device = Arc::new(CpuDevice::default().with_cache_key(key));
        let service = Service::new(vec![device], ServiceOptions::default());
        let (stopper, stop) = Stop::new().unwrap();
        let thread = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
        Running { stopper: Some(stopper), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// A tensor to which a constant is added.
fn more(constant: f32) -> (Box<Runtime>, i32, i32) {
    let mut runtime = Runtime::new();
    let [from, to] = [(); 2].map(|()| runtime.computed(FLOAT32, &[2]));
    let constant = runtime.floats(&[1], &[constant]);
    runtime.node(ADD, &[from, constant], &[to], &[0]);
    runtime.outputs(&[to]);
    (runtime, from, to)
}

#[test]
fn a_service_computes_and_after_a_new_start_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let running = Running::start(&socket);
    let own = Own::new(&[("socket", socket.to_str().unwrap()), ("device", "cpu")]);
    let (mut runtime, from, to) = more(10.0);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.kernels(), 1);
    runtime.write(from, &[1.0, 2.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read(to), [11.0, 12.0]);
    drop(running);
    assert_ne!(runtime.invoke(), OK, "there is no service");
    assert_eq!(runtime.reported.len(), 1, "{:?}", runtime.reported);
    let _again = Running::start(&socket);
    runtime.write(from, &[3.0, 4.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read(to), [13.0, 14.0]);
}

#[test]
fn without_a_named_device_the_reference_device_computes_while_the_service_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let running = Running::start(&socket);
    let own = Own::new(&[("socket", socket.to_str().unwrap())]);
    let (mut runtime, from, to) = more(10.0);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    runtime.write(from, &[1.0, 2.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    drop(running);
    runtime.write(from, &[3.0, 4.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read(to), [13.0, 14.0]);
    let _again = Running::start(&socket);
    runtime.write(from, &[5.0, 6.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read(to), [15.0, 16.0]);
}

#[test]
fn a_device_that_the_service_has_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let _running = Running::start(&socket);
    let told =
        Own::create(&[("socket", socket.to_str().unwrap()), ("device", "gpu")]).err().unwrap();
    assert_eq!(told, ["burst: option device is \"gpu\", which is not here; there are [\"cpu\"]"]);
}

#[test]
fn compilations_are_kept_for_the_same_graph_with_the_same_constants() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let _running = Running::start(&socket);
    let options = [("socket", socket.to_str().unwrap()), ("cache", kept.to_str().unwrap())];
    let files = |constant: f32| {
        let own = Own::new(&options);
        let (mut runtime, from, to) = more(constant);
        assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
        runtime.write(from, &[1.0, 2.0]);
        assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
        assert_eq!(runtime.read(to), [1.0 + constant, 2.0 + constant]);
        std::fs::read_dir(&kept).unwrap().count()
    };
    let first = files(10.0);
    assert!(first > 0);
    assert_eq!(files(10.0), first);
    assert_eq!(files(20.0), 2 * first);
}
