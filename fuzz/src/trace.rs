//! Memory for spans that another process writes: what a client reads of it while a hostile service writes there, and
//! what an honest service has written, whatever its client did to it meanwhile.
//!
//! Looked at: a record that makes sense is written again to the same bytes, as far as anybody reads them; one that
//! does not is counted and nothing else; no more records are read than there is room for, whatever the words
//! say; every span that is given out stands in a record that an independent look finds.

use burst_client::TraceBuffer;
use burst_hal::trace::{Span, SpanKind};
use burst_shm::{Mapping, Memory};
use burst_wire::trace::{
    DROPPED_AT, HEADER_BYTES, RECORD_BYTES, WRITTEN_AT, decode_span, encode_span, records_in,
};
use rustix::io::fcntl_dupfd_cloexec;

use crate::{Input, Script, Seed, seed};

/// The longest memory: more records than any input has bytes for.
const RECORDS_MAX: usize = 64;

/// The first byte says how the others are taken.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.u8() % 3 {
        0 => one_record(&mut input),
        1 => a_memory(&mut input),
        _ => a_span(&mut input),
    }
}

/// A record of any content.
fn one_record(input: &mut Input<'_>) -> bool {
    let mut record = [0; RECORD_BYTES];
    let bytes = input.bytes(RECORD_BYTES);
    record[..bytes.len()].copy_from_slice(bytes);
    let Some((span, thread)) = decode_span(&record) else { return false };
    assert!(span.begin_ns <= span.end_ns, "{span:?}");
    assert!(!span.detail.contains('\0'), "{span:?}");
    let again = encode_span(&span, thread);
    // Behind the text nobody reads; in front of it there is one way to say a thing.
    let read = RECORD_BYTES - DETAIL_BYTES + span.detail.len();
    assert_eq!(again[..read], record[..read], "{span:?}");
    assert_eq!(decode_span(&again), Some((span, thread)));
    true
}

/// Bytes of text at the end of a record (`docs/PROTOCOL.md`).
const DETAIL_BYTES: usize = 28;

/// A span of any content, as a service writes it.
fn a_span(input: &mut Input<'_>) -> bool {
    let number = usize::from(input.u8());
    let kind = SpanKind::ALL[number % SpanKind::ALL.len()];
    let (one, other) = (input.u64(), input.u64());
    let (thread, index, graph) = (input.u32(), input.u32(), input.u32());
    let text = String::from_utf8_lossy(input.rest()).replace('\0', "");
    let span = Span {
        kind,
        begin_ns: one.min(other),
        end_ns: one.max(other),
        operation: None,
        graph,
        index,
        detail: &text,
    };
    let record = encode_span(&span, thread);
    let (back, of_thread) = decode_span(&record).expect("what was written makes sense");
    assert!(text.starts_with(back.detail) && back.detail.len() <= DETAIL_BYTES, "{back:?}");
    assert_eq!((Span { detail: &text, ..back }, of_thread), (span, thread));
    true
}

/// A whole memory: how long it is, what its owner's peer writes where, and a look at it after each.
fn a_memory(input: &mut Input<'_>) -> bool {
    let records = 1 + input.below(RECORDS_MAX);
    let length = HEADER_BYTES + records * RECORD_BYTES + input.below(RECORD_BYTES);
    let buffer = TraceBuffer::create(length as u64).unwrap();
    assert_eq!(buffer.room(), records_in(length as u64));
    // The peer's own descriptor and mapping, as a service has them.
    let theirs = Memory::from_fd(fcntl_dupfd_cloexec(&buffer, 0).unwrap()).unwrap();
    let mapping = Mapping::map(&theirs).unwrap();
    let region = mapping.region(0, length).unwrap();
    let mut content = vec![0; length];
    let mut seen = false;
    while !input.is_empty() {
        let (at, count) = match input.below(4) {
            0 => (WRITTEN_AT, 8),
            1 => (DROPPED_AT, 8),
            2 => (HEADER_BYTES + input.below(records) * RECORD_BYTES, RECORD_BYTES),
            _ => (usize::from(input.u16()) % length, usize::from(input.u8())),
        };
        let bytes = input.bytes(count.min(length - at));
        region.copy_in(at, bytes).unwrap();
        content[at..at + bytes.len()].copy_from_slice(bytes);
        seen |= look(&buffer, &content, records);
    }
    seen
}

