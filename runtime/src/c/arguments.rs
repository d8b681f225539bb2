//! Pointers that a C caller hands in, followed here and nowhere else.
//!
//! The types of this file stand in the signatures of the exported functions. None has a constructor, so
//! that each value comes over the edge, from a caller who promises what the header says of it:
//!
//! 1. What is to be read may be read for its length, and nobody writes it, until the call returns.
//! 2. What is to be written may be written for its length by this call alone, until it returns.
//! 3. Text ends with a zero.
//!
//! What the caller does not promise is looked at: null, counts beyond any sense, alignment (nothing here
//! needs any). Values leave as copies; only [`In::lend`] lends, and only while the call lasts.

#![allow(unsafe_code, reason = "follows the pointers of C callers")]

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, OwnedFd};

use burst_hal::ResultCode;

use crate::{Error, Result};

/// A value of which every pattern of bits is one, so that whatever memory a caller points to can be read.
///
/// # Safety
/// As said; pointers in it are wrapped in types of this file.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: numbers without illegal patterns.
unsafe impl Plain for u8 {}
// SAFETY: the same.
unsafe impl Plain for u32 {}
// SAFETY: the same.
unsafe impl Plain for f32 {}

/// Where a caller says that something can be read, or null.
#[repr(transparent)]
pub(super) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(super) fn address(self) -> *const T {
        self.0
    }

    /// Refuses null.
    pub(super) fn required(self, what: &'static str) -> Result<Self> {
        match self.is_null() {
            true => Err(null(what)),
            false => Ok(self),
        }
    }
}

impl<T: Plain> In<T> {
    /// A copy of the value.
    ///
    /// # Errors
    /// UNEXPECTED_NULL.
    pub(super) fn read(self, what: &'static str) -> Result<T> {
        self.required(what)?;
        // SAFETY: not null; by the caller's promise readable for one `T`, of which every pattern of bits
        // is legal (`Plain`); copied without regard to alignment.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The value, unless there is none.
    pub(super) fn read_optional(self) -> Option<T> {
        self.read("").ok()
    }

    /// Copies of so many values.
    ///
    /// # Errors
    /// UNEXPECTED_NULL, also for none of them; BAD_DATA for more than `limit`; OUT_OF_MEMORY.
    pub(super) fn read_many(self, count: u32, limit: usize, what: &'static str) -> Result<Vec<T>> {
        self.required(what)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > limit {
            let cause = format!("{count} {what}, at most {limit} can be meant");
            return Err(Error::new(ResultCode::BadData, cause));
        }
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| {
            Error::new(ResultCode::OutOfMemory, format!("no memory for {count} {what}"))
        })?;
        for index in 0..count {
            // SAFETY: by the caller's promise readable for `count` values, and `index` is below that.
            let at = unsafe { self.0.add(index) };
            // SAFETY: as in `read`.
            values.push(unsafe { at.read_unaligned() });
        }
        Ok(values)
    }
}

/// Untyped bytes of a caller.
pub(super) type Bytes = In<c_void>;

impl Bytes {
    /// Lends `length` bytes to `use_them`; null without length is `None`.
    ///
    /// They are lent and not copied so that a length that turns out to be wrong is refused before
    /// anything is read.
    ///
    /// # Errors
    /// UNEXPECTED_NULL for null with a length; BAD_DATA for a length that no buffer has.
    pub(super) fn lend<R>(
        self,
        length: usize,
        what: &'static str,
        use_them: impl FnOnce(Option<&[u8]>) -> Result<R>,
    ) -> Result<R> {
        if self.is_null() && length == 0 {
            return use_them(None);
        }
        self.required(what)?;
        if isize::try_from(length).is_err() {
            let cause = format!("{what} of {length} bytes");
            return Err(Error::new(ResultCode::BadData, cause));
        }
        // SAFETY: not null, at most `isize::MAX` long; by the caller's promise readable and not written
        // by anybody until the call returns, and the slice ends with `use_them`.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), length) };
        use_them(Some(bytes))
    }
}

/// Where a caller wants an answer, or null.
#[repr(transparent)]
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(super) fn address(&self) -> *mut T {
        self.0
    }

    /// A place for the answer.
    ///
    /// # Errors
    /// UNEXPECTED_NULL.
    pub(super) fn required(self, what: &'static str) -> Result<Place<T>> {
        match self.0.is_null() {
            true => Err(null(what)),
            false => Ok(Place(self.0)),
        }
    }
}

/// Where a caller wants an answer. Not null.
pub(super) struct Place<T>(*mut T);

impl<T: Copy> Place<T> {
    /// Writes the answer.
    pub(super) fn set(&self, value: T) {
        // SAFETY: not null (made by `Out::required`); by the caller's promise writable for one `T` until
        // the call returns, and a place lives no longer; without regard to alignment.
        unsafe { self.0.write_unaligned(value) };
    }

    /// Writes several; the caller promises room for as many as the function says.
    pub(super) fn set_many(&self, values: impl IntoIterator<Item = T>) {
        for (index, value) in values.into_iter().enumerate() {
            // SAFETY: by the caller's promise there is room for as many as the function answers.
            let at = unsafe { self.0.add(index) };
            // SAFETY: as in `set`.
            unsafe { at.write_unaligned(value) };
        }
    }
}

