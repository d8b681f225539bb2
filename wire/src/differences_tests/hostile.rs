//! Differences as no encoder of ours says them: what they do, and what they leave.

use std::fmt::Debug;

use burst_hal::{DataLocation, ErrorStatus, ExecutionResult, OutputShape, RequestArgument, Timing};

use super::requests::{decoded, packet};
use super::{Head, Queue, REQUEST, RESULT, at};
use crate::{
    DatumBytes, DecodedResult, Features, RequestDecoder, RequestExtras, ResultDecoder,
    ResultExtras, ResultPacket, SlotRequest, WireError, decode_request, decode_result,
};

/// All but deadlines, so that there is a kind that nobody asked for.
const FEATURES: Features = Features::ALL.without(Features::DEADLINES);

/// Where packets of one kind arrive.
trait End: Sized {
    const HEAD: Head;
    /// What packets say.
    type Value: Debug + PartialEq;

    fn new(features: Features) -> Self;
    /// A packet that every end takes.
    fn sample() -> Vec<DatumBytes>;
    fn decode(&mut self, packet: &[u8]) -> Result<Self::Value, WireError>;
    /// What a packet says that comes alone.
    fn decode_alone(packet: &[u8]) -> Result<Self::Value, WireError>;
}

struct Requests(RequestDecoder);

impl End for Requests {
    const HEAD: Head = REQUEST;
    type Value = SlotRequest;

    fn new(features: Features) -> Self {
        Requests(RequestDecoder::new(features))
    }

    /// Packet information, input, its dimensions, input, output, its dimension, slots, whether to
    /// measure, number.
    fn sample() -> Vec<DatumBytes> {
        let argument = |pool_index, dimensions: &[u32]| RequestArgument {
            has_no_value: false,
            location: DataLocation { pool_index, offset: 64, length: 32 },
            dimensions: dimensions.into(),
        };
        let request = SlotRequest {
            inputs: vec![argument(0, &[5, 6]), argument(1, &[])],
            outputs: vec![argument(1, &[7])],
            slots: vec![3, 4],
            measure_timing: true,
            extras: RequestExtras { id: Some(77), ..RequestExtras::default() },
        };
        let mut bytes = Vec::new();
        packet(&request).encode_into(&mut bytes).unwrap();
        bytes.as_chunks().0.to_vec()
    }

    fn decode(&mut self, packet: &[u8]) -> Result<SlotRequest, WireError> {
        self.0.decode(packet)?;
        Ok(decoded(&self.0))
    }

    fn decode_alone(packet: &[u8]) -> Result<SlotRequest, WireError> {
        let mut request = SlotRequest::default();
        decode_request(packet, FEATURES, &mut request)?;
        Ok(request)
    }
}

/// With two results in turns, as a pipeline has them.
struct Results(ResultDecoder, [DecodedResult; 2]);

impl End for Results {
    const HEAD: Head = RESULT;
    type Value = (ExecutionResult, ResultExtras);

    fn new(features: Features) -> Self {
        Results(ResultDecoder::new(features), Default::default())
    }

    /// Packet information, output, its dimensions, output, time, the same in nanoseconds, number.
    fn sample() -> Vec<DatumBytes> {
        let shape =
            |dimensions: &[u32]| OutputShape { dimensions: dimensions.into(), is_sufficient: true };
        let result = ExecutionResult {
            status: ErrorStatus::None,
            output_shapes: vec![shape(&[5, 6]), shape(&[])],
            timing: Timing { time_on_device_us: 5, time_in_driver_us: 9 },
        };
        let extras = ResultExtras { in_driver_ns: Some(700), on_device_ns: Some(8), id: Some(77) };
        let mut bytes = Vec::new();
        ResultPacket::new(&result, extras, FEATURES).encode_into(&mut bytes).unwrap();
        bytes.as_chunks().0.to_vec()
    }

    fn decode(&mut self, packet: &[u8]) -> Result<Self::Value, WireError> {
        self.1.reverse();
        let [result, _] = &mut self.1;
        let extras = self.0.decode(packet, 2, true, result).inspect_err(|_| {
            assert_eq!(*result.get(), ExecutionResult::of(ErrorStatus::GeneralFailure));
        })?;
        Ok((result.get().clone(), extras))
    }

