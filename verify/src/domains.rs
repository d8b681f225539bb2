//! Memory domains: arguments in plain shared memory, then in buffers of the driver.

use std::sync::Arc;

use burst_hal::{Buffer, BufferRequest, BufferRole, Caller, ErrorStatus, ExecutionOptions, Route};

use crate::arguments::{Arguments, Held};
use crate::case::Case;
use crate::checks::Expect;
use crate::outcome::{Done, LeftOut};
use crate::subject::{Subject, Target};

/// Executes with a shared memory per pool, which is what a blob is here, and with a buffer per argument.
pub(crate) fn run(target: Target<'_>, subject: &Subject<'_>, route: Route) -> Result<Done, String> {
    let options = ExecutionOptions::default();
    let blob = Case::new(target, subject, route)?
        .once(Expect::Values, &options)
        .map_err(|what| format!("blob: {what}"))?;
    let device = on_buffers(target, subject, route).map_err(|what| format!("device: {what}"))?;
    Ok(blob.and(device))
}

fn on_buffers(target: Target<'_>, subject: &Subject<'_>, route: Route) -> Result<Done, String> {
    let mut arguments = Arguments::new(&subject.built, &**target.memory)?;
    let left_out = move_to_buffers(target, subject, &mut arguments)?;
    let nothing = Done { count: 0, left_out };
    if arguments.buffers() == 0 {
        return Ok(nothing.and(Done { count: 0, left_out: vec![LeftOut::NoBuffers] }));
    }
    let mut case = Case::with_arguments(subject, arguments, route)?;
    Ok(nothing.and(case.once(Expect::Values, &ExecutionOptions::default())?))
}

/// A buffer for every argument that can have one, inputs with their values.
fn move_to_buffers(
    target: Target<'_>,
    subject: &Subject<'_>,
    arguments: &mut Arguments,
) -> Result<Vec<LeftOut>, String> {
    let Subject { built, .. } = subject;
    let main = &built.model.main;
    let mut left_out = Vec::new();
    let inputs = main.input_indexes.iter().zip(&built.inputs).enumerate();
    for (position, (operand, value)) in inputs {
        let Some(value) = value else { continue }; // left out of the request
        let is_open = main.operands[*operand as usize].dimensions.contains(&0);
        let role = role(position);
        let what = format!("input {position}");
        match allocate(target, subject, (vec![role], Vec::new()), arguments, is_open, &what)? {
            Err(rule) => left_out.push(rule),
            Ok(buffer) => {
                let pool = target.memory.allocate(value.len());
                let pool = pool.map_err(|failure| format!("no memory: {failure}"))?;
                pool.write(0, value).map_err(|error| format!("the memory of {what}: {error}"))?;
                let filled = buffer.copy_from(&pool, &[]);
                filled.map_err(|failure| format!("copy_from for {what}: {failure}"))?;
                arguments.put_input(position, buffer);
            }
        }
    }
    for (position, (operand, want)) in main.output_indexes.iter().zip(&built.outputs).enumerate() {
        let is_open = main.operands[*operand as usize].dimensions.contains(&0);
        let role = role(position);
        let what = format!("output {position}");
        match allocate(target, subject, (Vec::new(), vec![role]), arguments, is_open, &what)? {
            Err(rule) => left_out.push(rule),
            Ok(buffer) => {
                let pool = target.memory.allocate(want.len().max(1));
                let copy = pool.map_err(|failure| format!("no memory: {failure}"))?;
                arguments.put_output(position, Held { buffer, copy });
            }
        }
    }
    Ok(left_out)
}

fn role(position: usize) -> BufferRole {
    BufferRole { model: 0, position: u32::try_from(position).unwrap_or(u32::MAX), frequency: 1.0 }
}

/// A buffer for one role, or the rule by which the device need not make one: it may refuse any.
fn allocate(
    target: Target<'_>,
    subject: &Subject<'_>,
    (inputs, outputs): (Vec<BufferRole>, Vec<BufferRole>),
    arguments: &Arguments,
    is_open: bool,
    what: &str,
) -> Result<Result<Arc<dyn Buffer>, LeftOut>, String> {
    let models = vec![Arc::clone(&subject.prepared)];
    let request = BufferRequest { models, inputs, outputs, ..BufferRequest::default() };
    match target.device.allocate(&request, &Caller::default()) {
        Err(failure) if failure.status == ErrorStatus::GeneralFailure => {
            Ok(Err(if is_open { LeftOut::BufferOfOpenSize } else { LeftOut::BufferRefused }))
        }
        Err(failure) => Err(format!("allocate for {what}: {failure}")),
        Ok(buffer) if buffer.token() == 0 => Err(format!("{what} has token 0")),
        Ok(buffer) if arguments.has_token(buffer.token()) => {
            Err(format!("{what} has the token of another buffer"))
        }
        Ok(buffer) => Ok(Ok(buffer)),
    }
}
