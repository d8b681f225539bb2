//! What a shared object says of itself, read from its file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::Missing;

/// A shared object for 64 bits, little end first.
#[derive(Debug)]
pub struct SharedObject {
    bytes: Vec<u8>,
}

/// A section: type, offset, size, the section that it refers to.
#[derive(Clone, Copy)]
struct Section {
    ty: u32,
    offset: usize,
    size: usize,
    link: usize,
}

const DYNAMIC: u32 = 6;
const DYNAMIC_SYMBOLS: u32 = 11;
const VERSION_NAMES: u32 = 0x6fff_fffd;
const VERSIONS: u32 = 0x6fff_ffff;

/// Tags of the dynamic section.
const SONAME: u64 = 14;
const FLAGS_1: u64 = 0x6fff_fffb;
/// The flag of a library that stays loaded.
const NODELETE: u64 = 8;

impl SharedObject {
    /// Reads a file.
    ///
    /// # Errors
    /// It is for another kind of machine.
    ///
    /// # Panics
    /// There is no such file. The functions below panic where it is not as one has to be.
    pub fn read(path: &Path) -> Result<Self, Missing> {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        match bytes.starts_with(b"\x7fELF\x02\x01") {
            true => Ok(SharedObject { bytes }),
            false => Err(Missing::new("a machine with 64 bits, little end first")),
        }
    }

    /// The name by which the loader knows it.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.dynamic(SONAME).map(|name| self.text(self.section(DYNAMIC), name))
    }

    /// Whether it stays loaded until the process ends.
    #[must_use]
    pub fn stays_loaded(&self) -> bool {
        self.dynamic(FLAGS_1).unwrap_or(0) & NODELETE != 0
    }

    fn number<const N: usize>(&self, at: usize) -> u64 {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(&self.bytes[at..at + N]);
        u64::from_le_bytes(wide)
    }

    fn index<const N: usize>(&self, at: usize) -> usize {
        usize::try_from(self.number::<N>(at)).expect("within the file")
    }

    fn offset(&self, at: usize) -> usize {
        self.index::<8>(at)
    }

    fn sections(&self) -> Vec<Section> {
        let (table, entry, count) =
            (self.offset(0x28), self.index::<2>(0x3A), self.index::<2>(0x3C));
        let section = |number: usize| {
            let at = table + number * entry;
            Section {
                ty: u32::try_from(self.number::<4>(at + 4)).expect("four bytes"),
                offset: self.offset(at + 24),
                size: self.offset(at + 32),
                link: self.index::<4>(at + 40),
            }
        };
        (0..count).map(section).collect()
    }

    fn section(&self, ty: u32) -> Section {
        self.sections().into_iter().find(|section| section.ty == ty).expect("the section")
    }

    /// The text at an offset of the strings that a section refers to.
    fn text(&self, section: Section, offset: u64) -> String {
        let strings = self.sections()[section.link];
        let start = strings.offset + usize::try_from(offset).expect("an offset");
        let length = self.bytes[start..].iter().position(|byte| *byte == 0).expect("an end");
        String::from_utf8(self.bytes[start..start + length].to_vec()).expect("text")
    }

    /// Names of its versions, by number; none where its names have none.
    fn versions(&self) -> BTreeMap<u64, String> {
        let Some(section) = self.sections().into_iter().find(|one| one.ty == VERSION_NAMES) else {
            return BTreeMap::new();
        };
        let (mut at, mut names) = (section.offset, BTreeMap::new());
        loop {
            let number = self.number::<2>(at + 4);
            let name = at + self.index::<4>(at + 12);
            names.insert(number, self.text(section, self.number::<4>(name)));
            match self.index::<4>(at + 16) {
                0 => return names,
                next => at += next,
            }
        }
    }

    /// Exported names as `VERSION NAME`; a name without version has an empty one.
    #[must_use]
    pub fn exported(&self) -> BTreeSet<String> {
        let symbols = self.section(DYNAMIC_SYMBOLS);
        let numbers = self.sections().into_iter().find(|one| one.ty == VERSIONS);
        let versions = self.versions();
        (1..symbols.size / 24)
            .filter_map(|index| {
                let at = symbols.offset + index * 24;
                let is_defined = self.number::<2>(at + 6) != 0;
                let is_absolute = self.number::<2>(at + 6) == 0xfff1; // a version itself
                let number = numbers.map_or(0, |all| self.number::<2>(all.offset + index * 2));
                let number = number & 0x7fff;
                let name = self.text(symbols, self.number::<4>(at));
                let version = versions.get(&number).filter(|_| number > 1);
                let version = version.map_or("", String::as_str);
                (is_defined && !is_absolute).then(|| format!("{version} {name}"))
            })
            .collect()
    }

    /// The values under a tag of the dynamic section.
    fn dynamic(&self, wanted: u64) -> Option<u64> {
        let section = self.section(DYNAMIC);
        let mut entries = (0..section.size / 16).map(|index| section.offset + index * 16);
        entries.find(|at| self.number::<8>(*at) == wanted).map(|at| self.number::<8>(at + 8))
    }
}
