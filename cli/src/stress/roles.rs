//! What the kinds of workers do that compute, prepare and come back, again and again.

use std::time::Duration;

use anyhow::{Context, Result};
use burst_client::{Client, ClientError, Deadline, ReconnectingDevice, ReconnectingStream, Stream};
use burst_hal::TimePoint;

use super::using::{
    connect, execute, is_missed, is_passing, is_shortage, options, set_up, stream_on,
};
use super::worker::{Pair, Role, Worker, check};
use super::{hoard, mixed};

/// Models at once of one who has many.
const MODELS: usize = 48;
/// How long a service may take to come back before it is asked whether to go on.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Executions of one who comes back before it takes another device.
const ON_ONE_DEVICE: usize = 50;
/// The most microseconds that a preparation with a deadline has.
const PREPARATION_US: usize = 3000;

/// Does what a worker of this kind does until it is told to stop.
pub(super) fn play(role: Role, worker: &mut Worker) -> Result<()> {
    match role {
        Role::Infer => infer(worker),
        Role::Prepare => prepare(worker),
        Role::Hoard => hoard::everything(worker),
        Role::Exhaust => hoard::descriptors(worker),
        Role::Many => many(worker),
        Role::Reconnect => reconnect(worker),
        Role::Mixed => mixed::play(worker),
    }
}

/// The service is not there just now, or was lost; who watches sees where that goes on for too long.
fn is_absence(error: &ClientError) -> bool {
    let not_there = matches!(
        error,
        ClientError::NobodyListens { .. }
            | ClientError::Connect { .. }
            | ClientError::NoGreeting
            | ClientError::NotThisProtocol
            | ClientError::Timeout
    );
    not_there || error.is_loss()
}

/// Has a stream on every device, all at once, and uses one after the other.
fn infer(worker: &mut Worker) -> Result<()> {
    let Some(client) = connect(worker)? else { return Ok(()) };
    let mut streams: Vec<(Pair, Stream)> = Vec::new();
    while worker.goes_on() {
        let more = more_streams(worker, &client, &mut streams);
        match more {
            Ok(()) => break,
            Err(error) if is_passing(&error) => worker.pause(&error)?,
            Err(error) => return Err(error).context("the model cannot be set up"),
        }
    }
    while worker.goes_on() {
        let at = worker.random.below(streams.len());
        let (pair, stream) = &mut streams[at];
        execute(worker, pair, stream)?;
    }
    Ok(())
}

/// A stream for each device that has none yet.
fn more_streams(
    worker: &mut Worker,
    client: &Client,
    streams: &mut Vec<(Pair, Stream)>,
) -> Result<()> {
    let devices = worker.devices(client)?;
    for pairs in &devices[streams.len()..] {
        let (pair, options) = (worker.one_of(pairs), options(&mut worker.random));
        let stream = stream_on(worker, client, &pair, &options)?;
        streams.push((pair, stream));
    }
    Ok(())
}

/// Prepares and drops: what is prepared is used once, or not at all, and some has a deadline.
fn prepare(worker: &mut Worker) -> Result<()> {
    while worker.goes_on() {
        let Some((client, pair, mut stream)) = set_up(worker)? else { return Ok(()) };
        worker.happened("prepared");
        if worker.random.below(4) > 0 {
            execute(worker, &pair, &mut stream)?;
        }
        drop(stream);
        prepare_in_time(worker, &client, &pair)?;
        worker.step()?;
    }
    Ok(())
}

/// A preparation that has to be over soon, and either is or says that it was not.
fn prepare_in_time(worker: &mut Worker, client: &Client, pair: &Pair) -> Result<()> {
    let time = Duration::from_micros(worker.random.below(PREPARATION_US) as u64);
    let mut options = options(&mut worker.random).prepare;
    options.deadline = Some(TimePoint::after(time));
    let device = client.device(&pair.device)?;
    match device.prepare(&worker.subjects[pair.subject].model, &options).map(drop) {
        Ok(()) => worker.happened("prepared_in_time"),
        Err(error) if is_missed(error.status()) => worker.happened("prepared_too_late"),
        Err(error) if is_shortage(&error) => worker.pause(&error)?,
        Err(error) => return Err(error).context("a preparation with a deadline"),
    }
    Ok(())
}

