//! What all kinds of workers do with a service: connect, set up, execute, and tell what it is short of.

use anyhow::{Context, Result};
use burst_client::{Client, ClientError, Stream, StreamOptions};
use burst_hal::{ErrorStatus, ExecutionPreference, Priority, Route};
use burst_server::Limit;
use fmq::Wait;

use super::worker::{Pair, Worker, check};
use crate::random::Random;

/// A way to the device, and to wait, by chance.
pub(super) fn options(random: &mut Random) -> StreamOptions {
    let mut options = StreamOptions::default();
    options.route =
        [Route::Burst, Route::Burst, Route::Synchronous, Route::Asynchronous, Route::Fenced]
            [random.below(5)];
    options.wait = [Wait::default(), Wait::Sleep, Wait::Spin][random.below(3)];
    options.service_outputs = random.below(2) == 0;
    options.prepare.priority = [Priority::Low, Priority::Medium, Priority::High][random.below(3)];
    options.prepare.preference =
        [ExecutionPreference::FastSingleAnswer, ExecutionPreference::SustainedSpeed]
            [random.below(2)];
    options
}

/// What a service says that is short of something.
pub(super) fn is_short(status: ErrorStatus) -> bool {
    matches!(
        status,
        ErrorStatus::ResourceExhaustedTransient | ErrorStatus::ResourceExhaustedPersistent
    )
}

/// What a service says that is short of something just now, or cannot take connections for that.
pub(super) fn is_shortage(error: &ClientError) -> bool {
    match error {
        ClientError::TooManyClients { .. } | ClientError::NoGreeting => true,
        ClientError::Refused { status, .. } | ClientError::Execution { status } => {
            is_short(*status)
        }
        _ => false,
    }
}

/// The name of the limit that a refusal speaks of.
pub(super) fn limit_of(error: &ClientError) -> Option<&'static str> {
    let (ClientError::Refused { detail, .. } | ClientError::TooManyClients { detail }) = error
    else {
        return None;
    };
    if detail.ends_with("no file descriptor left") {
        return Some("process_descriptors");
    }
    let reached = |limit: &&Limit| {
        detail.ends_with(&format!(" on {limit} is reached"))
            || detail.contains(&format!(" {limit} are over the limit of "))
    };
    Limit::ALL.iter().find(reached).map(|limit| limit.name())
}

/// Connects, as often as the service has no place.
pub(super) fn connect(worker: &mut Worker) -> Result<Option<Client>> {
    while worker.goes_on() {
        match Client::connect(&worker.socket) {
            Ok(client) => return Ok(Some(client)),
            Err(error) if is_shortage(&error) => worker.pause(&error)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// A device by chance with a stream on it, set up as often as the service is short of something.
pub(super) fn set_up(worker: &mut Worker) -> Result<Option<(Client, Pair, Stream)>> {
    while let Some(client) = connect(worker)? {
        let set_up = worker.pair(&client).and_then(|pair| {
            let options = options(&mut worker.random);
            Ok((stream_on(worker, &client, &pair, &options)?, pair))
        });
        match set_up {
            Ok((stream, pair)) => return Ok(Some((client, pair, stream))),
            Err(error) if is_passing(&error) => worker.pause(&error)?,
            Err(error) => return Err(error).context("the model cannot be set up"),
        }
    }
    Ok(None)
}

pub(super) fn stream_on(
    worker: &Worker,
    client: &Client,
    pair: &Pair,
    options: &StreamOptions,
) -> Result<Stream> {
    Ok(client.device(&pair.device)?.stream(&worker.subjects[pair.subject].model, options)?)
}

/// As [`is_shortage`], of an error whose cause it may be.
pub(super) fn is_passing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(is_shortage)
}

/// One execution, compared. A service that is short of something just now is no mistake.
pub(super) fn execute(worker: &mut Worker, pair: &Pair, stream: &mut Stream) -> Result<()> {
    let (input, right) = worker.case(pair);
    stream.input(0).copy_from_slice(&input);
    match stream.run(Worker::long()).map(drop) {
        Ok(()) => {
            check(stream.output(0)?, &right)?;
            worker.answered(pair)
        }
        Err(error) if is_shortage(&error) => worker.pause(&error),
        Err(error) => Err(error.into()),
    }
}

/// Whether a deadline was missed.
pub(super) fn is_missed(status: ErrorStatus) -> bool {
    matches!(status, ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_that_of_the_limit_that_it_names() {
        let status = ErrorStatus::ResourceExhaustedTransient;
        let refused = |detail: &str| ClientError::Refused { status, detail: detail.into() };
        let of = |detail: &str| limit_of(&refused(detail));
        assert_eq!(of("the limit of 8 on bursts is reached"), Some("bursts"));
        let memory = "the limit of 9 on bytes of memory for one user is reached";
        assert_eq!(of(memory), Some("memory_bytes_per_user"));
        let datums = "70000 datums of a queue are over the limit of 65536";
        assert_eq!(of(datums), Some("queue_datums"));
        assert_eq!(of("the service has no file descriptor left"), Some("process_descriptors"));
        assert_eq!(of("not today"), None);
        let full = ClientError::TooManyClients {
            detail: "the limit of 4 on clients of one user is reached".into(),
        };
        assert_eq!(limit_of(&full), Some("clients_per_user"));
    }
}
