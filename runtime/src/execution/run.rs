//! Runs an execution from its arguments to its outcome.

use burst_hal::{Dimensions, Pool, ResultCode, TimePoint, Timing};

use super::graph::Runner;
use super::job::{Job, Outcome};
use super::staging::Staged;
use super::step::{Done, Steps, Stop};
use crate::compiled::Body;
use crate::error::Result;
use crate::frame::Frame;

/// Runs it on this thread. Memories that were made for roles have values afterwards, or none.
pub(super) fn run(mut job: Job, frame: &mut Frame) -> Outcome {
    let outcome = match Staged::of(&job, frame) {
        Ok(staged) => run_staged(&job, &staged, frame),
        Err(error) => {
            tracing::info!(%error, "the arguments cannot be used");
            Outcome::of(error.code)
        }
    };
    let dimensions: Vec<Dimensions> =
        outcome.outputs.iter().map(|shape| shape.dimensions.clone()).collect();
    job.settle((outcome.code == ResultCode::NoError).then_some(&dimensions));
    job.has_run = true;
    outcome
}

fn run_staged(job: &Job, staged: &Staged, frame: &mut Frame) -> Outcome {
    let compiled = &*job.compiled;
    if job.options.deadline.is_some_and(TimePoint::has_passed) {
        return Outcome::of(ResultCode::MissedDeadlineTransient);
    }
    let done = match body(job, staged, frame) {
        Err(Stop::Whole(code)) => {
            tracing::info!(%code, "the reference device runs the whole model");
            steps(job, frame).whole(code, &staged.inputs, &staged.outputs)
        }
        done => done,
    };
    match done {
        Ok(Done { dimensions, timing }) => match staged.copy_back(&compiled.outputs, &dimensions) {
            Ok(()) => Outcome::done(dimensions, timing),
            Err(error) => Outcome::of(error.code),
        },
        Err(Stop::Insufficient(outputs)) => {
            Outcome { outputs, ..Outcome::of(ResultCode::OutputInsufficientSize) }
        }
        Err(Stop::Final(code) | Stop::Whole(code)) => Outcome::of(code),
    }
}

fn body(job: &Job, staged: &Staged, frame: &mut Frame) -> std::result::Result<Done, Stop> {
    match &job.compiled.body {
        Body::Simple(step) => steps(job, frame).device(step, &staged.inputs, &staged.outputs),
        Body::Compound(graph) => {
            let temporaries = temporaries(job, frame)?;
            let mut runner = Runner { steps: steps(job, frame), temporaries };
            let dimensions = runner.graph(graph, &staged.inputs, &staged.outputs)?;
            // Times of several devices add up to nothing.
            Ok(Done { dimensions, timing: Timing::UNAVAILABLE })
        }
    }
}

fn temporaries(job: &Job, frame: &mut Frame) -> Result<Pool> {
    frame.temporaries(job.compiled.temporaries, &job.compiled.constants)
}

fn steps<'a>(job: &'a Job, frame: &'a mut Frame) -> Steps<'a> {
    Steps { compiled: &job.compiled, frame, options: job.options, is_interpreting: false }
}
