//! What a client breaks concerns it alone: beside each attack there is an honest client of the same
//! service, and where the attack ends a burst only, another burst on the attacker's own connection.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;

use burst_client::{Client, Route, Stream, StreamOptions};
use burst_server::ServiceOptions;
use burst_wire::control::{Answer, Call, ClientMessage, Reply, ServerMessage, encode};
use burst_wire::{DATUM_BYTES, Features, socket};

use crate::burst_support::raw::{RawBurst, RawClient, connect, request};
use crate::burst_support::{FakeDevice, long, model};
use crate::service_support::Shared;

/// Frames that the honest client runs between two steps of an attack.
const FRAMES: u8 = 20;

/// A client that has nothing to do with the attacks, with a burst and a stream over the socket.
struct Honest {
    client: Client,
    streams: [Stream; 2],
}

impl Honest {
    fn connect(service: &Shared) -> Honest {
        let client = service.connect().unwrap();
        let device = client.device("fake").unwrap();
        let streams = [Route::Burst, Route::Synchronous];
        let streams = streams.map(|route| {
            let mut options = StreamOptions::default();
            options.route = route;
            device.stream(&model(), &options).unwrap()
        });
        Honest { client, streams }
    }

    /// Every frame is answered, and right.
    #[track_caller]
    fn is_served(&mut self, during: &str) {
        assert_eq!(self.client.device_names().unwrap(), ["fake"], "{during}");
        for stream in &mut self.streams {
            for value in 0..FRAMES {
                stream.input(0).fill(value);
                stream.run(long()).unwrap_or_else(|error| panic!("{during}: {error}"));
                assert_eq!(stream.output(0).unwrap(), [value + 1; 16], "{during}");
            }
        }
    }
}

fn service() -> (Shared, Honest) {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let honest = Honest::connect(&service);
    (service, honest)
}

#[test]
fn malformed_control_messages_end_their_own_connection_alone() {
    let (service, mut honest) = service();
    let call = ClientMessage::Call { id: 1, call: Call::ReleaseModel { model: 1 } };
    let good = encode(&call).unwrap();
    let unknown_call = ClientMessage::Call { id: 1, call: Call::Unknown { number: 0xEE } };
    for (what, bytes, is_refused) in [
        ("trailing bytes", [&good[..], &[0]].concat(), true),
        ("an unknown call", encode(&unknown_call).unwrap(), true),
        ("a cut message", good[..good.len() - 1].to_vec(), false),
        ("rubbish", vec![0xA5; 4000], false),
    ] {
        let mut attacker = RawClient::greet(connect(&service.path));
        honest.is_served(what);
        socket::send(&attacker.socket, &bytes, &[]).unwrap();
        honest.is_served(what);
        match is_refused {
            true => {
                let (refused, _) = attacker.receive();
                let id = |reply: &Reply| reply.outcome.is_err().then_some(reply.id);
                assert!(matches!(&refused, ServerMessage::Reply(reply) if id(reply) == Some(1)));
                assert!(attacker.call(Call::ListDevices, &[]).is_ok(), "{what}: it lives");
            }
            false => assert!(attacker.is_hung_up(), "{what}"),
        }
        honest.is_served(what);
    }
}

/// The attacker's two bursts, the second one of which it uses as it should.
#[track_caller]
fn ends_this_burst_alone(
    what: &str,
    (service, honest): (&Shared, &mut Honest),
    features: Features,
    attack: impl FnOnce(&mut RawBurst),
) {
    let mut attacked =
        RawBurst::start_with_features(connect(&service.path), &model(), 64, features);
    let mut beside = attacked.beside(&model());
    beside.is_served(&mut attacked.client, what);
    honest.is_served(what);
    attack(&mut attacked);
    honest.is_served(what);
    let (message, _) = attacked.client.receive();
    let ServerMessage::BurstEnded { burst, .. } = message else { panic!("{what}: {message:?}") };
    assert_eq!(burst, attacked.number, "{what}");
    beside.is_served(&mut attacked.client, what);
    honest.is_served(what);
    let names = attacked.client.call(Call::ListDevices, &[]);
    assert!(matches!(names, Ok(Answer::Devices(_))), "{what}: {names:?}");
}

#[test]
fn corrupt_counters_end_their_own_burst_alone() {
    const CAPACITY: u64 = 1024 * DATUM_BYTES as u64;
    let (service, mut honest) = service();
    for (what, written) in [
        ("a counter as far as can be", u64::MAX),
        ("a datum over the capacity", CAPACITY + DATUM_BYTES as u64),
        ("half a datum", DATUM_BYTES as u64 / 2),
    ] {
        ends_this_burst_alone(what, (&service, &mut honest), Features::NONE, |burst| {
            let descriptor = burst.requests.descriptor().unwrap();
            let fd = descriptor.fds.into_iter().next().unwrap();
            let memory = burst_shm::Memory::from_fd(fd).unwrap();
            let mapping = burst_shm::Mapping::map(&memory).unwrap();
            let at = usize::try_from(descriptor.grantors[1].offset).unwrap();
            let region = mapping.region(0, mapping.len()).unwrap();
            region.copy_in(at, &written.to_ne_bytes()).unwrap();
            burst.requests.wake().unwrap();
        });
    }
}

#[test]
fn a_framing_error_ends_its_own_burst_alone() {
    let (service, mut honest) = service();
    for (what, size) in [("a packet of nothing", 0_u32), ("more than is there", u32::MAX)] {
        ends_this_burst_alone(what, (&service, &mut honest), Features::PIPELINING, |burst| {
            let mut datums = request(1, false);
            datums[0][4..8].copy_from_slice(&size.to_ne_bytes());
            burst.send(&datums);
        });
    }
}

#[test]
fn a_client_that_asks_for_too_much_leaves_the_others_theirs() {
    let mut options = ServiceOptions::default();
    options.limits.models = 4;
    let service = Shared::start(Arc::new(FakeDevice::default()), options);
    let mut honest = Honest::connect(&service);
    let greedy = service.connect().unwrap();
    let device = greedy.device("fake").unwrap();
    let mut held = Vec::new();
    let refusal = loop {
        match device.prepare(&model(), &Default::default()) {
            Ok(prepared) => held.push(prepared),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(held.len(), 4, "{refusal}");
    honest.is_served("another client at its limit");
    let own = honest.client.device("fake").unwrap().prepare(&model(), &Default::default());
    assert!(own.is_ok(), "the limit is each client's own");
}
