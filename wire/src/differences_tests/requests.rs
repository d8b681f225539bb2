//! Conversations of requests: whatever comes after whatever, it is decoded as if it had come alone.

use std::time::Duration;

use burst_hal::{DataLocation, RequestArgument, TimePoint};

use super::{Queue, REQUEST, Random};
use crate::{
    Features, RequestDecoder, RequestEncoder, RequestExtras, RequestPacket, SlotRequest, WireError,
    decode_request,
};

const STEPS: usize = 4000;
/// With which a conversation is held: each with a choice of extras of its own.
const FEATURES: [Features; 4] = [
    Features::NONE,
    Features::DEADLINES,
    Features::PIPELINING,
    Features::ALL.without(Features::DIFFERENCES),
];

pub(super) fn packet(request: &SlotRequest) -> RequestPacket<'_> {
    RequestPacket {
        inputs: &request.inputs,
        outputs: &request.outputs,
        slots: &request.slots,
        measure_timing: request.measure_timing,
        extras: request.extras,
    }
}

/// What a decoder has.
pub(super) fn decoded(decoder: &RequestDecoder) -> SlotRequest {
    SlotRequest {
        inputs: decoder.request().inputs.clone(),
        outputs: decoder.request().outputs.clone(),
        slots: decoder.slots().to_vec(),
        measure_timing: decoder.measure_timing(),
        extras: decoder.extras(),
    }
}

fn omitted() -> RequestArgument {
    RequestArgument { has_no_value: true, ..RequestArgument::default() }
}

fn location(random: &mut Random, pools: usize) -> DataLocation {
    let pool_index = u32::try_from(random.below(pools)).unwrap();
    DataLocation { pool_index, offset: random.word(), length: random.word() }
}

fn argument(random: &mut Random, pools: usize) -> RequestArgument {
    if random.one_in(6) {
        return omitted();
    }
    let location = location(random, pools);
    let dimensions = (0..random.below(10)).map(|_| random.word()).collect();
    RequestArgument { has_no_value: false, location, dimensions }
}

fn extras(random: &mut Random, features: Features) -> RequestExtras {
    let deadlines = features.contains(Features::DEADLINES);
    let mut number = |is_negotiated| {
        let is_there = is_negotiated && !random.one_in(3);
        is_there.then(|| random.next())
    };
    RequestExtras {
        deadline: number(deadlines).map(|nanos| TimePoint { nanos }),
        loop_timeout: number(deadlines).map(Duration::from_nanos),
        id: number(features.contains(Features::PIPELINING)),
    }
}

fn any_request(random: &mut Random, features: Features) -> SlotRequest {
    let pools = 1 + random.below(3);
    SlotRequest {
        inputs: (0..random.below(4)).map(|_| argument(random, pools)).collect(),
        outputs: (0..random.below(4)).map(|_| argument(random, pools)).collect(),
        slots: (0..pools).map(|_| random.slot()).collect(),
        measure_timing: random.one_in(2),
        extras: extras(random, features),
    }
}

fn any_argument<'r>(
    random: &mut Random,
    request: &'r mut SlotRequest,
) -> Option<&'r mut RequestArgument> {
    let count = request.inputs.len() + request.outputs.len();
    let chosen = random.below(count.max(1));
    request.inputs.iter_mut().chain(&mut request.outputs).nth(chosen)
}

/// Changes a request to another one that is legal, most often in one place.
fn change(random: &mut Random, request: &mut SlotRequest, features: Features) {
    let pools = request.slots.len();
    match random.below(12) {
        0 => *request = any_request(random, features),
        1 => request.slots[random.below(pools)] = random.slot(),
        2 => request.measure_timing = !request.measure_timing,
        3 => request.extras = extras(random, features),
        4 | 5 => request.extras.id = request.extras.id.map(|id| id.wrapping_add(1)),
        6 => {
            let Some(old) = any_argument(random, request) else { return };
            *old = argument(random, pools);
        }
        7 => {
            // Left out, or not any more: a change of form only where there are dimensions.
            let Some(old) = any_argument(random, request) else { return };
            let location = location(random, pools);
            let new = RequestArgument { location, ..RequestArgument::default() };
            *old = if old.has_no_value { new } else { omitted() };
        }
        8 | 9 => {
            let Some(old) = any_argument(random, request) else { return };
            for _ in 0..=random.below(3) {
                let rank = old.dimensions.len();
                let Some(size) = old.dimensions.get_mut(random.below(rank.max(1))) else { return };
                *size = random.word();
            }
        }
        _ => {
            let Some(old) = any_argument(random, request) else { return };
            if !old.has_no_value {
                old.location = location(random, pools);
            }
        }
    }
}

