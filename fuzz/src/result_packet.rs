//! A result packet as a client receives it.
//!
//! Looked at: what the HAL promises of results, whatever the packet says; no more records than the
//! packet has datums; storage used again gives the same as fresh storage; what decodes is encoded
//! to a packet that decodes to the same. One after the other, packets say what an independent look
//! finds them to mean, and come back by differences where those were negotiated.

use burst_hal::{ErrorStatus, ExecutionResult, OutputShape, Timing};
use burst_wire::{
    DATUM_BYTES, DecodedResult, Features, PacketKind, ResultDecoder, ResultEncoder, ResultExtras,
    ResultPacket, WireError, check_shapes, decode_result,
};

use crate::frames::packets;
use crate::meant::Meant;
use crate::{Input, Script, Seed, seed};

/// Three bytes: what was negotiated, how many outputs the request had, whether it measured. The
/// others are the packet, or packets one behind the other where that was negotiated.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let features = Features::from_bits(u64::from(input.u8()));
    let (outputs, measured) = (usize::from(input.u8()), input.flag());
    let all = packets(PacketKind::Result, input.rest(), features);
    let is_legal = |bytes: &&&[u8]| one_packet(bytes, features, outputs, measured);
    let alone = all.iter().filter(is_legal).count();
    alone + Burst::new(features, outputs, measured).decode(&all) > 0
}

fn one_packet(bytes: &[u8], features: Features, outputs: usize, measured: bool) -> bool {
    let mut result = used_storage();
    let decoded = decode_result(bytes, features, outputs, measured, &mut result);
    let mut fresh = ExecutionResult::of(ErrorStatus::None);
    assert_eq!(decode_result(bytes, features, outputs, measured, &mut fresh), decoded);
    assert_eq!(result, fresh);
    keeps_promises(&result, outputs, measured);
    let Ok(extras) = decoded else {
        assert_eq!(result, ExecutionResult::of(ErrorStatus::GeneralFailure));
        return false;
    };
    let records: usize = result.output_shapes.iter().map(|shape| 1 + shape.dimensions.len()).sum();
    assert!(records < bytes.len() / DATUM_BYTES, "more records than datums");
    comes_back(&result, extras, features, outputs, measured);
    true
}

/// The results of one burst, in a pipeline of two.
struct Burst {
    features: Features,
    outputs: usize,
    measured: bool,
    meant: Meant,
    decoder: ResultDecoder,
    storages: [DecodedResult; 2],
    /// What decodes, on its way back.
    again: (ResultEncoder, ResultDecoder),
    back: DecodedResult,
}

impl Burst {
    fn new(features: Features, outputs: usize, measured: bool) -> Self {
        Burst {
            features,
            outputs,
            measured,
            meant: Meant::new(PacketKind::Result, features),
            decoder: ResultDecoder::new(features),
            storages: [used_storage().into(), DecodedResult::default()],
            again: (ResultEncoder::new(features, usize::MAX), ResultDecoder::new(features)),
            back: DecodedResult::default(),
        }
    }

    /// How many of the packets decode, one after the other.
    fn decode(&mut self, packets: &[&[u8]]) -> usize {
        packets.iter().filter(|bytes| self.one(bytes)).count()
    }

    fn one(&mut self, bytes: &[u8]) -> bool {
        let Burst { features, outputs, measured, .. } = *self;
        self.storages.reverse();
        let [storage, _] = &mut self.storages;
        let mut alone = ExecutionResult::of(ErrorStatus::GeneralFailure);
        let wanted = self
            .meant
            .take(bytes)
            .and_then(|whole| decode_result(&whole, features, outputs, measured, &mut alone));
        let decoded = self.decoder.decode(bytes, outputs, measured, storage);
        assert_eq!((&decoded, storage.get()), (&wanted, &alone));
        keeps_promises(&alone, outputs, measured);
        decoded.map(|extras| self.comes_back(&alone, extras)).is_ok()
    }

    fn comes_back(&mut self, result: &ExecutionResult, extras: ResultExtras) {
        let (encoder, decoder) = &mut self.again;
        let packet = ResultPacket::new(result, extras, self.features);
        let bytes = encoder.encode(&packet).unwrap();
        assert!(bytes.len() <= packet.bytes().unwrap(), "longer than the whole");
        let decoded = decoder.decode(bytes, self.outputs, self.measured, &mut self.back);
        encoder.sent();
        assert_eq!(self.back.get(), result);
        assert_eq!(decoded, Ok::<_, WireError>(as_sent(extras)));
    }
}

/// A time on the device alone is not sent: the driver's is the one that is always known.
fn as_sent(extras: ResultExtras) -> ResultExtras {
    ResultExtras { on_device_ns: extras.in_driver_ns.and(extras.on_device_ns), ..extras }
}

