//! Descriptors of every kind as memory, and what their owner does to them afterwards: write,
//! truncate, grow, seal.
//!
//! Looked at: what is no memory is refused; nothing outside of the agreed length can be reached;
//! what is read is what lies there; sealed bytes never change; a file that became shorter is an
//! error and never a fault.

use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use burst_shm::{Memory, Pool, SealedBytes, ShmError};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};

use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Longest object: some pages and a bit.
const LEN_MAX: usize = 3 * 4096 + 100;
const STEPS_MAX: usize = 32;

/// Seals by the bits of a script's byte.
const SEALS: [SealFlags; 5] = [
    SealFlags::SHRINK,
    SealFlags::GROW,
    SealFlags::WRITE,
    SealFlags::FUTURE_WRITE,
    SealFlags::SEAL,
];

/// Makes an object, hands it over, and runs a script of both sides.
pub fn run(data: &[u8]) -> bool {
    let leaks = Leaks::watch();
    let mut input = Input::new(data);
    let passed = object(&mut input).is_some_and(|theirs| hand_over(theirs, &mut input));
    leaks.check();
    passed
}

/// What a peer may send in place of memory; `None` where the system does not give it.
fn object(input: &mut Input<'_>) -> Option<OwnedFd> {
    let kind = input.u8();
    let len = usize::from(input.u16()) % LEN_MAX;
    match kind % 12 {
        0..=3 => memfd(MemfdFlags::ALLOW_SEALING, len, input.u8()),
        4 | 5 => memfd(MemfdFlags::empty(), len, 0),
        6 => Some(file(len).into()),
        7 => read_only(&file(len)),
        8 => Some(rustix::pipe::pipe().ok()?.0),
        9 => Some(std::fs::File::open("/").ok()?.into()),
        10 => Some(std::fs::File::open("/dev/zero").ok()?.into()),
        _ => Some(burst_wire::socket::pair().ok()?.0),
    }
}

fn memfd(flags: MemfdFlags, len: usize, seals: u8) -> Option<OwnedFd> {
    let fd = memfd_create("theirs", flags | MemfdFlags::CLOEXEC).ok()?;
    ftruncate(&fd, len as u64).ok()?;
    let _ = pwrite(&fd, &pattern(len), 0);
    seal(&fd, seals);
    Some(fd)
}

