//! What each kind of worker does, again and again.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_client::{
    BurstOptions, Client, ClientError, Deadline, ReconnectingDevice, Stream, StreamOptions,
};
use burst_hal::{ErrorStatus, ExecutionPreference, Priority, Route};
use fmq::Wait;

use super::worker::{Role, Worker, check};
use crate::random::Random;

/// Models at once of one who has many.
const MODELS: usize = 12;
/// Things that one who takes all that it may have takes at most, so that a service without limits ends it too.
const HOARD_MAX: usize = 2000;
/// How long is waited before a busy service is asked again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a service may take to come back before it is asked whether to go on.
const COMES_BACK: Duration = Duration::from_secs(5);

/// Does what a worker of this kind does until it is told to stop.
pub(super) fn play(role: Role, worker: &mut Worker) -> Result<()> {
    match role {
        Role::Infer => infer(worker),
        Role::Prepare => prepare(worker),
        Role::Hoard => hoard(worker),
        Role::Many => many(worker),
        Role::Reconnect => reconnect(worker),
        Role::Mixed => mixed(worker),
    }
}

/// The service is not there just now, or was lost; who watches sees where that goes on for too long.
fn is_absence(error: &ClientError) -> bool {
    let not_there = matches!(
        error,
        ClientError::NobodyListens { .. } | ClientError::Connect { .. } | ClientError::Timeout
    );
    not_there || error.is_loss()
}

/// A way to the device, and to wait, by chance.
fn options(random: &mut Random) -> StreamOptions {
    let mut options = StreamOptions::default();
    options.route =
        [Route::Burst, Route::Burst, Route::Synchronous, Route::Asynchronous][random.below(4)];
    options.wait = [Wait::default(), Wait::Sleep, Wait::Spin][random.below(3)];
    options.service_outputs = random.below(2) == 0;
    options.prepare.priority = [Priority::Low, Priority::Medium, Priority::High][random.below(3)];
    options.prepare.preference =
        [ExecutionPreference::FastSingleAnswer, ExecutionPreference::SustainedSpeed]
            [random.below(2)];
    options
}

/// What a service says that is short of something just now.
fn is_shortage(error: &ClientError) -> bool {
    match error {
        ClientError::TooManyClients { .. } => true,
        ClientError::Refused { status, .. } | ClientError::Execution { status } => matches!(
            status,
            ErrorStatus::ResourceExhaustedTransient | ErrorStatus::ResourceExhaustedPersistent
        ),
        _ => false,
    }
}

/// Sets a stream up, as often as the service is short of something.
fn set_up(worker: &mut Worker) -> Result<Option<(Client, Stream)>> {
    while worker.goes_on() {
        let options = options(&mut worker.random);
        let client = match Client::connect(&worker.socket) {
            Ok(client) => client,
            Err(error) if is_shortage(&error) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match stream_on(worker, &client, &options) {
            Ok(stream) => return Ok(Some((client, stream))),
            Err(error) if is_passing(&error) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error).context("the model cannot be set up"),
        }
    }
    Ok(None)
}

fn stream_on(worker: &mut Worker, client: &Client, options: &StreamOptions) -> Result<Stream> {
    let device = worker.device(client)?;
    Ok(device.stream(&worker.imported.model, options)?)
}

/// As [`is_shortage`], of an error whose cause it may be.
fn is_passing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(is_shortage)
}

/// One execution, compared. A service that is short of something just now is no mistake.
fn execute(worker: &mut Worker, stream: &mut Stream) -> Result<()> {
    let (input, right) = worker.case();
    stream.input(0).copy_from_slice(&input);
    match stream.run(Worker::long()).map(drop) {
        Ok(()) => check(stream.output(0)?, &right)?,
        Err(error) if is_shortage(&error) => std::thread::sleep(PAUSE),
        Err(error) => return Err(error.into()),
    }
    worker.step()
}

fn infer(worker: &mut Worker) -> Result<()> {
    let Some((_client, mut stream)) = set_up(worker)? else { return Ok(()) };
    while worker.goes_on() {
        execute(worker, &mut stream)?;
    }
    Ok(())
}

fn prepare(worker: &mut Worker) -> Result<()> {
    while worker.goes_on() {
        let Some((_client, mut stream)) = set_up(worker)? else { return Ok(()) };
        execute(worker, &mut stream)?;
    }
    Ok(())
}

fn many(worker: &mut Worker) -> Result<()> {
    let client = Client::connect(&worker.socket)?;
    while worker.goes_on() {
        let mut streams = Vec::new();
        for _ in 0..MODELS {
            let options = options(&mut worker.random);
            match stream_on(worker, &client, &options) {
                Ok(stream) => streams.push(stream),
                Err(error) if is_passing(&error) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error).context("the model cannot be set up"),
            }
            worker.step()?;
        }
        if streams.is_empty() {
            continue;
        }
        for _ in 0..MODELS * 4 {
            let at = worker.random.below(streams.len());
            execute(worker, &mut streams[at])?;
        }
    }
    Ok(())
}

