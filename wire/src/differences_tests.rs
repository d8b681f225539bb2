//! Packets by differences: their bytes, and what the files beside this one share.

use crate::{DatumBytes, Features, PacketKind, WireError, packet_datums};

#[path = "differences_tests/bytes.rs"]
mod bytes;
#[path = "differences_tests/hostile.rs"]
mod hostile;
#[path = "differences_tests/requests.rs"]
mod requests;
#[path = "differences_tests/results.rs"]
mod results;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    fn slot(&mut self) -> i32 {
        i32::try_from(self.word() >> 1).unwrap()
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// The first byte of a packet by differences, and where it says its length.
#[derive(Clone, Copy)]
struct Head {
    as_before: u8,
    length_at: usize,
}

const REQUEST: Head = Head { as_before: 0x43, length_at: 4 };
const RESULT: Head = Head { as_before: 0x42, length_at: 8 };

impl Head {
    /// A packet with these differences.
    fn packet(self, differences: &[DatumBytes]) -> Vec<DatumBytes> {
        let mut first = [0; 24];
        first[0] = self.as_before;
        let datums = u32::try_from(1 + differences.len()).unwrap();
        first[self.length_at..][..4].copy_from_slice(&datums.to_ne_bytes());
        [&[first], differences].concat()
    }
}

/// A datum as a difference at this place.
fn at(place: u16, mut datum: DatumBytes) -> DatumBytes {
    datum[2..4].copy_from_slice(&place.to_ne_bytes());
    datum
}

/// The packet that both ends of a queue have, by an independent look at what came.
#[derive(Default)]
struct Queue {
    before: Vec<DatumBytes>,
}

impl Queue {
    /// The packet that is meant.
    fn take(&mut self, head: Head, packet: &[DatumBytes]) -> Result<&[DatumBytes], WireError> {
        let meant = if packet[0][0] == head.as_before {
            self.changed(head, packet)
        } else {
            Ok(packet.to_vec())
        };
        self.before = meant.clone().unwrap_or_default();
        meant.map(|_| self.before.as_slice())
    }

    fn changed(&self, head: Head, packet: &[DatumBytes]) -> Result<Vec<DatumBytes>, WireError> {
        let said = packet[0][head.length_at..][..4].try_into().map(u32::from_ne_bytes).unwrap();
        if said as usize != packet.len() {
            return Err(WireError::PacketSize { said, received: packet.len() });
        }
        if self.before.is_empty() {
            return Err(WireError::NothingBefore);
        }
        let mut meant = self.before.clone();
        let mut after = 0;
        for difference in &packet[1..] {
            let place = usize::from(u16::from_ne_bytes([difference[2], difference[3]]));
            if place <= after || place >= meant.len() {
                return Err(WireError::Place { place, after });
            }
            meant[place] = *difference;
            meant[place][2..4].fill(0);
            after = place;
        }
        Ok(meant)
    }
}

#[test]
fn a_packet_by_differences_ends_where_it_says_where_it_was_negotiated() {
    let first = |kind: u8, length_at: usize, said: u32| {
        let mut first = [0; 24];
        first[0] = kind;
        first[length_at..][..4].copy_from_slice(&said.to_ne_bytes());
        first
    };
    for (kind, Head { as_before, length_at }, other) in
        [(PacketKind::Request, REQUEST, 0x42), (PacketKind::Result, RESULT, 0x43)]
    {
        for said in [1, 2, 9] {
            let first = first(as_before, length_at, said);
            let datums = packet_datums(kind, Features::DIFFERENCES, &first, 9);
            assert_eq!(datums, Ok(said as usize));
            for features in [Features::NONE, Features::ALL.without(Features::DIFFERENCES)] {
                let refused = packet_datums(kind, features, &first, 9);
                assert_eq!(refused, Err(WireError::NoPacketInformation));
            }
        }
        for said in [0, 10, u32::MAX] {
            let refused = packet_datums(kind, Features::ALL, &first(as_before, length_at, said), 9);
            assert_eq!(refused, Err(WireError::PacketSize { said, received: 9 }));
        }
        let refused = packet_datums(kind, Features::ALL, &first(other, length_at, 2), 9);
        assert_eq!(refused, Err(WireError::NoPacketInformation), "the other queue's kind");
        // One that comes as a whole has two datums or more, as ever.
        let refused = packet_datums(kind, Features::ALL, &first(0, length_at, 1), 9);
        assert_eq!(refused, Err(WireError::PacketSize { said: 1, received: 9 }));
        assert_eq!(packet_datums(kind, Features::ALL, &first(0, length_at, 2), 9), Ok(2));
    }
}
