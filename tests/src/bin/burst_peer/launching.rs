//! A client that is killed while its executions wait.

use std::os::fd::AsFd;
use std::path::Path;

use burst_hal::{DataLocation, RequestArgument};
use burst_shm::Memory;
use burst_wire::control::{
    Answer, Call, FencedRequest, List, PoolSource, SynchronousRequest, WireArgument,
};

use super::burst_support::model;
use super::burst_support::raw::{RawClient, connect};
use super::say;

/// How many.
const EXECUTIONS: usize = 20;

/// Launches them, says so, and goes on for ever.
pub(crate) fn launch(path: &str) {
    let mut client = RawClient::greet(connect(Path::new(path)));
    let model = client.prepare(&model());
    let memory = Memory::create("request", 32).expect("a memory");
    let (fence, _write) = rustix::pipe::pipe().expect("a pipe");
    let argument = |offset| {
        let location = DataLocation { pool_index: 0, offset, length: 16 };
        WireArgument::from(&RequestArgument { location, ..RequestArgument::default() })
    };
    let request = SynchronousRequest {
        model,
        inputs: List(vec![argument(0)]),
        outputs: List(vec![argument(16)]),
        pools: List(vec![PoolSource::Descriptor { length: 32 }]),
        measure_timing: false,
        deadline: None,
        loop_timeout: None,
    };
    for _ in 0..EXECUTIONS {
        let fenced = FencedRequest { request: request.clone(), fences: 1, duration: None };
        let launched = client.call(Call::ExecuteFenced(fenced), &[memory.as_fd(), fence.as_fd()]);
        assert!(matches!(launched, Ok(Answer::Fenced { .. })), "{launched:?}");
    }
    say("launched");
    loop {
        std::thread::park();
    }
}