/// Takes bursts, models and connections until it is refused, gives some back, and begins again.
fn hoard(worker: &mut Worker) -> Result<()> {
    let mut clients = Vec::new();
    while worker.goes_on() {
        let client = match Client::connect(&worker.socket) {
            Ok(client) => client,
            Err(error) if is_shortage(&error) => {
                clients.clear();
                worker.step()?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut held = Vec::new();
        let refused = loop {
            if held.len() == HOARD_MAX || !worker.goes_on() {
                break None;
            }
            match take(worker, &client) {
                Ok(taken) => held.push(taken),
                Err(error) => break Some(error),
            }
            worker.step()?;
        };
        if let Some(error) = refused
            && !is_passing(&error)
        {
            return Err(error).context("refused for another reason than a limit");
        }
        let kept = worker.random.below(held.len() + 1);
        held.truncate(kept);
        clients.push((client, held));
        if clients.len() > 3 {
            clients.remove(worker.random.below(clients.len()));
        }
        worker.step()?;
    }
    Ok(())
}

/// A model with a burst.
fn take(worker: &mut Worker, client: &Client) -> Result<burst_client::Burst> {
    let device = worker.device(client)?;
    let prepared = device.prepare(&worker.imported.model, &burst_hal::PrepareOptions::default())?;
    let depth = [1, 4, 32][worker.random.below(3)];
    Ok(prepared.configure_burst(&BurstOptions::default().with_depth(depth))?)
}

/// Goes on with the next service when one dies: what was under way is lost, and nothing else.
fn reconnect(worker: &mut Worker) -> Result<()> {
    let first = loop {
        match ReconnectingDevice::connect(&worker.socket, "cpu") {
            Ok(device) => break device,
            Err(_) if !worker.goes_on() => return Ok(()),
            Err(error) if is_absence(&error) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    };
    let mut options = options(&mut worker.random);
    options.route = Route::Burst;
    let mut stream = loop {
        match first.stream(&worker.imported.model, &options) {
            Ok(stream) => break stream,
            Err(_) if !worker.goes_on() => return Ok(()),
            Err(error) if is_absence(&error) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error).context("the model cannot be set up"),
        }
    };
    while worker.goes_on() {
        let (input, right) = worker.case();
        match stream.reconnect(Deadline::after(COMES_BACK)) {
            Ok(()) => {}
            Err(_) if !worker.goes_on() => break,
            Err(error) if is_absence(&error) => continue, // it died again meanwhile
            Err(error) => return Err(error).context("no service came back"),
        }
        stream.stream().input(0).copy_from_slice(&input);
        match stream.run(Worker::long()).map(drop) {
            Ok(()) => check(stream.stream().output(0)?, &right)?,
            Err(error) if is_absence(&error) => continue,
            Err(error) => return Err(error.into()),
        }
        worker.step()?;
    }
    Ok(())
}

/// Deadlines that are missed and kept, and connections that end while somebody waits for an answer; then one
/// execution that has to be right.
fn mixed(worker: &mut Worker) -> Result<()> {
    while worker.goes_on() {
        let Some((_client, mut stream)) = set_up(worker)? else { return Ok(()) };
        for _ in 0..20 {
            let (input, right) = worker.case();
            stream.input(0).copy_from_slice(&input);
            let time = Duration::from_micros(worker.random.below(2000) as u64);
            match stream.run(Deadline::after(time)).map(drop) {
                Ok(()) => check(stream.output(0)?, &right)?,
                // The stream is of no more use once an answer may still come to memory that is written.
                Err(ClientError::Timeout) => break,
                Err(error) if is_shortage(&error) => {}
                Err(error) => return Err(error.into()),
            }
            worker.step()?;
        }
        drop(stream);
        hang_up_in_the_middle(worker)?;
        let Some((_client, mut stream)) = set_up(worker)? else { return Ok(()) };
        execute(worker, &mut stream)?;
    }
    Ok(())
}

/// Ends a connection while one of its executions is under way, or just before or after.
fn hang_up_in_the_middle(worker: &mut Worker) -> Result<()> {
    let Some((client, mut stream)) = set_up(worker)? else { return Ok(()) };
    let device = match worker.device(&client) {
        Ok(device) => device,
        Err(error) if is_passing(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let pause = Duration::from_micros(worker.random.below(500) as u64);
    let ended = std::thread::scope(|scope| {
        let waits = scope.spawn(move || stream.run(Worker::long()).map(drop));
        std::thread::sleep(pause);
        device.hang_up();
        waits.join()
    });
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.is_loss() => Ok(()),
        // A service that saw the end first gives the execution up, and may still say so in the burst's queue.
        Ok(Err(ClientError::Execution { status: ErrorStatus::GeneralFailure })) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => bail!("a thread panicked that waited for an answer"),
    }
}