/// Makes an illegal one of it, in one of the ways that the packet itself can carry.
fn spoil(random: &mut Random, request: &mut SlotRequest, features: Features) {
    let pools = request.slots.len();
    match random.below(5) {
        0 => request.slots[random.below(pools)] = -request.slots[0].max(1),
        1 if !features.contains(Features::PIPELINING) => request.extras.id = Some(random.next()),
        2 => {
            let Some(one) = any_argument(random, request) else { return };
            (one.has_no_value, one.location.offset) = (true, 1);
        }
        3 => {
            let Some(one) = any_argument(random, request) else { return };
            one.has_no_value = !one.dimensions.is_empty() || one.has_no_value;
        }
        _ => {
            let Some(one) = any_argument(random, request) else { return };
            (one.has_no_value, one.location.pool_index) = (false, u32::try_from(pools).unwrap());
        }
    }
}

/// How often what came.
#[derive(Debug, Default)]
struct Counts {
    by_differences: usize,
    refused: usize,
    /// By differences to one that was refused.
    after_refused: usize,
    /// As a whole, as the one before was not sent.
    after_unsent: usize,
}

/// Both ends of a queue.
struct Conversation {
    features: Features,
    encoder: RequestEncoder,
    decoder: RequestDecoder,
    queue: Queue,
    was_sent: bool,
    was_refused: bool,
    counts: Counts,
}

impl Conversation {
    fn new(features: Features) -> Self {
        Conversation {
            features,
            encoder: RequestEncoder::new(features),
            decoder: RequestDecoder::new(features),
            queue: Queue::default(),
            was_sent: false,
            was_refused: false,
            counts: Counts::default(),
        }
    }

    fn say(&mut self, request: &SlotRequest, is_sent: bool) {
        let mut whole = Vec::new();
        packet(request).encode_into(&mut whole).unwrap();
        let bytes = self.encoder.encode(&packet(request)).unwrap().to_vec();
        assert_eq!(self.encoder.packet(), bytes);
        let is_whole = bytes[0] == 0;
        assert!(if is_whole { bytes == whole } else { bytes.len() <= whole.len() });
        assert!(is_whole || self.was_sent, "differences to what was never sent");
        self.counts.after_unsent += usize::from(is_whole && !self.was_sent);
        self.was_sent = is_sent;
        if !is_sent {
            return;
        }
        self.encoder.sent();
        let by_differences = bytes.len() < whole.len();
        let is_refused = self.hear(&bytes, &whole).is_err();
        self.counts.by_differences += usize::from(by_differences);
        self.counts.refused += usize::from(is_refused);
        self.counts.after_refused += usize::from(by_differences && self.was_refused);
        self.was_refused = is_refused;
    }

    /// At the other end: what is decoded is what the whole packet says alone.
    fn hear(&mut self, bytes: &[u8], whole: &[u8]) -> Result<(), WireError> {
        let meant = self.queue.take(REQUEST, bytes.as_chunks().0).unwrap();
        assert_eq!(meant.as_flattened(), whole);
        let mut alone = SlotRequest::default();
        let wanted = decode_request(whole, self.features, &mut alone);
        assert_eq!(self.decoder.decode(bytes), wanted);
        match &wanted {
            Ok(()) => assert_eq!(decoded(&self.decoder), alone),
            // Its number is needed to say that it was refused.
            Err(WireError::Trailing { .. }) => {}
            Err(_) => assert_eq!(self.decoder.extras(), alone.extras),
        }
        wanted
    }
}

