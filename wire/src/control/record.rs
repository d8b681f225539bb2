//! What may grow: records, which say how long they are, and kinds of things, which have numbers.
//!
//! A *record* is its length in bytes, its fields, and its *tail*: whatever a later version put
//! behind them. A decoder reads the fields that it knows and skips the tail. A *kind* is a number and
//! a record, so that a decoder also gets past a kind that it does not know:
//!
//! ```text
//! record   bytes u32 | fields | tail
//! kind     number u32 | bytes u32 | fields | tail
//! ```
//! Only records have tails. Inside the fields that are known nothing is skipped: a record that ends
//! too early, a count over its limit or a yes-or-no of 2 is malformed.

use bincode::de::read::Reader;
use bincode::de::{BorrowDecode, BorrowDecoder, Decode, Decoder};
use bincode::enc::write::Writer;
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

use super::{MESSAGE_MAX, config};

/// Fields with their length in bytes in front. What follows behind the known ones is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record<T>(pub T);

impl<T: Encode> Encode for Record<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let fields = bincode::encode_to_vec(&self.0, config::<MESSAGE_MAX>())?;
        let length = u32::try_from(fields.len());
        length.map_err(|_| EncodeError::Other("a record is over its limit"))?.encode(encoder)?;
        encoder.writer().write(&fields)
    }
}

impl<C, T: Decode<()>> Decode<C> for Record<T> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        decode_fields(decoder).map(Record)
    }
}

impl<'de, C, T: Decode<()>> BorrowDecode<'de, C> for Record<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

/// The last field of a record, which earlier versions do not have: there a record ends before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tail<T>(pub(super) Option<T>);

impl<T: Encode> Encode for Tail<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.as_ref().map_or(Ok(()), |field| field.encode(encoder))
    }
}

impl<'de, C, T: Decode<C>> BorrowDecode<'de, C> for Tail<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

impl<C, T: Decode<C>> Decode<C> for Tail<T> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        // The reader has the record and nothing behind it.
        match decoder.reader().peek_read(1) {
            None => Ok(Tail(None)),
            Some(_) => T::decode(decoder).map(|field| Tail(Some(field))),
        }
    }
}

/// Writes a thing of this kind.
pub(super) fn encode_kind<E: Encoder>(
    number: u32,
    fields: impl Encode,
    encoder: &mut E,
) -> Result<(), EncodeError> {
    number.encode(encoder)?;
    Record(fields).encode(encoder)
}

/// Reads a record's fields and skips its tail. `()` skips all of them.
///
/// Nothing is reserved for the length: the record has to be there, or it is malformed.
pub(super) fn decode_fields<T: Decode<()>, D: Decoder>(decoder: &mut D) -> Result<T, DecodeError> {
    let length = u32::decode(decoder)? as usize;
    decoder.claim_bytes_read(length)?;
    let too_short = DecodeError::UnexpectedEnd { additional: length };
    let record = decoder.reader().peek_read(length).ok_or(too_short)?;
    let (fields, _tail) = bincode::decode_from_slice(record, config::<MESSAGE_MAX>())?;
    decoder.reader().consume(length);
    Ok(fields)
}
