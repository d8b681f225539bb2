//! What the functions do, in safe code.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_client::{Client, Deadline, Stream, StreamOptions, default_socket_path};

use crate::error::{Error, Status};
use crate::handles::Handles;

/// Bytes of a model file: FlatBuffers have 32-bit offsets with a sign.
const MAX_MODEL_BYTES: u64 = 1 << 31;

static SERVICES: Handles<Client> = Handles::new(1);
static MODELS: Handles<Mutex<Stream>> = Handles::new(2);

/// Connects to a service; gives the number of the connection.
pub(crate) fn connect(socket: Option<PathBuf>) -> Result<usize, Error> {
    let no_service = |error| Error::of(&error, Status::NoService);
    let path = socket.unwrap_or_else(default_socket_path);
    let client = Client::connect(path).map_err(no_service)?;
    Ok(SERVICES.add(client))
}

/// Forgets a connection. Models that were loaded through it keep it open.
pub(crate) fn free_service(service: usize) {
    SERVICES.remove(service);
}

/// The connection that a caller has a handle of.
pub(crate) fn service(service: usize) -> Result<Arc<Client>, Error> {
    SERVICES.find(service).ok_or_else(|| Error::argument("the handle is no service's"))
}

/// Prepares the model of a file; gives its number.
pub(crate) fn load(service: usize, device: &str, file: &Path) -> Result<usize, Error> {
    let client = self::service(service)?;
    let bad = |cause: &dyn std::fmt::Display| {
        Error::new(Status::BadModel, format!("{}: {cause}", file.display()))
    };
    let bytes = read(file).map_err(|error| bad(&error))?;
    let model = burst_tflite::import(&bytes).map_err(|error| bad(&error))?.model;
    let refused = |error| Error::of(&error, Status::Refused);
    let device = client.device(device).map_err(refused)?;
    let stream = device.stream(&model, &StreamOptions::default()).map_err(refused)?;
    Ok(MODELS.add(Mutex::new(stream)))
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_MODEL_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= MAX_MODEL_BYTES {
        true => Ok(bytes),
        false => Err(std::io::Error::other(format!("longer than {MAX_MODEL_BYTES} bytes"))),
    }
}

/// A model that a caller has a handle of.
pub(crate) struct Model(Arc<Mutex<Stream>>);

impl Model {
    pub(crate) fn find(model: usize) -> Result<Self, Error> {
        let found = MODELS.find(model).map(Model);
        found.ok_or_else(|| Error::argument("the handle is no model's"))
    }

    pub(crate) fn free(model: usize) {
        MODELS.remove(model);
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn inputs(&self) -> usize {
        self.lock().inputs()
    }

    pub(crate) fn outputs(&self) -> usize {
        self.lock().outputs()
    }

    pub(crate) fn driver_pid(&self) -> u32 {
        self.lock().driver_pid()
    }

    /// Where an input lies, and its length. It stays there as long as the model does.
    pub(crate) fn input(&self, index: usize) -> Result<(*mut u8, usize), Error> {
        let mut stream = self.lock();
        let count = stream.inputs();
        if index >= count {
            return Err(Error::argument(format!("input {index} of {count}")));
        }
        let bytes = stream.input(index);
        Ok((bytes.as_mut_ptr(), bytes.len()))
    }

    /// Runs the model; no time is as long as it takes.
    pub(crate) fn run(&self, timeout: Option<Duration>) -> Result<(), Error> {
        let deadline = timeout.map_or(Deadline::never(), Deadline::after);
        let mut stream = self.lock();
        let done = stream.run(deadline).map(drop);
        done.map_err(|error| Error::of(&error, Status::Failed))
    }

    /// Where a copy of an output lies, and its length. It stays there until the output is asked for again.
    pub(crate) fn output(&self, index: usize) -> Result<(*const u8, usize), Error> {
        let mut stream = self.lock();
        let count = stream.outputs();
        if index >= count {
            return Err(Error::argument(format!("output {index} of {count}")));
        }
        let bytes = stream.output(index).map_err(|error| Error::of(&error, Status::Failed))?;
        Ok((bytes.as_ptr(), bytes.len()))
    }
}
