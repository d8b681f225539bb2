//! Requests and results as datums: section 11 of the page.

use super::bytes::{Reader, Writer};
use super::queue::DATUM;

/// An input or output: has_no_value, pool, offset, length, dimensions.
#[derive(Clone)]
pub struct Argument(pub bool, pub u32, pub u32, pub u32, pub Vec<u32>);

/// An execution of the model of [`super::model`].
#[derive(Clone)]
pub struct Request {
    pub inputs: Vec<Argument>,
    pub outputs: Vec<Argument>,
    pub slots: Vec<i32>,
    pub measure: i32,
    pub deadline: Option<u64>,
    pub loop_timeout: Option<u64>,
    pub number: Option<u64>,
}

/// Inputs at 0 and 8 of the first pool, the output at 0 of the second.
pub fn request(slots: [i32; 2]) -> Request {
    Request {
        inputs: vec![Argument(false, 0, 0, 8, vec![]), Argument(false, 0, 8, 8, vec![2])],
        outputs: vec![Argument(false, 1, 0, 8, vec![])],
        slots: slots.to_vec(),
        measure: 0,
        deadline: None,
        loop_timeout: None,
        number: None,
    }
}

/// A datum: its kind, and fields from an offset on.
fn datum(kind: u8, at: usize, fields: Writer) -> Vec<u8> {
    let mut bytes = vec![0; DATUM];
    bytes[0] = kind;
    bytes[at..at + fields.0.len()].copy_from_slice(&fields.0);
    bytes
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("few")
}

impl Request {
    pub fn encode(&self) -> Vec<u8> {
        let new = Writer::default;
        let mut rest = Vec::new();
        for (kind, arguments) in [(1, &self.inputs), (3, &self.outputs)] {
            for Argument(omitted, pool, offset, length, dimensions) in arguments {
                let fields = new().bool(*omitted).raw(&[0; 3]).u32(*pool).u32(*offset);
                rest.push(datum(kind, 4, fields.u32(*length).u32(count(dimensions))));
                rest.extend(dimensions.iter().map(|size| datum(kind + 1, 4, new().u32(*size))));
            }
        }
        rest.extend(self.slots.iter().map(|slot| datum(5, 4, new().i32(*slot))));
        rest.push(datum(6, 4, new().i32(self.measure)));
        let extra = [(0x40, self.deadline), (0x41, self.loop_timeout), (0x42, self.number)];
        for (kind, value) in extra {
            rest.extend(value.map(|value| datum(kind, 8, new().u64(value))));
        }
        let counts = new().u32(count(&rest) + 1).u32(count(&self.inputs));
        let counts = counts.u32(count(&self.outputs)).u32(count(&self.slots));
        let mut packet = datum(0, 4, counts);
        packet.extend(rest.concat());
        packet
    }
}

/// The packet before in a queue, as each of its ends keeps it.
#[derive(Default)]
pub struct Before(Vec<u8>);

impl Before {
    /// What a client sends of a request: all of it, or where it differs, where that can be said in less.
    pub fn send(&mut self, packet: &[u8]) -> Vec<u8> {
        let before = std::mem::replace(&mut self.0, packet.to_vec());
        let pairs = packet.chunks(DATUM).zip(before.chunks(DATUM)).enumerate();
        let differences: Vec<Vec<u8>> = pairs
            .filter(|(_, (new, old))| new != old)
            .map(|(place, (new, _))| {
                let place = Writer::default().u16(u16::try_from(place).expect("few"));
                [&new[..2], &place.0, &new[4..]].concat()
            })
            .collect();
        let sent = datum(0x43, 4, Writer::default().u32(count(&differences) + 1));
        let sent = [sent, differences.concat()].concat();
        let can_be_said = packet.len() == before.len() && packet[..DATUM] == before[..DATUM];
        if can_be_said && sent.len() < packet.len() { sent } else { packet.to_vec() }
    }

    /// The result that a service means by what it sent.
    pub fn receive(&mut self, sent: Vec<u8>) -> Vec<u8> {
        if sent[0] != 0x42 {
            self.0.clone_from(&sent);
            return sent;
        }
        let mut differences = sent.chunks(DATUM);
        let first = differences.next().expect("that it is as before");
        assert_eq!(datums_of_result(first) * DATUM, sent.len());
        let mut last = 0;
        for difference in differences {
            let place = usize::from(Reader(&difference[2..]).u16());
            assert!(place > last, "places ascend");
            let datum = &mut self.0[place * DATUM..][..DATUM];
            datum.copy_from_slice(difference);
            datum[2..4].fill(0);
            last = place;
        }
        self.0.clone()
    }
}

/// What came of an execution.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: i32,
    /// Whether there was room for each output, and its dimensions.
    pub shapes: Vec<(bool, Vec<u32>)>,
    /// Microseconds on the device and in the driver.
    pub micros: [u64; 2],
    /// Nanoseconds on the device and in the driver.
    pub nanos: Option<[u64; 2]>,
    pub number: Option<u64>,
}

/// Datums of the packet that begins with this one.
pub fn datums_of_result(first: &[u8]) -> usize {
    Reader(&first[8..]).u32() as usize
}

/// Reads a result packet.
pub fn decode(packet: &[u8]) -> Answer {
    let (datums, rest) = packet.as_chunks::<DATUM>();
    assert!(rest.is_empty());
    let mut datums = datums.iter().peekable();
    let mut next = |kind: u8| datums.next_if(|datum| datum[0] == kind);
    let information = next(0).expect("information");
    let mut fields = Reader(&information[8..]);
    assert_eq!(fields.u32() as usize * DATUM, packet.len());
    let (status, outputs) = (fields.i32(), fields.u32());
    let shapes = (0..outputs)
        .map(|_| {
            let mut fields = Reader(&next(1).expect("an output")[8..]);
            let sufficient = fields.bool();
            fields.take(3);
            let sizes = (0..fields.u32())
                .map(|_| Reader(&next(2).expect("a dimension")[8..]).u32())
                .collect();
            (sufficient, sizes)
        })
        .collect();
    let pair = |datum: &[u8; DATUM]| {
        let mut fields = Reader(&datum[8..]);
        [fields.u64(), fields.u64()]
    };
    let micros = pair(next(3).expect("the timing"));
    let nanos = next(0x40).map(pair);
    let number = next(0x41).map(|datum| Reader(&datum[8..]).u64());
    assert!(datums.next().is_none(), "nothing behind the last datum");
    Answer { status, shapes, micros, nanos, number }
}
