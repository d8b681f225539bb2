//! A request packet as a service receives it.
//!
//! Looked at: no more records than the packet has datums; storage used again gives the same as
//! fresh storage; what decodes is encoded to a packet of the same length that decodes to the same.
//! One after the other, packets say what an independent look finds them to mean, and come back by
//! differences where those were negotiated.

use std::time::Duration;

use burst_hal::{DataLocation, RequestArgument, TimePoint};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, RequestDecoder, RequestEncoder, RequestExtras,
    RequestPacket, SlotRequest, WireError, decode_request,
};

use crate::frames::packets;
use crate::meant::Meant;
use crate::{Input, Script, Seed, seed};

/// The first byte says what was negotiated; the others are the packet, or packets one behind the
/// other where that was negotiated.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let features = Features::from_bits(u64::from(input.u8()));
    let all = packets(PacketKind::Request, input.rest(), features);
    let alone = all.iter().filter(|bytes| one_packet(bytes, features)).count();
    alone + one_after_the_other(&all, features) > 0
}

fn one_packet(bytes: &[u8], features: Features) -> bool {
    let mut request = used_storage();
    let decoded = decode_request(bytes, features, &mut request);
    let mut fresh = SlotRequest::default();
    assert_eq!(decode_request(bytes, features, &mut fresh), decoded);
    if let Err(error) = decoded {
        let _ = (error.status(), error.to_string());
        return false;
    }
    assert_eq!(request, fresh);
    check(&request, bytes, features);
    true
}

/// How many of the packets of one burst decode.
fn one_after_the_other(packets: &[&[u8]], features: Features) -> usize {
    let mut decoder = RequestDecoder::new(features);
    let mut meant = Meant::new(PacketKind::Request, features);
    let mut again = (RequestEncoder::new(features), RequestDecoder::new(features));
    let mut decodes = |bytes: &[u8]| {
        let whole = meant.take(bytes);
        let mut request = SlotRequest::default();
        let wanted = whole.clone().and_then(|whole| decode_request(&whole, features, &mut request));
        let is_decoded = wanted.is_ok();
        assert_eq!(decoder.decode(bytes), wanted);
        if is_decoded {
            assert_eq!(decoded(&decoder), request);
            check(&request, &whole.unwrap(), features);
            comes_back(&request, &mut again);
        }
        is_decoded
    };
    packets.iter().filter(|bytes| decodes(bytes)).count()
}

/// What a decoder has.
fn decoded(decoder: &RequestDecoder) -> SlotRequest {
    SlotRequest {
        inputs: decoder.request().inputs.clone(),
        outputs: decoder.request().outputs.clone(),
        slots: decoder.slots().to_vec(),
        measure_timing: decoder.measure_timing(),
        extras: decoder.extras(),
    }
}

/// Sends a request of a burst, and looks whether it arrives.
pub(crate) fn comes_back(
    request: &SlotRequest,
    (encoder, decoder): &mut (RequestEncoder, RequestDecoder),
) {
    let bytes = encoder.encode(&packet(request)).unwrap();
    assert!(bytes.len() <= packet(request).bytes().unwrap(), "longer than the whole");
    assert_eq!(decoder.decode(bytes), Ok(()));
    encoder.sent();
    assert_eq!(decoded(decoder), *request);
}

/// Storage of another request: nothing of it may show.
fn used_storage() -> SlotRequest {
    let argument = RequestArgument { dimensions: [9, 9].as_slice().into(), ..Default::default() };
    SlotRequest {
        inputs: vec![argument.clone(); 3],
        outputs: vec![argument; 2],
        slots: vec![5; 4],
        measure_timing: true,
        extras: RequestExtras {
            deadline: Some(TimePoint { nanos: 1 }),
            ..RequestExtras::default()
        },
    }
}

