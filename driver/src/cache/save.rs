//! Writes a compilation into files.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use burst_hal::{CompilationCache, DataLocation, MemoryError, Model, Operand, PrepareOptions};

use super::file::{CacheFile, PIECE};
use super::seal::{ALIGNMENT, HEADER_BYTES, Header, Seal};
use super::structure::{self, OperandPlace, STRUCTURE_MAX};
use super::values::{Source, Values};
use super::{FILES, kept_list};
use crate::OpError;
use crate::aligned::{AlignedBytes, MAX_ALLOCATION_BYTES};
use crate::budget::Budget;
use crate::cache_error::{CacheError, Kind};
use crate::error::DriverError;
use crate::kept::{KeptPart, Place, What};

/// The files of a compilation that is going to be kept.
pub(crate) struct Files<'a> {
    model: &'a File,
    data: &'a File,
}

impl<'a> Files<'a> {
    /// The files, where there are as many as a device needs.
    ///
    /// # Errors
    /// [`CacheError::FileCount`].
    pub(crate) fn of(place: &'a CompilationCache) -> Result<Self, CacheError> {
        match (place.model.as_slice(), place.data.as_slice()) {
            ([model], [data]) => Ok(Files { model, data }),
            _ => Err(CacheError::FileCount { wanted: FILES, got: place.files() }),
        }
    }

    /// Writes a model and what was kept of its plan. Where that fails, the files hold no compilation.
    ///
    /// # Errors
    /// [`CacheError`] for files that cannot be written; what the budget says.
    pub(crate) fn save(
        &self,
        seal: &Seal,
        model: &Model,
        kept: &[KeptPart],
        options: &PrepareOptions,
        budget: &Budget<'_>,
    ) -> Result<(), DriverError> {
        let caller = budget.stop().caller;
        let model_file = CacheFile::new(Kind::Model, self.model, caller);
        let data_file = CacheFile::new(Kind::Data, self.data, caller);
        let writing = Writing { seal, options, budget };
        let saved = writing.both(&model_file, &data_file, model, kept);
        if saved.is_err() {
            // What one of them held before is of no use without the other.
            for file in [&model_file, &data_file] {
                let _ = file.check_writable().and_then(|()| file.empty());
            }
        }
        saved
    }
}

/// How files are written.
struct Writing<'a> {
    seal: &'a Seal,
    options: &'a PrepareOptions,
    budget: &'a Budget<'a>,
}

impl Writing<'_> {
    fn both(
        &self,
        model_file: &CacheFile<'_>,
        data_file: &CacheFile<'_>,
        model: &Model,
        kept: &[KeptPart],
    ) -> Result<(), DriverError> {
        for file in [model_file, data_file] {
            file.check_writable()?;
        }
        for file in [model_file, data_file] {
            file.empty()?;
        }
        let read = read_by_steps(model, kept);
        let mac = self.model(model_file, model, &read)?;
        self.data(data_file, &without_unread(model, kept, &read), &mac)?;
        Ok(())
    }

    /// Writes the model file. Gives its MAC.
    fn model(
        &self,
        file: &CacheFile<'_>,
        model: &Model,
        read: &HashSet<OperandPlace>,
    ) -> Result<blake3::Hash, DriverError> {
        let graphs = (0..).zip(std::iter::once(&model.main).chain(&model.referenced));
        let constants = graphs.flat_map(|(number, graph)| {
            let operands = graph.operands.iter().enumerate();
            operands.map(move |(index, operand)| ((number, index), operand))
        });
        let values = Values::of(constants.filter(|(at, _)| read.contains(at)).map(|(_, one)| one));
        // Offsets of constants are numbers of 32 bits.
        within(Kind::Model, values.bytes(), u64::from(u32::MAX))?;
        let structure = structure::encode(model, |at, operand: &Operand| {
            let place = read.contains(&at).then(|| values.place(operand)).flatten()?;
            let length = operand.location.length;
            Some(DataLocation { pool_index: 0, offset: u32::try_from(place).ok()?, length })
        });
        let mut body = self.body(file, structure, values.bytes())?;
        for piece in values.pieces() {
            body.fill(piece.at, piece.range.end - piece.range.start, |offset, out| {
                let read = piece.source.read(model, piece.range.start + offset, out);
                read.map_err(|cause| constant_error(piece.source, cause))
            })?;
        }
        body.finish(None)
    }

    /// Writes the data file that belongs to the model file with this MAC.
    fn data(
        &self,
        file: &CacheFile<'_>,
        kept: &[KeptPart],
        partner: &blake3::Hash,
    ) -> Result<blake3::Hash, DriverError> {
        let (places, end) = kept_list::lay_out(kept);
        let mut body = self.body(file, kept_list::encode(kept, &places), end)?;
        for (value, at) in kept_list::values(kept).zip(places) {
            let bytes = value.bytes();
            body.fill(at, bytes.len() as u64, |offset, out| {
                // `fill` asks for what is in the value.
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                out.copy_from_slice(&bytes[start..][..out.len()]);
                Ok(())
            })?;
        }
        body.finish(Some(partner))
    }

    /// Begins what follows the header of a file: writes its list.
    fn body<'b>(
        &'b self,
        file: &'b CacheFile<'b>,
        list: Vec<u8>,
        value_bytes: u64,
    ) -> Result<Body<'b>, DriverError> {
        let (kind, list_bytes) = (file.kind(), list.len() as u64);
        within(kind, list_bytes, STRUCTURE_MAX)?;
        // Until it is written.
        let mut charge = self.budget.same_account();
        charge.grow(list_bytes).map_err(OpError::refused).map_err(no_room)?;
        let values_at = list_bytes.next_multiple_of(ALIGNMENT);
        within(kind, values_at.saturating_add(value_bytes), MAX_ALLOCATION_BYTES as u64)?;
        let hasher = self.seal.body_hasher();
        let header = Header {
            kind,
            options: PrepareOptions { deadline: None, ..*self.options },
            list_bytes,
            value_bytes,
            digest: hasher.finalize(),
        };
        let piece = AlignedBytes::zeroed(PIECE, self.budget.same_account()).map_err(no_room)?;
        let mut body = Body { writing: self, file, header, hasher, piece, at: 0, values_at };
        body.put(list_bytes, |offset, out| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            out.copy_from_slice(&list[start..][..out.len()]);
            Ok(())
        })?;
        body.zeros_up_to(values_at)?;
        Ok(body)
    }
}