/// The same conversation in every run, for these features and this seed.
fn hold(features: Features, seed: u64) -> Counts {
    let mut random = Random(seed);
    let mut conversation = Conversation::new(features);
    let mut request = any_request(&mut random, features);
    for _ in 0..STEPS {
        change(&mut random, &mut request, features);
        let mut said = request.clone();
        if random.one_in(5) {
            spoil(&mut random, &mut said, features);
        }
        conversation.say(&said, !random.one_in(8));
    }
    conversation.counts
}

#[test]
fn whatever_request_comes_after_whatever_is_decoded_as_if_it_came_alone() {
    for features in FEATURES {
        let features = features.union(Features::DIFFERENCES);
        for seed in [1, 0x9E37_79B9_7F4A_7C15, 77_777] {
            let counts = hold(features, seed);
            let Counts { by_differences, refused, after_refused, after_unsent } = counts;
            assert!(by_differences > STEPS / 3, "{features}: {counts:?}");
            assert!(refused > STEPS / 20 && after_refused > STEPS / 50, "{features}: {counts:?}");
            assert!(after_unsent > STEPS / 20, "{features}: {counts:?}");
        }
    }
}

#[test]
fn every_request_comes_as_a_whole_where_differences_were_not_negotiated() {
    for features in FEATURES {
        let mut random = Random(5);
        let mut encoder = RequestEncoder::new(features);
        let mut decoder = RequestDecoder::new(features);
        let mut request = any_request(&mut random, features);
        for _ in 0..STEPS {
            change(&mut random, &mut request, features);
            let mut whole = Vec::new();
            packet(&request).encode_into(&mut whole).unwrap();
            assert_eq!(encoder.encode(&packet(&request)), Ok(whole.as_slice()));
            encoder.sent();
            assert_eq!(decoder.decode(&whole), Ok(()));
            assert_eq!(decoded(&decoder), request);
        }
    }
}

#[test]
fn the_longest_packet_that_differences_can_be_said_of_has_as_many_datums_as_a_place_can_name() {
    // Packet information, the input, its dimensions, its memory, whether to measure.
    for (dimensions, by_differences) in [(0x1_0000 - 4, true), (0x1_0000 - 3, false)] {
        let features = Features::DIFFERENCES;
        let mut conversation = Conversation::new(features);
        let sizes = std::iter::repeat_n(7, dimensions).collect();
        let input = RequestArgument { dimensions: sizes, ..RequestArgument::default() };
        let mut request =
            SlotRequest { inputs: vec![input], slots: vec![1], ..SlotRequest::default() };
        conversation.say(&request, true);
        request.inputs[0].dimensions[dimensions - 1] = 8;
        request.slots[0] = 2;
        request.measure_timing = true;
        conversation.say(&request, true);
        assert_eq!(conversation.counts.by_differences, usize::from(by_differences));
        request.slots[0] = 3;
        conversation.say(&request, true);
        assert_eq!(conversation.counts.by_differences, 2 * usize::from(by_differences));
    }
}

#[test]
fn a_request_comes_as_a_whole_until_the_one_before_was_sent() {
    let mut random = Random(3);
    let request = any_request(&mut random, Features::NONE);
    let mut encoder = RequestEncoder::new(Features::DIFFERENCES);
    let mut whole = Vec::new();
    packet(&request).encode_into(&mut whole).unwrap();
    for _ in 0..2 {
        // Never sent, and not sent although it was to come by differences.
        assert_eq!(encoder.encode(&packet(&request)), Ok(whole.as_slice()));
        assert_eq!(encoder.encode(&packet(&request)), Ok(whole.as_slice()));
        encoder.sent();
        let same = REQUEST.packet(&[]);
        assert_eq!(encoder.encode(&packet(&request)), Ok(same.as_flattened()));
    }
}

#[test]
fn what_is_kept_of_a_packet_is_told() {
    let request = any_request(&mut Random(9), Features::NONE);
    let mut whole = Vec::new();
    packet(&request).encode_into(&mut whole).unwrap();
    let kept = |features| {
        let mut decoder = RequestDecoder::new(features);
        decoder.decode(&whole).unwrap();
        decoder.kept_bytes()
    };
    assert!(kept(Features::DIFFERENCES) >= kept(Features::NONE) + whole.len());
}
