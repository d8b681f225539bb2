//! Files that somebody changes while the device uses them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use burst_hal::ErrorStatus;

use super::{Access, Checked, Fault, Place, Random, Setting, fault};

/// Rounds of each kind.
const ROUNDS: u64 = 100;

fn no_files(error: &std::io::Error) -> Fault {
    fault(format!("the test's files: {error}"))
}

fn any_status() -> Vec<ErrorStatus> {
    (1..=8).filter_map(ErrorStatus::from_code).collect()
}

/// Does something on another thread, again and again, while `work` runs; it has begun before.
fn beside<T>(mut disturb: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let (rounds, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                disturb();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        });
        while rounds.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        done
    })
}

pub(super) fn files_that_change_while_they_are_saved(setting: &Setting<'_>) -> Checked {
    let (mul, add) = (setting.mul()?, setting.add()?);
    let of_mul = setting.saved("save-mul", &mul)?;
    let place = setting.saved("save-add", &add)?;
    for round in 0..ROUNDS {
        // A copy that fails leaves what is there, as any other copy may.
        let swap = || drop(place.copy_model_files(&of_mul));
        let cache = setting.cache(&place, Access::Both)?;
        let prepared = beside(swap, || setting.prepare(&add.model, &cache));
        add.check(&*prepared.map_err(|failure| fault(format!("round {round}: {failure}")))?)?;
        let kept = setting.cache(&place, Access::Both)?;
        setting.gives_model_or(&format!("round {round}"), &kept, &add, &any_status())?;
    }
    Ok(())
}

pub(super) fn files_that_change_while_they_are_read(setting: &Setting<'_>) -> Checked {
    let (mul, add) = (setting.mul()?, setting.add()?);
    let of_mul = setting.saved("read-mul", &mul)?;
    let of_add = setting.saved("read-add", &add)?;
    let place = setting.saved("read", &add)?;
    for round in 0..ROUNDS {
        for (from, to) in [(&of_add.model, &place.model), (&of_add.data, &place.data)] {
            for (from, to) in from.iter().zip(to) {
                fs::copy(from, to).map_err(|error| no_files(&error))?;
            }
        }
        let mut with_mul = false;
        let swap = || {
            with_mul = !with_mul;
            drop(place.copy_model_files(if with_mul { &of_mul } else { &of_add }));
        };
        let cache = setting.cache(&place, Access::Both)?;
        beside(swap, || {
            setting.gives_model_or(&format!("round {round}"), &cache, &add, &any_status())
        })?;
    }
    Ok(())
}

pub(super) fn bytes_that_change_while_they_are_read(setting: &Setting<'_>) -> Checked {
    let add = setting.add()?;
    let place = setting.saved("bytes", &add)?;
    let mut random = Random::new(1);
    for round in 0..ROUNDS {
        let cache = setting.cache(&place, Access::Both)?;
        beside(flip_and_back(&place, random.next())?, || {
            setting.gives_model_or(&format!("round {round}"), &cache, &add, &any_status())
        })?;
    }
    let cache = setting.cache(&place, Access::Both)?;
    setting.gives_model_or("when nobody changes it any more", &cache, &add, &[])
}

/// Changes a byte of some file and puts it right again.
fn flip_and_back(place: &Place, seed: u64) -> Result<impl FnMut() + Send, Fault> {
    let mut files = Vec::new();
    for path in place.model.iter().chain(&place.data) {
        let whole = fs::read(path).map_err(|error| no_files(&error))?;
        let file = OpenOptions::new().write(true).open(path).map_err(|error| no_files(&error))?;
        files.push((file, whole));
    }
    let mut random = Random::new(seed);
    Ok(move || {
        let number = random.below(files.len());
        let (file, whole) = &files[number];
        let at = random.below(whole.len());
        // A file that is not written stays right.
        let _ = file.write_at(&[whole[at] ^ 1], at as u64);
        let _ = file.write_at(&[whole[at]], at as u64);
    })
}
