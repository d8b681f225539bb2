//! Lists and texts that cannot be longer than they have any reason to be.

use bincode::de::read::Reader;
use bincode::de::{BorrowDecode, BorrowDecoder, Decode, Decoder};
use bincode::enc::write::Writer;
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

/// At most `MAX` elements; the count is 32 bits wide on the wire.
///
/// A decoder reserves nothing for the count: the list grows with the elements that really come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MAX: usize>(pub Vec<T>);

/// At most `MAX` bytes of UTF-8; the length is 32 bits wide on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<const MAX: usize>(String);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        List(Vec::new())
    }
}

impl<T, const MAX: usize> FromIterator<T> for List<T, MAX> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        List(items.into_iter().collect())
    }
}

impl<const MAX: usize> Text<MAX> {
    /// The text, cut at a character's end where it is longer than it may be.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        let end = (0..=MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        Text(text[..end.unwrap_or(0)].to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn encode_count<E: Encoder>(count: usize, max: usize, encoder: &mut E) -> Result<(), EncodeError> {
    match u32::try_from(count) {
        Ok(short) if count <= max => short.encode(encoder),
        _ => Err(EncodeError::Other("a list or text is over its limit")),
    }
}

fn decode_count<D: Decoder>(max: usize, decoder: &mut D) -> Result<usize, DecodeError> {
    let count = u32::decode(decoder)? as usize;
    if count > max {
        return Err(DecodeError::ArrayLengthMismatch { required: max, found: count });
    }
    Ok(count)
}

impl<T: Encode, const MAX: usize> Encode for List<T, MAX> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_count(self.0.len(), MAX, encoder)?;
        self.0.iter().try_for_each(|item| item.encode(encoder))
    }
}

impl<C, T: Decode<C>, const MAX: usize> Decode<C> for List<T, MAX> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let count = decode_count(MAX, decoder)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(T::decode(decoder)?);
        }
        Ok(List(list))
    }
}

impl<'de, C, T: Decode<C>, const MAX: usize> BorrowDecode<'de, C> for List<T, MAX> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

impl<const MAX: usize> Encode for Text<MAX> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_count(self.0.len(), MAX, encoder)?;
        encoder.writer().write(self.0.as_bytes())
    }
}

impl<C, const MAX: usize> Decode<C> for Text<MAX> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let length = decode_count(MAX, decoder)?;
        decoder.claim_bytes_read(length)?;
        let mut bytes = vec![0; length]; // `MAX` is small for every text
        decoder.reader().read(&mut bytes)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| DecodeError::Utf8 { inner: error.utf8_error() })?;
        Ok(Text(text))
    }
}

impl<'de, C, const MAX: usize> BorrowDecode<'de, C> for Text<MAX> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}