    fn decode_alone(packet: &[u8]) -> Result<Self::Value, WireError> {
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let extras = decode_result(packet, FEATURES, 2, true, &mut result)?;
        Ok((result, extras))
    }
}

/// An end that has the sample, and what it should have by an independent look.
struct Watched<E> {
    end: E,
    queue: Queue,
}

impl<E: End> Watched<E> {
    fn new() -> Self {
        let mut watched = Watched { end: E::new(FEATURES), queue: Queue::default() };
        watched.heals();
        watched
    }

    fn hear(&mut self, packet: &[DatumBytes]) -> Result<E::Value, WireError> {
        let meant = self.queue.take(E::HEAD, packet);
        let wanted = meant.and_then(|meant| E::decode_alone(meant.as_flattened()));
        assert_eq!(self.end.decode(packet.as_flattened()), wanted, "{packet:?}");
        wanted
    }

    fn hear_differences(&mut self, differences: &[DatumBytes]) -> Result<E::Value, WireError> {
        self.hear(&E::HEAD.packet(differences))
    }

    /// A packet that comes as a whole is taken whatever was before, and so are differences to it.
    fn heals(&mut self) {
        let sample = E::sample();
        self.hear(&sample).unwrap();
        self.hear_differences(&[at(3, sample[3])]).unwrap();
    }
}

/// Packets that are broken as differences, and what is said of them.
fn broken<E: End>() -> Vec<(Vec<DatumBytes>, WireError)> {
    let sample = E::sample();
    let end = u16::try_from(sample.len()).unwrap();
    let of_length = |said: u32| {
        let mut packet = E::HEAD.packet(&[at(2, sample[2])]);
        packet[0][E::HEAD.length_at..][..4].copy_from_slice(&said.to_ne_bytes());
        (packet, WireError::PacketSize { said, received: 2 })
    };
    let of_places = |places: &[u16], [place, after]: [u16; 2]| {
        // Whatever stands there: it is not looked at.
        let differences: Vec<_> = places.iter().map(|place| at(*place, [0xAA; 24])).collect();
        let error = WireError::Place { place: place.into(), after: after.into() };
        (E::HEAD.packet(&differences), error)
    };
    vec![
        of_length(0),
        of_length(1),
        of_length(3),
        of_length(u32::MAX),
        of_places(&[0], [0, 0]),
        of_places(&[1, 0], [0, 1]),
        of_places(&[end], [end, 0]),
        of_places(&[2, end], [end, 2]),
        of_places(&[u16::MAX], [u16::MAX, 0]),
        of_places(&[3, 3], [3, 3]),
        of_places(&[1, 3, 2, 4], [2, 3]),
    ]
}

fn after_broken_differences_there_is_nothing_before<E: End>() {
    for (packet, error) in broken::<E>() {
        let mut end = Watched::<E>::new();
        assert_eq!(end.hear(&packet), Err(error));
        for differences in [&[][..], &[at(2, E::sample()[2])]] {
            assert_eq!(end.hear_differences(differences), Err(WireError::NothingBefore));
        }
        end.heals();
        end.hear_differences(&[]).unwrap();
    }
}

#[test]
fn after_broken_differences_there_is_nothing_before_until_a_packet_comes_as_a_whole() {
    after_broken_differences_there_is_nothing_before::<Requests>();
    after_broken_differences_there_is_nothing_before::<Results>();
}

fn the_first_packet_has_nothing_before<E: End>() {
    let mut end = Watched { end: E::new(FEATURES), queue: Queue::default() };
    for differences in [&[][..], &[at(1, E::sample()[1])]] {
        assert_eq!(end.hear_differences(differences), Err(WireError::NothingBefore));
    }
    end.heals();
}

#[test]
fn the_first_packet_of_a_queue_cannot_come_by_differences() {
    the_first_packet_has_nothing_before::<Requests>();
    the_first_packet_has_nothing_before::<Results>();
}

fn who_did_not_negotiate_differences_refuses_them<E: End>() {
    let mut end = E::new(FEATURES.without(Features::DIFFERENCES));
    let sample = E::sample();
    for _ in 0..2 {
        end.decode(sample.as_flattened()).unwrap();
        for differences in [&[][..], &[at(2, sample[2])], &sample[1..]] {
            let refused = end.decode(E::HEAD.packet(differences).as_flattened());
            assert_eq!(refused, Err(WireError::NoPacketInformation));
        }
    }
}

