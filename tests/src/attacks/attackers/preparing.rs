//! Models that cost more to prepare than they look.

use std::path::Path;
use std::time::Duration;

use burst_client::{Client, ClientError, RemoteDevice};
use burst_hal::{Model, PrepareOptions};

use super::super::child::say;
use super::{Outcome, UNDER_WAY};

/// As many calls that take long as a client may have under way.
const CALLS: usize = 4;
/// Between two attempts of one thread.
const PAUSE: Duration = Duration::from_millis(20);

/// Prepares a model again and again, and keeps what comes of it.
pub(super) fn prepare_and_keep(socket: &Path, model: &Model) -> Outcome {
    again_and_again(socket, |device, kept| {
        kept.push(device.prepare(model, &PrepareOptions::default())?);
        Ok(())
    })
}

/// Prepares a model again and again.
pub(super) fn prepare(socket: &Path, model: &Model) -> Outcome {
    again_and_again(socket, |device, _: &mut Vec<()>| {
        device.prepare(model, &PrepareOptions::default()).map(drop)
    })
}

/// Asks about a model again and again.
pub(super) fn survey(socket: &Path, model: &Model) -> Outcome {
    again_and_again(socket, |device, _: &mut Vec<()>| device.query_operations(model).map(drop))
}

fn again_and_again<K>(
    socket: &Path,
    call: impl Fn(&RemoteDevice, &mut Vec<K>) -> Result<(), ClientError> + Sync,
) -> Outcome {
    let device = Client::connect(socket)?.device("cpu")?;
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| {
                let mut kept = Vec::new();
                while device.is_alive() {
                    match call(&device, &mut kept) {
                        Ok(()) => say("done"),
                        Err(error) => say(&format!("refused {error}")),
                    }
                    std::thread::sleep(PAUSE);
                }
            });
        }
        say(UNDER_WAY);
    });
    Ok(())
}
