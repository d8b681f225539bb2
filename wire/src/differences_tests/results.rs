//! Conversations of results: whatever comes after whatever, it is decoded as if it had come alone.

use burst_hal::{Dimensions, ErrorStatus, ExecutionResult, OutputShape, Timing};

use super::{Queue, RESULT, Random};
use crate::{
    DecodedResult, Features, ResultDecoder, ResultEncoder, ResultExtras, ResultPacket, WireError,
    decode_result,
};

const STEPS: usize = 4000;
/// Longer than any result here.
const LONGEST: usize = 100;
/// With which a conversation is held: each with a choice of extras and statuses of its own.
const FEATURES: [Features; 4] = [
    Features::NONE,
    Features::TIMING_NANOS,
    Features::PIPELINING.union(Features::STATUS_1_3),
    Features::ALL.without(Features::DIFFERENCES),
];

/// What a result says, apart from what the features leave of it.
#[derive(Clone)]
struct Said {
    result: ExecutionResult,
    extras: ResultExtras,
}

fn dimensions(random: &mut Random) -> Dimensions {
    (0..random.below(10)).map(|_| random.word()).collect()
}

fn timing(random: &mut Random) -> Timing {
    Timing { time_on_device_us: random.next(), time_in_driver_us: random.next() }
}

fn extras(random: &mut Random) -> ResultExtras {
    let mut number = || (!random.one_in(4)).then(|| random.next());
    ResultExtras { in_driver_ns: number(), on_device_ns: number(), id: number() }
}

/// Of any status, with shapes that may contradict it.
fn any_result(random: &mut Random) -> Said {
    let failed = ErrorStatus::from_code(i32::try_from(random.below(9)).unwrap()).unwrap();
    let status = [ErrorStatus::None, ErrorStatus::OutputInsufficientSize, failed][random.below(3)];
    let spoiled = random.one_in(8);
    let mut shape = || OutputShape {
        is_sufficient: (status == ErrorStatus::None) != (spoiled || random.one_in(20)),
        dimensions: dimensions(random),
    };
    let output_shapes = (0..4).map(|_| shape()).take(3).collect();
    let result = ExecutionResult { status, output_shapes, timing: timing(random) };
    let mut said = Said { result, extras: extras(random) };
    said.result.output_shapes.truncate(random.below(4));
    said
}

/// Changes a result to another one, most often in one place.
fn change(random: &mut Random, said: &mut Said) {
    let shapes = &mut said.result.output_shapes;
    let chosen = random.below(shapes.len().max(1));
    match (random.below(12), shapes.get_mut(chosen)) {
        (0, _) => *said = any_result(random),
        (1, Some(shape)) => shape.is_sufficient = !shape.is_sufficient,
        (2, Some(shape)) => shape.dimensions = dimensions(random),
        (3 | 4, Some(shape)) => {
            let rank = shape.dimensions.len();
            for _ in 0..random.below(rank + 1) {
                shape.dimensions[random.below(rank)] = random.word();
            }
        }
        (5, _) => said.extras = extras(random),
        (6, _) => said.result.status = ErrorStatus::None,
        (7, _) => {} // the same once more
        (8, _) => said.extras.id = said.extras.id.map(|id| id.wrapping_add(1)),
        _ => said.result.timing = timing(random),
    }
}

/// How often what came.
#[derive(Debug, Default)]
struct Counts {
    by_differences: usize,
    refused: usize,
    after_refused: usize,
    succeeded_by_differences: usize,
}

/// Both ends of a queue.
struct Conversation {
    features: Features,
    encoder: ResultEncoder,
    decoder: ResultDecoder,
    queue: Queue,
    was_sent: bool,
    was_refused: bool,
    counts: Counts,
}

/// What the receiving end asked for.
#[derive(Clone, Copy)]
struct Asked {
    outputs: usize,
    measured: bool,
}