/// Text of a caller, which ends with a zero, or null.
#[repr(transparent)]
pub(super) struct Text(*const c_char);

impl Text {
    /// The bytes before the zero.
    ///
    /// # Errors
    /// UNEXPECTED_NULL; BAD_DATA where the first `limit` bytes have no zero behind them.
    pub(super) fn bytes(&self, limit: usize, what: &'static str) -> Result<Vec<u8>> {
        if self.0.is_null() {
            return Err(null(what));
        }
        let mut bytes = Vec::new();
        for index in 0..=limit {
            // SAFETY: by the caller's promise the text ends with a zero, which was not met yet.
            let at = unsafe { self.0.add(index) };
            // SAFETY: as above; a byte needs no alignment.
            let byte = unsafe { at.read() };
            if byte == 0 {
                return Ok(bytes);
            }
            bytes.push(byte.to_ne_bytes()[0]);
        }
        Err(Error::new(ResultCode::BadData, format!("{what} is longer than {limit} bytes")))
    }

    /// The same as a string.
    ///
    /// # Errors
    /// As [`Text::bytes`]; BAD_DATA where it is not UTF-8.
    pub(super) fn string(&self, limit: usize, what: &'static str) -> Result<String> {
        let bytes = self.bytes(limit, what)?;
        let not_text = |_| Error::new(ResultCode::BadData, format!("{what} is no text"));
        String::from_utf8(bytes).map_err(not_text)
    }
}

/// A duplicate of a caller's descriptor; `None` where it is not open.
pub(super) fn duplicate(fd: c_int) -> Option<OwnedFd> {
    if fd < 0 {
        return None;
    }
    // SAFETY: not -1. Borrowed for the one system call below, which fails where it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_dupfd_cloexec(borrowed, 0).ok()
}

/// A `bool` of C, in which a careless caller may have put any byte.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct Bool(u8);

impl Bool {
    pub(super) fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool(value.into())
    }
}

/// Memory that a caller wants something written to, later.
pub(super) type OutBytes = Out<c_void>;

fn null(what: &'static str) -> Error {
    Error::new(ResultCode::UnexpectedNull, format!("{what} is null"))
}

#[cfg(test)]
mod tests {
    use std::ptr::{from_ref, null, null_mut};

    use super::*;

    fn code<T>(result: Result<T>) -> ResultCode {
        result.err().map_or(ResultCode::NoError, |error| error.code)
    }

    #[test]
    fn null_and_counts_beyond_sense_are_refused_before_anything_is_read() {
        let values = [1_u32, 2, 3];
        let list = In(values.as_ptr());
        assert_eq!(list.read_many(3, 3, "values").unwrap(), [1, 2, 3]);
        assert_eq!(code(list.read_many(4, 3, "values")), ResultCode::BadData);
        assert_eq!(code(list.read_many(u32::MAX, 3, "values")), ResultCode::BadData);
        assert_eq!(code(In::<u32>(null()).read_many(0, 3, "values")), ResultCode::UnexpectedNull);
        assert_eq!(code(In::<u32>(null()).read("value")), ResultCode::UnexpectedNull);
        assert!(In::<u32>(null()).read_optional().is_none());
        assert_eq!(code(Out::<u32>(null_mut()).required("answer")), ResultCode::UnexpectedNull);
    }

    #[test]
    fn values_need_no_alignment() {
        let bytes = [9_u8, 1, 0, 0, 0, 2, 0, 0, 0];
        let unaligned = In(bytes[1..].as_ptr().cast::<u32>());
        let read = unaligned.read_many(2, 2, "values").unwrap();
        assert_eq!(read, [u32::from_le(1), u32::from_le(2)]);
        let mut room = [0_u8; 9];
        Out(room[1..].as_mut_ptr().cast::<u32>()).required("room").unwrap().set_many(read);
        assert_eq!(room[1..], bytes[1..]);
    }

    #[test]
    fn bytes_are_lent_for_the_length_that_they_have_or_not_at_all() {
        let bytes = [7_u8, 8];
        let lent: Bytes = In(from_ref(&bytes).cast());
        let taken = |bytes: Option<&[u8]>| Ok(bytes.map(<[u8]>::to_vec));
        assert_eq!(lent.lend(2, "value", taken).unwrap(), Some(vec![7, 8]));
        assert_eq!(In(null()).lend(0, "value", taken).unwrap(), None);
        assert_eq!(code(In(null()).lend(1, "value", taken)), ResultCode::UnexpectedNull);
        assert_eq!(code(lent.lend(usize::MAX, "value", taken)), ResultCode::BadData);
    }

    #[test]
    fn text_ends_with_a_zero_within_its_limit() {
        let text = Text(c"abc".as_ptr());
        assert_eq!(text.string(3, "name").unwrap(), "abc");
        assert_eq!(code(text.string(2, "name")), ResultCode::BadData);
        assert_eq!(code(Text(null()).bytes(2, "name")), ResultCode::UnexpectedNull);
        assert_eq!(code(Text(c"\xFF".as_ptr()).string(9, "name")), ResultCode::BadData);
    }
}
