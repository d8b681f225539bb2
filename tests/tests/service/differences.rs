//! Packets that say where they differ from the one before: what they mean, what is wrong with one is its result, and the same
//! requests have the same results with them and without.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;

use burst_client::{BurstOptions, ShmMemory};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, ExecutionResult, OutputShape, Pool, Request,
    RequestArgument,
};
use burst_server::ServiceOptions;
use burst_shm::Mapping;
use burst_wire::{DATUM_BYTES, DatumBytes, DecodedResult, Features, RequestDatum, ResultDecoder};

use crate::burst_support::raw::{POOL_BYTES, RawBurst, request as raw_request};
use crate::burst_support::{Private, long, model, request_between, wide_model};
use crate::peer;

/// A burst whose packets are made by hand, and what reads its results.
struct ByHand {
    burst: RawBurst,
    decoder: ResultDecoder,
    result: DecodedResult,
}

impl ByHand {
    fn start(socket: std::os::fd::OwnedFd) -> ByHand {
        let features = Features::DIFFERENCES;
        let mut burst = RawBurst::start_with_features(socket, &wide_model(1), 64, features);
        burst.push_both();
        ByHand { burst, decoder: ResultDecoder::new(features), result: DecodedResult::default() }
    }

    /// Sends a packet; gives its result, and how many datums that took.
    fn run(&mut self, datums: &[DatumBytes]) -> (&ExecutionResult, usize) {
        self.burst.send(datums);
        let packet = self.burst.receive();
        self.decoder.decode(packet.as_flattened(), 1, true, &mut self.result).unwrap();
        (self.result.get(), packet.len())
    }

    fn output(&self, at: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mapping = Mapping::map(&self.burst.output).unwrap();
        mapping.region(0, POOL_BYTES).unwrap().copy_out(at, &mut bytes).unwrap();
        bytes
    }

    fn fill(&self, byte: u8) {
        let mapping = Mapping::map(&self.burst.input).unwrap();
        mapping.region(0, 16).unwrap().copy_in(0, &[byte; 16]).unwrap();
    }
}

/// A packet of these differences, each with its place.
fn differences(changed: &[(u16, DatumBytes)]) -> Vec<DatumBytes> {
    let mut first = [0; DATUM_BYTES];
    first[0] = 0x43;
    first[4..8].copy_from_slice(&u32::try_from(1 + changed.len()).unwrap().to_ne_bytes());
    let placed = changed.iter().map(|(place, datum)| {
        let mut datum = *datum;
        datum[2..4].copy_from_slice(&place.to_ne_bytes());
        datum
    });
    std::iter::once(first).chain(placed).collect()
}

/// Where the output of [`raw_request`] of one input and one output is said: behind the information, the input and its two
/// dimensions.
const OUTPUT: u16 = 4;

/// That output, at another offset.
fn output_at(offset: u32) -> DatumBytes {
    let mut datum = raw_request(1, false)[usize::from(OUTPUT)];
    datum[12..16].copy_from_slice(&offset.to_ne_bytes());
    datum
}

#[test]
fn what_a_packet_does_not_say_is_as_before() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut by_hand = ByHand::start(socket);
    by_hand.fill(1);
    assert_eq!(by_hand.run(&raw_request(1, false)).0.status, ErrorStatus::None);
    assert_eq!(by_hand.output(0), [2; 16]);
    // Another place for the output; then the same request again, and again.
    by_hand.fill(5);
    let (result, datums) = by_hand.run(&differences(&[(OUTPUT, output_at(64))]));
    assert_eq!((result.status, datums), (ErrorStatus::None, 1), "nothing is new in the result");
    assert_eq!((by_hand.output(0), by_hand.output(64)), ([2; 16], [6; 16]));
    for byte in [7, 8] {
        by_hand.fill(byte);
        assert_eq!(by_hand.run(&differences(&[])).0.status, ErrorStatus::None);
        assert_eq!((by_hand.output(0), by_hand.output(64)), ([2; 16], [byte + 1; 16]));
    }
}

