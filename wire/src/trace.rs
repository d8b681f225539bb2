//! Spans in memory that a client lends to a service: a header, and records of one size behind it.
//!
//! ```text
//!  0   records that are whole      u64   only grows; the record before the word
//!  8   records that had no room    u64
//! 16   0                           48 bytes
//! 64   records of 64 bytes
//!
//! a record
//!  0   begin    u64   nanoseconds of CLOCK_MONOTONIC
//!  8   end      u64
//! 16   kind     u32   number of the SpanKind
//! 20   thread   u32   of the service, as the kernel numbers it
//! 24   code     i32   of the operation; -1 where it is none
//! 28   index    u32
//! 32   graph    u32
//! 36   detail   28 bytes of UTF-8, zeros behind it
//! ```

use burst_hal::OperationType;
use burst_hal::trace::{Span, SpanKind};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 64;
/// Bytes before the first record.
pub const HEADER_BYTES: usize = 64;
/// Where the number of whole records stands.
pub const WRITTEN_AT: usize = 0;
/// Where the number of records stands that had no room.
pub const DROPPED_AT: usize = 8;
/// The shortest memory for spans: one record.
pub const TRACE_BYTES_MIN: u64 = (HEADER_BYTES + RECORD_BYTES) as u64;
/// The longest: a million records, some minutes of a model that is executed as fast as can be. A service writes
/// each of its pages, so each counts as memory of the client's user.
pub const TRACE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of text in a record.
const DETAIL_BYTES: usize = 28;
/// The code of a span that is no operation.
const NO_OPERATION: i32 = -1;

/// How many records a memory of this length has room for.
#[must_use]
pub fn records_in(bytes: u64) -> u64 {
    bytes.saturating_sub(HEADER_BYTES as u64) / RECORD_BYTES as u64
}

/// A span as a record.
#[must_use]
pub fn encode_span(span: &Span<'_>, thread: u32) -> [u8; RECORD_BYTES] {
    let Span { kind, begin_ns, end_ns, operation, graph, index, detail } = *span;
    let code = operation.map_or(NO_OPERATION, OperationType::code);
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&begin_ns.to_le_bytes());
    record[8..16].copy_from_slice(&end_ns.to_le_bytes());
    record[16..20].copy_from_slice(&kind.number().to_le_bytes());
    record[20..24].copy_from_slice(&thread.to_le_bytes());
    record[24..28].copy_from_slice(&code.to_le_bytes());
    record[28..32].copy_from_slice(&index.to_le_bytes());
    record[32..36].copy_from_slice(&graph.to_le_bytes());
    let end = detail.floor_char_boundary(DETAIL_BYTES);
    record[36..36 + end].copy_from_slice(&detail.as_bytes()[..end]);
    record
}

/// A record as a span, with its thread. `None` for one that makes no sense: of an unknown kind, one that
/// ends before it begins, text that is none.
#[must_use]
pub fn decode_span(record: &[u8; RECORD_BYTES]) -> Option<(Span<'_>, u32)> {
    let code = i32::from_le_bytes(*record[24..].first_chunk()?);
    let text = record[36..].split(|byte| *byte == 0).next()?;
    let span = Span {
        kind: SpanKind::from_number(u32_at(record, 16)?)?,
        begin_ns: u64::from_le_bytes(*record.first_chunk()?),
        end_ns: u64::from_le_bytes(*record[8..].first_chunk()?),
        operation: (code != NO_OPERATION).then(|| OperationType::from_code(code)),
        graph: u32_at(record, 32)?,
        index: u32_at(record, 28)?,
        detail: std::str::from_utf8(text).ok()?,
    };
    (span.begin_ns <= span.end_ns).then_some((span, u32_at(record, 20)?))
}

fn u32_at(record: &[u8; RECORD_BYTES], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*record[at..].first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span<'static> = Span {
        kind: SpanKind::Operation,
        begin_ns: 0x0102_0304_0506_0708,
        end_ns: 0x1112_1314_1516_1718,
        operation: Some(OperationType::Conv2d),
        graph: 2,
        index: 65,
        detail: "matrix 8 bit, vnni",
    };

    #[test]
    fn a_record_has_these_bytes() {
        let record = encode_span(&SPAN, 4711);
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = "6d617472697820382062\
                    69742c20766e6e6900000000000000000000";
        let head = "08070605040302011817161514131211\
                    27000000671200000300000041000000\
                    02000000";
        assert_eq!(hex, format!("{head}{text}"));
        assert_eq!(decode_span(&record), Some((SPAN, 4711)));
    }

    #[test]
    fn what_is_no_operation_has_no_code_and_long_text_is_cut_at_a_character() {
        for (detail, kept) in [
            ("", ""),
            ("twenty-eight bytes of letter", "twenty-eight bytes of letter"),
            ("twenty-eight bytes of letters", "twenty-eight bytes of letter"),
            ("twenty-seven bytes, then \u{e9}\u{e9}", "twenty-seven bytes, then \u{e9}"),
        ] {
            let span = Span { operation: None, detail, ..SPAN };
            let record = encode_span(&span, 1);
            let want = Span { detail: kept, ..span };
            assert_eq!(decode_span(&record), Some((want, 1)), "{detail}");
        }
        let extension = OperationType::Extension(0x3_0007);
        let span = Span { operation: Some(extension), ..SPAN };
        assert_eq!(decode_span(&encode_span(&span, 0)).unwrap().0.operation, Some(extension));
    }

    #[test]
    fn records_that_make_no_sense_are_none() {
        let whole = encode_span(&SPAN, 1);
        let spoiled = |at: usize, byte: u8| {
            let mut record = whole;
            record[at] = byte;
            decode_span(&record).is_none()
        };
        assert!(spoiled(16, 0xFE), "an unknown kind");
        assert!(spoiled(7, 0x7F), "an end before the beginning");
        assert!(spoiled(40, 0xFF), "text that is none");
        assert!(decode_span(&[0; RECORD_BYTES]).is_none(), "one that was never written");
        assert!(decode_span(&[0xFF; RECORD_BYTES]).is_none());
    }

    #[test]
    fn a_memory_has_room_for_whole_records_alone() {
        assert_eq!(records_in(0), 0);
        assert_eq!(records_in(TRACE_BYTES_MIN - 1), 0);
        assert_eq!(records_in(TRACE_BYTES_MIN), 1);
        assert_eq!(records_in(TRACE_BYTES_MIN + 63), 1);
        assert_eq!(records_in(TRACE_BYTES_MAX), (1 << 20) - 1);
        assert_eq!(records_in(u64::MAX), (u64::MAX - 64) / 64);
    }
}
