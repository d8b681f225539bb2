//! A whole burst over our queues: a request of 19 typed datums (456 bytes) encoded, written, copied out
//! once, decoded and checked; an answer of 8 datums (192 bytes), likewise. No driver: what is left is
//! what reaching a driver costs. Each request names another place for its input, and each answer other times, so
//! two ends of ours, which say only where a packet differs from the one before, send 2 datums each way.
//!
//! That nothing was lost on the way is looked at value by value, once the next packet is under way:
//! neither a service nor its client has such work to do.

use burst_client::PAGE_DATUMS;
use burst_hal::{DataLocation, ErrorStatus, ExecutionResult, OutputShape, RequestArgument, Timing};
use burst_wire::{
    DATUM_BYTES, DecodedResult, Features, RequestDecoder, RequestEncoder, RequestExtras,
    RequestPacket, ResultDecoder, ResultEncoder, ResultExtras, ResultPacket,
};
use fmq::{Consumer, QueueConfig, QueueError};

use super::Peer;
use super::ours::{attach_pair, create_pair};
use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::names;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};

/// Datums of a request: its size, two inputs of four dimensions, two outputs of two, a pool,
/// whether to measure.
const REQUEST_DATUMS: usize = 19;
/// Datums of an answer: its size, two shapes of two dimensions, the timing.
const ANSWER_DATUMS: usize = 8;
/// Where the number of the request travels: the length of an operand is arbitrary to the codec.
const NUMBER_BITS: u64 = 0x7fff_ffff;
/// The pools of a request.
const SLOTS: [i32; 1] = [3];

/// Two queues of ours with the datums of the HAL in them.
#[derive(Debug)]
pub struct Burst {
    name: &'static str,
    features: Features,
}

impl Burst {
    /// As two ends of ours have it.
    pub const OURS: Burst = Burst { name: names::BURST, features: Features::DIFFERENCES };
    /// As an end has it that knows HAL 1.2 and nothing else.
    pub const OF_HAL_1_2: Burst = Burst { name: names::BURST_OF_HAL_1_2, features: Features::NONE };
}

impl Peer for Burst {
    fn name(&self) -> &'static str {
        self.name
    }

    fn supports(&self, case: &Case) -> bool {
        case.in_flight == 1 && !case.spins_in_vain()
    }

    fn fixed_request_bytes(&self) -> Option<usize> {
        Some(REQUEST_DATUMS * DATUM_BYTES)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let deadline = session.deadline();
        let config = QueueConfig::new(DATUM_BYTES, PAGE_DATUMS);
        let (mut requests, mut answers) = create_pair(&session.link, session.case(), &config)?;
        let (mut inputs, outputs) = arguments();
        let shapes = shapes();
        let mut encoder = RequestEncoder::new(self.features);
        let mut decoder = ResultDecoder::new(self.features);
        let mut packet = Vec::with_capacity(ANSWER_DATUMS * DATUM_BYTES);
        let mut result = DecodedResult::default();
        let mut answered = None;
        let measured = session.run_trips(|sequence| {
            inputs[0].location.offset = number(sequence);
            let extras = RequestExtras::default();
            let request = RequestPacket {
                inputs: &inputs,
                outputs: &outputs,
                slots: &SLOTS,
                measure_timing: true,
                extras,
            };
            requests.write_quiet(encoder.encode(&request)?)?;
            encoder.sent();
            requests.wake()?;
            check(answered, result.get(), &shapes)?;
            let datums = answers.wait(1, deadline)?;
            packet.resize(datums * DATUM_BYTES, 0);
            answers.read_quiet(&mut packet)?;
            decoder.decode(&packet, outputs.len(), true, &mut result)?;
            answered = Some(sequence);
            Ok(())
        })?;
        check(answered, result.get(), &shapes)?;
        Ok(measured)
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let deadline = session.deadline();
        let case = *session.case();
        let (mut requests, mut answers) = attach_pair(&mut session.link, &case)?;
        let mut packet = Vec::with_capacity(REQUEST_DATUMS * DATUM_BYTES);
        let mut decoder = RequestDecoder::new(self.features);
        let mut encoder = ResultEncoder::new(self.features, ANSWER_DATUMS);
        let (mut inputs, outputs) = arguments();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        result.output_shapes = shapes();
        let mut sequence = 0;
        session.run(|work| {
            receive(&mut requests, &mut packet, deadline)?;
            decoder.decode(&packet)?;
            let request = decoder.request();
            let number = request.inputs.first().map_or(0, |input| input.location.offset);
            result.timing =
                Timing { time_on_device_us: number.into(), time_in_driver_us: (!number).into() };
            work.serve();
            let answer = ResultPacket::new(&result, ResultExtras::default(), self.features);
            answers.write_quiet(encoder.encode(&answer)?)?;
            encoder.sent();
            answers.wake()?;
            requests.release_quiet();
            inputs[0].location.offset = self::number(sequence);
            let is_right = request.inputs == inputs
                && request.outputs == outputs
                && decoder.slots() == SLOTS
                && decoder.measure_timing()
                && decoder.extras() == RequestExtras::default();
            if !is_right {
                let (got, expected) = (number.into(), sequence);
                return Err(HarnessError::WrongAnswer { sequence, word: 0, got, expected });
            }
            sequence += 1;
            Ok(())
        })
    }
}

