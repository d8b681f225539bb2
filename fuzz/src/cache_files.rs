//! Files that a compilation was kept in, changed by somebody, and taken by the device that wrote them.
//!
//! Looked at: what was changed is refused, unless it has a right seal all the same; then values alone are
//! changed, those of constants and those that the device had computed, and what the contract promises of any model
//! holds of this one ([`burst_verify::fuzzing`]). What was not changed is taken.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use burst_hal::{Caller, CompilationCache, Device, Model, PrepareOptions};
use burst_verify::fuzzing::{Made, judge_restored, made_of};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::device::is_grown;
use crate::judged::device;
use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Bytes of a file's header, and where its lengths stand: of the list behind it, and of the values behind that.
const HEADER: usize = 128;
const LIST_AT: usize = 24;
const VALUES_AT: usize = 32;
/// Where values begin: at a multiple of this behind the list.
const ALIGNMENT: usize = 64;

/// A model's choices with their length before them; whether the files are sealed again; how many changes there
/// are, and the changes; choices of which requests are made.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let count = input.u8().into();
    let made = made_of(input.bytes(count));
    // Other targets' device keeps the same thing over and over: descriptors are ours alone.
    device();
    let leaks = Leaks::watch();
    let came_through =
        keep(&made.model).is_some_and(|kept| change_and_take(&made, kept, &mut input));
    leaks.check();
    came_through
}

/// The files of a compilation, and what is in them.
struct Kept {
    place: CompilationCache,
    bytes: [Vec<u8>; 2],
}

/// Keeps a compilation, where the model can be prepared.
fn keep(model: &Model) -> Option<Kept> {
    let file = || File::from(memfd_create("kept", MemfdFlags::CLOEXEC).unwrap());
    let place = CompilationCache { token: [1; 32], model: vec![file()], data: vec![file()] };
    let caller = Caller::default();
    let prepared =
        device().prepare_model_caching(model, &PrepareOptions::default(), &place, &caller);
    drop(prepared.ok()?);
    let bytes = [&place.model[0], &place.data[0]].map(content);
    // One that was prepared is kept: there is room for such a small one.
    assert!(bytes.iter().all(|bytes| bytes.len() >= HEADER), "the compilation is not kept");
    Some(Kept { place, bytes })
}

fn content(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn change_and_take(made: &Made, kept: Kept, input: &mut Input<'_>) -> bool {
    let Kept { place, bytes: before } = kept;
    let mut bytes = before.clone();
    let is_sealed_again = input.flag();
    for _ in 0..input.below(8) {
        let file = &mut bytes[input.below(2)];
        match is_sealed_again {
            true => change_value(file, input),
            false => change(file, input),
        }
    }
    if is_sealed_again {
        let [model, data] = &mut bytes;
        let sealed = device().seal_again(&place, [model, data], &Caller::default());
        assert!(sealed, "headers are as they were");
    }
    for (mut file, bytes) in [&place.model[0], &place.data[0]].into_iter().zip(&bytes) {
        file.set_len(0).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(bytes).unwrap();
    }
    if bytes == before {
        // With no account, as when it was kept: what is judged below may lack memory.
        let restored = device().prepare_model_from_cache(&place, None, &Caller::default());
        if let Err(failure) = restored {
            panic!("files that were not changed are refused: {failure}");
        }
    }
    match judge_restored(&**device(), &place, made, input.rest()) {
        Ok(seen) => {
            let may_be_taken = is_sealed_again || bytes == before;
            assert!(may_be_taken || !seen.is_prepared, "files that were changed are taken");
            seen.succeeded > 0
        }
        Err(finding) => panic!("{finding}"),
    }
}

/// Where the values of a file begin and end.
fn values(file: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize| {
        let bytes = file[at..at + 8].try_into().unwrap();
        usize::try_from(u64::from_le_bytes(bytes)).unwrap()
    };
    let start = HEADER + number(LIST_AT).next_multiple_of(ALIGNMENT);
    start..start + number(VALUES_AT)
}

/// Changes a byte of a value, where there is one.
fn change_value(file: &mut [u8], input: &mut Input<'_>) {
    let range = values(file);
    let (at, value) = (usize::from(input.u16()), input.u8());
    if !range.is_empty() {
        file[range.start + at % range.len()] = value;
    }
}

/// Changes anything.
fn change(file: &mut Vec<u8>, input: &mut Input<'_>) {
    let (kind, at, value) = (input.below(4), usize::from(input.u16()), input.u8());
    let at = at % (file.len() + 1);
    match kind {
        0 => file.truncate(at),
        1 => file.insert(at, value),
        _ if at < file.len() => file[at] = value,
        _ => {}
    }
}

/// Models of each kind of operation, and of the generator, whose files are changed in values, in bytes, and not at all.
pub fn seeds() -> Vec<Seed> {
    let models = crate::device::seeds().into_iter().filter(|(_, bytes)| bytes.len() < 256);
    let changes: [(&str, &[u8]); 3] = [
        ("as_they_were", &[0, 0]),
        ("values", &[1, 3, 0, 0, 0, 255, 1, 7, 0, 128, 1, 0, 0, 1]),
        ("bytes", &[0, 2, 0, 3, 200, 0, 9, 1, 1, 4, 0, 1]),
    ];
    let kinds = changes.into_iter().cycle();
    models
        .zip(kinds)
        // Every third operation: each has the others beside it.
        .filter(|(model, _)| model.0.len() % 3 == 0 || is_grown(model))
        .map(|((name, bytes), (what, change))| {
            let length = u8::try_from(bytes.len()).unwrap();
            let script = Script::new().bytes(&[length]).bytes(&bytes).bytes(change);
            seed(&format!("{name}_{what}"), script.bytes(&[0, 1, 2, 3]))
        })
        .collect()
}
