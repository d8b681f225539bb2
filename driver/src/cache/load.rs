//! Takes a compilation from files.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use burst_hal::{CompilationCache, Dimensions, MemoryCharge, Model, OperandValues, PrepareOptions};

use super::file::{CacheFile, PIECE};
use super::seal::{HEADER_BYTES, Header, Seal};
use super::structure::{self, DECODED_PER_BYTE, STRUCTURE_MAX};
use super::{FILES, kept_list};
use crate::OpError;
use crate::aligned::{AlignedBytes, MAX_ALLOCATION_BYTES};
use crate::budget::Budget;
use crate::cache_error::{CacheError, Kind};
use crate::error::DriverError;
use crate::kept::{KeptPart, KeptValue};

/// What a compilation was kept of. Its memory is charged to the caller.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) model: Model,
    pub(crate) kept: Vec<KeptPart>,
    /// The memory in which the model's constants lie.
    pub(crate) constants: Option<KeptValue>,
    /// How the model was prepared.
    pub(crate) options: PrepareOptions,
    /// What the structure has become.
    _decoded: MemoryCharge,
}

/// What follows a header, read once and found to be what was written.
struct Contents {
    header: Header,
    mac: blake3::Hash,
    bytes: Arc<AlignedBytes>,
    values: Range<usize>,
}

/// The constants of a model in the bytes of its file.
struct Values {
    bytes: Arc<AlignedBytes>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Values {
    fn as_ref(&self) -> &[u8] {
        // `read` has made the file as long as its header says.
        self.bytes.as_slice().get(self.range.clone()).unwrap_or_default()
    }
}

/// Takes a compilation from files, where this seal is on them.
///
/// # Errors
/// [`CacheError`] for anything that is wrong with them; what the budget says.
pub(crate) fn load(
    place: &CompilationCache,
    seal: &Seal,
    budget: &Budget<'_>,
) -> Result<Restored, DriverError> {
    let ([model], [data]) = (place.model.as_slice(), place.data.as_slice()) else {
        return Err(CacheError::FileCount { wanted: FILES, got: place.files() }.into());
    };
    let model = read(Kind::Model, model, seal, None, budget)?;
    let data = read(Kind::Data, data, seal, Some(&model.mac), budget)?;
    let lists = model.header.list_bytes.saturating_add(data.header.list_bytes);
    let mut decoded = budget.same_account();
    decoded.grow(lists.saturating_mul(DECODED_PER_BYTE)).map_err(OpError::refused).map_err(kept)?;

    let malformed = |kind| move |what| CacheError::Malformed { kind, what };
    let value_bytes = model.header.value_bytes;
    let structure = structure::decode(model.list(), value_bytes);
    let structure = structure.map_err(malformed(Kind::Model))?;
    let constants = KeptValue::part(Dimensions::new(), &model.bytes, model.values.clone());
    let values = Values { bytes: model.bytes, range: model.values };
    let kept = kept_list::decode(data.list(), &data.bytes, data.values.start);
    Ok(Restored {
        model: Model { operand_values: OperandValues::new(values), ..structure },
        kept: kept.map_err(malformed(Kind::Data))?,
        constants,
        options: model.header.options,
        _decoded: decoded,
    })
}

impl Contents {
    fn list(&self) -> &[u8] {
        let length = usize::try_from(self.header.list_bytes).unwrap_or(usize::MAX);
        self.bytes.as_slice().get(..length).unwrap_or_default()
    }
}

/// Reads a file into memory of our own and checks this copy.
fn read(
    kind: Kind,
    file: &File,
    seal: &Seal,
    partner: Option<&blake3::Hash>,
    budget: &Budget<'_>,
) -> Result<Contents, DriverError> {
    let file = CacheFile::new(kind, file, budget.stop().caller);
    file.check_readable()?;
    let found = file.length()?;
    let mut header = [0; HEADER_BYTES];
    if file.read(0, &mut header)? < HEADER_BYTES {
        return Err(CacheError::Length { kind, found, expected: HEADER_BYTES as u64 }.into());
    }
    // Lengths that somebody else has written are not looked at.
    let (header, mac) = seal.open(kind, &header, partner)?;
    let (values_at, whole) = extent(&header)?;
    let expected = (HEADER_BYTES + whole) as u64;
    if found != expected {
        return Err(CacheError::Length { kind, found, expected }.into());
    }
    let mut hasher = seal.body_hasher();
    let (account, stop) = (budget.same_account(), budget.stop());
    let bytes = AlignedBytes::copied(whole, account, stop, |at, part| -> Result<(), ReadError> {
        for (number, piece) in part.chunks_mut(PIECE).enumerate() {
            let at = (HEADER_BYTES + at + number * PIECE) as u64;
            let got = file.read(at, piece)?;
            if got < piece.len() {
                let found = at + got as u64;
                return Err(CacheError::Length { kind, found, expected }.into());
            }
            hasher.update(piece);
        }
        Ok(())
    });
    let bytes = bytes.map_err(DriverError::from)?;
    // In a time that does not depend on where they differ.
    if hasher.finalize() != header.digest {
        return Err(CacheError::Changed { kind }.into());
    }
    Ok(Contents { header, mac, bytes: Arc::new(bytes), values: values_at..whole })
}

/// Where the values begin behind the header, and bytes of all that follows it, within the limits.
fn extent(header: &Header) -> Result<(usize, usize), CacheError> {
    let kind = header.kind;
    if header.list_bytes > STRUCTURE_MAX {
        let (bytes, limit) = (header.list_bytes, STRUCTURE_MAX);
        return Err(CacheError::TooLarge { kind, bytes, limit });
    }
    let limit = MAX_ALLOCATION_BYTES as u64;
    let bytes = header.extent().map_or(u64::MAX, |(_, whole)| whole);
    let number = |number: u64| usize::try_from(number).ok();
    let extent = header.extent().filter(|(_, whole)| *whole <= limit);
    extent
        .and_then(|(values_at, whole)| number(values_at).zip(number(whole)))
        .ok_or(CacheError::TooLarge { kind, bytes, limit })
}

/// Why a file was not read.
enum ReadError {
    Room(OpError),
    File(CacheError),
}

impl From<OpError> for ReadError {
    fn from(cause: OpError) -> Self {
        ReadError::Room(cause)
    }
}

impl From<CacheError> for ReadError {
    fn from(cause: CacheError) -> Self {
        ReadError::File(cause)
    }
}

impl From<ReadError> for DriverError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Room(cause) => kept(cause),
            ReadError::File(cause) => cause.into(),
        }
    }
}

/// Why there is no memory for what was kept, or no time.
fn kept(cause: OpError) -> DriverError {
    let limit = MAX_ALLOCATION_BYTES as u64;
    DriverError::given_up(&cause).unwrap_or(DriverError::TooLarge { bytes: u64::MAX, limit })
}