#[test]
fn differences_that_were_not_negotiated_are_no_packet() {
    who_did_not_negotiate_differences_refuses_them::<Requests>();
    who_did_not_negotiate_differences_refuses_them::<Results>();
}

fn ragged_differences_are_refused<E: End>() {
    let sample = E::sample();
    let differences = E::HEAD.packet(&[at(2, sample[2]), at(3, sample[3])]);
    let bytes = [differences.as_flattened(), &[0; 5]].concat();
    let mut end = Watched::<E>::new();
    for cut in (1..bytes.len()).filter(|cut| cut % 24 != 0) {
        assert_eq!(end.end.decode(&bytes[..cut]), Err(WireError::Ragged { bytes: cut }));
        end.queue.before.clear();
        assert_eq!(end.hear_differences(&[]), Err(WireError::NothingBefore));
        end.heals();
    }
    assert_eq!(end.end.decode(&[]), Err(WireError::Ragged { bytes: 0 }));
    end.heals();
}

#[test]
fn differences_that_are_no_whole_number_of_datums_are_refused() {
    ragged_differences_are_refused::<Requests>();
    ragged_differences_are_refused::<Results>();
}

/// Each byte of each datum, every value: nothing panics, and both ends agree on what they have.
fn every_byte_may_be_any_other<E: End>() {
    let sample = E::sample();
    let every_other = (1_u16..).zip(&sample[1..]).step_by(2);
    let differences: Vec<_> = every_other.map(|(place, datum)| at(place, *datum)).collect();
    let packet = E::HEAD.packet(&differences);
    for place in 0..packet.len() * 24 {
        for flip in 1..=u8::MAX {
            let mut flipped = packet.clone();
            flipped.as_flattened_mut()[place] ^= flip;
            let mut end = Watched::<E>::new();
            let _ = end.hear(&flipped);
            let _ = end.hear_differences(&[]);
            let _ = end.hear_differences(&differences);
            end.heals();
        }
    }
}

#[test]
fn every_byte_of_a_request_by_differences_may_be_any_other() {
    every_byte_may_be_any_other::<Requests>();
}

#[test]
fn every_byte_of_a_result_by_differences_may_be_any_other() {
    every_byte_may_be_any_other::<Results>();
}

#[test]
fn no_number_is_read_out_of_a_malformed_request() {
    let sample = Requests::sample();
    let cut = sample[..3].to_vec();
    let of_no_kind = [&[[0xFF; 24]], &sample[1..]].concat();
    let mut does_not_measure = sample.clone();
    does_not_measure[9][0] = 5;
    let wholes = [cut, of_no_kind, does_not_measure, sample[..1].to_vec()];
    let broken = broken::<Requests>().into_iter().map(|(packet, _)| packet);
    for packet in broken.chain(wholes) {
        let mut end = Watched::<Requests>::new();
        assert_eq!(end.end.0.extras().id, Some(77));
        end.hear(&packet).unwrap_err();
        assert_eq!(end.end.0.extras(), RequestExtras::default(), "{packet:?}");
        end.hear_differences(&[]).unwrap_err();
        assert_eq!(end.end.0.extras(), RequestExtras::default(), "{packet:?}");
    }
}

/// Puts a datum with these bytes at `from` into the sample by a difference: the error is that of
/// the whole, once more for the same packet, and a difference that puts it right is enough.
fn one_wrong_datum<E: End>(place: usize, from: usize, bytes: &[u8]) -> WireError {
    let sample = E::sample();
    let mut wrong = sample[place];
    wrong[from..][..bytes.len()].copy_from_slice(bytes);
    let place = u16::try_from(place).unwrap();
    let mut end = Watched::<E>::new();
    let error = end.hear_differences(&[at(place, wrong)]).unwrap_err();
    assert_eq!(end.hear_differences(&[]), Err(error.clone()));
    // Another place in front of it, and behind.
    for other in [1, sample.len() - 1] {
        let differences = [at(u16::try_from(other).unwrap(), sample[other])];
        assert_eq!(end.hear_differences(&differences).is_err(), other != usize::from(place));
        let _ = end.hear_differences(&[at(place, wrong)]);
    }
    end.hear_differences(&[at(place, sample[usize::from(place)])]).unwrap();
    error
}

