//! Reading flatbuffer tables without trust: the verifier walks first, then every read is checked.
//!
//! The `flatbuffers` crate reads through `unsafe` methods that believe the verifier. This crate
//! has no `unsafe`, so it uses the crate's verifier for the proof and reads by itself, with bounds
//! checks. After the proof those checks cannot fail; were the proof wrong, a field would read as
//! absent instead of as foreign memory.

use std::marker::PhantomData;

use flatbuffers::Verifiable;

/// Bytes before the first field entry of a vtable: its own size and that of the table.
const VTABLE_HEADER_BYTES: usize = 4;

/// A number that flatbuffers store inline, little endian.
pub(crate) trait Scalar: Copy {
    /// Bytes that it takes.
    const BYTES: usize;
    /// The value in these bytes; `None` where there are too few.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! scalar {
    ($($ty:ty)*) => {$(
        impl Scalar for $ty {
            const BYTES: usize = size_of::<$ty>();
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$ty>::from_le_bytes(*bytes.first_chunk()?))
            }
        }
    )*};
}
scalar!(u8 i8 u16 i16 u32 i32 u64 i64 f32);

impl Scalar for bool {
    const BYTES: usize = 1;
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(*bytes.first()? != 0)
    }
}

/// A type that is a view of one table.
pub(crate) trait View<'a>: Verifiable + Copy {
    /// The view of this table.
    fn of(table: Table<'a>) -> Self;
}

/// A table: where it begins, in which bytes.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// A table without any field.
    pub(crate) const EMPTY: Table<'static> = Table { bytes: &[], at: 0 };

    /// The table that the root offset at the start of the file leads to.
    pub(crate) fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Table { bytes, at: follow(bytes, 0)? })
    }

    /// Where field number `id` lies, if the table has it.
    fn field(self, id: usize) -> Option<usize> {
        let back: i32 = read_at(self.bytes, self.at)?;
        let vtable = self.at.checked_add_signed(isize::try_from(back).ok()?.checked_neg()?)?;
        let vtable_bytes: u16 = read_at(self.bytes, vtable)?;
        let entry = VTABLE_HEADER_BYTES.checked_add(id.checked_mul(2)?)?;
        if entry.checked_add(2)? > usize::from(vtable_bytes) {
            return None;
        }
        let offset: u16 = read_at(self.bytes, vtable.checked_add(entry)?)?;
        (offset != 0).then(|| self.at.checked_add(usize::from(offset)))?
    }

    /// Whether a field is there, whatever is in it.
    pub(crate) fn has(self, id: usize) -> bool {
        self.field(id).is_some()
    }

    /// A scalar field, or its default where the file leaves it out.
    pub(crate) fn scalar<T: Scalar>(self, id: usize, default: T) -> T {
        self.field(id).and_then(|at| read_at(self.bytes, at)).unwrap_or(default)
    }

    /// A string field.
    pub(crate) fn string(self, id: usize) -> Option<&'a str> {
        let (start, count) = self.list(id, 1)?;
        str::from_utf8(self.bytes.get(start..)?.get(..count)?).ok()
    }

    /// A field with a list of numbers; empty where the file leaves it out.
    pub(crate) fn scalars<T: Scalar>(self, id: usize) -> Scalars<'a, T> {
        let bytes = self
            .list(id, T::BYTES)
            .and_then(|(start, count)| self.bytes.get(start..)?.get(..count * T::BYTES));
        Scalars { bytes: bytes.unwrap_or_default(), of: PhantomData }
    }

    /// A field that is a table.
    pub(crate) fn table<V: View<'a>>(self, id: usize) -> Option<V> {
        let at = follow(self.bytes, self.field(id)?)?;
        Some(V::of(Table { bytes: self.bytes, at }))
    }

    /// A field with a list of tables; empty where the file leaves it out.
    pub(crate) fn tables<V: View<'a>>(self, id: usize) -> Tables<'a, V> {
        let (start, count) = self.list(id, 4).unwrap_or_default();
        Tables { bytes: self.bytes, start, count, of: PhantomData }
    }

    /// First byte and number of elements of a list whose bytes all lie in the file.
    fn list(self, id: usize, element_bytes: usize) -> Option<(usize, usize)> {
        let at = follow(self.bytes, self.field(id)?)?;
        let count: u32 = read_at(self.bytes, at)?;
        let count = usize::try_from(count).ok()?;
        let start = at.checked_add(4)?;
        let end = start.checked_add(count.checked_mul(element_bytes)?)?;
        (end <= self.bytes.len()).then_some((start, count))
    }
}

/// A list of numbers in the file.
#[derive(Clone, Copy)]
pub(crate) struct Scalars<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Scalar + 'a> Scalars<'a, T> {
    /// How many numbers.
    pub(crate) fn len(self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// One of them.
    pub(crate) fn get(self, index: usize) -> Option<T> {
        read_at(self.bytes, index.checked_mul(T::BYTES)?)
    }

    /// All of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = T> + 'a {
        self.bytes.chunks_exact(T::BYTES).filter_map(T::read)
    }
}

impl<'a> Scalars<'a, u8> {
    /// The bytes themselves.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// A list of tables in the file.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a, V> {
    bytes: &'a [u8],
    start: usize,
    count: usize,
    of: PhantomData<V>,
}

impl<'a, V: View<'a>> Tables<'a, V> {
    /// How many tables.
    pub(crate) fn len(self) -> usize {
        self.count
    }

    /// One of them.
    pub(crate) fn get(self, index: usize) -> Option<V> {
        if index >= self.count {
            return None;
        }
        let at = follow(self.bytes, self.start.checked_add(index.checked_mul(4)?)?)?;
        Some(V::of(Table { bytes: self.bytes, at }))
    }

    /// All of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = V> {
        (0..self.count).filter_map(move |index| self.get(index))
    }
}

/// The number at this position.
fn read_at<T: Scalar>(bytes: &[u8], at: usize) -> Option<T> {
    T::read(bytes.get(at..)?)
}

/// Where the forward offset at this position leads.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let offset: u32 = read_at(bytes, at)?;
    at.checked_add(usize::try_from(offset).ok()?)
}