#[test]
fn what_is_wrong_with_differences_is_their_result_and_a_whole_packet_heals_them() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut by_hand = ByHand::start(socket);
    let mut beside = by_hand.burst.beside(&model());
    let whole = raw_request(1, false);
    let len = u16::try_from(whole.len()).unwrap();
    let dimension = RequestDatum::InputOperandDimensionValue(4).encode();
    let information = whole[0];
    let mut lying = differences(&[(OUTPUT, output_at(0))]);
    lying[0][4] = 3;
    let broken = [
        ("a length that is not its own", lying),
        ("the first datum", differences(&[(0, information)])),
        ("a datum behind the end", differences(&[(len, dimension)])),
        ("one datum twice", differences(&[(2, dimension), (2, dimension)])),
        ("two datums in the wrong order", differences(&[(3, dimension), (2, dimension)])),
    ];
    let general = ErrorStatus::GeneralFailure;
    assert_eq!(by_hand.run(&differences(&[])).0.status, general, "with nothing before");
    for (what, packet) in broken {
        assert_eq!(by_hand.run(&whole).0.status, ErrorStatus::None, "before {what}");
        assert_eq!(by_hand.run(&packet).0.status, general, "{what}");
        assert_eq!(by_hand.run(&differences(&[])).0.status, general, "after {what}");
        beside.is_served(&mut by_hand.burst.client, what);
    }
    // A packet that is whole with them, and wrong: the next one is put right by what differs.
    for (what, status, wrong, right) in [
        (
            "an output with another number of dimensions",
            general,
            {
                let mut datum = output_at(0);
                datum[20] = 3;
                datum
            },
            output_at(0),
        ),
        (
            "a pool that there is not",
            ErrorStatus::InvalidArgument,
            {
                let mut datum = output_at(0);
                datum[8] = 2;
                datum
            },
            output_at(0),
        ),
        ("a dimension where an output is to be", general, dimension, output_at(0)),
    ] {
        assert_eq!(by_hand.run(&whole).0.status, ErrorStatus::None, "before {what}");
        assert_eq!(by_hand.run(&differences(&[(OUTPUT, wrong)])).0.status, status, "{what}");
        assert_eq!(by_hand.run(&differences(&[])).0.status, status, "{what}, again");
        let put_right = differences(&[(OUTPUT, right)]);
        assert_eq!(by_hand.run(&put_right).0.status, ErrorStatus::None, "after {what}");
        beside.is_served(&mut by_hand.burst.client, what);
    }
}

#[test]
fn differences_that_were_not_agreed_on_are_malformed() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start(socket, &wide_model(1), 64);
    assert_eq!(burst.run(&raw_request(1, false), 1).status, ErrorStatus::None);
    assert_eq!(burst.run(&differences(&[]), 1).status, ErrorStatus::GeneralFailure);
    assert_eq!(burst.run(&raw_request(1, false), 1).status, ErrorStatus::None);
}

/// A row of requests, most like the one before: memories that take turns, offsets, shapes, ranks, times; some are refused.
fn requests(memories: &[Pool; 2]) -> Vec<(Request, ExecutionOptions)> {
    let argument = |pool_index: u32, offset: u32, dimensions: &[u32]| RequestArgument {
        location: DataLocation { pool_index, offset, length: 16 },
        dimensions: dimensions.into(),
        ..RequestArgument::default()
    };
    let [one, other] = memories;
    let request = |step: u32| {
        let mut request = if step.is_multiple_of(3) {
            request_between(other, one)
        } else {
            request_between(one, other)
        };
        let dimensions: &[u32] = if step % 7 < 3 { &[] } else { &[1, 4] };
        // Behind the end of its memory, or in a memory that there is not, once in a while.
        let offset = if step % 11 == 10 { 4096 } else { 16 * (step % 5) };
        let pool = if step % 13 == 12 { 2 } else { 1 };
        request.inputs = vec![argument(0, 16 * (step % 2), dimensions)];
        request.outputs = vec![argument(pool, offset, &[])];
        let measure_timing = step % 17 > 8;
        (request, ExecutionOptions { measure_timing, ..ExecutionOptions::default() })
    };
    (0..400).map(request).collect()
}

/// What became of a row of requests: status, shapes, whether there are times, and all bytes afterwards.
type Outcome = (ErrorStatus, Vec<OutputShape>, bool, [Vec<u8>; 2]);

fn outcomes(socket: &std::path::Path, features: Features, depth: u16) -> Vec<Outcome> {
    let client = burst_client::Client::connect(socket).unwrap();
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let mut options = BurstOptions::default().with_depth(depth);
    options.features = features;
    let mut burst = prepared.configure_burst(&options).unwrap();
    let memories: [Pool; 2] = [3, 9].map(|byte| {
        let memory: Pool = Arc::new(ShmMemory::create(256).unwrap());
        memory.write(0, &[byte; 256]).unwrap();
        memory
    });
    let bytes_of = |memory: &Pool| {
        let mut bytes = vec![0; 256];
        memory.read(0, &mut bytes).unwrap();
        bytes
    };
    let run = |(request, options): (Request, ExecutionOptions)| {
        let result = burst.execute(&request, &options, long()).unwrap();
        let has_times = result.timing.time_in_driver_us != u64::MAX;
        let (status, shapes) = (result.status, result.output_shapes.clone());
        assert!(!burst.fell_back());
        (status, shapes, has_times, memories.each_ref().map(bytes_of))
    };
    requests(&memories).into_iter().map(run).collect()
}

#[test]
fn the_same_requests_have_the_same_results_with_differences_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service");
    let _service = peer::Service::start(&path);
    let without = outcomes(&path, Features::ALL.without(Features::DIFFERENCES), 1);
    let refused = without.iter().filter(|(status, ..)| *status == ErrorStatus::InvalidArgument);
    assert!(refused.count() > 50, "some are refused");
    assert!(without.iter().any(|(status, ..)| *status == ErrorStatus::None), "and some are not");
    for (features, depth) in [(Features::ALL, 1), (Features::ALL, 4), (Features::DIFFERENCES, 1)] {
        assert!(outcomes(&path, features, depth) == without, "{features}, {depth} under way");
    }
}
