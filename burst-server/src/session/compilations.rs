//! Calls about compilations that are kept in files of the client.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_hal::trace::{Marks, SpanKind, when_on};
use burst_hal::{CompilationCache, Priority, TimePoint};
use burst_wire::control::{Answer, CachePlace, ModelBody, PreparedHow, WirePrepareOptions};
use burst_wire::longest_packet;

use super::prepare_by::PrepareBy;
use super::{Session, devices, models};
use crate::ServerError;
use crate::admission::{Charge, ModelAccount};
use crate::panics::catch_panic;
use crate::prepared::PreparedEntry;
use crate::scheduler::Work;

/// Files that came with a call. The client pays for their descriptors until the call is done.
struct Files {
    cache: CompilationCache,
    _charge: Charge,
}

impl Files {
    fn of(
        session: &Session,
        place: &CachePlace,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Self, ServerError> {
        let charge = session.budgets.memories.charge(descriptors.len() as u64)?;
        let mut files = descriptors.into_iter().map(File::from);
        let model = files.by_ref().take(place.kinds().model as usize).collect();
        let cache = CompilationCache { token: place.token, model, data: files.collect() };
        Ok(Files { cache, _charge: charge })
    }
}

/// Prepares a model and keeps the compilation in the files that come behind it.
pub(super) fn prepare(
    session: &Session,
    device: u32,
    model: (&ModelBody, &WirePrepareOptions),
    place: &CachePlace,
    mut descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let files = descriptors.split_off(model.0.descriptors().min(descriptors.len()));
    let Files { cache, _charge } = &Files::of(session, place, files)?;
    models::prepare_with(session, device, model, descriptors, |device, model, options, caller| {
        device.prepare_model_caching(model, options, cache, caller)
    })
}

/// Makes the model ready that was kept in files, and gives it a number.
pub(super) fn restore(
    session: &Session,
    device: u32,
    place: &CachePlace,
    deadline: Option<u64>,
    descriptors: Vec<OwnedFd>,
) -> Result<Answer, ServerError> {
    let deadline = deadline.map(|nanos| TimePoint { nanos });
    let by = PrepareBy::now(deadline);
    let device = devices::find(session, device)?;
    let charge = session.budgets.models.charge(1)?;
    let Files { cache, _charge } = &Files::of(session, place, descriptors)?;
    let tracer = when_on(&session.link.tracer());
    let mut marks = Marks::begin(tracer.as_deref());
    let run = session.run(Work::Preparation, Priority::Medium);
    let entered = run.enter();
    by.begin(&run)?;
    by.check()?;
    let account = ModelAccount::new(session.presence.user());
    let caller = models::caller(session, &run).with_account(Arc::clone(&account) as _);
    let restored = catch_panic(|| device.prepare_model_from_cache(cache, deadline, &caller))??;
    drop(entered);
    // Nobody else has seen the model: without its rules any request would reach the device.
    let rules = restored.request_rules().cloned().ok_or(ServerError::NoRequestRules)?;
    let options = restored.prepare_options().unwrap_or_default();
    let kept_bytes = rules.held_bytes() as u64;
    let charge = charge.and(session.budgets.memory(kept_bytes)?);
    account.also(kept_bytes);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (inputs, outputs) = rules.counts();
    let longest = longest_packet(&rules);
    let meter = models::meter(session, &*device, account);
    let entry = PreparedEntry::new(restored, &options, rules, meter, charge);
    marks.skip();
    marks.whole(SpanKind::PrepareModel, 0);
    Ok(Answer::Restored {
        model: models::keep(session, entry),
        inputs: number(inputs),
        outputs: number(outputs),
        longest_packet: number(longest),
        prepared: PreparedHow::from(&options),
    })
}
