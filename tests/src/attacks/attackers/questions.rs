//! A client that sets bursts up and takes them down while the service asks it for memories.

use std::path::Path;
use std::time::{Duration, Instant};

use burst_hal::{DataLocation, Dimensions, RequestArgument};
use burst_shm::Memory;
use burst_wire::control::{Answer, Call, ServerMessage};
use burst_wire::{DATUM_BYTES, Features, RequestExtras, RequestPacket};
use fmq::{Consumer, Deadline, Descriptor, Producer, QueueConfig};

use super::super::child::say;
use super::super::connection::{Connection, configure_call};
use super::super::models;
use super::{Outcome, UNDER_WAY};

/// Datums of each queue.
const QUEUE_DATUMS: usize = 64;
/// A memory with room for any request here.
const POOL_BYTES: u64 = 32 << 20;
/// Bursts that are asked for at once.
const BURSTS: usize = 4;
/// Where the service's answers say how an execution ended: the second datum's first word begins here.
const STATUS_AT: usize = 12;
/// Turns a hang into a failure.
const HANG: Duration = Duration::from_secs(30);

/// A burst's ends here, and what the service needs to attach.
struct Queues {
    requests: Producer,
    results: Consumer,
    descriptors: [Descriptor; 2],
}

impl Queues {
    fn new() -> Result<Queues, fmq::QueueError> {
        let config = QueueConfig::new(DATUM_BYTES, QUEUE_DATUMS);
        let (requests, results) = (Producer::create(&config)?, Consumer::create(&config)?);
        let descriptors = [requests.descriptor()?, results.descriptor()?];
        Ok(Queues { requests, results, descriptors })
    }

    fn call(&self, model: u32) -> (Call, Vec<std::os::fd::BorrowedFd<'_>>) {
        configure_call(model, self.descriptors.each_ref(), (Features::NONE, 1))
    }

    /// A request whose arguments lie in one slot, one behind the other.
    fn request(&mut self, inputs: &[u32], output: u32, slot: i32) -> Outcome {
        let mut offset = 0;
        let mut argument = |length: u32| {
            let location = DataLocation { pool_index: 0, offset, length };
            offset += length.next_multiple_of(64);
            RequestArgument { has_no_value: false, location, dimensions: Dimensions::new() }
        };
        let inputs: Vec<_> = inputs.iter().map(|length| argument(*length)).collect();
        let packet = RequestPacket {
            inputs: &inputs,
            outputs: &[argument(output)],
            slots: &[slot],
            measure_timing: false,
            extras: RequestExtras::default(),
        };
        let mut bytes = Vec::new();
        packet.encode_into(&mut bytes)?;
        self.requests.write_blocking(&bytes, Deadline::after(HANG))?;
        Ok(())
    }
}

/// Closes a burst that executes for a minute and asks for more, and has a request under way meanwhile
/// whose memories the service lacks. Says how long that one took.
pub(super) fn while_setting_up(socket: &Path) -> Outcome {
    let mut connection = Connection::open(socket)?;
    let (long, tiny) =
        (connection.prepare(&models::long_execution()?)?, connection.prepare(&models::tiny()?)?);
    let memory = Memory::create("pool", usize::try_from(POOL_BYTES)?)?;
    say(UNDER_WAY);
    loop {
        let mut executing = Queues::new()?;
        let (call, descriptors) = executing.call(long);
        let Ok(Answer::Burst { burst }) = connection.call(call, &descriptors)? else {
            return Err("no burst that executes".into());
        };
        drop(descriptors);
        connection
            .push(burst, 0, &memory, POOL_BYTES)?
            .map_err(|refusal| format!("{refusal:?}"))?;
        let [input, weights] = models::LONG_EXECUTION_INPUTS;
        executing.request(&[input, weights], input, 0)?;

        let mut asking = Queues::new()?;
        let (call, descriptors) = asking.call(tiny);
        let Ok(Answer::Burst { burst: asked }) = connection.call(call, &descriptors)? else {
            return Err("no burst that asks".into());
        };
        drop(descriptors);

        let begun = Instant::now();
        asking.request(&[16], 16, 7)?;
        connection.send(Call::CloseBurst { burst }, &[])?;
        let more: Result<Vec<Queues>, _> = (0..BURSTS).map(|_| Queues::new()).collect();
        let more = more?;
        for queues in &more {
            let (call, descriptors) = queues.call(long);
            connection.send(call, &descriptors)?;
        }
        answer_all(&mut connection, &memory)?;
        let mut answer = vec![0; asking.results.wait(1, Deadline::after(HANG))? * DATUM_BYTES];
        asking.results.read(&mut answer)?;
        let took = begun.elapsed().as_millis();
        match answer.get(STATUS_AT..STATUS_AT + 4) {
            Some([0, 0, 0, 0]) => say(&format!("answered {took}")),
            status => say(&format!("failed {status:?} after {took}")),
        }
        connection.call(Call::CloseBurst { burst: asked }, &[])?.ok();
    }
}

/// Answers the question for memories, and hears the replies to everything that was sent before: the burst
/// is closed, and so is each that was started.
fn answer_all(connection: &mut Connection, memory: &Memory) -> Outcome {
    let (mut is_asked, mut replies) = (false, 0);
    while !is_asked || replies < 1 + BURSTS {
        match connection.receive()? {
            ServerMessage::GetMemories { id, slots, .. } => {
                connection.give_memories(id, slots.0.len(), (memory, POOL_BYTES))?;
                is_asked = true;
            }
            ServerMessage::Reply(reply) => {
                replies += 1;
                if let Ok(Answer::Burst { burst }) = reply.outcome {
                    connection.send(Call::CloseBurst { burst }, &[])?;
                }
            }
            ServerMessage::BurstEnded { detail, .. } => {
                return Err(format!("a burst was given up: {}", detail.as_str()).into());
            }
            ServerMessage::Executed { execution, .. } => {
                return Err(format!("nobody launched execution {execution}").into());
            }
            ServerMessage::Stopping => return Err("the service stops".into()),
            ServerMessage::Unknown { .. } => {} // of a later version
        }
    }
    Ok(())
}
