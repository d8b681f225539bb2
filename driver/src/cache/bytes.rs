//! Numbers and lists in bytes that somebody else may have written.

/// What is wrong with bytes.
pub type Malformed = &'static str;

const TOO_SHORT: Malformed = "it ends too early";

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

/// A list with its count.
pub(super) fn put_u32s(out: &mut Vec<u8>, values: &[u32]) {
    put_u32(out, u32::try_from(values.len()).unwrap_or(u32::MAX));
    values.iter().for_each(|value| put_u32(out, *value));
}

/// Takes bytes from the front. Nothing is reserved for a count before that many of the smallest elements are
/// known to be there.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Refuses bytes behind the end.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err("bytes follow its end") }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.take()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.take()?))
    }

    pub(super) fn f32(&mut self) -> Result<f32, Malformed> {
        Ok(f32::from_le_bytes(self.take()?))
    }

    /// Yes or no.
    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a yes or no is neither"),
        }
    }

    /// A count of elements, each of which takes at least so many bytes.
    pub(super) fn count(&mut self, limit: usize, least: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count > limit {
            return Err("a count is over its limit");
        }
        match count.checked_mul(least) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(TOO_SHORT),
        }
    }

    /// Elements with their count in front.
    pub(super) fn list<T>(
        &mut self,
        limit: usize,
        least: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.count(limit, least)?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    /// Numbers below `end`, with their count in front.
    pub(super) fn indexes(&mut self, limit: usize, end: usize) -> Result<Vec<u32>, Malformed> {
        self.list(limit, 4, |reader| {
            let index = reader.u32()?;
            if index as usize >= end {
                return Err("an index names nothing");
            }
            Ok(index)
        })
    }

    /// Bytes with their count in front.
    pub(super) fn bytes(&mut self, limit: usize) -> Result<&'a [u8], Malformed> {
        let count = self.count(limit, 1)?;
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }
}
