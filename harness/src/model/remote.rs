//! The same driver in another process, over a burst or over the control socket.

use std::any::Any;
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline, Route, StateBinding, Stream, StreamOptions};

use super::local::UNKNOWN_OUTPUT_BYTES;
use super::subject::{Label, Lane, Length, Runs, Turn, take_turn};
use super::workload::Subject;
use crate::error::HarnessError;

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

/// A device called `cpu` in another process. Each turn has a connection of its own.
pub struct Remote<'s> {
    label: Label,
    kind: RemoteKind,
    subject: &'s Subject,
    connect: Box<dyn Fn() -> Result<Connection, HarnessError> + 's>,
}

impl<'s> Remote<'s> {
    /// A lane over connections that `connect` makes.
    pub fn new(
        label: Label,
        kind: RemoteKind,
        subject: &'s Subject,
        connect: impl Fn() -> Result<Connection, HarnessError> + 's,
    ) -> Self {
        Remote { label, kind, subject, connect: Box::new(connect) }
    }

    fn options(&self) -> StreamOptions {
        let mut options = StreamOptions::default();
        options.route = self.kind.route;
        options.wait = self.kind.wait;
        options.service_outputs = self.kind.service_outputs;
        options.unknown_output_bytes = Some(UNKNOWN_OUTPUT_BYTES);
        let states = self.subject.imported.states.iter();
        options.states = states
            .map(|state| StateBinding { input: state.input_index, output: state.output_index })
            .collect();
        options
    }
}

impl Lane for Remote<'_> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn turn(&mut self, length: Length) -> Result<Turn, HarnessError> {
        // Dropped last, after all that was made from it: its process ends when nobody is connected.
        let connection = (self.connect)()?;
        let device = connection.client.device("cpu").map_err(HarnessError::peer)?;
        let started = Instant::now();
        let stream = device
            .stream(&self.subject.imported.model, &self.options())
            .map_err(HarnessError::peer)?;
        let prepare = started.elapsed();
        let mut far = Far { stream, subject: self.subject };
        take_turn(&mut far, prepare, length)
    }
}

struct Far<'a> {
    stream: Stream,
    subject: &'a Subject,
}

impl Runs for Far<'_> {
    fn fill(&mut self) -> Result<(), HarnessError> {
        for index in self.subject.given_inputs() {
            self.stream.input(index).copy_from_slice(&self.subject.inputs[index]);
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
        (0..self.subject.given_outputs())
            .map(|index| Ok(self.stream.output(index).map_err(HarnessError::peer)?.to_vec()))
            .collect()
    }
}