/// Waits for a packet and copies it out, once, before any of it is looked at.
#[inline]
fn receive(
    queue: &mut Consumer,
    packet: &mut Vec<u8>,
    deadline: fmq::Deadline,
) -> Result<(), QueueError> {
    let datums = queue.wait(1, deadline)?;
    packet.resize(datums * DATUM_BYTES, 0);
    queue.read_deferred(packet)
}

fn argument(dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index: 0, offset: 0, length: dimensions.iter().product() },
        dimensions: dimensions.iter().copied().collect(),
    }
}

fn shape(dimensions: &[u32]) -> OutputShape {
    OutputShape { dimensions: dimensions.iter().copied().collect(), is_sufficient: true }
}

fn arguments() -> ([RequestArgument; 2], [RequestArgument; 2]) {
    (
        [argument(&[1, 224, 224, 3]), argument(&[1, 112, 112, 4])],
        [argument(&[1, 1001]), argument(&[1, 10])],
    )
}

fn shapes() -> Vec<OutputShape> {
    vec![shape(&[1, 1001]), shape(&[1, 10])]
}

fn number(sequence: u64) -> u32 {
    u32::try_from(sequence & NUMBER_BITS).unwrap_or(0)
}

/// Whether this is the answer to the request that was answered last; before the first there is none.
fn check(
    answered: Option<u64>,
    result: &ExecutionResult,
    shapes: &[OutputShape],
) -> Result<(), HarnessError> {
    let Some(sequence) = answered else { return Ok(()) };
    let number = number(sequence);
    let Timing { time_on_device_us, time_in_driver_us } = result.timing;
    let pairs = [
        (time_on_device_us, u64::from(number)),
        (time_in_driver_us, u64::from(!number)),
        (u64::from(result.output_shapes == shapes), 1),
        (u64::from(result.status == ErrorStatus::None), 1),
    ];
    match pairs.iter().position(|(got, expected)| got != expected) {
        None => Ok(()),
        Some(word) => {
            let (got, expected) = pairs[word];
            Err(HarnessError::WrongAnswer { sequence, word, got, expected })
        }
    }
}

#[cfg(test)]
mod tests {
    use burst_wire::WireError;

    use super::*;

    /// Of two requests or answers, the bytes of the second: the first has nothing before it.
    fn second(mut encode: impl FnMut(u32) -> Result<usize, WireError>) -> Result<usize, WireError> {
        encode(1)?;
        encode(2)
    }

    #[test]
    fn two_ends_of_ours_send_what_differs() -> Result<(), WireError> {
        for (peer, datums) in
            [(Burst::OURS, [2, 2]), (Burst::OF_HAL_1_2, [REQUEST_DATUMS, ANSWER_DATUMS])]
        {
            let (mut inputs, outputs) = arguments();
            let mut encoder = RequestEncoder::new(peer.features);
            let request = second(|offset| {
                inputs[0].location.offset = offset;
                let (measure_timing, extras) = (true, RequestExtras::default());
                let (inputs, outputs, slots) = (&inputs, &outputs, &SLOTS);
                let packet = RequestPacket { inputs, outputs, slots, measure_timing, extras };
                let bytes = encoder.encode(&packet)?.len();
                encoder.sent();
                Ok(bytes)
            })?;
            let mut encoder = ResultEncoder::new(peer.features, ANSWER_DATUMS);
            let mut result = ExecutionResult::of(ErrorStatus::None);
            result.output_shapes = shapes();
            let answer = second(|us| {
                result.timing.time_on_device_us = us.into();
                let packet = ResultPacket::new(&result, ResultExtras::default(), peer.features);
                let bytes = encoder.encode(&packet)?.len();
                encoder.sent();
                Ok(bytes)
            })?;
            assert_eq!([request, answer], datums.map(|datums| datums * DATUM_BYTES), "{peer:?}");
        }
        Ok(())
    }

    #[test]
    fn the_packets_have_the_size_that_is_claimed() -> Result<(), WireError> {
        let (inputs, outputs) = arguments();
        let request = RequestPacket {
            inputs: &inputs,
            outputs: &outputs,
            slots: &SLOTS,
            measure_timing: true,
            extras: RequestExtras::default(),
        };
        assert_eq!(request.datums()? as usize, REQUEST_DATUMS);
        let mut result = ExecutionResult::of(ErrorStatus::None);
        result.output_shapes = shapes();
        let answer = ResultPacket::new(&result, ResultExtras::default(), Features::NONE);
        assert_eq!(answer.datums()? as usize, ANSWER_DATUMS);
        Ok(())
    }
}