fn names(error: &WireError, datum: usize, kind: u8) -> bool {
    matches!(*error, WireError::Discriminator { at, found, .. } if (at, found) == (datum, kind))
}

#[test]
fn differences_that_make_a_request_illegal_are_refused_as_the_whole_would_be() {
    let refused = one_wrong_datum::<Requests>;
    let word = u32::to_ne_bytes;
    for (place, found) in
        [(1, 3), (2, 4), (3, 5), (4, 2), (5, 1), (6, 2), (7, 6), (8, 0x40), (9, 5)]
    {
        let error = refused(place, 0, &[found]);
        assert!(names(&error, place, found), "{place}: {error}");
    }
    for rank in [0, 1, 3, 4, u32::MAX] {
        let error = refused(1, 20, &word(rank));
        assert_eq!(error.status(), ErrorStatus::GeneralFailure, "rank {rank}: {error}");
    }
    // Of a kind that was not negotiated.
    assert!(matches!(refused(10, 0, &[0x40]), WireError::Trailing { .. }));
    assert_eq!(refused(9, 4, &word(7)), WireError::Value { what: "measureTiming", value: 7 });
    assert!(matches!(refused(1, 4, &[2]), WireError::Value { .. }));
    assert_eq!(refused(1, 8, &word(2)), WireError::PoolIndex { pool: 2, pools: 2 });
    assert_eq!(refused(5, 8, &word(u32::MAX)), WireError::PoolIndex { pool: u32::MAX, pools: 2 });
    assert_eq!(refused(8, 4, &word(u32::MAX)), WireError::Slot { slot: -1 });
    assert_eq!(refused(4, 4, &[1]), WireError::OmittedWithValue);
}

#[test]
fn differences_that_make_a_result_illegal_are_refused_as_the_whole_would_be() {
    let refused = one_wrong_datum::<Results>;
    let word = u32::to_ne_bytes;
    for (place, found) in [(1, 2), (2, 1), (3, 3), (4, 2), (5, 0x40)] {
        let error = refused(place, 0, &[found]);
        assert!(names(&error, place, found), "{place}: {error}");
    }
    for rank in [0, 1, 3, 4, u32::MAX] {
        let error = refused(1, 12, &word(rank));
        assert_eq!(error.status(), ErrorStatus::GeneralFailure, "rank {rank}: {error}");
    }
    assert!(matches!(refused(6, 0, &[0x42]), WireError::Trailing { .. }));
    assert!(matches!(refused(7, 0, &[0x40]), WireError::Trailing { .. }));
    assert!(matches!(refused(4, 8, &[2]), WireError::Value { .. }));
    assert!(matches!(refused(4, 8, &[0]), WireError::Contradiction { .. }));
}

#[test]
fn arguments_that_are_left_out_and_come_back_by_differences_are_taken() {
    let sample = Requests::sample();
    let mut omitted = [0; 24];
    (omitted[0], omitted[4]) = (1, 1);
    let mut end = Watched::<Requests>::new();
    for _ in 0..2 {
        assert!(end.hear_differences(&[at(4, omitted)]).unwrap().inputs[1].has_no_value);
        assert!(end.hear_differences(&[at(2, sample[2])]).unwrap().inputs[1].has_no_value);
        assert!(!end.hear_differences(&[at(4, sample[4])]).unwrap().inputs[1].has_no_value);
    }
}

#[test]
fn a_rank_may_change_where_the_datums_behind_it_change_with_it() {
    // No encoder of ours does that: input 0 with one dimension less, input 1 with one more.
    let sample = Requests::sample();
    let rank = |place: usize, rank: u8| {
        let mut datum = sample[place];
        datum[20..24].copy_from_slice(&u32::from(rank).to_ne_bytes());
        datum
    };
    let differences = [at(1, rank(1, 1)), at(3, rank(4, 1)), at(4, sample[2])];
    let mut end = Watched::<Requests>::new();
    for _ in 0..2 {
        let request = end.hear_differences(&differences).unwrap();
        let ranks = request.inputs.iter().map(|input| input.dimensions.len());
        assert_eq!(ranks.collect::<Vec<_>>(), [1, 1]);
        let back = end.hear_differences(&[at(1, sample[1]), at(3, sample[3]), at(4, sample[4])]);
        assert_eq!(back, Requests::decode_alone(sample.as_flattened()));
    }
}
