//! Each kind of descriptor a peer can hand over, and what may be done with it.

use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, ftruncate, memfd_create};

use super::*;
use crate::error::Refusal;
use crate::sole_writer::SoleWriter;

/// An unlinked file on disk with these bytes.
fn disk_file(name: &str, bytes: &[u8]) -> std::fs::File {
    let path = std::env::temp_dir().join(format!("burst-pool-{name}-{}", std::process::id()));
    let options = &mut std::fs::OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn a_sealed_memfd_is_mapped_and_read_and_written() {
    let memory = Memory::create("pool", 100).unwrap();
    let pool = Pool::open(memory.duplicate_fd().unwrap(), 100).unwrap();
    assert!(pool.is_mapped() && !pool.is_read_only() && pool.as_sealed_bytes().is_none());
    pool.write(90, b"0123456789").unwrap();
    let mut out = [0; 4];
    pool.read(92, &mut out).unwrap();
    assert_eq!(&out, b"2345");
}

#[test]
fn only_the_stated_length_is_reachable() {
    let pool = Pool::open(Memory::create("pool", 100).unwrap().into(), 50).unwrap();
    let mut out = [0; 2];
    for offset in [49, 50, 51, 98, u64::MAX] {
        let expected = ShmError::OutOfBounds { offset, len: 2, size: 50 };
        assert_eq!(pool.read(offset, &mut out), Err(expected));
        assert_eq!(pool.write(offset, &out), Err(expected));
    }
    assert_eq!(pool.len(), 50);
}

#[test]
fn a_stated_length_beyond_the_object_is_refused() {
    let memory = Memory::create("pool", 100).unwrap();
    let error = Pool::open(memory.into(), 101).unwrap_err();
    assert_eq!(error, ShmError::OutOfBounds { offset: 0, len: 101, size: 100 });
}

#[test]
fn a_pool_sealed_against_future_writers_is_read_only_here() {
    let mut theirs = SoleWriter::create("out", 64).unwrap();
    theirs.bytes_mut()[0] = 9;
    let pool = Pool::open(theirs.memory().duplicate_fd().unwrap(), 64).unwrap();
    assert!(pool.is_read_only() && pool.is_mapped());
    assert_eq!(pool.write(0, b"x"), Err(ShmError::ReadOnly));
    assert!(pool.as_sealed_bytes().is_none(), "its maker can still write");
    let mut out = [0];
    pool.read(0, &mut out).unwrap();
    assert_eq!(out, [9]);
}

#[test]
fn a_write_sealed_pool_is_borrowed() {
    let sealed = SealedBytes::from_bytes("weights", b"abcdef").unwrap();
    let pool = Pool::open(sealed.memory().duplicate_fd().unwrap(), 4).unwrap();
    assert_eq!(pool.as_sealed_bytes(), Some(&b"abcd"[..]));
    assert!(pool.is_read_only());
    assert_eq!(pool.write(0, b"x"), Err(ShmError::ReadOnly));
    let mut out = [0; 2];
    pool.read(2, &mut out).unwrap();
    assert_eq!(&out, b"cd");
}

#[test]
fn a_file_on_disk_is_read_and_written_without_a_mapping() {
    let file = disk_file("plain", b"0123456789");
    let pool = Pool::open(OwnedFd::from(file), 10).unwrap();
    assert!(!pool.is_mapped() && !pool.is_read_only());
    pool.write(3, b"abc").unwrap();
    let mut out = [0; 10];
    pool.read(0, &mut out).unwrap();
    assert_eq!(&out, b"012abc6789");
}

#[test]
fn a_file_truncated_after_it_was_opened_gives_an_error_and_no_signal() {
    let file = disk_file("short", &[7; 8192]);
    let pool = Pool::open(OwnedFd::from(file.try_clone().unwrap()), 8192).unwrap();
    file.set_len(100).unwrap();
    let mut out = [0; 200];
    let expected = ShmError::Short { offset: 0, wanted: 200, got: 100 };
    assert_eq!(pool.read(0, &mut out), Err(expected));
}

#[test]
fn a_memfd_made_without_sealing_is_not_mapped() {
    let fd = memfd_create("unsealable", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, 4096).unwrap();
    let keep = rustix::io::fcntl_dupfd_cloexec(&fd, 3).unwrap();
    let pool = Pool::open(fd, 4096).unwrap();
    assert!(!pool.is_mapped());
    ftruncate(&keep, 1).unwrap();
    let expected = ShmError::Short { offset: 0, wanted: 2, got: 1 };
    assert_eq!(pool.read(0, &mut [0; 2]), Err(expected));
}

#[test]
fn a_file_opened_for_reading_only_is_a_read_only_pool() {
    let file = disk_file("ro", b"abc");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let read_only = std::fs::File::open(path).unwrap();
    let pool = Pool::open(OwnedFd::from(read_only), 3).unwrap();
    assert!(pool.is_read_only());
    assert_eq!(pool.write(0, b"x"), Err(ShmError::ReadOnly));
}

#[test]
fn a_memfd_opened_for_reading_only_is_a_read_only_mapping() {
    let memory = Memory::create("pool", 64).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory.as_fd()));
    let read_only = std::fs::File::open(path).unwrap();
    let pool = Pool::open(OwnedFd::from(read_only), 64).unwrap();
    assert!(pool.is_read_only() && pool.is_mapped());
}

#[test]
fn a_pipe_is_no_pool() {
    let (read, _write) = rustix::pipe::pipe().unwrap();
    assert_eq!(Pool::open(read, 1).unwrap_err(), ShmError::Refused(Refusal::NotAFile));
}

/// Bytes of address space behind the mappings of this file in this process.
fn mapped_in_this_process(fd: &impl AsFd) -> u64 {
    let inode = rustix::fs::fstat(fd).unwrap().st_ino.to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_file = maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode));
    let length = |line: &str| {
        let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        let address = |text| u64::from_str_radix(text, 16).unwrap();
        address(to) - address(from)
    };
    of_file.map(length).sum()
}

#[test]
fn a_sparse_file_takes_no_more_address_space_than_its_stated_length() {
    let len = 1 << 40; // a TiB, of which no page exists
    for seals in [SealFlags::SHRINK, SealFlags::SHRINK | SealFlags::WRITE] {
        let fd = memfd_create("sparse", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, len).unwrap();
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        for (stated, pages) in [(0, 1), (1, 1), (4096, 1), (4097, 2), (3 * 4096, 3)] {
            let theirs = rustix::io::fcntl_dupfd_cloexec(&fd, 3).unwrap();
            let pool = Pool::open(theirs, stated).unwrap();
            let mapped = crate::mapped_bytes(stated);
            assert_eq!(mapped_in_this_process(&fd), mapped, "{stated} bytes, {seals:?}");
            assert!(mapped >= pages * 4096 && mapped >= stated);
            assert_eq!(pool.len(), stated);
        }
        assert_eq!(mapped_in_this_process(&fd), 0);
    }
}