/// Reads the memory as a client does, and compares with what lies there.
fn look(buffer: &TraceBuffer, content: &[u8], room: usize) -> bool {
    let word = |at: usize| u64::from_le_bytes(*content[at..].first_chunk().unwrap());
    let written = usize::try_from(word(WRITTEN_AT)).map_or(room, |written| written.min(room));
    let mut records = content[HEADER_BYTES..].chunks_exact(RECORD_BYTES).take(written);
    let mut told = 0;
    let counts = buffer.read(|span, thread| {
        told += 1;
        let same = |record: &[u8]| {
            let record: &[u8; RECORD_BYTES] = record.try_into().unwrap();
            decode_span(record).is_some_and(|(one, of)| (&one, of) == (span, thread))
        };
        assert!(records.any(same), "{span:?} lies nowhere, or not in this order");
    });
    let counts = counts.unwrap();
    assert_eq!(counts.read, told);
    assert_eq!(counts.read + counts.unknown, written as u64);
    assert_eq!((counts.dropped, buffer.written()), (word(DROPPED_AT), written as u64));
    assert_eq!(buffer.bytes_used(), (HEADER_BYTES + written * RECORD_BYTES) as u64);
    told > 0
}

fn record(index: u32, detail: &str) -> [u8; RECORD_BYTES] {
    let span =
        Span { begin_ns: 5, end_ns: 9, index, detail, ..Span::since(1, SpanKind::Operation) };
    encode_span(&span, 4711)
}

/// Single records, whole memories, and what a hostile service writes.
pub fn seeds() -> Vec<Seed> {
    let spoiled = |at: usize, byte: u8| {
        let mut bytes = record(1, "text");
        bytes[at] = byte;
        Script::new().bytes(&[0]).bytes(&bytes)
    };
    let write = |script: Script, index: u8| {
        script.bytes(&[2, index]).bytes(&record(index.into(), "conv, vnni"))
    };
    let memory = |records: u8| Script::new().bytes(&[1, records - 1, 0]);
    let honest = (0..3).fold(memory(3), |script, index| {
        write(script, index).bytes(&[0]).u64(u64::from(index) + 1)
    });
    vec![
        seed("record", Script::new().bytes(&[0]).bytes(&record(1, "matrix 8 bit, vnni"))),
        seed(
            "record_whose_text_fills_it",
            Script::new().bytes(&[0]).bytes(&record(1, &"x".repeat(28))),
        ),
        seed("record_of_an_unknown_kind", spoiled(16, 0xFE)),
        seed("record_that_ends_before_it_begins", spoiled(7, 0x7F)),
        seed("record_without_text", spoiled(36, 0)),
        seed("record_whose_text_is_none", spoiled(36, 0xFF)),
        seed("record_of_zeros", Script::new().bytes(&[0])),
        seed(
            "span",
            Script::new().bytes(&[2, 3]).u64(77).u64(12).u32(9).u32(8).u32(7).bytes(b"a kernel"),
        ),
        seed(
            "span_of_long_text",
            Script::new()
                .bytes(&[2, 0])
                .u64(1)
                .u64(2)
                .u32(0)
                .u32(0)
                .u32(0)
                .bytes("\u{e9}".repeat(40).as_bytes()),
        ),
        seed("memory_as_an_honest_service_writes_it", honest.clone().bytes(&[1]).u64(5)),
        seed(
            "memory_of_more_records_than_there_is_room",
            write(memory(2), 0).bytes(&[0]).u64(u64::MAX).bytes(&[1]).u64(u64::MAX),
        ),
        seed(
            "memory_whose_count_goes_back",
            honest.bytes(&[0]).u64(1).bytes(&[0]).u64(0).bytes(&[0]).u64(3),
        ),
        seed(
            "memory_scribbled_over",
            write(memory(1), 0).bytes(&[3]).u16(1).bytes(&[120]).bytes(&[0xFF; 120]),
        ),
    ]
}
