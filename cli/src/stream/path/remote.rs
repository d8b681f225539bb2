//! A driver in another process: a running service, or a private one started for this stream.

use std::time::Duration;

use anyhow::{Context, Result};
use burst_client::{Carried, Client, ClientError, Deadline, Stream, StreamOptions, StreamPath};
use burst_hal::ErrorStatus;
use burst_tflite::{Imported, StatePair};

use crate::driver_process::DriverProcess;
use crate::stream::path::{Kind, Options};

struct Remote {
    // Dropped in this order: the connection first, so that a private driver process sees the
    // hang-up and ends.
    stream: Stream,
    _client: Client,
    _process: Option<DriverProcess>,
}

/// Connects, prepares and sets up memory.
pub(super) fn open(wanted: &Options<'_>, imported: &Imported) -> Result<Box<dyn super::Path>> {
    fmq::warm_up();
    // Bound in this order so that on an error the connection goes first, and the process ends.
    let (process, client) = match wanted.socket {
        Some(path) => (None, Client::connect(path)?),
        None => {
            let (process, socket) = DriverProcess::start(wanted.wait.name(), wanted.threads.count)?;
            let client = Client::from_socket(socket)
                .with_context(|| format!("no contact with the driver process {}", process.pid()))?;
            (Some(process), client)
        }
    };
    let mut options = StreamOptions::default();
    options.wait = wanted.wait.policy();
    options.path = match wanted.kind {
        Kind::Sync => StreamPath::Synchronous,
        _ => StreamPath::Burst,
    };
    let carried = |pair: &StatePair| Carried { input: pair.input_index, output: pair.output_index };
    options.carried = imported.states.iter().map(carried).collect();
    let device = client.device(wanted.device)?;
    let stream =
        device.stream(&imported.model, &options).context("the driver cannot run this model")?;
    Ok(Box::new(Remote { stream, _client: client, _process: process }))
}

impl super::Path for Remote {
    fn input(&mut self) -> &mut [u8] {
        self.stream.input(0)
    }

    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)> {
        match self.stream.run(Deadline::after(deadline)) {
            Ok(_) => Ok((ErrorStatus::None, self.stream.driver_time())),
            Err(ClientError::Execution { status }) => Ok((status, None)),
            Err(error) => Err(error.into()),
        }
    }

    fn output(&mut self, index: usize) -> Result<&[u8]> {
        Ok(self.stream.output(index)?)
    }

    fn driver_pid(&self) -> u32 {
        self.stream.driver_pid()
    }
}