fn check(request: &SlotRequest, bytes: &[u8], features: Features) {
    let datums = bytes.len() / DATUM_BYTES;
    let arguments = request.inputs.iter().chain(&request.outputs);
    let records: usize = arguments.clone().map(|argument| 1 + argument.dimensions.len()).sum();
    assert!(records + request.slots.len() < datums, "more records than datums");
    for argument in arguments.filter(|argument| !argument.has_no_value) {
        assert!((argument.location.pool_index as usize) < request.slots.len());
    }
    assert!(request.slots.iter().all(|slot| *slot >= 0));
    let mut again = Vec::new();
    packet(request).encode_into(&mut again).unwrap();
    assert_eq!(again.len(), bytes.len());
    let mut back = SlotRequest::default();
    assert_eq!(decode_request(&again, features, &mut back), Ok::<(), WireError>(()));
    assert_eq!(back, *request);
}

/// The packet that says this request.
pub(crate) fn packet(request: &SlotRequest) -> RequestPacket<'_> {
    RequestPacket {
        inputs: &request.inputs,
        outputs: &request.outputs,
        slots: &request.slots,
        measure_timing: request.measure_timing,
        extras: request.extras,
    }
}

fn argument(pool_index: u32, dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 64, length: 32 },
        dimensions: dimensions.into(),
    }
}

/// Requests of several sizes, with and without what can be negotiated.
pub fn seeds() -> Vec<Seed> {
    let small = SlotRequest {
        inputs: vec![argument(0, &[])],
        outputs: vec![argument(0, &[])],
        slots: vec![0],
        measure_timing: false,
        extras: RequestExtras::default(),
    };
    let omitted = RequestArgument { has_no_value: true, ..RequestArgument::default() };
    let large = SlotRequest {
        inputs: vec![argument(0, &[1, 2, 3, 4]), omitted, argument(2, &[7])],
        outputs: vec![argument(1, &[1]), argument(2, &[0, 5])],
        slots: vec![0, 3, 0x7FFF_FFFF],
        measure_timing: true,
        extras: RequestExtras::default(),
    };
    let extras = RequestExtras {
        deadline: Some(TimePoint { nanos: 123_456_789 }),
        loop_timeout: Some(Duration::from_nanos(5)),
        id: None,
    };
    let empty = SlotRequest::default();
    let mut seeds: Vec<Seed> = [
        ("small", &small, Features::NONE),
        ("large", &large, Features::NONE),
        ("deadline", &SlotRequest { extras, ..large.clone() }, Features::ALL),
        ("not_negotiated", &SlotRequest { extras, ..small.clone() }, Features::NONE),
        ("empty", &empty, Features::ALL),
    ]
    .into_iter()
    .map(|(name, request, features)| {
        let mut bytes = Vec::new();
        packet(request).encode_into(&mut bytes).unwrap();
        seed(name, Script::new().bytes(&[features.bits() as u8]).bytes(&bytes))
    })
    .collect();
    let mut two = Script::new().bytes(&[Features::PIPELINING.bits() as u8]);
    for request in [&small, &large] {
        let mut bytes = Vec::new();
        packet(request).encode_into(&mut bytes).unwrap();
        two = two.bytes(&bytes);
    }
    seeds.push(seed("two_in_a_pipeline", two));
    let mut moved = large.clone();
    moved.inputs[0].location.offset = 128;
    let mut other = SlotRequest { measure_timing: false, ..moved.clone() };
    (other.inputs[2].dimensions[0], other.slots[1]) = (8, 4);
    let of_an_illegal_pool = SlotRequest { inputs: vec![argument(1, &[])], ..small.clone() };
    seeds.extend([
        by_differences("differences", &[&large, &moved, &other]),
        by_differences("the_same_again", &[&small, &small]),
        by_differences("differences_to_an_illegal_one", &[&of_an_illegal_pool, &small]),
    ]);
    seeds
}

/// The packets of one burst, which come by differences where they can, each with a number.
fn by_differences(name: &str, requests: &[&SlotRequest]) -> Seed {
    let features = Features::PIPELINING.union(Features::DIFFERENCES);
    let mut encoder = RequestEncoder::new(features);
    let mut script = Script::new().bytes(&[features.bits() as u8]);
    for (request, id) in requests.iter().zip(1..) {
        let extras = RequestExtras { id: Some(id), ..request.extras };
        let request = RequestPacket { extras, ..packet(request) };
        script = script.bytes(encoder.encode(&request).unwrap());
        encoder.sent();
    }
    seed(name, script)
}
