//! Bursts that are served outside of the service: a thread for each, as small as can be.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use burst_hal::{
    ErrorStatus, ExecutionOptions, ExecutionResult, Failure, PreparedModel, Request, RequestPool,
};
use burst_server::{BurstContext, BurstContexts, BurstSetup, GivenUp, KeptBuffers, RequestCheck};
use burst_wire::{DATUM_BYTES, ResultExtras, ResultPacket, SlotRequest, decode_request};
use fmq::QueueError;

use crate::burst_support::long;

/// Bursts of memories only.
#[derive(Debug)]
pub struct Contexts;

impl BurstContexts for Contexts {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        Ok(serve(setup, None))
    }
}

/// Bursts that take buffers of the driver, too.
#[derive(Debug)]
pub struct ContextsWithBuffers;

impl BurstContexts for ContextsWithBuffers {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        Ok(serve(setup, Some(KeptBuffers::default())))
    }

    fn takes_buffers(&self) -> bool {
        true
    }
}

fn serve(setup: BurstSetup, kept: Option<KeptBuffers>) -> Box<dyn BurstContext> {
    let server = Server { model: setup.model(), check: setup.check(), setup, kept };
    Box::new(Context(Some(std::thread::spawn(move || server.run()))))
}

struct Context(Option<JoinHandle<()>>);

impl BurstContext for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        self.0.take().unwrap().join().expect("the context does not panic");
    }
}

struct Server {
    setup: BurstSetup,
    model: Arc<dyn PreparedModel>,
    check: RequestCheck,
    /// Where it takes buffers: those of the request under way.
    kept: Option<KeptBuffers>,
}

impl Server {
    fn run(mut self) {
        loop {
            match self.serve_one() {
                Ok(()) => {}
                Err(QueueError::PeerDied) => return,
                Err(error) => return self.setup.ender.end(GivenUp::Queue, &error.to_string()),
            }
        }
    }

    /// A packet is everything there is: nobody who uses this has several requests under way.
    fn serve_one(&mut self) -> Result<(), QueueError> {
        let datums = self.setup.next_request(|| ())?;
        let arrived = Instant::now();
        let mut packet = vec![0; datums * DATUM_BYTES];
        self.setup.requests.read(&mut packet)?;
        let result = match self.prepare(&packet) {
            Err(status) => ExecutionResult::of(status),
            Ok(request) => {
                self.setup.counts.executing();
                match self.setup.turns.begin(None) {
                    Ok(_turn) => {
                        let caller = &self.setup.caller;
                        self.model.execute_for(&request, &ExecutionOptions::default(), caller)
                    }
                    Err(_) => return Err(QueueError::PeerDied),
                }
            }
        };
        let features = self.setup.features;
        let answer = ResultPacket::new(&result, ResultExtras::default(), features);
        answer.encode_into(&mut packet).unwrap();
        self.setup.results.write_blocking(&packet, long())?;
        self.setup.counts.answered(result.status, arrived);
        Ok(())
    }

    fn prepare(&mut self, packet: &[u8]) -> Result<Request, ErrorStatus> {
        let mut decoded = SlotRequest::default();
        decode_request(packet, self.setup.features, &mut decoded).map_err(|error| {
            self.setup.counts.malformed();
            error.status()
        })?;
        let mut pools: Vec<RequestPool> = Vec::new();
        let memories = &self.setup.memories;
        match &mut self.kept {
            None => memories.resolve(&decoded.slots, &mut pools)?,
            Some(kept) => memories.resolve_with_buffers(&decoded.slots, &mut pools, kept)?,
        }
        let request = Request { inputs: decoded.inputs, outputs: decoded.outputs, pools };
        self.check.check(&request).map(|()| request)
    }
}
