//! Saving and retrieving, with files as they should be and as they should not.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use burst_hal::ErrorStatus::{
    GeneralFailure, InvalidArgument, MissedDeadlinePersistent, MissedDeadlineTransient,
};
use burst_hal::{CacheFiles, Caller, CompilationCache, OperationType, TimePoint};

use super::files::open;
use super::{Access, Checked, Fault, Place, Setting, TestModel, fault};

const REFUSED: &[burst_hal::ErrorStatus] = &[InvalidArgument, GeneralFailure];

impl Setting<'_> {
    pub(super) fn add(&self) -> Result<TestModel, Fault> {
        TestModel::new(self.sort, OperationType::Add, |model| self.fully_prepared(model))
    }

    pub(super) fn mul(&self) -> Result<TestModel, Fault> {
        TestModel::new(self.sort, OperationType::Mul, |model| self.fully_prepared(model))
    }

    fn fully_prepared(
        &self,
        model: &burst_hal::Model,
    ) -> Result<std::sync::Arc<dyn burst_hal::PreparedModel>, burst_hal::Failure> {
        self.device.prepare_model(model, &burst_hal::PrepareOptions::default())
    }
}

fn no_files(error: &std::io::Error) -> Fault {
    fault(format!("the test's files: {error}"))
}

pub(super) fn what_was_saved_is_retrieved(setting: &Setting<'_>) -> Checked {
    let needed = setting.device.cache_files_needed();
    if needed == CacheFiles::default() || needed.model > 32 || needed.data > 32 {
        return Err(fault(format!("a device that keeps compilations needs {needed:?}")));
    }
    let model = setting.add()?;
    let place = setting.saved("kept", &model)?;
    for access in [Access::Both, Access::Both, Access::Read] {
        let retrieved = setting.retrieve(&setting.cache(&place, access)?);
        let retrieved = retrieved.map_err(|failure| fault(format!("not retrieved: {failure}")))?;
        model.check(&*retrieved)?;
    }
    // Without files nothing is kept, whatever the token.
    let nowhere = CompilationCache { token: [1; 32], ..CompilationCache::default() };
    let prepared = setting.prepare(&model.model, &nowhere);
    model.check(&*prepared.map_err(|failure| fault(format!("not prepared: {failure}")))?)
}

pub(super) fn files_are_used_from_their_start(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.place("offset");
    for path in place.model.iter().chain(&place.data) {
        std::fs::write(path, vec![0xa5; 1 << 20]).map_err(|error| no_files(&error))?;
    }
    let seeked = |to: SeekFrom| -> Result<CompilationCache, Fault> {
        let mut cache = setting.cache(&place, Access::Both)?;
        for file in cache.model.iter_mut().chain(&mut cache.data) {
            file.seek(to).map_err(|error| no_files(&error))?;
        }
        Ok(cache)
    };
    let prepared = setting.prepare(&model.model, &seeked(SeekFrom::Start(4097))?);
    model.check(&*prepared.map_err(|failure| fault(format!("not prepared: {failure}")))?)?;
    for path in place.model.iter().chain(&place.data) {
        let length = std::fs::metadata(path).map_err(|error| no_files(&error))?.len();
        if length >= 1 << 20 {
            return Err(fault("what a file held before is still in it"));
        }
    }
    for to in [SeekFrom::Start(1), SeekFrom::End(0), SeekFrom::Start(1 << 30)] {
        let retrieved = setting.retrieve(&seeked(to)?);
        let retrieved = retrieved.map_err(|failure| fault(format!("not retrieved: {failure}")))?;
        model.check(&*retrieved)?;
    }
    Ok(())
}

/// Files with one more or one less of one kind, and the name of the case.
fn other_numbers(setting: &Setting<'_>, name: &str) -> Vec<(String, Place)> {
    let CacheFiles { model, data } = setting.device.cache_files_needed();
    let mut numbers = vec![(model + 1, data), (model, data + 1), (32, 32), (0, data), (model, 0)];
    if model > 1 {
        numbers.push((model - 1, data));
    }
    numbers.retain(|numbers| *numbers != (model, data) && *numbers != (0, 0));
    numbers
        .into_iter()
        .map(|(model, data)| {
            let case = format!("{name}: {model} model and {data} data files");
            let files = CacheFiles { model, data };
            (case, Place::new(setting.folder, &format!("{name}-{model}-{data}"), files))
        })
        .collect()
}

pub(super) fn saving_into_another_number_of_files(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    for (case, place) in other_numbers(setting, "save") {
        place.create().map_err(|error| no_files(&error))?;
        let prepared = setting.prepare(&model.model, &setting.cache(&place, Access::Both)?);
        model.check(&*prepared.map_err(|failure| fault(format!("{case}: {failure}")))?)?;
        setting.fails(&case, &setting.cache(&place, Access::Both)?, REFUSED)?;
    }
    Ok(())
}