/// A file without a name, on whatever file system holds temporary files.
fn file(len: usize) -> std::fs::File {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("fuzz-pool-{}-{number}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(&pattern(len)).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

/// The same file, opened for reading only.
fn read_only(file: &std::fs::File) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Some(std::fs::File::open(path).ok()?.into())
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

fn seal(fd: &OwnedFd, bits: u8) {
    for (bit, flag) in SEALS.into_iter().enumerate() {
        if bits & (1 << bit) != 0 {
            let _ = fcntl_add_seals(fd, flag);
        }
    }
}

fn hand_over(theirs: OwnedFd, input: &mut Input<'_>) -> bool {
    let real = fstat(&theirs).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    let agreed = match input.below(4) {
        0 => input.u64(),
        1 => u64::from(input.u16()),
        _ => real,
    };
    borrow(&theirs, real);
    match Pool::open(theirs.try_clone().unwrap(), agreed) {
        Ok(pool) => {
            assert!(agreed <= real && real > 0, "{agreed} bytes of {real}");
            assert_eq!(pool.len(), agreed);
            use_pool(&pool, &theirs, input);
            true
        }
        Err(
            ShmError::Refused(_)
            | ShmError::Length { .. }
            | ShmError::OutOfBounds { .. }
            | ShmError::System { .. },
        ) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Bytes are borrowed only where nobody can change them any more.
fn borrow(theirs: &OwnedFd, real: u64) {
    let Ok(memory) = Memory::from_fd(theirs.try_clone().unwrap()) else { return };
    assert_eq!(memory.len(), real);
    if let Ok(sealed) = SealedBytes::map(memory) {
        assert_eq!(sealed.len() as u64, real);
        assert!(pwrite(theirs, b"x", 0).is_err() && ftruncate(theirs, 0).is_err());
        assert_eq!(sealed.bytes().first().copied(), byte_at(theirs, 0));
    }
}

fn byte_at(fd: impl AsFd, at: u64) -> Option<u8> {
    let mut byte = [0];
    (pread(fd, &mut byte, at) == Ok(1)).then_some(byte[0])
}

fn use_pool(pool: &Pool, theirs: &OwnedFd, input: &mut Input<'_>) {
    let before = pool.as_sealed_bytes().map(<[u8]>::to_vec);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(6) {
            0 | 1 => read(pool, theirs, input),
            2 => write(pool, theirs, input),
            3 => drop(ftruncate(theirs, u64::from(input.u16()))),
            4 => drop(pwrite(theirs, &[input.u8(); 16], u64::from(input.u16()))),
            _ => seal(theirs, input.u8()),
        }
    }
    assert_eq!(pool.as_sealed_bytes().map(<[u8]>::to_vec), before, "sealed bytes changed");
    assert!(before.is_none() || pool.is_read_only());
}

fn range(pool: &Pool, input: &mut Input<'_>) -> (u64, usize, bool) {
    let offset = match input.below(4) {
        0 => input.u64(),
        1 => pool.len().wrapping_sub(u64::from(input.u8())),
        _ => u64::from(input.u16()),
    };
    let len = usize::from(input.u8()) * if input.flag() { 64 } else { 1 };
    let inside = offset.checked_add(len as u64).is_some_and(|end| end <= pool.len());
    (offset, len, inside)
}

fn read(pool: &Pool, theirs: &OwnedFd, input: &mut Input<'_>) {
    let (offset, len, inside) = range(pool, input);
    let mut bytes = vec![0xEE; len];
    match pool.read(offset, &mut bytes) {
        Ok(()) => {
            assert!(inside);
            let mut there = vec![0; len];
            let got = pread(theirs, &mut there, offset).unwrap_or(0);
            assert_eq!(bytes[..got], there[..got], "other bytes than lie there");
        }
        Err(ShmError::OutOfBounds { .. }) => assert!(!inside),
        Err(ShmError::Short { got, wanted, .. }) => {
            assert!(inside && !pool.is_mapped() && got < wanted);
        }
        Err(other) => panic!("{other}"),
    }
}

fn write(pool: &Pool, theirs: &OwnedFd, input: &mut Input<'_>) {
    let (offset, len, inside) = range(pool, input);
    let value = input.u8();
    match pool.write(offset, &vec![value; len]) {
        Ok(()) => {
            assert!(inside && !pool.is_read_only());
            assert!(len == 0 || byte_at(theirs, offset) == Some(value));
        }
        Err(ShmError::ReadOnly) => assert!(pool.is_read_only()),
        Err(ShmError::OutOfBounds { .. }) => assert!(!inside),
        // A file that was sealed or made read-only after it was handed over.
        Err(ShmError::Short { .. } | ShmError::System { .. }) => assert!(!pool.is_mapped()),
        Err(other) => panic!("{other}"),
    }
}

/// Each kind of object with reads, writes, and each thing its owner may do meanwhile.
pub fn seeds() -> Vec<Seed> {
    // Agreed on its real length; then read, write, and read at the end.
    let honest: &[u8] = &[2, 0, 2, 0, 0, 64, 0, 2, 2, 10, 0, 9, 0, 7, 0, 1, 20, 20, 0];
    let mean: &[u8] = &[
        3, 10, 0, // truncate
        0, 2, 8, 0, 20, 0, // read across the new end
        4, 9, 0, 0, // write under our hands
        5, 4, // seal against writing
        2, 2, 0, 0, 4, 0, 1, // our write
        0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, // far outside
    ];
    let kinds: [(&str, &[u8]); 12] = [
        ("memfd", &[0, 0, 16, 0]),
        ("memfd_cannot_shrink", &[0, 0, 16, 1]),
        ("memfd_all_sealed", &[0, 0, 16, 0b1_0111]),
        ("memfd_sealed_for_later", &[0, 0, 16, 0b0_1011]),
        ("memfd_closed_seals", &[0, 0, 16, 0b1_0000]),
        ("memfd_without_seals", &[4, 0, 16]),
        ("memfd_empty", &[0, 0, 0, 0]),
        ("file", &[6, 0, 16]),
        ("file_read_only", &[7, 0, 16]),
        ("pipe", &[8, 0, 0]),
        ("folder", &[9, 0, 0]),
        ("device", &[10, 0, 0]),
    ];
    let mut seeds = Vec::new();
    for (name, kind) in kinds {
        let script = Script::new().bytes(kind).bytes(honest).bytes(mean);
        seeds.push(seed(name, script));
    }
    let longer = Script::new().bytes(&[0, 0, 16, 0, 1, 1, 16]);
    seeds.push(seed("agreed_on_more_than_there_is", longer));
    let part = Script::new().bytes(&[0, 0, 16, 0, 1, 100, 0, 0, 1, 0, 10, 0, 0, 1, 9, 10, 0]);
    seeds.push(seed("agreed_on_a_part", part));
    seeds
}