impl Conversation {
    fn new(features: Features) -> Self {
        Conversation {
            features,
            encoder: ResultEncoder::new(features, LONGEST),
            decoder: ResultDecoder::new(features),
            queue: Queue::default(),
            was_sent: false,
            was_refused: false,
            counts: Counts::default(),
        }
    }

    /// Gives what is to be sent, and the same as a whole.
    fn encoded(&mut self, said: &ResultPacket<'_>, is_sent: bool) -> (Vec<u8>, Vec<u8>) {
        let mut whole = Vec::new();
        said.encode_into(&mut whole).unwrap();
        let bytes = self.encoder.encode(said).unwrap().to_vec();
        assert_eq!(self.encoder.packet(), bytes);
        let is_whole = bytes[0] == 0;
        assert!(if is_whole { bytes == whole } else { bytes.len() <= whole.len() });
        assert!(is_whole || self.was_sent, "differences to what was never sent");
        self.was_sent = is_sent;
        if is_sent {
            self.encoder.sent();
        }
        (bytes, whole)
    }

    /// At the other end: what is decoded is what the whole packet says alone.
    fn hear(&mut self, (bytes, whole): &(Vec<u8>, Vec<u8>), asked: Asked, out: &mut DecodedResult) {
        let meant = self.queue.take(RESULT, bytes.as_chunks().0).unwrap();
        assert_eq!(meant.as_flattened(), whole);
        let Asked { outputs, measured } = asked;
        let mut alone = ExecutionResult::of(ErrorStatus::None);
        let wanted = decode_result(whole, self.features, outputs, measured, &mut alone);
        assert_eq!(self.decoder.decode(bytes, outputs, measured, out), wanted);
        assert_eq!(*out.get(), alone);
        let (by_differences, is_refused) = (bytes.len() < whole.len(), wanted.is_err());
        let is_success = !is_refused && alone.status == ErrorStatus::None;
        self.counts.by_differences += usize::from(by_differences);
        self.counts.refused += usize::from(is_refused);
        self.counts.after_refused += usize::from(by_differences && self.was_refused);
        self.counts.succeeded_by_differences += usize::from(by_differences && is_success);
        self.was_refused = is_refused;
    }
}

/// Takes a result out of its storage, as a caller does who wants to keep it: another one's is there
/// then.
fn swap(random: &mut Random, storages: &mut [DecodedResult], taken: &mut ExecutionResult) {
    let chosen = random.below(storages.len());
    storages[chosen].swap(taken);
    if random.one_in(3) {
        storages[chosen] = taken.clone().into();
    }
    if random.one_in(3) {
        storages[chosen] = DecodedResult::default();
    }
}

/// The same conversations in every run: two of them, whose results go into the same storages.
fn hold(features: Features, seed: u64) -> Counts {
    let mut random = Random(seed);
    let mut both = [Conversation::new(features), Conversation::new(features)];
    let mut said = [any_result(&mut random), any_result(&mut random)];
    let mut storages: Vec<DecodedResult> = (0..4).map(|_| DecodedResult::default()).collect();
    let mut taken = any_result(&mut random).result;
    for step in 0..STEPS {
        // Most often the same one, in turns of a pipeline.
        let which = usize::from(random.one_in(5));
        change(&mut random, &mut said[which]);
        let Said { result, extras } = &said[which];
        let packet = match random.one_in(20) {
            true => ResultPacket::failure(result.status, features),
            false => ResultPacket::new(result, *extras, features),
        };
        let is_sent = !random.one_in(10);
        let encoded = both[which].encoded(&packet, is_sent);
        if !is_sent {
            continue;
        }
        let others = usize::from(random.one_in(10));
        let outputs = result.output_shapes.len() + others;
        let asked = Asked { outputs, measured: !random.one_in(4) };
        let storage = if random.one_in(4) { random.below(4) } else { step % 2 };
        both[which].hear(&encoded, asked, &mut storages[storage]);
        if random.one_in(10) {
            swap(&mut random, &mut storages, &mut taken);
        }
    }
    let [first, _] = both;
    first.counts
}