/// Storage of another result: nothing of it may show.
fn used_storage() -> ExecutionResult {
    let shape = OutputShape { dimensions: [9, 9].as_slice().into(), is_sufficient: true };
    ExecutionResult {
        status: ErrorStatus::None,
        output_shapes: vec![shape; 3],
        timing: Timing { time_on_device_us: 1, time_in_driver_us: 2 },
    }
}

fn keeps_promises(result: &ExecutionResult, outputs: usize, measured: bool) {
    assert_eq!(check_shapes(result, outputs), Ok(()));
    if result.status != ErrorStatus::None || !measured {
        assert_eq!(result.timing, Timing::UNAVAILABLE);
    }
}

fn comes_back(
    result: &ExecutionResult,
    extras: ResultExtras,
    features: Features,
    outputs: usize,
    measured: bool,
) {
    let mut again = Vec::new();
    ResultPacket::new(result, extras, features).encode_into(&mut again).unwrap();
    let mut back = ExecutionResult::of(ErrorStatus::None);
    let decoded = decode_result(&again, features, outputs, measured, &mut back);
    assert_eq!(back, *result);
    assert_eq!(decoded, Ok::<_, WireError>(as_sent(extras)));
}

/// Results of each kind, with and without what can be negotiated.
pub fn seeds() -> Vec<Seed> {
    let shape = |dimensions: &[u32], is_sufficient| OutputShape {
        dimensions: dimensions.into(),
        is_sufficient,
    };
    let shapes = vec![shape(&[1, 10], true), shape(&[], true)];
    let timing = Timing { time_on_device_us: 17, time_in_driver_us: 23 };
    let good = ExecutionResult { status: ErrorStatus::None, output_shapes: shapes, timing };
    let short = ExecutionResult {
        output_shapes: vec![shape(&[1, 10], true), shape(&[5, 6, 7], false)],
        ..ExecutionResult::of(ErrorStatus::OutputInsufficientSize)
    };
    let extras = ResultExtras { in_driver_ns: Some(23_456), ..ResultExtras::default() };
    let missed = ExecutionResult::of(ErrorStatus::MissedDeadlinePersistent);
    let failed = ExecutionResult::of(ErrorStatus::GeneralFailure);
    let mut seeds: Vec<Seed> = [
        ("good", &good, ResultExtras::default(), Features::NONE),
        ("good_in_nanoseconds", &good, extras, Features::ALL),
        ("too_little_room", &short, ResultExtras::default(), Features::NONE),
        ("failed", &failed, ResultExtras::default(), Features::NONE),
        ("missed", &missed, ResultExtras::default(), Features::ALL),
        ("missed_as_failure", &missed, ResultExtras::default(), Features::NONE),
    ]
    .into_iter()
    .map(|(name, result, extras, features)| {
        let mut bytes = Vec::new();
        ResultPacket::new(result, extras, features).encode_into(&mut bytes).unwrap();
        let head = [features.bits() as u8, result.output_shapes.len() as u8, 1];
        seed(name, Script::new().bytes(&head).bytes(&bytes))
    })
    .collect();
    let mut two = Script::new().bytes(&[Features::PIPELINING.bits() as u8, 2, 1]);
    for result in [&good, &failed] {
        let mut bytes = Vec::new();
        let packet = ResultPacket::new(result, ResultExtras::default(), Features::NONE);
        packet.encode_into(&mut bytes).unwrap();
        two = two.bytes(&bytes);
    }
    seeds.push(seed("two_in_a_pipeline", two));
    let later = Timing { time_on_device_us: 18, time_in_driver_us: 24 };
    let later = ExecutionResult { timing: later, ..good.clone() };
    let mut larger = later.clone();
    larger.output_shapes[0].dimensions[1] = 11;
    let other = ExecutionResult { output_shapes: vec![shape(&[1, 10], false); 2], ..short.clone() };
    seeds.extend([
        by_differences("differences", &[&good, &later, &good, &larger]),
        by_differences("differences_of_room", &[&short, &short, &other]),
        by_differences("differences_of_failures", &[&failed, &failed, &good]),
    ]);
    seeds
}

/// The packets of one burst, which come by differences where they can, each with a number.
fn by_differences(name: &str, results: &[&ExecutionResult]) -> Seed {
    let features = Features::PIPELINING.union(Features::DIFFERENCES);
    let mut encoder = ResultEncoder::new(features, usize::MAX);
    let mut script = Script::new().bytes(&[features.bits() as u8, 2, 1]);
    for (result, id) in results.iter().zip(1..) {
        let extras = ResultExtras { id: Some(id), ..ResultExtras::default() };
        let packet = ResultPacket::new(result, extras, features);
        script = script.bytes(encoder.encode(&packet).unwrap());
        encoder.sent();
    }
    seed(name, script)
}