fn many(worker: &mut Worker) -> Result<()> {
    let Some(client) = connect(worker)? else { return Ok(()) };
    while worker.goes_on() {
        let mut streams = Vec::new();
        while streams.len() < MODELS && worker.goes_on() {
            let set_up = worker.pair(&client).and_then(|pair| {
                let options = options(&mut worker.random);
                Ok((stream_on(worker, &client, &pair, &options)?, pair))
            });
            match set_up {
                Ok(one) => streams.push(one),
                Err(error) if is_passing(&error) => worker.pause(&error)?,
                Err(error) => return Err(error).context("the model cannot be set up"),
            }
            worker.step()?;
        }
        if streams.len() == MODELS {
            worker.happened("times_with_48_models");
        }
        for _ in 0..streams.len() * 2 {
            if !worker.goes_on() {
                break;
            }
            let at = worker.random.below(streams.len());
            let (stream, pair) = &mut streams[at];
            execute(worker, pair, stream)?;
        }
    }
    Ok(())
}

/// Goes on with the next service when one dies: what was under way is lost, and nothing else.
fn reconnect(worker: &mut Worker) -> Result<()> {
    while worker.goes_on() {
        let Some(pair) = pair_of_one_that_dies(worker)? else { break };
        let Some(stream) = stream_that_comes_back(worker, &pair)? else { break };
        use_again_and_again(worker, &pair, stream)?;
    }
    Ok(())
}

/// A device by chance, of a service that may die while it is asked.
fn pair_of_one_that_dies(worker: &mut Worker) -> Result<Option<Pair>> {
    while worker.goes_on() {
        let client = Client::connect(&worker.socket).map_err(anyhow::Error::from);
        let error = match client.and_then(|client| worker.pair(&client)) {
            Ok(pair) => return Ok(Some(pair)),
            Err(error) => error,
        };
        if !error.downcast_ref::<ClientError>().is_some_and(is_absence) {
            return Err(error);
        }
        worker.pause(&error)?;
    }
    Ok(None)
}

fn stream_that_comes_back(worker: &mut Worker, pair: &Pair) -> Result<Option<ReconnectingStream>> {
    let options = options(&mut worker.random);
    while worker.goes_on() {
        let stream = ReconnectingDevice::connect(&worker.socket, &pair.device)
            .and_then(|device| device.stream(&worker.subjects[pair.subject].model, &options));
        match stream {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if is_absence(&error) => worker.pause(&error)?,
            Err(error) => return Err(error).context("the model cannot be set up"),
        }
    }
    Ok(None)
}

fn use_again_and_again(
    worker: &mut Worker,
    pair: &Pair,
    mut stream: ReconnectingStream,
) -> Result<()> {
    for _ in 0..ON_ONE_DEVICE {
        let (input, right) = worker.case(pair);
        let before = stream.outages().reconnects;
        match stream.reconnect(Deadline::after(COMES_BACK)) {
            Ok(()) => {}
            Err(_) if !worker.goes_on() => break,
            Err(error) if is_absence(&error) => {
                worker.pause(&error)?; // it died again meanwhile
                continue;
            }
            Err(error) => return Err(error).context("no service came back"),
        }
        if stream.outages().reconnects > before {
            worker.happened("came_back");
        }
        stream.stream().input(0).copy_from_slice(&input);
        match stream.run(Worker::long()).map(drop) {
            Ok(()) => check(stream.stream().output(0)?, &right)?,
            Err(error) if is_absence(&error) => {
                worker.happened("lost");
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        worker.answered(pair)?;
        if !worker.goes_on() {
            break;
        }
    }
    Ok(())
}