pub(super) fn saving_into_files_that_cannot_be_written(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    for (case, model_access, data_access) in [
        ("model read only", Access::Read, Access::Both),
        ("data read only", Access::Both, Access::Read),
        ("both read only", Access::Read, Access::Read),
    ] {
        let place = if model_access == data_access {
            let place = setting.place("read-only-new");
            place.create().map_err(|error| no_files(&error))?;
            place
        } else {
            // What the other one held before must not be taken for half of a compilation.
            setting.saved("read-only", &model)?
        };
        let opened = place.open(model_access, data_access);
        let (files, data) = opened.map_err(|error| no_files(&error))?;
        let cache = CompilationCache { token: super::TOKEN, model: files, data };
        let prepared = setting.prepare(&model.model, &cache);
        model.check(&*prepared.map_err(|failure| fault(format!("{case}: {failure}")))?)?;
        setting.fails(case, &cache, REFUSED)?;
    }
    Ok(())
}

pub(super) fn retrieving_from_another_number_of_files(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    setting.saved("numbers", &model)?;
    for (case, place) in other_numbers(setting, "numbers") {
        place.create().map_err(|error| no_files(&error))?;
        setting.fails(&case, &setting.cache(&place, Access::Both)?, REFUSED)?;
    }
    setting.fails("no files", &CompilationCache::default(), REFUSED)
}

pub(super) fn retrieving_from_files_that_cannot_be_read(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("write-only", &model)?;
    for (case, model_access, data_access) in [
        ("model write only", Access::Write, Access::Both),
        ("data write only", Access::Both, Access::Write),
    ] {
        let (files, data) =
            place.open(model_access, data_access).map_err(|error| no_files(&error))?;
        let cache = CompilationCache { token: super::TOKEN, model: files, data };
        setting.fails(case, &cache, &[GeneralFailure])?;
    }
    Ok(())
}

/// Descriptors that are no regular files, or none that hold a compilation.
fn strange(setting: &Setting<'_>) -> std::io::Result<Vec<(&'static str, File)>> {
    let (pipe, _other_end) = std::io::pipe()?;
    let (_, full) = std::io::pipe()?;
    let (socket, _) = UnixStream::pair()?;
    let sparse = setting.folder.join("sparse");
    File::create(&sparse)?.set_len(1 << 42)?;
    let empty = setting.folder.join("empty");
    File::create(&empty)?;
    Ok(vec![
        ("a pipe", File::from(OwnedFd::from(pipe))),
        ("the writing end of a pipe", File::from(OwnedFd::from(full))),
        ("a socket", File::from(OwnedFd::from(socket))),
        ("a folder", File::open(setting.folder)?),
        ("/dev/null", open("/dev/null".as_ref(), Access::Both)?),
        ("/dev/zero", open("/dev/zero".as_ref(), Access::Both)?),
        ("a huge file without bytes", open(&sparse, Access::Both)?),
        ("an empty file", open(&empty, Access::Both)?),
    ])
}

pub(super) fn descriptors_that_are_no_files(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("strange", &model)?;
    let kinds = strange(setting).map_err(|error| no_files(&error))?.len();
    for (number, model_at_fault) in (0..kinds).flat_map(|number| [(number, true), (number, false)])
    {
        let mut strange = strange(setting).map_err(|error| no_files(&error))?;
        let (case, file) = strange.swap_remove(number);
        let mut cache = setting.cache(&place, Access::Both)?;
        let files = if model_at_fault { &mut cache.model } else { &mut cache.data };
        let Some(last) = files.last_mut() else { continue };
        *last = file;
        setting.fails(case, &cache, &[GeneralFailure])?;
    }
    // What they make of a preparation: it succeeds.
    for (case, file) in strange(setting).map_err(|error| no_files(&error))? {
        let scratch = setting.saved("strange-too", &model)?;
        let mut cache = setting.cache(&scratch, Access::Both)?;
        let Some(last) = cache.model.last_mut() else { continue };
        *last = file;
        let prepared = setting.prepare(&model.model, &cache);
        model.check(&*prepared.map_err(|failure| fault(format!("{case}: {failure}")))?)?;
    }
    Ok(())
}

pub(super) fn retrieving_after_the_deadline(setting: &Setting<'_>) -> Checked {
    let model = setting.add()?;
    let place = setting.saved("late", &model)?;
    let missed = [MissedDeadlineTransient, MissedDeadlinePersistent];
    let late = Some(TimePoint { nanos: 1 });
    let cache = setting.cache(&place, Access::Both)?;
    match setting.device.prepare_model_from_cache(&cache, late, &Caller::default()) {
        Ok(_) => return Err(fault("a model was retrieved after its deadline")),
        Err(failure) => super::expect_status("after the deadline", failure.status, &missed)?,
    }
    let never = Some(TimePoint { nanos: u64::MAX });
    let retrieved = setting.device.prepare_model_from_cache(&cache, never, &Caller::default());
    model.check(&*retrieved.map_err(|failure| fault(format!("before it: {failure}")))?)
}
