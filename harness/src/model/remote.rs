//! The same driver in another process, over a burst or over the control socket.

use std::any::Any;
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline, Route, Stream, StreamOptions};

use super::subject::{Executable, Executions, Label, ModelSubject, take_trial};
use super::workload::Workload;
use crate::engine::{Length, Subject};
use crate::error::HarnessError;
use crate::machine::peak_memory_kib;

/// Far above any execution; only turns a hang into an error.
const PATIENCE: Duration = Duration::from_secs(300);

/// A connection to a driver process, and whatever must outlive it.
pub struct Connection {
    /// The connection.
    pub client: Client,
    /// Dropped after the client.
    pub guard: Box<dyn Any>,
}

/// How requests reach the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteKind {
    /// Burst or control socket.
    pub route: Route,
    /// How both ends of a burst wait.
    pub wait: fmq::Wait,
    /// Whether the service makes the memory for the outputs.
    pub service_outputs: bool,
}

/// A device called `cpu` in another process. Each trial has a connection of its own.
pub struct Remote<'s> {
    label: Label,
    kind: RemoteKind,
    workload: &'s Workload,
    connect: Box<dyn Fn() -> Result<Connection, HarnessError> + 's>,
}

impl<'s> Remote<'s> {
    /// A subject over connections that `connect` makes.
    pub fn new(
        label: Label,
        kind: RemoteKind,
        workload: &'s Workload,
        connect: impl Fn() -> Result<Connection, HarnessError> + 's,
    ) -> Self {
        Remote { label, kind, workload, connect: Box::new(connect) }
    }

    fn options(&self) -> StreamOptions {
        let mut options = StreamOptions::default();
        options.route = self.kind.route;
        options.wait = self.kind.wait;
        options.service_outputs = self.kind.service_outputs;
        let layout = self.workload.layout();
        options.unknown_output_bytes = layout.unknown_output_bytes;
        options.states = layout.states;
        options
    }
}

impl ModelSubject for Remote<'_> {
    fn label(&self) -> &Label {
        &self.label
    }
}

impl Subject for Remote<'_> {
    type Trial = Executions;

    fn context(&self) -> String {
        self.label.to_string()
    }

    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        // Dropped last, after all that was made from it: its process ends when nobody is connected.
        let connection = (self.connect)()?;
        let device = connection.client.device("cpu").map_err(HarnessError::peer)?;
        let started = Instant::now();
        let stream = device
            .stream(&self.workload.imported.model, &self.options())
            .map_err(HarnessError::peer)?;
        let prepare = started.elapsed();
        let mut remotely = Remotely { stream, workload: self.workload };
        let trial = take_trial(&mut remotely, prepare, length)?;
        let memory_kib = peak_memory_kib(remotely.stream.driver_pid());
        Ok(Executions { memory_kib, ..trial })
    }
}

struct Remotely<'a> {
    stream: Stream,
    workload: &'a Workload,
}

impl Executable for Remotely<'_> {
    fn fill(&mut self) -> Result<(), HarnessError> {
        for index in self.workload.given_inputs() {
            self.stream.input(index).copy_from_slice(&self.workload.inputs[index]);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Option<Duration>, HarnessError> {
        self.stream.run(Deadline::after(PATIENCE)).map_err(HarnessError::peer)?;
        if self.stream.burst().is_some_and(burst_client::Burst::fell_back) {
            return Err(HarnessError::peer("a request does not fit a burst"));
        }
        Ok(self.stream.driver_time())
    }

    fn outputs(&mut self) -> Result<Vec<Vec<u8>>, HarnessError> {
        (0..self.workload.given_outputs())
            .map(|index| Ok(self.stream.output(index).map_err(HarnessError::peer)?.to_vec()))
            .collect()
    }
}