#[test]
fn whatever_result_comes_after_whatever_is_decoded_as_if_it_came_alone() {
    for features in FEATURES {
        let features = features.union(Features::DIFFERENCES);
        for seed in [1, 0x9E37_79B9_7F4A_7C15, 77_777] {
            let counts = hold(features, seed);
            let Counts { by_differences, refused, after_refused, succeeded_by_differences } =
                counts;
            assert!(by_differences > STEPS / 4, "{features}: {counts:?}");
            assert!(succeeded_by_differences > STEPS / 20, "{features}: {counts:?}");
            assert!(refused > STEPS / 20 && after_refused > STEPS / 50, "{features}: {counts:?}");
        }
    }
}

#[test]
fn every_result_comes_as_a_whole_where_differences_were_not_negotiated() {
    for features in FEATURES {
        let mut random = Random(5);
        let mut encoder = ResultEncoder::new(features, LONGEST);
        let mut conversation = Conversation::new(features);
        let mut storage = DecodedResult::default();
        let mut said = any_result(&mut random);
        for _ in 0..STEPS {
            change(&mut random, &mut said);
            let mut whole = Vec::new();
            let packet = ResultPacket::new(&said.result, said.extras, features);
            packet.encode_into(&mut whole).unwrap();
            assert_eq!(encoder.encode(&packet), Ok(whole.as_slice()));
            encoder.sent();
            let asked = Asked { outputs: said.result.output_shapes.len(), measured: true };
            conversation.hear(&(whole.clone(), whole), asked, &mut storage);
        }
    }
}

#[test]
fn a_storage_that_was_swapped_does_not_pass_for_the_shapes_of_the_packet() {
    let shape = |size| OutputShape { dimensions: [size].as_slice().into(), is_sufficient: true };
    let result = |size, time| ExecutionResult {
        output_shapes: vec![shape(size)],
        timing: Timing { time_on_device_us: time, time_in_driver_us: time },
        ..ExecutionResult::of(ErrorStatus::None)
    };
    let asked = Asked { outputs: 1, measured: true };
    let features = Features::DIFFERENCES;
    let mut conversation = Conversation::new(features);
    let mut storage = DecodedResult::default();
    let mut other = result(99, 0);
    for time in 1..4 {
        let said = result(5, time);
        let packet = ResultPacket::new(&said, ResultExtras::default(), features);
        let encoded = conversation.encoded(&packet, true);
        conversation.hear(&encoded, asked, &mut storage);
        storage.swap(&mut other);
        assert_eq!(other, said);
        other.output_shapes[0] = shape(99);
    }
    assert_eq!(conversation.counts.by_differences, 2);
}

#[test]
fn a_result_that_is_too_long_is_refused_and_the_next_one_comes_as_a_whole() {
    let features = Features::DIFFERENCES;
    let short = ExecutionResult::of(ErrorStatus::None);
    let shapes = vec![OutputShape { is_sufficient: true, ..OutputShape::default() }; 2];
    let long = ExecutionResult { output_shapes: shapes, ..short.clone() };
    let short = ResultPacket::new(&short, ResultExtras::default(), features);
    let long = ResultPacket::new(&long, ResultExtras::default(), features);
    let mut whole = Vec::new();
    short.encode_into(&mut whole).unwrap();
    let mut encoder = ResultEncoder::new(features, 3);
    for _ in 0..2 {
        assert_eq!(encoder.encode(&short), Ok(whole.as_slice()), "after nothing, or a failure");
        assert_eq!(encoder.encode(&short), Ok(whole.as_slice()), "after one that was not sent");
        encoder.sent();
        assert_eq!(encoder.encode(&short), Ok(RESULT.packet(&[]).as_flattened()));
        encoder.sent();
        assert_eq!(encoder.encode(&long), Err(WireError::TooLong { datums: 4 }));
    }
}
