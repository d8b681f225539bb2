//! Numbers, lists and texts as section 1 of the page has them.

/// A message under construction.
#[derive(Default, Clone)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub fn bool(self, value: bool) -> Self {
        self.u8(u8::from(value))
    }

    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn f32(self, value: f32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn optional_u64(self, value: Option<u64>) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => self.u8(1).u64(value),
        }
    }

    pub fn text(self, text: &str) -> Self {
        self.count(text.len()).raw(text.as_bytes())
    }

    /// A list: its count, then each item by `write`.
    pub fn list<T>(self, items: &[T], write: impl Fn(Self, &T) -> Self) -> Self {
        let counted = self.count(items.len());
        items.iter().fold(counted, write)
    }

    pub fn indexes(self, indexes: &[u32]) -> Self {
        self.list(indexes, |to, index| to.u32(*index))
    }

    /// A record: its length in bytes, then its fields.
    pub fn record(self, fields: &Writer) -> Self {
        self.count(fields.0.len()).raw(&fields.0)
    }

    /// A thing of this kind: a number and a record.
    pub fn kind(self, number: u32, fields: &Writer) -> Self {
        self.u32(number).record(fields)
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn count(self, count: usize) -> Self {
        self.u32(u32::try_from(count).expect("a short list"))
    }
}

/// A message that came, read from the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at_checked(count).expect("the message goes on");
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("as many as taken")
    }

    pub fn bool(&mut self) -> bool {
        match self.take(1)[0] {
            0 => false,
            1 => true,
            other => panic!("a bool of {other}"),
        }
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.array())
    }

    pub fn optional_u64(&mut self) -> Option<u64> {
        self.bool().then(|| self.u64())
    }

    pub fn text(&mut self) -> String {
        let count = self.u32() as usize;
        String::from_utf8(self.take(count).to_vec()).expect("UTF-8")
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.u32()).map(|_| read(self)).collect()
    }

    /// A record, to be read for itself. Whatever is left of it then is its tail, which a later version
    /// may have: skipped.
    pub fn record(&mut self) -> Reader<'a> {
        let length = self.u32() as usize;
        Reader(self.take(length))
    }

    /// A message has to end where it says.
    #[track_caller]
    pub fn end(self) {
        assert!(self.0.is_empty(), "{} bytes behind the end", self.0.len());
    }
}
