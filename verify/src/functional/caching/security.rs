//! Files that are not what was saved.

use std::path::PathBuf;

use burst_hal::ErrorStatus::{self, GeneralFailure};

use super::{Access, Checked, Fault, Place, Random, Setting, TOKEN, TestModel, fault};

/// Corruptions of each file.
const CORRUPTIONS: u64 = 1000;

fn no_files(error: &std::io::Error) -> Fault {
    fault(format!("the test's files: {error}"))
}

pub(super) fn model_files_of_another_model(setting: &Setting<'_>) -> Checked {
    let (mul, add) = (setting.mul()?, setting.add()?);
    let of_mul = setting.saved("mul", &mul)?;
    let of_add = setting.saved("add", &add)?;
    of_add.copy_model_files(&of_mul).map_err(|error| no_files(&error))?;
    // The token is the same: an application should not do that, and is told.
    setting.fails("another model", &setting.cache(&of_add, Access::Both)?, &[GeneralFailure])?;
    let mut swapped = setting.cache(&setting.saved("whole", &add)?, Access::Both)?;
    if swapped.model.len() == swapped.data.len() {
        std::mem::swap(&mut swapped.model, &mut swapped.data);
        setting.fails("model and data files swapped", &swapped, &[GeneralFailure])?;
    }
    Ok(())
}

pub(super) fn another_token(setting: &Setting<'_>) -> Checked {
    let place = setting.saved("token", &setting.add()?)?;
    for bit in 0..8 * TOKEN.len() {
        let mut cache = setting.cache(&place, Access::Both)?;
        cache.token[bit / 8] ^= 1 << (bit % 8);
        setting.fails(&format!("bit {bit} of the token"), &cache, &[GeneralFailure])?;
    }
    Ok(())
}

pub(super) fn corrupted_model_files(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("corrupted-model", &model)?;
    each_corrupted(
        &place.model,
        |bytes, random| flipped_or_overwritten(bytes, random),
        |case| setting.fails(case, &setting.cache(&place, Access::Both)?, &[GeneralFailure]),
    )
}

pub(super) fn corrupted_data_files(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("corrupted-data", &model)?;
    each_corrupted(
        &place.data,
        |bytes, random| flipped_or_overwritten(bytes, random),
        |case| no_other_model(setting, case, &place, &model),
    )
}

pub(super) fn model_files_of_another_length(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("long-model", &model)?;
    each_corrupted(&place.model, longer_or_shorter, |case| {
        setting.fails(case, &setting.cache(&place, Access::Both)?, &[GeneralFailure])
    })
}

pub(super) fn data_files_of_another_length(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("long-data", &model)?;
    each_corrupted(&place.data, longer_or_shorter, |case| {
        no_other_model(setting, case, &place, &model)
    })
}

/// Any status is allowed, but a model that is retrieved computes what it did.
fn no_other_model(setting: &Setting<'_>, case: &str, place: &Place, model: &TestModel) -> Checked {
    let any: Vec<_> = (1..=8).filter_map(ErrorStatus::from_code).collect();
    setting.gives_model_or(case, &setting.cache(place, Access::Both)?, model, &any)
}

/// Corrupts each of the files again and again, and puts it right in the end.
fn each_corrupted(
    files: &[PathBuf],
    corrupt: fn(&mut Vec<u8>, &mut Random) -> String,
    check: impl Fn(&str) -> Checked,
) -> Checked {
    for (number, path) in (1..).zip(files) {
        let whole = std::fs::read(path).map_err(|error| no_files(&error))?;
        for seed in 0..CORRUPTIONS {
            let mut random = Random::new(seed * 64 + number);
            let mut bytes = whole.clone();
            let what = corrupt(&mut bytes, &mut random);
            if bytes == whole {
                continue;
            }
            std::fs::write(path, &bytes).map_err(|error| no_files(&error))?;
            check(&format!("file {number}, seed {seed}: {what}"))?;
        }
        std::fs::write(path, &whole).map_err(|error| no_files(&error))?;
    }
    Ok(())
}

/// As many bytes as before.
fn flipped_or_overwritten(bytes: &mut [u8], random: &mut Random) -> String {
    if bytes.is_empty() {
        return "nothing to corrupt".to_owned();
    }
    // Half of them in the first bytes, where whatever says how long things are lies.
    let first = if random.next().is_multiple_of(2) { bytes.len().min(256) } else { bytes.len() };
    let at = random.below(first);
    match random.next() % 4 {
        0 | 1 => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            let end = at + random.below(bytes.len() - at) + 1;
            for byte in &mut bytes[at..end] {
                *byte = random.next().to_le_bytes()[3];
            }
            format!("bytes {at}..{end} overwritten")
        }
        _ => {
            let length = 1 + random.below((bytes.len() - at).min(64));
            let from = random.below(bytes.len() - length + 1);
            bytes.copy_within(from..from + length, at.min(from));
            format!("{length} bytes of {from} copied before {at}")
        }
    }
}

fn longer_or_shorter(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    if random.next().is_multiple_of(2) && !bytes.is_empty() {
        let length = random.below(bytes.len());
        bytes.truncate(length);
        return format!("cut to {length} bytes");
    }
    let more = 1 + random.below(4096);
    let filler = if random.next().is_multiple_of(2) { 0 } else { random.next().to_le_bytes()[5] };
    bytes.resize(bytes.len() + more, filler);
    format!("{more} bytes appended")
}