/// What follows a header, as far as it is written: piece by piece, hashed as it was written.
struct Body<'a> {
    writing: &'a Writing<'a>,
    file: &'a CacheFile<'a>,
    header: Header,
    hasher: blake3::Hasher,
    piece: AlignedBytes,
    /// Bytes written.
    at: u64,
    values_at: u64,
}

impl Body<'_> {
    /// Writes a value that lies at `at` among the values; `read` copies a part of it.
    fn fill(
        &mut self,
        at: u64,
        length: u64,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        self.zeros_up_to(self.values_at + at)?;
        self.put(length, read)
    }

    fn zeros_up_to(&mut self, at: u64) -> Result<(), DriverError> {
        self.put(at.saturating_sub(self.at), |_, out| {
            out.fill(0);
            Ok(())
        })
    }

    /// Writes so many bytes, part by part: the file gets what was hashed, whatever becomes of their source.
    fn put(
        &mut self,
        length: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut done = 0;
        while done < length {
            self.writing.budget.stop().check().map_err(no_room)?;
            let count = usize::try_from(length - done).map_or(PIECE, |left| left.min(PIECE));
            let part = &mut self.piece.as_mut_slice()[..count];
            read(done, part)?;
            self.hasher.update(part);
            self.file.write(HEADER_BYTES as u64 + self.at, part)?;
            done += count as u64;
            self.at += count as u64;
        }
        Ok(())
    }

    /// Writes the header, without which the file is none of ours. Gives its MAC.
    fn finish(mut self, partner: Option<&blake3::Hash>) -> Result<blake3::Hash, DriverError> {
        self.zeros_up_to(self.values_at + self.header.value_bytes)?;
        self.header.digest = self.hasher.finalize();
        let (header, mac) = self.writing.seal.seal(&self.header, partner);
        self.file.write(0, &header)?;
        Ok(mac)
    }
}

/// The operands that some step of a plan reads, where this was kept of operations.
fn read_by_steps(model: &Model, kept: &[KeptPart]) -> HashSet<OperandPlace> {
    let mut unread: HashMap<Place, Vec<usize>> = HashMap::new();
    let mut folded = HashSet::new();
    for part in kept {
        match part.what {
            What::Results => {
                folded.insert(part.place);
            }
            What::Packed => unread.entry(part.place).or_default().extend(&part.unread),
            What::Ranges => {}
        }
    }
    let graphs = std::iter::once(&model.main).chain(&model.referenced);
    let mut read = HashSet::new();
    for (number, graph) in (0..).zip(graphs) {
        for (index, operation) in (0_u32..).zip(&graph.operations) {
            let place = Place { graph: number, operation: index };
            if folded.contains(&place) {
                continue;
            }
            let unread = unread.get(&place).map_or(&[][..], Vec::as_slice);
            let inputs = operation.inputs.iter().enumerate();
            let inputs = inputs.filter(|(position, _)| !unread.contains(position));
            read.extend(inputs.map(|(_, operand)| (number, *operand as usize)));
        }
    }
    read
}

/// Without the bytes of folded values that no step reads: all that read them were folded too, or their kernels have
/// packed them.
fn without_unread(model: &Model, kept: &[KeptPart], read: &HashSet<OperandPlace>) -> Vec<KeptPart> {
    let mut kept = kept.to_vec();
    for part in kept.iter_mut().filter(|part| part.what == What::Results) {
        let Place { graph: number, operation } = part.place;
        let graph = match number.checked_sub(1) {
            None => Some(&model.main),
            Some(index) => model.referenced.get(index as usize),
        };
        let operation = graph.and_then(|graph| graph.operations.get(operation as usize));
        let outputs = operation.into_iter().flat_map(|operation| &operation.outputs);
        for (value, operand) in part.values.iter_mut().zip(outputs) {
            if !read.contains(&(number, *operand as usize)) {
                *value = value.without_bytes();
            }
        }
    }
    kept
}

fn within(kind: Kind, bytes: u64, limit: u64) -> Result<(), CacheError> {
    if bytes > limit {
        return Err(CacheError::TooLarge { kind, bytes, limit });
    }
    Ok(())
}

fn constant_error(source: Source, cause: MemoryError) -> DriverError {
    let index = match source {
        Source::Values => 0,
        Source::Pool(pool) => pool as usize,
    };
    DriverError::Memory { what: "constants in pool", index, cause }
}

/// Why there is no memory to write with, or no time.
fn no_room(cause: OpError) -> DriverError {
    let limit = MAX_ALLOCATION_BYTES as u64;
    DriverError::given_up(&cause).unwrap_or(DriverError::TooLarge { bytes: u64::MAX, limit })
}
