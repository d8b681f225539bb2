//! A request packet as a service receives it.
//!
//! Looked at: no more records than the packet has datums; storage used again gives the same as
//! fresh storage; what decodes is encoded to a packet of the same length that decodes to the same.

use std::time::Duration;

use burst_hal::{DataLocation, RequestArgument, TimePoint};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, RequestExtras, RequestPacket, SlotRequest, WireError,
    decode_request,
};

use crate::frames::packets;
use crate::{Input, Script, Seed, seed};

/// The first byte says what was negotiated; the others are the packet, or packets one behind the
/// other where that was negotiated.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let features = Features::from_bits(u64::from(input.u8()));
    let all = packets(PacketKind::Request, input.rest(), features);
    all.into_iter().filter(|bytes| one_packet(bytes, features)).count() > 0
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
    seeds
}
